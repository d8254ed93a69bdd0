"""Read the first rows of a file of which nothing is known but its name, and describe it for a policy."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
from pyarrow import ipc, parquet

from shoal.decode.header_names import unique_names
from shoal.errors import InputError

KINDS: Final = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".data": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".json": "jsonl", ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".arrows": "arrow",
    ".feather": "arrow", ".ipc": "arrow",
}  # fmt: skip
_COMPRESSED: Final = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_NULLS: Final = ("?", "NA", "N/A", "null", "NULL", "NaN", "nan")
_HEAD: Final = 256 * 1024
_MOST_NESTED: Final = 200_000


@dataclass(frozen=True, slots=True)
class Data:
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

    @property
    def is_live(self) -> bool:
        """Whether it is a system of messages, where more may always come."""
        return self.sink is not None


def _unreadable(kind: str) -> str:
    if kind in ("csv", "jsonl"):
        return f"is not {kind} in UTF-8, or it is damaged; save it as {kind} in UTF-8, or check the file"
    return f"is not {kind}, or it is damaged; check the file"


def read_data(path: Path, rows: int) -> Data:
    """Read up to `rows` rows; raise InputError with what to do if the file cannot be read."""
    name = path.name.lower()
    for ending in (".gz", ".zst"):
        name = name.removesuffix(ending)
    kind = KINDS.get(Path(name).suffix)
    if kind is None:
        raise InputError(f"{path}: its name does not show its format; name it .csv, .jsonl, .parquet or .arrow")
    try:
        data = {"csv": _csv, "jsonl": _jsonl, "parquet": _parquet, "arrow": _arrow}[kind](path, rows)
    except OSError as error:
        if isinstance(error, pa.ArrowInvalid) or not error.strerror:
            raise InputError(f"{path}: {_unreadable(kind)}") from None
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    except (pa.ArrowInvalid, UnicodeDecodeError):
        raise InputError(f"{path}: {_unreadable(kind)}") from None
    if not data.table.num_rows or not data.table.num_columns:
        raise InputError(f"{path}: has no rows; give a file with data")
    return data


def _stream(path: Path) -> Any:
    with path.open("rb") as file:
        head = file.read(4)
    found = next((name for magic, name in _COMPRESSED.items() if head.startswith(magic)), None)
    return pa.input_stream(str(path), compression=found)


def _csv(path: Path, rows: int) -> Data:
    with _stream(path) as stream:
        head = stream.read(_HEAD).decode("utf-8-sig", errors="replace")
    lines = [line for line in head.splitlines() if line.strip()][: -1 if len(head) >= _HEAD else None][:200]
    if not lines:
        raise InputError(f"{path}: has no rows; give a file with data")
    delimiter = _delimiter(lines)
    cells = [next(csv.reader(io.StringIO(line), delimiter=delimiter), []) for line in lines]
    if _is_ragged(cells) and '"' not in head and "\t" not in head:
        return _lines_of_items(path, rows, delimiter)
    names = None if _has_header(cells) else [f"column{number + 1}" for number in range(len(cells[0]))]
    first = names or unique_names([name.strip() for name in cells[0]])
    read = arrow_csv.ReadOptions(column_names=first, block_size=4 * 1024 * 1024)
    parse = arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=lambda _: "skip")
    with _stream(path) as stream:
        texts = arrow_csv.ConvertOptions(column_types=dict.fromkeys(first, pa.string()))
        reader = arrow_csv.open_csv(stream, read_options=read, parse_options=parse, convert_options=texts)
        table, is_all = _taken(reader, reader.schema, rows + (names is None))
    table = table.slice(0 if names else 1)  # the header line was read as a row
    columns = [pc.utf8_trim_whitespace(_text(column)) for column in table.columns]
    nulls = [word for word in _NULLS if any(pc.any(pc.equal(column, word)).as_py() for column in columns)]
    empty = pa.array(["", *nulls])
    columns = [pc.if_else(pc.is_in(column, empty), pa.scalar(None, pa.string()), column) for column in columns]
    source: dict[str, Any] = {"kind": "csv"}
    source |= {"delimiter": delimiter} if delimiter != "," else {}
    source |= {"header": names} if names is not None else {}
    source |= {"nulls": nulls} if nulls else {}
    return Data(pa.table(dict(zip(first, columns, strict=True))), source, converts=True, is_all=is_all)


def _is_ragged(cells: list[list[str]]) -> bool:
    """Whether lines have many different numbers of cells: each line is then a set of items."""
    sizes = [len(line) for line in cells]
    return max(map(sizes.count, set(sizes))) < 0.6 * len(sizes)


def _lines_of_items(path: Path, rows: int, delimiter: str) -> Data:
    """One column of texts, each a set; a tab, which the file does not have, is given as the delimiter."""
    with _stream(path) as stream:
        lines = [line.decode("utf-8", errors="replace").strip() for line in islice(_lines(stream), rows + 1)]
    source = {"kind": "csv", "delimiter": "\t", "header": ["items"], "separator": delimiter}
    items = [[part.strip() for part in line.split(delimiter) if part.strip()] for line in lines[:rows]]
    return Data(pa.table({"items": items}), source, converts=False, is_all=len(lines) <= rows)


def _text(column: Any) -> Any:
    return column if pa.types.is_string(column.type) else column.cast(pa.string())


def _delimiter(lines: list[str]) -> str:
    """The sign that splits most lines into the same number of cells, at least two."""

    def fit(sign: str) -> tuple[float, int]:
        counts = [len(next(csv.reader(io.StringIO(line), delimiter=sign), [])) for line in lines[:50]]
        usual = max(set(counts), key=counts.count)
        return (counts.count(usual) / len(counts) if usual > 1 else 0.0, usual)

    return max((",", ";", "\t", "|"), key=fit)


def _has_header(cells: list[list[str]]) -> bool:
    """The first line is a header unless it has a number where the other lines have numbers."""
    first, rest = cells[0], cells[1:]
    for place, cell in enumerate(first):
        column = [line[place] for line in rest if place < len(line)]
        if _is_number(cell) and column and sum(map(_is_number, column)) > 0.8 * len(column):
            return False
    return True


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


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


def _jsonl(path: Path, rows: int) -> Data:
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
    return Data(pa.table(columns), {"kind": "jsonl"}, converts=False, is_all=is_all)


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


def _parquet(path: Path, rows: int) -> Data:
    with parquet.ParquetFile(path) as file:
        table, is_all = _taken(file.iter_batches(), file.schema_arrow, rows)
    return Data(table, {"kind": "parquet"}, converts=False, is_all=is_all)


def _arrow(path: Path, rows: int) -> Data:
    with _stream(path) as stream:
        content = pa.py_buffer(stream.read())
    is_file = content.size > 6 and content.slice(0, 6).to_pybytes() == b"ARROW1"
    reader = ipc.open_file(content) if is_file else ipc.open_stream(content)
    batches = (reader.get_batch(at) for at in range(reader.num_record_batches)) if is_file else reader
    table, is_all = _taken(batches, reader.schema, rows)
    return Data(table, {"kind": "arrow"}, converts=False, is_all=is_all)
