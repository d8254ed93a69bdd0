"""Find what a table contains besides its rows: metadata, and values that no row shows."""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.auditor.reading.columns import as_text

_ARROW_SCHEMA: Final = b"ARROW:schema"
"""The schema once more, as Base64."""
_OF_FORMATS: Final = (_ARROW_SCHEMA, b"PARQUET:field_id")
"""Keys that file writers add by themselves."""
_PANDAS: Final = b"pandas"
_SPARK_VERSION: Final = b"org.apache.spark.version"
_SPARK_SCHEMA: Final = b"org.apache.spark.sql.parquet.row.metadata"
_VERSION: Final = re.compile(rb"\d{1,3}(\.\d{1,3}){1,3}(-SNAPSHOT)?")
_STRUCT, _ARRAY = {"type", "fields"}, {"type", "elementType", "containsNull"}
_FIELD: Final = {"name", "type", "nullable", "metadata"}
_SPARK_TYPE: Final = re.compile(r"[a-z_]{3,20}(\(\d{1,3}(,\d{1,3})?\))?")
_GZIP: Final = b"\x1f\x8b"
_GZIP_HEADER: Final = 10
_HEADER_BYTES: Final = 64 * 1024
_BLOCK: Final = 1024 * 1024
_EXTRA, _NAME, _COMMENT = 4, 8, 16
_WIDE: Final = 64
_ZEROS: Final = ("", "0", "false")
_OF_PANDAS: Final = {"index_columns", "column_indexes", "columns", "creator", "pandas_version", "partition_columns",
                     "attributes"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Hidden:
    """All of it, as text."""

    values: tuple[str, ...] = ()
    """Values of columns that no row shows."""
    metadata: tuple[str, ...] = ()
    """Metadata keys and values that no file writer adds by itself."""
    usual: tuple[str, ...] = ()
    """Metadata values that writers add; they contain numbers, such as versions and row counts."""
    names: tuple[str, ...] = ()
    """Names of columns and of nested fields."""
    unexpected: int = 0
    """How many metadata entries no file writer adds by itself."""

    def __add__(self, other: Hidden) -> Hidden:
        return Hidden(
            tuple(dict.fromkeys((*self.values, *other.values))),
            tuple(dict.fromkeys((*self.metadata, *other.metadata))),
            tuple(dict.fromkeys((*self.usual, *other.usual))),
            tuple(dict.fromkeys((*self.names, *other.names))),
            self.unexpected + other.unexpected,
        )


def find_hidden(table: Any, *metadata: Any) -> Hidden:
    """Search a table, and the metadata of its file and batches."""
    entries = _entries(table.schema.metadata)
    for more in metadata:
        entries += _entries(more)
    for field in table.schema:
        entries += _field_entries(field)
    unexpected = dict.fromkeys(entry for entry in entries if not _is_expected(*entry))
    usual = (value for key, value in entries if (key, value) not in unexpected and key != _ARROW_SCHEMA)
    values = (text for column in table.columns for chunk in column.chunks for text in _unseen(chunk))
    return Hidden(
        values=tuple(dict.fromkeys(values)),
        metadata=tuple(dict.fromkeys(_text(part) for entry in unexpected for part in entry)),
        usual=tuple(dict.fromkeys(map(_text, usual))),
        names=tuple(dict.fromkeys(name for field in table.schema for name in _names(field))),
        unexpected=len(unexpected),
    )


def find_in_gzip(path: Path) -> Hidden:
    """Search the headers of a gzip file (RFC 1952): a name is usual, a comment or an extra field is not."""
    return sum((_in_header(head) for head in _gzip_headers(path)), Hidden())


def _in_header(head: bytes) -> Hidden:
    """Parse the fields of a header; the compressed data follows them."""
    flags, rest = head[3], head[_GZIP_HEADER:]
    name, odd = b"", []
    if flags & _EXTRA:
        length = 2 + int.from_bytes(rest[:2], "little")
        odd.append(rest[2:length])
        rest = rest[length:]
    if flags & _NAME:
        name, _, rest = rest.partition(b"\x00")
    if flags & _COMMENT:
        odd.append(rest.partition(b"\x00")[0])
    return Hidden(metadata=tuple(map(_text, odd)), usual=(_text(name),) if name else (), unexpected=len(odd))


def _gzip_headers(path: Path) -> Iterator[bytes]:
    """Yield the first bytes of every gzip member; none for other files. Damage is reported by the reader."""
    with path.open("rb") as file:
        data = file.read(_BLOCK)
        while data[:2] == _GZIP and len(data) >= _GZIP_HEADER:
            yield data[:_HEADER_BYTES]
            member = zlib.decompressobj(wbits=31)
            while not member.eof:
                try:
                    member.decompress(data, _BLOCK)
                except zlib.error:
                    return
                data = member.unconsumed_tail or (b"" if member.eof else file.read(_BLOCK))
                if not data and not member.eof:
                    return
            data = member.unused_data
            if len(data) < _HEADER_BYTES:
                data += file.read(_BLOCK)


def _entries(metadata: Any) -> list[tuple[bytes, bytes]]:
    return list((metadata or {}).items())


def _field_entries(field: Any) -> Iterator[tuple[bytes, bytes]]:
    yield from _entries(field.metadata)
    for place in range(field.type.num_fields):
        yield from _field_entries(field.type.field(place))


def _names(field: Any) -> Iterator[str]:
    yield field.name
    for place in range(field.type.num_fields):
        yield from _names(field.type.field(place))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _is_expected(key: bytes, value: bytes) -> bool:
    if key == _PANDAS:
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            return False
        return isinstance(found, dict) and found.keys() <= _OF_PANDAS and not found.get("attributes")
    if key == _SPARK_VERSION:
        return _VERSION.fullmatch(value) is not None
    return key in _OF_FORMATS or (key == _SPARK_SCHEMA and _is_schema_of_spark(value))


def _is_schema_of_spark(value: bytes) -> bool:
    """Whether a text is a schema as Spark describes it, without comments or other metadata of columns."""
    try:
        return _is_type_of_spark(json.loads(value))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return False


def _is_type_of_spark(kind: Any) -> bool:
    if isinstance(kind, str):
        return _SPARK_TYPE.fullmatch(kind) is not None
    if kind["type"] == "array":
        return kind.keys() == _ARRAY and _is_type_of_spark(kind["elementType"])
    is_struct = kind.keys() == _STRUCT and kind["type"] == "struct"
    return is_struct and all(
        field.keys() == _FIELD and field["metadata"] == {} and _is_type_of_spark(field["type"])
        for field in kind["fields"]
    )


def _unseen(chunk: Any) -> Iterator[str]:
    """Yield the values of a column that no row shows: unused ones of dictionaries, and those under a null.

    A repeated dictionary entry counts too: which of the two a row refers to would distinguish it.
    """
    kind = chunk.type
    if pa.types.is_dictionary(kind):
        unused = np.ones(len(chunk.dictionary), np.bool_)
        unused[np.asarray(pc.drop_null(chunk.indices).to_numpy(zero_copy_only=False), np.int64)] = False
        yield from _texts(chunk.dictionary.filter(pa.array(unused)))
        yield from (text for text, count in Counter(_texts(chunk.dictionary)).items() if count > 1)
    elif pa.types.is_struct(kind):
        for place in range(kind.num_fields):
            child = chunk.field(place)
            if chunk.null_count:
                yield from _under_nulls(child.filter(chunk.is_null()))
            yield from _unseen(child)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        begin, end = (chunk.offsets[place].as_py() for place in (0, -1))
        inner = chunk.values.slice(begin, end - begin)
        if chunk.null_count:
            yield from _texts(inner.filter(pa.array(_not_in_lists(chunk, begin, end))))
        yield from _unseen(inner)
    elif chunk.null_count and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        buffers = chunk.buffers()
        raw = pa.large_binary() if pa.types.is_large_string(kind) else pa.binary()
        bare = pa.Array.from_buffers(kind, len(chunk), [None, *buffers[1:]], offset=chunk.offset)
        yield from (text for text in _texts(bare.cast(raw).filter(chunk.is_null())) if text)


def _under_nulls(values: Any) -> Iterator[str]:
    """Yield values under nulls, except those that Arrow itself writes there."""
    kind = values.type
    if pa.types.is_temporal(kind):
        values = values.view(pa.int64() if kind.bit_width == _WIDE else pa.int32())
    return (text for text in _texts(values) if text not in _ZEROS)


def _not_in_lists(chunk: Any, begin: int, end: int) -> Any:
    """Mark the values of lists that are null."""
    offsets = np.asarray(chunk.offsets.to_numpy(), np.int64) - begin
    is_null = np.asarray(chunk.is_null().to_numpy(zero_copy_only=False), np.int64)
    return np.repeat(is_null, np.diff(offsets)).astype(np.bool_)[: end - begin]


def _texts(values: Any) -> Iterator[str]:
    return (text for text in as_text(values).to_pylist() if text is not None)
