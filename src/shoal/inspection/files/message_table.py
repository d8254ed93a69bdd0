"""The first messages of a topic or stream as a table, and what a policy for it says about source and sink."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import InputError
from shoal.inspection.columns.facts import look
from shoal.inspection.columns.roles import find_time
from shoal.inspection.files.reading import FirstRows, as_column


def read_messages(
    name: str, records: Sequence[Mapping[str, Any]], source: Mapping[str, Any], sink: Mapping[str, Any],
    *, keys: Any, times: Any, headers: Mapping[str, Any], is_all: bool,
) -> FirstRows:  # fmt: skip
    """A table of the records, with columns from around them where they help.

    `keys` are texts or nulls, `times` the broker's, as Arrow arrays. The key of messages becomes a column if no column
    repeats it; the broker's time only if no column has times. A column that `source` names for one of them is always
    there, and so are `headers`.
    """
    names = list(dict.fromkeys(name for record in records for name in record))
    columns = {name: as_column([record.get(name) for record in records]) for name in names}
    columns |= dict(headers)
    outer: dict[str, str] = {}
    given = source.get("key_column")
    if given is not None or _says_more(keys, columns):
        outer[given or _free("key", columns)] = "key_column"
        columns[given or _free("key", columns)] = keys
    given = source.get("timestamp_column")
    if given is not None or find_time(look(pa.table(columns))) is None:
        outer[given or _free("arrived", columns)] = "timestamp_column"
        columns[given or _free("arrived", columns)] = times
    table = pa.table(columns)
    if not records:
        raise InputError(f"{name}: has no message that can be read; name a topic or stream with messages")
    return FirstRows(table, dict(source), converts=False, is_all=is_all, sink=dict(sink), outer=outer)


def _free(name: str, columns: Mapping[str, Any]) -> str:
    return name if name not in columns else f"message_{name}"


def _says_more(keys: Any, columns: Mapping[str, Any]) -> bool:
    """Whether keys are there, differ, and are not those of a column."""
    if keys.null_count == len(keys) or len(pc.unique(keys)) < 2:
        return False
    return not any(
        column.equals(keys) or (pa.types.is_primitive(column.type) and column.cast(pa.string()).equals(keys))
        for column in columns.values()
    )
