"""Read columns of a table in batches, so that no more than a batch of its rows is in memory."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import csv, parquet

from shoal.auditor.reading.files import repeating_texts, table_of
from shoal.auditor.reading.header import column_names
from shoal.auditor.reading.lines import ABSENT, read_jsonl
from shoal.auditor.reading.paths import Format, file_kind, opened, table_paths, whole_lines
from shoal.errors import InputError

_ROWS: Final = 1 << 18
"""Rows of a batch of a Parquet file or of a table in memory."""
_BLOCK: Final = 16 * 1024 * 1024
"""Bytes of a batch of a CSV file."""
Columns = dict[str, Any]
"""Columns of a batch by name: Arrow arrays or lists, all of the same length."""


def read_batches(what: Any, names: tuple[str, ...], *, name: str, expected: Format) -> Iterator[Columns]:
    """Yield some columns of a path, an Arrow object, a frame or a list of these, batch by batch.

    InputError if a column is missing, or if a row cannot be read: a table without some of its rows proves nothing.
    """
    if isinstance(what, list | tuple):
        for piece in what:
            yield from read_batches(piece, names, name=name, expected=expected)
    elif isinstance(what, str | Path):
        for path in table_paths(what, name):
            yield from _of_file(path, names, expected)
    else:
        table = table_of(what, name)
        _require(table.column_names, names, name)
        for batch in table.select(list(names)).to_batches(_ROWS):
            yield dict(zip(names, batch.columns, strict=True))


def _of_file(path: Path, names: tuple[str, ...], expected: Format) -> Iterator[Columns]:
    kind = file_kind(path, expected)
    try:
        if kind == "parquet":
            yield from _of_parquet(path, names)
        elif kind == "arrow":
            yield from _of_arrow(path, names)
        elif kind == "jsonl":
            yield from _of_jsonl(path, names)
        elif kind in {"csv", "tsv"}:
            yield from _of_csv(path, names, expected.delimiter or ("\t" if kind == "tsv" else ","), expected)
        else:
            raise InputError(f"{path}: neither Parquet, Arrow, CSV nor JSON lines")
    except (pa.ArrowException, UnicodeDecodeError):  # its message may quote a row
        raise InputError(
            f"{path}: empty, damaged, not in UTF-8, or a row has too few or too many values; write the file again"
        ) from None


def names_in(what: Any, *, name: str, expected: Format) -> list[str]:
    """The columns of a path, an Arrow object or a frame; of a list of these, those of the first."""
    if isinstance(what, list | tuple):
        return names_in(what[0], name=name, expected=expected) if what else []
    if not isinstance(what, str | Path):
        return list(table_of(what, name).column_names)
    path = next(iter(table_paths(what, name)))
    kind = file_kind(path, expected)
    if kind in {"csv", "tsv"}:
        return expected.header or _csv_names(path, expected.delimiter or ("\t" if kind == "tsv" else ","), expected)
    if kind == "parquet":
        return list(parquet.read_schema(path).names)
    if kind == "jsonl":
        return list(next((read_jsonl(block, names_once=True, absent=ABSENT)[0] for block in whole_lines(path)), {}))
    with opened(path) as stream:
        data = stream.read()
    opener = pa.ipc.open_file if data[:6] == b"ARROW1" else pa.ipc.open_stream
    return list(opener(pa.BufferReader(data)).schema.names)


def _of_parquet(path: Path, names: tuple[str, ...]) -> Iterator[Columns]:
    with parquet.ParquetFile(path, pre_buffer=False) as plain:
        _require(plain.schema_arrow.names, names, str(path))
        texts = [name for name in repeating_texts(plain) if name in names]
    with parquet.ParquetFile(path, pre_buffer=False, read_dictionary=texts) as file:
        for batch in file.iter_batches(_ROWS, columns=list(names), use_threads=False):
            yield {name: batch.column(name) for name in names}


def _of_arrow(path: Path, names: tuple[str, ...]) -> Iterator[Columns]:
    with opened(path) as stream:
        is_file = stream.read(6) == b"ARROW1"
    if is_file:
        with pa.memory_map(str(path)) as memory:
            reader = pa.ipc.open_file(memory)
            _require(reader.schema.names, names, str(path))
            for at in range(reader.num_record_batches):
                batch = reader.get_batch(at)
                yield {name: batch.column(name) for name in names}
        return
    with opened(path) as stream:
        reader = pa.ipc.open_stream(stream)
        _require(reader.schema.names, names, str(path))
        for batch in reader:
            yield {name: batch.column(name) for name in names}
        if stream.read(1):
            raise InputError(f"{path}: something follows the end of the Arrow stream; write one stream to a file")


def _of_csv(path: Path, names: tuple[str, ...], delimiter: str, expected: Format) -> Iterator[Columns]:
    """Read columns as text: nothing that is spelt differently becomes equal. Blanks around names do not count."""
    header = expected.header
    found = header or _csv_names(path, delimiter, expected)
    _require(found, names, str(path))
    # A reader may tell "" and nothing apart, as databases do.
    convert = csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.large_string()), include_columns=list(names), strings_can_be_null=True,
        null_values=[""], quoted_strings_can_be_null=False,
    )  # fmt: skip
    with opened(path) as stream:
        options = csv.ReadOptions(use_threads=False, block_size=_BLOCK, column_names=found)
        marked = _WithLastRow(_from_header(stream, delimiter, expected), delimiter, len(found))
        before: Columns | None = None
        is_header = header is None
        for batch in csv.open_csv(pa.PythonFile(marked, "r"), options, _csv_form(delimiter, len(found)), convert):
            if not batch.num_rows:
                continue
            if before is not None:
                yield before
            before = dict(zip(names, batch.slice(int(is_header)).columns, strict=True))
            is_header = False
        if before is None or any(column[-1].as_py() != marked.mark for column in before.values()):
            raise InputError(f"{path}: a quote is not closed, rows after it cannot be told; write the file again")
        yield {name: column[:-1] for name, column in before.items()}


class _WithLastRow:
    """A CSV file, and behind it a row that no file has: if it is not read as a row, the file ends in an open quote."""

    def __init__(self, stream: Any, delimiter: str, columns: int) -> None:
        self.mark = f"end {secrets.token_hex(16)}"
        self.closed = False
        self._stream, self._row = stream, delimiter.join([self.mark] * columns).encode() + b"\n"
        self._last, self._is_over = b"\n", False

    def read(self, size: int) -> bytes:
        found = bytes(self._stream.read(size))
        if found:
            self._last = found[-1:]
            return found
        if self._is_over:
            return b""
        self._is_over = True
        return (b"" if self._last in b"\r\n" else b"\n") + self._row

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True


class _FromHeader:
    """A CSV file from its header line on, to which the separator of a first name that is missing is added."""

    def __init__(self, stream: Any, separator: bytes) -> None:
        self.closed = False
        self._stream, self._separator, self._is_first = stream, separator, True

    def read(self, size: int) -> bytes:
        found = bytes(self._stream.read(size))
        while self._is_first and found:
            found = found.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
            if found:
                self._is_first = False
                return self._separator + found
            found = bytes(self._stream.read(size))
        return found

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True


def _from_header(stream: Any, delimiter: str, expected: Format) -> Any:
    if expected.header is not None:
        return stream
    return _FromHeader(stream, delimiter.encode() if expected.lacks_first_name else b"")


def _csv_names(path: Path, delimiter: str, expected: Format) -> list[str]:
    """Return a name for every column of a file with a header line."""
    with opened(path) as stream:
        reader = csv.open_csv(
            pa.PythonFile(_from_header(stream, delimiter, expected), "r"),
            csv.ReadOptions(use_threads=False, block_size=_BLOCK), _csv_form(delimiter),
            csv.ConvertOptions(include_columns=[]),
        )  # fmt: skip
        return column_names(reader.schema.names, replace(expected, trims=True, lacks_first_name=False), str(path))


def _csv_form(delimiter: str, columns: int = 0) -> Any:
    """In a file of one column an empty line is a missing value."""
    return csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=columns != 1)


def _of_jsonl(path: Path, names: tuple[str, ...]) -> Iterator[Columns]:
    seen: set[str] = set()
    row = 0
    for block in whole_lines(path):
        columns, broken = read_jsonl(block, names_once=True, absent=ABSENT)
        if broken.any():
            raise InputError(f"{path}, record {row + int(broken.argmax()) + 1}: cannot be read; write the file again")
        seen.update(columns)
        row += len(broken)
        yield {name: columns.get(name, [ABSENT] * len(broken)) for name in names}
    _require(list(seen), names, str(path))


def _require(found: list[str], names: tuple[str, ...], where: str) -> None:
    if len(set(found)) < len(found):
        raise InputError(f"{where}: two columns have the same name; rename one")
    missing = [name for name in names if name not in found]
    if missing:
        raise InputError(f"{where}: no column {', '.join(missing)}; check the names and the file")
