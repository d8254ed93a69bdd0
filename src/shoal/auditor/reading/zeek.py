"""Read logs of Zeek in its own format."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import pyarrow as pa

from shoal.auditor.reading.columns import TEXT
from shoal.auditor.reading.lines import Part
from shoal.errors import InputError

_DEFAULTS: Final = {"separator": "\\x09", "unset_field": "-", "empty_field": "(empty)"}
_UNREADABLE: Final = re.compile("[\x00\ud800-\udfff]")
"""NUL, and what stands for bytes that are not UTF-8."""


def read_zeek(data: bytes, where: str) -> Part:
    """Read a log as text: unset and empty fields are null, a line with too few or too many fields is unreadable."""
    known, names, separator, rows = dict(_DEFAULTS), [""], "\t", []
    for line in data.split(b"\n"):
        text = line.removesuffix(b"\r").decode("utf-8", "surrogateescape")
        if text.startswith("#separator "):
            separator = bytes.fromhex(text.partition("\\x")[2]).decode() or separator
        elif text.startswith("#"):
            key, _, value = text[1:].partition(separator)
            if key == "fields" and known.get(key, value) != value:
                raise InputError(f"{where}: the columns change in the middle of the log; split it there")
            known[key] = value
            names = known.get("fields", "").split(separator)
        elif text:
            fields = text.split(separator)
            is_whole = len(fields) == len(names) and _UNREADABLE.search(text) is None
            rows.append(fields if is_whole else None)
    if "fields" not in known or len(set(names)) != len(names):
        raise InputError(f"{where}: no line #fields, or one that names a column twice; give the log as Zeek wrote it")
    missing = {"", known["unset_field"], known["empty_field"]}
    turned = [[None if row is None or row[at] in missing else row[at] for row in rows] for at in range(len(names))]
    columns = {name: pa.chunked_array([pa.array(cells, TEXT)]) for name, cells in zip(names, turned, strict=True)}
    return columns, np.array([row is None for row in rows], np.bool_)
