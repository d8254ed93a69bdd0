"""Parquet files."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, BinaryIO, ClassVar, Final

import pyarrow as pa
import pyarrow.parquet as pq

from shoal.encode.base import Encoder, Writer
from shoal.errors import PolicyError

COMPRESSIONS: Final = ("zstd", "snappy", "lz4", "gzip", "none")

_GROUP_BYTES: Final = 16 * 1024 * 1024
_PAGE_BYTES: Final = 128 * 1024
_ROWS_AT_ONCE: Final = 4_096
"""Pages that fit in the cache of a processor are written faster than Arrow's of 1 MiB."""
_TEXT: Final = "BYTE_ARRAY"
_VARIED: Final = {"INT32": "DELTA_BINARY_PACKED", "INT64": "DELTA_BINARY_PACKED", _TEXT: "DELTA_LENGTH_BYTE_ARRAY"}
"""How values that hardly repeat are encoded, by how they are stored."""


class ParquetEncoder(Encoder):
    """Parquet with row groups of about 16 MiB, which take as long as larger ones and leave less to write at the end.

    Columns of text get no statistics: rows come in the order of time, so the least and greatest text of a group rule
    nothing out, and to find them takes a tenth of the time of writing.

    Parameters
    ----------
    compression
        zstd writes released rows as fast as snappy and half the size: pseudonyms are hexadecimal text.
    varied
        Columns whose values hardly repeat: they are written without a dictionary. Whole numbers and times are stored
        as differences from the value before, texts with their lengths apart, which is smaller and faster.
    """

    appendable: ClassVar[bool] = False

    def __init__(self, *, compression: str = "zstd", varied: Collection[str] = ()) -> None:
        if compression not in COMPRESSIONS:
            raise PolicyError(f"compression: must be one of {', '.join(COMPRESSIONS)}")
        self._compression = compression
        self._varied = frozenset(varied)

    @property
    def suffix(self) -> str:
        return ".parquet"

    def open(self, out: BinaryIO, schema: pa.Schema, *, fresh: bool) -> Writer:
        return _ParquetWriter(out, schema, compression=self._compression, varied=self._varied)

    def join(self, pieces: Iterable[BinaryIO], out: BinaryIO, schema: pa.Schema) -> None:
        writer = self.open(out, schema, fresh=True)
        try:
            for piece in pieces:
                for batch in pq.ParquetFile(piece).iter_batches(use_threads=False):
                    writer.write(batch.cast(schema))
            writer.close()
        except BaseException:
            writer.abandon()
            raise


class _ParquetWriter(Writer):
    def __init__(self, out: BinaryIO, schema: pa.Schema, *, compression: str, varied: frozenset[str]) -> None:
        leaves = _leaves(schema)
        apart = [name for name in schema.names if name in varied]
        repeating = [leaf.path for leaf in leaves if not any(_is_of(leaf.path, name) for name in apart)]
        kinds = {leaf.path: leaf.physical_type for leaf in leaves}
        encodings = {name: _VARIED[kinds[name]] for name in varied if kinds.get(name) in _VARIED}
        self._writer = pq.ParquetWriter(
            out,
            schema,
            compression=compression,
            use_dictionary=repeating or False,
            column_encoding=encodings or None,
            data_page_size=_PAGE_BYTES,
            write_batch_size=_ROWS_AT_ONCE,
            write_statistics=[path for path, kind in kinds.items() if kind != _TEXT] or False,
        )
        self._schema = schema
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            self._held.append(batch)
            self._held_bytes += batch.nbytes
        if self._held_bytes >= _GROUP_BYTES:
            self._write_group()

    def close(self) -> None:
        self._write_group()
        self._writer.close()

    def abandon(self) -> None:
        self._held = []
        self._writer.is_open = False  # or it would write its footer when it is collected

    def _write_group(self) -> None:
        """Combine small batches into one row group."""
        if self._held:
            table = pa.Table.from_batches(self._held, self._schema)
            self._writer.write_table(table, row_group_size=table.num_rows)
            self._held, self._held_bytes = [], 0


def _is_of(path: str, name: str) -> bool:
    """Whether a leaf belongs to a column; the names of columns may have dots, too."""
    return path == name or path.startswith(f"{name}.")


def _leaves(schema: pa.Schema) -> list[Any]:
    """The stored columns; an interval has two."""
    empty = pa.BufferOutputStream()
    pq.ParquetWriter(empty, schema).close()
    stored = pq.ParquetFile(pa.BufferReader(empty.getvalue())).schema
    return [stored.column(at) for at in range(len(stored))]
