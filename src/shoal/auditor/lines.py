"""Read CSV and JSON lines so that every record keeps its number, also the broken ones."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv

from shoal.auditor.columns import TEXT
from shoal.errors import InputError

_LONGEST_QUOTED: Final = 16 * 1024 * 1024
_BOM: Final = b"\xef\xbb\xbf"
# What stands between an opening quote and after the one that closes it; possessive, so always linear.
_TO_CLOSING_QUOTE = re.compile(r'[^"]*+(?:""[^"]*+)*+"')
_UNREADABLE = re.compile("[\x00\ud800-\udfff]")

Part = tuple[dict[str, Any], npt.NDArray[np.bool_]]
"""Columns by name, and which records could not be read (null in every column)."""


def read_csv(data: bytes, *, delimiter: str, header: list[str] | None, where: str) -> Part:
    """Read CSV as text; empty fields are null."""
    data = data.removeprefix(_BOM)
    return _read_plain(data, delimiter, header) or _read_careful(data, delimiter, header, where)


def _read_plain(data: bytes, delimiter: str, header: list[str] | None) -> Part | None:
    """Read with Arrow where no reader could disagree: no quote, no NUL, valid UTF-8, every row complete."""
    if b'"' in data or b"\x00" in data or not data.strip() or not delimiter.isascii():
        return None
    try:
        table = csv.read_csv(pa.BufferReader(data), **_plain_options(data, delimiter, header))
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None
    if len(set(table.column_names)) != table.num_columns or set(table.schema.types) - {TEXT}:
        return None
    columns = {name: table.column(name) for name in table.column_names}
    return columns, np.zeros(table.num_rows, np.bool_)


def _plain_options(data: bytes, delimiter: str, header: list[str] | None) -> dict[str, Any]:
    names = header or re.split(rb"[\r\n]+", data.lstrip(b"\r\n"), maxsplit=1)[0].decode().split(delimiter)
    return {
        "read_options": csv.ReadOptions(column_names=header),
        "parse_options": csv.ParseOptions(delimiter=delimiter, quote_char=False),
        "convert_options": csv.ConvertOptions(
            column_types=dict.fromkeys(names, TEXT), null_values=[""], strings_can_be_null=True
        ),
    }


def _read_careful(data: bytes, delimiter: str, header: list[str] | None, where: str) -> Part:
    records = csv_records(data.decode("utf-8", "surrogateescape"), delimiter)
    names = header or next(records, [])
    if names is None or len(set(names)) != len(names):
        raise InputError(f"{where}: the header cannot be read or names a column twice; give header = [names]")
    rows = [fields if fields and len(fields) == len(names) else None for fields in records]
    blank = [None] * len(names)
    turned = zip(*(fields or blank for fields in rows), strict=True) if rows else ((),) * len(names)
    columns = {
        name: pa.array([cell or None for cell in cells], TEXT)
        for name, cells in zip(names, turned, strict=True)
    }
    return columns, np.fromiter((fields is None for fields in rows), np.bool_, len(rows))


def csv_records(text: str, delimiter: str) -> Iterator[list[str] | None]:
    """Yield the fields of every record, None for one that cannot be read. Blank lines are no records."""
    lines = io.StringIO(text, newline="").readlines()
    ends = _QuoteEnds(lines, delimiter)
    at = 0
    while at < len(lines):
        end = ends.of_record(at)
        if end is None:
            yield None
        elif record := _without_newline("".join(lines[at : end + 1])):
            yield None if _UNREADABLE.search(record) else split_fields(record, delimiter)
        at = (at if end is None else end) + 1


class _QuoteEnds:
    """For every line: where a record that starts there ends, in linear time over all lines.

    A quoted field that never closes, or is longer than 16 MiB, makes its first line one unreadable record.
    """

    def __init__(self, lines: list[str], delimiter: str) -> None:
        self._lines, self._delimiter = lines, delimiter
        self._starts = np.zeros(len(lines) + 1, np.int64)
        np.cumsum([len(line) for line in lines], out=self._starts[1:])
        self._quoted = np.array([i for i, line in enumerate(lines) if '"' in line], np.int64)
        # Of lines with a quote: does a record that is inside a quoted field before the line end with it?
        self._closes = np.array([not self._is_open(i, inside=True) for i in self._quoted], np.bool_)
        self._closing = self._quoted[self._closes]

    def of_record(self, at: int) -> int | None:
        if '"' not in self._lines[at] or not self._is_open(at, inside=False):
            return at
        found = int(np.searchsorted(self._closing, at + 1))
        if found == len(self._closing) or self._is_too_long(at, int(self._closing[found])):
            return None
        return int(self._closing[found])

    def _is_open(self, at: int, *, inside: bool) -> bool:
        line, position = self._lines[at], 0
        while True:
            if inside or line.startswith('"', position):
                closing = _TO_CLOSING_QUOTE.match(line, position if inside else position + 1)
                if closing is None:
                    return True
                position, inside = closing.end(), False
            position = line.find(self._delimiter, position) + 1
            if position == 0:
                return False

    def _is_too_long(self, at: int, end: int) -> bool:
        """Tell whether more than the limit lies between two lines with quotes of this record."""
        if self._starts[end + 1] - self._starts[at] <= _LONGEST_QUOTED:
            return False
        marks = self._quoted[np.searchsorted(self._quoted, at) : np.searchsorted(self._quoted, end) + 1]
        gaps = self._starts[marks[1:]] - self._starts[marks[:-1] + 1]
        return bool((gaps > _LONGEST_QUOTED).any()) or self._has_long_field(at, end)

    def _has_long_field(self, at: int, end: int) -> bool:
        fields = split_fields(_without_newline("".join(self._lines[at : end + 1])), self._delimiter)
        return any(len(field.encode("utf-8", "surrogateescape")) > _LONGEST_QUOTED for field in fields)


def _without_newline(record: str) -> str:
    return record.removesuffix("\n").removesuffix("\r")


def split_fields(record: str, delimiter: str) -> list[str]:
    """Split a record; a quote counts only at the start of a field, as Python's csv module has it."""
    if '"' not in record:
        return record.split(delimiter)
    fields, position = [], 0
    while True:
        quoted = _TO_CLOSING_QUOTE.match(record, position + 1) if record.startswith('"', position) else None
        head = quoted.group()[:-1].replace('""', '"') if quoted else ""
        position = quoted.end() if quoted else position
        end = record.find(delimiter, position)
        fields.append(head + record[position : end if end >= 0 else None])
        if end < 0:
            return fields
        position = end + 1


def read_jsonl(data: bytes) -> Part:
    """Read JSON lines; a line that is no JSON object is a record that cannot be read."""
    lines = [line for line in data.removeprefix(_BOM).split(b"\n") if line.strip(b" \t\r")]
    rows = [_object(line) for line in lines]
    names = dict.fromkeys(name for row in rows if row for name in row)
    columns = {name: [row.get(name) if row else None for row in rows] for name in names}
    return columns, np.fromiter((row is None for row in rows), np.bool_, len(rows))


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        text = line.decode()
        found = json.loads(text, parse_constant=_refuse)
        if "\\ud" in text.lower():  # half a surrogate pair is no text
            json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _refuse(_: str) -> NoReturn:
    raise ValueError("not JSON")
