"""Read the first rows of a file of which nothing is known but its name, and describe it for a policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson
import pyarrow as pa
from pyarrow import ipc, parquet

from shoal.decode.access_log import COLUMNS, COMMON, AccessLogDecoder, is_access_log
from shoal.decode.columns import NOT_UTF8, without_spellings
from shoal.decode.csv import CsvDecoder
from shoal.decode.header_names import SHORT
from shoal.decode.spellings import Encoding
from shoal.errors import InputError, PolicyError
from shoal.inspection.files.csv_layout import CsvLayout, layout_of
from shoal.inspection.files.csv_spelling import encoding_of, spelling_of
from shoal.inspection.files.missing_words import as_nulls, missing_words

KINDS: Final = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".data": "csv", ".dat": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".json": "jsonl", ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".arrows": "arrow",
    ".feather": "arrow", ".ipc": "arrow",
}  # fmt: skip
_COMPRESSED: Final = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_HEAD: Final = 256 * 1024
_LOG_HEAD: Final = 16 * 1024
_MOST_NESTED: Final = 200_000


@dataclass(frozen=True, slots=True)
class FirstRows:
    """The first rows of a file, or the first messages of a topic or stream."""

    table: pa.Table
    source: dict[str, Any]
    """What [source] says besides the path."""
    converts: bool
    """Whether numbers and moments are written as text."""
    is_all: bool
    sink: dict[str, Any] | None = None
    """What [sink] says for a live system; None: a file next to the policy."""
    outer: dict[str, str] = field(default_factory=dict)
    """Columns that are not in the value of a message, with the key of [source] that names each."""
    known: dict[str, Any] = field(default_factory=dict)
    """Wishes that the format itself suggests, where the user states none."""
    has_header: bool | None = None
    """Whether the first line of a CSV file names its columns; None for other formats."""

    @property
    def is_live(self) -> bool:
        """Whether it is a system of messages, where more may always come."""
        return self.sink is not None


def _unreadable(kind: str) -> str:
    if kind in ("csv", "jsonl"):
        return f"is not {kind} in UTF-8, or it is damaged; save it as {kind} in UTF-8, or check the file"
    return f"is not {kind}, or it is damaged; check the file"


def read_data(path: Path, rows: int, *, header: bool | None = None) -> FirstRows:
    """Read up to `rows` rows; raise InputError with what to do if the file cannot be read.

    `header`: whether the first line of a CSV file names its columns; None: as it looks.
    """
    name = path.name.lower()
    for ending in (".gz", ".zst"):
        name = name.removesuffix(ending)
    kind = _kind_of(path, Path(name).suffix)
    if header is not None and kind != "csv":
        raise PolicyError("--header: is for CSV files; leave it out")
    try:
        if kind == "csv":
            data = _csv(path, rows, header=header)
        else:
            data = {"access-log": _access_log, "jsonl": _jsonl, "parquet": _parquet, "arrow": _arrow}[kind](path, rows)
    except OSError as error:
        if isinstance(error, pa.ArrowInvalid) or not error.strerror:
            raise InputError(f"{path}: {_unreadable(kind)}") from None
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    except (pa.ArrowInvalid, UnicodeDecodeError):
        raise InputError(f"{path}: {_unreadable(kind)}") from None
    if not data.table.num_rows or not data.table.num_columns:
        raise InputError(f"{path}: has no rows; give a file with data")
    return data


def _kind_of(path: Path, suffix: str) -> str:
    """The format by the name; logs, and texts whose name does not show it, by the content."""
    kind = KINDS.get(suffix)
    if kind is not None and (kind != "csv" or suffix in (".csv", ".tsv")):
        return kind
    try:
        with _stream(path) as stream:
            if is_access_log(stream.read(_LOG_HEAD).decode("utf-8", errors="replace")):
                return "access-log"
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or 'damaged'}); check the path") from None
    if suffix == ".log":
        raise InputError(f"{path}: is no access log in the common or combined format; name it .csv if it has columns")
    if kind is None:
        raise InputError(f"{path}: its name does not show its format; name it .csv, .jsonl, .parquet or .arrow")
    return kind


def _access_log(path: Path, rows: int) -> FirstRows:
    """The columns of the common format; with referer and agent if any line has one."""
    with AccessLogDecoder(_PlainFile(path), columns=COLUMNS) as decoder:
        table, is_all = _taken((decoded.batch for decoded in decoder.batches()), decoder.schema, rows)
    further = [name for name in COLUMNS if name not in COMMON]
    if all(table.column(name).null_count == table.num_rows for name in further):
        table = table.drop_columns(further)
    private = [name for name in ("ident", "user", "referer", "agent") if name in table.column_names]
    known = {"person": "host", "time": "time", "attribute": "request", "drop": private}
    return FirstRows(table, {"kind": "access-log"}, converts=False, is_all=is_all, known=known)


def _stream(path: Path) -> Any:
    with path.open("rb") as file:
        head = file.read(4)
    found = next((name for magic, name in _COMPRESSED.items() if head.startswith(magic)), None)
    return pa.input_stream(str(path), compression=found)


def _csv(path: Path, rows: int, *, header: bool | None) -> FirstRows:
    with _stream(path) as stream:
        head = stream.read(_HEAD)
    encoding = encoding_of(head)
    if encoding is None:
        raise InputError(f"{path}: {_unreadable('csv')}")
    try:
        return _csv_in(encoding, head, path, rows, header=header)
    except _OtherEncodingError:  # beyond what was looked at
        return _csv_in("cp1252", head, path, rows, header=header)


class _OtherEncodingError(Exception):
    """A file is not in UTF-8 although its beginning is."""


def _csv_in(encoding: Encoding, head: bytes, path: Path, rows: int, *, header: bool | None) -> FirstRows:
    text = head.decode("utf-8-sig" if encoding == "utf-8" else encoding, errors="replace")
    is_csv = bool({".csv", ".tsv"} & {suffix.lower() for suffix in path.suffixes})
    layout = layout_of(text, is_cut=len(head) >= _HEAD, is_csv=is_csv, header=header, name=str(path))
    table, is_all = _records(path, layout, rows, encoding)
    source = layout.source | ({"encoding": encoding} if encoding != "utf-8" else {})
    if layout.separator is not None:
        return _sets_of_items(table, layout, source, is_all=is_all)
    columns = dict(zip(layout.names, (column.combine_chunks() for column in table.columns), strict=True))
    words = missing_words(columns)
    source |= {"nulls": as_nulls(words, columns)} if words else {}
    columns = {name: without_spellings(column, words.get(name, ())) for name, column in columns.items()}
    spelling = spelling_of(columns)
    made = pa.table(spelling.apply(columns))
    source |= spelling.source
    return FirstRows(made, source, converts=True, is_all=is_all, has_header=layout.has_header)


def _records(path: Path, layout: CsvLayout, rows: int, encoding: Encoding) -> tuple[pa.Table, bool]:
    """Up to `rows` records as a run reads them, and whether that is all; records that a run refuses are left out."""
    given = None if layout.has_header else layout.names
    options: dict[str, Any] = {"header": SHORT if layout.lacks_first_name else given, "delimiter": layout.delimiter}
    options["encoding"] = encoding
    with CsvDecoder(_PlainFile(path), columns=layout.names, trim=True, **options) as decoder:
        return _taken(_readable(decoder), decoder.schema, rows)


def _readable(decoder: CsvDecoder) -> Iterator[pa.RecordBatch]:
    for decoded in decoder.batches():
        if any(one.reason == NOT_UTF8 for one in decoded.refused):
            raise _OtherEncodingError
        yield decoded.batch


def _sets_of_items(table: pa.Table, layout: CsvLayout, source: dict[str, Any], *, is_all: bool) -> FirstRows:
    """One column of lists, each a set; a blank between items that are blank does not count."""
    lines = table.column(0).to_pylist()
    items = [[part.strip() for part in (line or "").split(layout.separator) if part.strip()] for line in lines]
    made = pa.table({layout.names[0]: items})
    return FirstRows(made, source, converts=False, is_all=is_all, has_header=layout.has_header)


@dataclass(frozen=True, slots=True)
class _PlainFile:
    """A file for a decoder."""

    path: Path

    @property
    def name(self) -> str:
        return str(self.path)

    def open(self) -> BinaryIO:
        found: BinaryIO = _stream(self.path)
        return found

    def open_seekable(self) -> Any:
        raise InputError(f"{self.path}: is read from its beginning only")


def _taken(batches: Iterable[pa.RecordBatch], schema: pa.Schema, rows: int) -> tuple[pa.Table, bool]:
    """Batches up to a number of rows, and whether that is all."""
    taken: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        if count >= rows:
            return pa.Table.from_batches(taken, schema).slice(0, rows), False
        taken.append(batch)
        count += batch.num_rows
    return pa.Table.from_batches(taken, schema).slice(0, rows), count <= rows


def _jsonl(path: Path, rows: int) -> FirstRows:
    most = min(rows, _MOST_NESTED)
    records: list[dict[str, Any]] = []
    is_all = True
    with _stream(path) as stream:
        for line in _lines(stream):
            if len(records) == most:
                is_all = False
                break
            try:
                record = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue  # a run refuses it with its reason
            if isinstance(record, dict):
                records.append(record)
    names = list(dict.fromkeys(name for record in records for name in record))
    columns = {name: as_column([record.get(name) for record in records]) for name in names}
    return FirstRows(pa.table(columns), {"kind": "jsonl"}, converts=False, is_all=is_all)


def as_column(values: list[Any]) -> Any:
    """Values of JSON as an Arrow array; as texts if they are of several types."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # of several types
        return pa.array(
            [value if isinstance(value, str) else None if value is None else str(value) for value in values]
        )


def _lines(stream: Any) -> Iterator[bytes]:
    rest = b""
    while block := stream.read(1024 * 1024):
        *lines, rest = (rest + block).split(b"\n")
        yield from (line for line in lines if line.strip())
    if rest.strip():
        yield rest


def _parquet(path: Path, rows: int) -> FirstRows:
    with parquet.ParquetFile(path) as file:
        table, is_all = _taken(file.iter_batches(), file.schema_arrow, rows)
    return FirstRows(table, {"kind": "parquet"}, converts=False, is_all=is_all)


def _arrow(path: Path, rows: int) -> FirstRows:
    with _stream(path) as stream:
        content = pa.py_buffer(stream.read())
    is_file = content.size > 6 and content.slice(0, 6).to_pybytes() == b"ARROW1"
    reader = ipc.open_file(content) if is_file else ipc.open_stream(content)
    batches = (reader.get_batch(at) for at in range(reader.num_record_batches)) if is_file else reader
    table, is_all = _taken(batches, reader.schema, rows)
    return FirstRows(table, {"kind": "arrow"}, converts=False, is_all=is_all)
