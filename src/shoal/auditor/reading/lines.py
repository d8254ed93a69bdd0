"""Read CSV and JSON lines so that every record keeps its number, even the unreadable ones."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
from pyarrow import csv

from shoal.auditor.reading.columns import CODED_TEXT, TEXT
from shoal.auditor.reading.header import column_names
from shoal.auditor.reading.paths import Format
from shoal.errors import InputError

_LONGEST_QUOTED: Final = 16 * 1024 * 1024
_BOM: Final = b"\xef\xbb\xbf"
# From after an opening quote to its closing quote; possessive, so always linear.
_TO_CLOSING_QUOTE = re.compile(r'[^"]*+(?:""[^"]*+)*+"')
_UNREADABLE = re.compile("[\x00\ud800-\udfff]")
Clean = Callable[[str, Any], Any]
Keep = Callable[[int], None]
Part = tuple[dict[str, Any], npt.NDArray[np.bool_]]
"""Columns by name, and which records are unreadable (null in every column)."""


def read_csv(data: bytes, *, delimiter: str, expected: Format, where: str) -> Part:
    """Read CSV as text; empty fields are null."""
    return _read_plain(data, delimiter, expected, where) or _read_careful(data, delimiter, expected, where)


def read_csv_blocks(
    blocks: Iterable[bytes], *, delimiter: str, expected: Format, where: str, clean: Clean, keep: Keep
) -> Part | None:
    """Read CSV from blocks of whole lines into dictionary-encoded columns; None if a block needs Python's parser.

    ``clean`` maps a column's name and text to what is kept, or None; ``keep`` receives its size in bytes.
    """
    columns: dict[str, list[Any]] = {}
    rows = 0
    for number, block in enumerate(blocks):
        if number > 0 and not block.strip():
            continue
        part = _read_plain(block, delimiter, expected, where)
        if part is None:
            return None
        expected = replace(expected, header=list(part[0]))
        rows += len(part[1])
        for name, column in part[0].items():
            cleaned = clean(name, column)
            if cleaned is None:
                continue
            coded = cleaned.combine_chunks().dictionary_encode()
            columns.setdefault(name, []).append(coded)
            keep(coded.nbytes)
    return {name: pa.chunked_array(chunks, CODED_TEXT) for name, chunks in columns.items()}, np.zeros(rows, np.bool_)


def _read_plain(data: bytes, delimiter: str, expected: Format, where: str) -> Part | None:
    """Read with Arrow if all readers agree on the data: tidy quotes, no NUL, valid UTF-8, complete rows."""
    data = data.removeprefix(_BOM)
    if b"\x00" in data or not data.strip() or not delimiter.isascii() or not _is_tidy(data, delimiter):
        return None
    names = expected.header
    try:
        if names is None:
            first, data = _first_line(data)
            names = column_names(split_fields(first.decode(), delimiter) or [], expected, where)
        if not data.strip(b"\r\n"):
            return {name: pa.chunked_array([], TEXT) for name in names}, np.zeros(0, np.bool_)
        table = csv.read_csv(pa.BufferReader(data), **_plain_options(names, delimiter))
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None
    if len(set(names)) != len(names):
        return None
    columns = {name: table.column(name) for name in table.column_names}
    return columns, np.zeros(table.num_rows, np.bool_)


def _is_tidy(data: bytes, delimiter: str) -> bool:
    """Return whether every quoted field is quoted as a whole and ends on its line."""
    if b'"' not in data:
        return True
    mark = re.escape(delimiter).encode()
    field = rb'(?:"[^"\r\n]*+(?:""[^"\r\n]*+)*+"|[^"\r\n' + mark + rb"]*+)"
    untidy = rb"^(?!" + field + rb"(?:" + mark + field + rb")*+\r?$)"
    return b"\r" not in data.replace(b"\r\n", b"") and re.search(untidy, data, re.MULTILINE) is None


def _first_line(data: bytes) -> tuple[bytes, bytes]:
    """Split off the first line that is not empty."""
    data = data.lstrip(b"\r\n")
    end = re.search(rb"[\r\n]|$", data)
    place = len(data) if end is None else end.start()
    return data[:place], data[place:]


def _plain_options(names: list[str], delimiter: str) -> dict[str, Any]:
    return {
        "read_options": csv.ReadOptions(column_names=names),
        "parse_options": csv.ParseOptions(delimiter=delimiter, quote_char='"'),
        "convert_options": csv.ConvertOptions(
            column_types=dict.fromkeys(names, TEXT), null_values=[""], strings_can_be_null=True
        ),
    }


def _read_careful(data: bytes, delimiter: str, expected: Format, where: str) -> Part:
    records = csv_records(data.removeprefix(_BOM).decode("utf-8", "surrogateescape"), delimiter)
    names = expected.header
    if names is None:
        cells = next(records, [])
        if cells is None:
            raise InputError(f"{where}: the header cannot be read; give header = [names]")
        names = column_names(cells, expected, where) if cells else []
    if len(set(names)) != len(names):
        raise InputError(f"{where}: [source] header names a column twice; name it once")
    rows = [fields if fields and len(fields) == len(names) else None for fields in records]
    blank = [None] * len(names)
    turned = zip(*(fields or blank for fields in rows), strict=True) if rows else ((),) * len(names)
    columns = {
        name: pa.array([cell or None for cell in cells], TEXT) for name, cells in zip(names, turned, strict=True)
    }
    return columns, np.fromiter((fields is None for fields in rows), np.bool_, len(rows))


def csv_records(text: str, delimiter: str) -> Iterator[list[str] | None]:
    """Yield the fields of every record, None for an unreadable one. Blank lines are skipped."""
    lines = io.StringIO(text, newline="").readlines()
    ends = _QuoteEnds(lines, delimiter)
    is_clean = _UNREADABLE.search(text) is None
    at = 0
    while at < len(lines):
        record = _without_newline(lines[at])
        fields = split_fields(record, delimiter)
        if fields is None and (end := ends.of_record(at)) is not None:
            record = _without_newline("".join(lines[at : end + 1]))
            fields = split_fields(record, delimiter)
            at = end
        if record:
            yield fields if is_clean or not _UNREADABLE.search(record) else None
        at += 1


class _QuoteEnds:
    """For a line with an unclosed quote: where its record ends, in linear time over all lines.

    A quoted field that never closes, or is longer than 16 MiB, makes its first line one unreadable record.
    """

    def __init__(self, lines: list[str], delimiter: str) -> None:
        self._lines, self._delimiter = lines, delimiter

    def of_record(self, at: int) -> int | None:
        """Return the last line of a record whose first line does not close a quote."""
        found = int(np.searchsorted(self._closing, at + 1))
        if found == len(self._closing) or self._is_too_long(at, int(self._closing[found])):
            return None
        return int(self._closing[found])

    @cached_property
    def _starts(self) -> npt.NDArray[np.int64]:
        return np.cumsum([0, *(len(line) for line in self._lines)])

    @cached_property
    def _quoted(self) -> npt.NDArray[np.int64]:
        return np.array([at for at, line in enumerate(self._lines) if '"' in line], np.int64)

    @cached_property
    def _closing(self) -> npt.NDArray[np.int64]:
        """Lines that end a record if they start inside a quoted field."""
        return np.array([at for at in self._quoted.tolist() if not self._is_open_after(at)], np.int64)

    def _is_open_after(self, at: int) -> bool:
        """Return whether a line that starts inside a quoted field ends inside one."""
        line = self._lines[at]
        closing = _TO_CLOSING_QUOTE.match(line)
        following = line.find(self._delimiter, closing.end()) if closing else -1
        if closing is None or following < 0:
            return closing is None
        return split_fields(line[following + 1 :], self._delimiter) is None

    def _is_too_long(self, at: int, end: int) -> bool:
        """Return whether two lines with quotes of this record are further apart than the limit."""
        if self._starts[end + 1] - self._starts[at] <= _LONGEST_QUOTED:
            return False
        marks = self._quoted[np.searchsorted(self._quoted, at) : np.searchsorted(self._quoted, end) + 1]
        gaps = self._starts[marks[1:]] - self._starts[marks[:-1] + 1]
        return bool((gaps > _LONGEST_QUOTED).any()) or self._has_long_field(at, end)

    def _has_long_field(self, at: int, end: int) -> bool:
        fields = split_fields(_without_newline("".join(self._lines[at : end + 1])), self._delimiter)
        return any(len(field.encode("utf-8", "surrogateescape")) > _LONGEST_QUOTED for field in fields or ())


def _without_newline(record: str) -> str:
    return record.removesuffix("\n").removesuffix("\r")


def split_fields(record: str, delimiter: str) -> list[str] | None:
    """Split a record; None if a quote is not closed. A quote counts only at a field's start (as in Python's csv)."""
    if '"' not in record:
        return record.split(delimiter)
    fields, position = [], 0
    while True:
        head = ""
        if record.startswith('"', position):
            quoted = _TO_CLOSING_QUOTE.match(record, position + 1)
            if quoted is None:
                return None
            head, position = quoted.group()[:-1].replace('""', '"'), quoted.end()
        end = record.find(delimiter, position)
        fields.append(head + record[position : end if end >= 0 else None])
        if end < 0:
            return fields
        position = end + 1


class _Absent:
    """The value of a name that a JSON object does not have, where it differs from null."""

    def __repr__(self) -> str:
        return "absent"


ABSENT: Final = _Absent()


def read_jsonl(data: bytes, *, names_once: bool = False, absent: Any = None) -> Part:
    """Read JSON lines; a line that is not a JSON object is an unreadable record.

    With ``names_once`` so is one with a repeated name: other readers may use the value that this one ignores.
    ``absent`` is the value of names that an object does not have.
    """
    lines = [line for line in data.removeprefix(_BOM).split(b"\n") if line.strip(b" \t\r")]
    hook = once if names_once else None
    rows = [_object(line, hook) for line in lines]
    names = dict.fromkeys(name for row in rows if row for name in row)
    columns = {name: [None if row is None else row.get(name, absent) for row in rows] for name in names}
    return columns, np.fromiter((row is None for row in rows), np.bool_, len(rows))


def read_lines(data: bytes, column: str) -> Part:
    """Read text with one record per line; an empty line is an empty record, one that is not UTF-8 is unreadable."""
    lines = data.removeprefix(_BOM).split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    texts = [_line(line.removesuffix(b"\r")) for line in lines]
    return {column: pa.array(texts, TEXT)}, np.fromiter((text is None for text in texts), np.bool_, len(texts))


def _line(line: bytes) -> str | None:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return None


def _object(line: bytes, hook: Callable[[list[tuple[str, Any]]], Any] | None) -> dict[str, Any] | None:
    try:
        if orjson.dumps(found := orjson.loads(line)) == line:  # fast, and nothing in it can be read in two ways
            return found if isinstance(found, dict) else None
    except (ValueError, TypeError):
        pass
    try:
        text = line.decode()
        found = json.loads(text, parse_constant=_refuse, object_pairs_hook=hook)
        if "\\ud" in text.lower():  # half a surrogate pair is not text
            json.dumps(found, ensure_ascii=False).encode()
    except ValueError:
        return None
    except RecursionError:  # a record of the input may be nested deeper than this parser can go; a row never is
        return _deep_object(line) if hook is None else None
    return found if isinstance(found, dict) else None


def _deep_object(line: bytes) -> dict[str, Any] | None:
    try:
        found = orjson.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a JSON object; raise ValueError if a name is repeated, since readers disagree on its meaning."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is repeated")
    return found


def _refuse(_: str) -> NoReturn:
    raise ValueError("not JSON")
