"""Read a release, a truth or a trace from files or from memory, as numbered rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from shoal.auditor.reading.access_log import read_access_log
from shoal.auditor.reading.columns import TEXT, not_text
from shoal.auditor.reading.hidden_data import Hidden, find_hidden, find_in_gzip
from shoal.auditor.reading.lines import Part, read_csv, read_csv_blocks, read_jsonl, read_lines
from shoal.auditor.reading.memory import ARROW, AS_OBJECTS, CODED, current
from shoal.auditor.reading.paths import Format, file_kind, table_paths, text_kind, whole, whole_lines
from shoal.auditor.reading.rows import NOTHING_HIDDEN, Rows
from shoal.auditor.reading.zeek import read_zeek
from shoal.errors import InputError

_CLAIMS: Final = b"shoal"
_INDEX_OF_PANDAS = re.compile(r"__index_level_\d+__")


def read(what: Any, *, name: str, expected: Format, part: str = "rows") -> Rows:
    """Read a path, an Arrow object, a frame, an object with ``.rows`` and ``.trace``, or a list of these."""
    found = tuple(_parts(what, name, expected, part))
    claims = dict.fromkeys(claim for _, claim, _ in found if claim is not None)
    hidden = sum((more for _, _, more in found), NOTHING_HIDDEN)
    return Rows(tuple(rows for rows, _, _ in found), name, tuple(claims), hidden)


Reader = Callable[..., Rows]
"""Reads what something names, as `read` does: Reader(what, name=…, expected=…)."""
_Claimed = tuple[Part, bytes | None, Hidden]
"""A part, its own metadata, and what it contains besides its rows."""


def _parts(what: Any, name: str, expected: Format, part: str) -> Iterator[_Claimed]:
    if isinstance(what, list | tuple):
        for piece in what:
            yield from _parts(piece, name, expected, part)
    elif isinstance(what, str | Path):
        for path in table_paths(what, name):
            yield _read_file(path, expected)
    else:
        yield _from_table(table_of(what, name, part), is_release=expected.names_once)


def table_of(what: Any, name: str, part: str = "rows") -> Any:
    """Return an Arrow object, a frame, or a part of a result as an Arrow table."""
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


def _read_file(path: Path, expected: Format) -> _Claimed:
    part, claim, hidden = _read_content(path, expected)
    return part, claim, hidden + find_in_gzip(path) if expected.names_once else hidden


def _read_content(path: Path, expected: Format) -> _Claimed:
    kind = file_kind(path, expected)
    if kind in {"csv", "tsv"}:
        return _read_csv(path, kind, expected), None, NOTHING_HIDDEN
    is_table = kind in {"parquet", "arrow"}
    data = whole(path, ARROW if is_table else AS_OBJECTS)
    if not is_table:
        return _read_text(path, data, expected), None, NOTHING_HIDDEN
    try:
        if kind == "parquet":
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
        file = parquet.ParquetFile(pa.BufferReader(data), pre_buffer=False, read_dictionary=repeating_texts(file))
    return _from_table(file.read(use_threads=False), is_release=is_release, metadata=[metadata])


def repeating_texts(file: Any) -> list[str]:
    """The columns of text to read as dictionaries; Arrow cannot do so where differences are stored instead of one."""
    metadata = file.metadata
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    chunks = [group.column(at) for group in groups for at in range(metadata.num_columns)]
    stored_apart = {
        chunk.path_in_schema
        for chunk in chunks
        if not chunk.has_dictionary_page and any(encoding.startswith("DELTA") for encoding in chunk.encodings)
    }
    texts = [field.name for field in file.schema_arrow if pa.types.is_string(field.type)]
    return [name for name in texts if name not in stored_apart]


def _read_csv(path: Path, kind: str, expected: Format) -> Part:
    """Read CSV block by block into dictionary-encoded columns; parse it in Python if Arrow could be wrong."""
    delimiter = expected.delimiter or ("\t" if kind == "tsv" else ",")
    budget, spelling = current(), expected.spelling
    before = budget.taken

    def clean(name: str, column: Any) -> Any:
        if expected.wanted is not None and name not in expected.wanted:
            return None
        return spelling.clean(name, _trimmed(column) if expected.trims else column)

    def keep(size: int) -> None:
        budget.take(str(path), CODED * size)

    blocks, where = whole_lines(path, spelling.encoding), str(path)
    part = read_csv_blocks(blocks, delimiter=delimiter, expected=expected, where=where, clean=clean, keep=keep)
    if part is None:
        budget.taken = before
        data = whole(path, AS_OBJECTS, spelling.encoding)
        columns, broken = read_csv(data, delimiter=delimiter, expected=expected, where=where)
        part = {name: clean(name, column) for name, column in columns.items()}, broken
    wanted = {name: column for name, column in part[0].items() if column is not None}
    return wanted, part[1] | spelling.misfits(wanted, len(part[1]))


def _read_text(path: Path, data: bytes, expected: Format) -> Part:
    kind = text_kind(path, data, expected)
    if kind == "jsonl":
        return read_jsonl(data, names_once=expected.names_once)
    if kind == "zeek":
        return read_zeek(data, str(path))
    if kind == "access-log":
        return read_access_log(data)
    if kind == "lines" and expected.line_column is not None:
        return read_lines(data, expected.line_column)
    raise InputError(f"{path}: neither Parquet, Arrow, CSV nor JSON lines")


def _trimmed(column: Any) -> Any:
    """Strip values; blank values are null."""
    values = pc.utf8_trim_whitespace(column)
    return pc.if_else(pc.equal(values, ""), pa.scalar(None, TEXT), values)


def text_files(what: Any, name: str, expected: Format) -> Iterator[tuple[str, bytes, str]]:
    """Yield the kind, the bytes and the delimiter of every CSV and JSON lines file that something names."""
    if isinstance(what, list | tuple):
        for piece in what:
            yield from text_files(piece, name, expected)
    elif isinstance(what, str | Path):
        for path in table_paths(what, name):
            budget = current()
            before = budget.taken
            data = whole(path, ARROW)
            kind = text_kind(path, data, expected)
            if kind in {"csv", "tsv", "jsonl"} and not data.startswith((b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")):
                yield kind, data, expected.delimiter or ("\t" if kind == "tsv" else ",")
            budget.taken = before  # the data is not kept
