"""Read a release, a truth or a trace from files or from memory, as numbered rows."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from shoal.auditor.reading.columns import TEXT, not_text
from shoal.auditor.reading.hidden_data import Hidden, find_hidden, find_in_gzip
from shoal.auditor.reading.lines import Part, name_blanks, read_csv, read_csv_blocks, read_jsonl, read_lines
from shoal.auditor.reading.memory import ARROW, AS_OBJECTS, CODED, current
from shoal.auditor.reading.rows import NOTHING_HIDDEN, Rows
from shoal.errors import InputError, PolicyError, TruncatedInput

_COMPRESSED: Final = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_SUFFIXES: Final = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}
_BESIDE: Final = (".dead.jsonl", ".tmp", ".blocks.json", ".blocks.parquet", ".certificate.json")
_CLAIMS: Final = b"shoal"
_OF_TABLES: Final = (b"PAR1", b"\xff\xff\xff\xff")
_HEAD: Final = 4096
_BLOCK: Final = 8 * 1024 * 1024
_INDEX_OF_PANDAS = re.compile(r"__index_level_\d+__")


@dataclass(frozen=True, slots=True)
class Format:
    """The format of a file as the policy describes it."""

    kind: str | None = None
    delimiter: str | None = None
    header: list[str] | None = None
    line_column: str | None = None
    """The column name for the lines of a text file; None if such files are not accepted."""
    nulls: tuple[str, ...] = ()
    """Words in a CSV file that mean a missing value."""
    trims: bool = False
    """Whether to strip values and header names of a CSV file; sources do by default."""
    wanted: frozenset[str] | None = None
    """Columns of a CSV or Parquet file that are needed; None: all. Others are dropped."""
    names_once: bool = False
    """Whether a JSON object with a repeated name is unreadable; a release must be unambiguous."""

    @classmethod
    def of_source(cls, section: Mapping[str, Any]) -> Format:
        """Read ``[source]``: values are stripped unless ``trim = false``."""
        trim = section.get("trim", True)
        if not isinstance(trim, bool):
            raise PolicyError("[source] trim: must be true or false")
        return replace(cls.of(section), trims=trim)

    @classmethod
    def of(cls, section: Mapping[str, Any]) -> Format:
        """Read ``[source]`` or ``[sink]``; values are not stripped."""
        delimiter, header = section.get("delimiter"), section.get("header")
        if delimiter is not None and not (isinstance(delimiter, str) and len(delimiter) == 1):
            raise PolicyError("delimiter: give one character")
        names = [str(name) for name in header] if isinstance(header, list) else None
        kind, nulls = section.get("kind"), section.get("nulls")
        words = tuple(str(word).strip() for word in nulls) if isinstance(nulls, list) else ()
        return cls(kind if isinstance(kind, str) else None, delimiter, names, nulls=words)


def read(what: Any, *, name: str, expected: Format, part: str = "rows") -> Rows:
    """Read a path, an Arrow object, a frame, an object with ``.rows`` and ``.trace``, or a list of these."""
    found = tuple(_parts(what, name, expected, part))
    claims = dict.fromkeys(claim for _, claim, _ in found if claim is not None)
    hidden = sum((more for _, _, more in found), NOTHING_HIDDEN)
    return Rows(tuple(rows for rows, _, _ in found), name, tuple(claims), hidden)


_Claimed = tuple[Part, bytes | None, Hidden]
"""A part, its own metadata, and what it contains besides its rows."""


def _parts(what: Any, name: str, expected: Format, part: str) -> Iterator[_Claimed]:
    if isinstance(what, list | tuple):
        for piece in what:
            yield from _parts(piece, name, expected, part)
    elif isinstance(what, str | Path):
        for path in _files(what, name):
            yield _read_file(path, expected)
    else:
        yield _from_table(_memory(what, name, part), is_release=expected.names_once)


def _memory(what: Any, name: str, part: str) -> Any:
    inner = what if hasattr(what, "__arrow_c_stream__") else getattr(what, part, None)
    if not hasattr(inner, "__arrow_c_stream__"):
        raise InputError(f"{name}: give a path, an Arrow table or batch, a data frame, or a list of these")
    table = pa.RecordBatchReader.from_stream(inner).read_all()
    if not type(inner).__module__.startswith("pandas"):
        return table
    # pandas adds the row numbers of a filtered frame; they are not a column of the frame.
    return table.select([field.name for field in table.schema if not _is_row_numbers(field)])


def _is_row_numbers(field: Any) -> bool:
    return pa.types.is_integer(field.type) and _INDEX_OF_PANDAS.fullmatch(field.name) is not None


def _from_table(table: Any, *, is_release: bool = False, metadata: Sequence[Any] = ()) -> _Claimed:
    if len(set(table.column_names)) != table.num_columns:
        raise InputError("two columns have the same name; rename one")
    columns = {name: table.column(name) for name in table.column_names}
    broken = np.zeros(table.num_rows, np.bool_)
    for column in columns.values() if is_release else ():
        broken |= not_text(column)
    hidden = find_hidden(table, *metadata) if is_release else NOTHING_HIDDEN
    return (columns, broken), (table.schema.metadata or {}).get(_CLAIMS), hidden


def _files(what: str | Path, name: str) -> list[Path]:
    path = Path(what)
    if path.is_dir():
        found = sorted(inner for inner in path.iterdir() if _is_part(inner))
    elif path.exists():
        found = [path]
    else:
        found = sorted(Path(match) for match in glob.glob(str(what)))
    if not found:
        raise InputError(f"{name}: no file at {path}; check the path")
    return found


def _is_part(path: Path) -> bool:
    return path.is_file() and not path.name.startswith((".", "_")) and not path.name.endswith(_BESIDE)


def _read_file(path: Path, expected: Format) -> _Claimed:
    part, claim, hidden = _read_content(path, expected)
    return part, claim, hidden + find_in_gzip(path) if expected.names_once else hidden


def _read_content(path: Path, expected: Format) -> _Claimed:
    head = next(_blocks(path, _HEAD), b"")[:_HEAD]
    is_table = head[:4] in _OF_TABLES or head[:6] == b"ARROW1"
    if not is_table and (kind := _kind(path, head, expected)) in {"csv", "tsv"}:
        return _read_csv(path, kind, expected), None, NOTHING_HIDDEN
    factor = ARROW if is_table else AS_OBJECTS
    data = _whole(path, factor)
    if not is_table:
        return _read_text(path, data, expected), None, NOTHING_HIDDEN
    try:
        if head[:4] == b"PAR1":
            return _read_parquet(path, data, is_release=expected.names_once)
        return _read_arrow(data, is_release=expected.names_once)
    except (pa.ArrowException, OSError):
        raise InputError(f"{path}: torn or damaged; write the file again") from None


def _read_arrow(data: bytes, *, is_release: bool) -> _Claimed:
    """Read an Arrow file or stream, with the metadata of its batches and of its footer, and what follows a stream."""
    after = b""
    if data[:6] == b"ARROW1":
        file = pa.ipc.open_file(pa.BufferReader(data))
        found = [file.get_batch_with_custom_metadata(at) for at in range(file.num_record_batches)]
        schema, last = file.schema, getattr(file, "metadata", None)  # from pyarrow 21 on
    else:
        buffer = pa.BufferReader(data)
        stream = pa.ipc.open_stream(buffer)
        found, schema, last = list(stream.iter_batches_with_custom_metadata()), stream.schema, None
        after = data[buffer.tell() :]
    table = pa.Table.from_batches([batch for batch, _ in found], schema)
    part, claim, hidden = _from_table(table, is_release=is_release, metadata=(last, *(more for _, more in found)))
    return part, claim, hidden + Hidden(values=(after.decode(errors="replace"),)) if after and is_release else hidden


def _read_parquet(path: Path, data: bytes, *, is_release: bool) -> _Claimed:
    # One thread: a thread pool that is still growing when the process ends aborts it.
    file = parquet.ParquetFile(pa.BufferReader(data), pre_buffer=False)
    metadata = dict(file.metadata.metadata or {})
    cells = file.metadata.num_rows * file.metadata.num_columns * 8
    stored = sum(file.metadata.row_group(at).total_byte_size for at in range(file.metadata.num_row_groups))
    current().take(str(path), ARROW * max(cells, stored))
    if is_release:  # with their dictionaries, which may contain values that no row has
        names = [field.name for field in file.schema_arrow if pa.types.is_string(field.type)]
        file = parquet.ParquetFile(pa.BufferReader(data), pre_buffer=False, read_dictionary=names)
    return _from_table(file.read(use_threads=False), is_release=is_release, metadata=[metadata])


def _blocks(path: Path, size: int) -> Iterator[bytes]:
    """Yield a file, decompressed, in blocks."""
    try:
        with path.open("rb") as plain:
            magic = plain.read(4)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    codec = next((codec for start, codec in _COMPRESSED.items() if magic.startswith(start)), None)
    try:
        with pa.OSFile(str(path), "rb") as file:
            stream = pa.CompressedInputStream(file, codec) if codec else file
            while block := stream.read(size):
                yield bytes(block)
    except OSError:
        if codec is None:
            raise InputError(f"{path}: cannot be read any further") from None
        raise TruncatedInput(f"{path}: the compressed file is torn; copy it again") from None


def _whole(path: Path, factor: int) -> bytes:
    """Return a whole file, decompressed, if its parsed form fits the allowed memory."""
    found = bytearray()
    for block in _blocks(path, _BLOCK):
        current().take(str(path), factor * len(block))
        found += block
    return bytes(found)


def _lines(path: Path) -> Iterator[bytes]:
    """Yield a file in blocks of whole lines."""
    rest = bytearray()
    for block in _blocks(path, _BLOCK):
        if len(rest) > current().left // AS_OBJECTS:
            current().take(str(path), AS_OBJECTS * len(rest))
        rest += block
        end = rest.rfind(b"\n") + 1
        if end:
            yield bytes(rest[:end])
            del rest[:end]
    if rest:
        yield bytes(rest)


def _read_csv(path: Path, kind: str, expected: Format) -> Part:
    """Read CSV block by block into dictionary-encoded columns; parse it in Python if Arrow could be wrong."""
    delimiter = expected.delimiter or ("\t" if kind == "tsv" else ",")
    budget = current()
    before = budget.taken

    def clean(name: str, column: Any) -> Any:
        if expected.wanted is not None and not {name, name.strip()} & expected.wanted:
            return None
        return _without_words(_trimmed(column) if expected.trims else column, expected.nulls)

    def keep(size: int) -> None:
        budget.take(str(path), CODED * size)

    part = read_csv_blocks(_lines(path), delimiter=delimiter, header=expected.header, clean=clean, keep=keep)
    if part is None:
        budget.taken = before
        data = _whole(path, AS_OBJECTS)
        columns, broken = read_csv(data, delimiter=delimiter, header=expected.header, where=str(path))
        part = {name: clean(name, column) for name, column in columns.items()}, broken
    columns, broken = {name: column for name, column in part[0].items() if column is not None}, part[1]
    is_named = expected.header is not None
    return (_with_bare_names(columns, str(path)) if expected.trims and not is_named else columns), broken


def _read_text(path: Path, data: bytes, expected: Format) -> Part:
    kind = _kind(path, data, expected)
    if kind == "jsonl":
        return read_jsonl(data, names_once=expected.names_once)
    if kind == "lines" and expected.line_column is not None:
        return read_lines(data, expected.line_column)
    raise InputError(f"{path}: neither Parquet, Arrow, CSV nor JSON lines")


def _with_bare_names(columns: dict[str, Any], where: str) -> dict[str, Any]:
    """Strip the header names."""
    names = name_blanks(list(columns))
    found = {name.strip(): column for name, column in zip(names, columns.values(), strict=True)}
    if len(found) < len(columns):
        raise InputError(f"{where}: the header names a column twice; give header = [names]")
    return found


def _trimmed(column: Any) -> Any:
    """Strip values; blank values are null."""
    values = pc.utf8_trim_whitespace(column)
    return pc.if_else(pc.equal(values, ""), pa.scalar(None, TEXT), values)


def _without_words(column: Any, words: tuple[str, ...]) -> Any:
    if not words:
        return column
    is_word = pc.is_in(pc.utf8_trim_whitespace(column), value_set=pa.array(words, TEXT))
    return pc.if_else(is_word, pa.scalar(None, TEXT), column)


def _kind(path: Path, data: bytes, expected: Format) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in {".gz", ".zst", ".zstd"}]
    told = _SUFFIXES.get(suffixes[-1]) if suffixes else None
    if expected.kind == "lines":
        return "lines"
    if {told, expected.kind} == {"csv", "jsonl"}:  # the name and the policy disagree: look at the content
        return "jsonl" if data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{" else "csv"
    if told or expected.kind in {"csv", "jsonl"}:
        return told or str(expected.kind)
    if b"\x00" in data[:4096]:
        return "unknown"
    otherwise = "csv" if expected.line_column is None else "lines"
    return "jsonl" if data.lstrip()[:1] == b"{" else otherwise


def text_files(what: Any, name: str, expected: Format) -> Iterator[tuple[str, bytes, str]]:
    """Yield the kind, the bytes and the delimiter of every CSV and JSON lines file that something names."""
    if isinstance(what, list | tuple):
        for piece in what:
            yield from text_files(piece, name, expected)
    elif isinstance(what, str | Path):
        for path in _files(what, name):
            budget = current()
            before = budget.taken
            data = _whole(path, ARROW)
            kind = _kind(path, data, expected)
            if kind in {"csv", "tsv", "jsonl"} and not data.startswith((b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")):
                yield kind, data, expected.delimiter or ("\t" if kind == "tsv" else ",")
            budget.taken = before  # the data is not kept
