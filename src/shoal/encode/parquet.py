"""Parquet files."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import BinaryIO, ClassVar, Final

import pyarrow as pa
import pyarrow.parquet as pq

from shoal.encode.base import Encoder, Writer
from shoal.errors import PolicyError

COMPRESSIONS: Final = ("zstd", "snappy", "lz4", "gzip", "none")

_GROUP_BYTES: Final = 32 * 1024 * 1024


class ParquetEncoder(Encoder):
    """Parquet with row groups of about 32 MiB.

    Parameters
    ----------
    compression
        zstd writes released rows as fast as snappy and half the size: pseudonyms are hexadecimal text.
    plain
        Columns whose values hardly repeat, such as pseudonyms: they are written without a dictionary.
    """

    appendable: ClassVar[bool] = False

    def __init__(self, *, compression: str = "zstd", plain: Collection[str] = ()) -> None:
        if compression not in COMPRESSIONS:
            raise PolicyError(f"compression: must be one of {', '.join(COMPRESSIONS)}")
        self._compression = compression
        self._plain = frozenset(plain)

    @property
    def suffix(self) -> str:
        return ".parquet"

    def open(self, out: BinaryIO, schema: pa.Schema, *, fresh: bool) -> Writer:
        return _ParquetWriter(out, schema, compression=self._compression, plain=self._plain)

    def join(self, pieces: Iterable[BinaryIO], out: BinaryIO, schema: pa.Schema) -> None:
        writer = self.open(out, schema, fresh=True)
        try:
            for piece in pieces:
                for batch in pq.ParquetFile(piece).iter_batches():
                    writer.write(batch.cast(schema))
            writer.close()
        except BaseException:
            writer.abandon()
            raise


class _ParquetWriter(Writer):
    def __init__(self, out: BinaryIO, schema: pa.Schema, *, compression: str, plain: frozenset[str]) -> None:
        encoded = [path for path in _leaves(schema) if path.split(".")[0] not in plain]
        self._writer = pq.ParquetWriter(
            out, schema, compression=compression, use_dictionary=encoded or False, write_statistics=True
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


def _leaves(schema: pa.Schema) -> list[str]:
    """Paths of the stored columns; an interval has two."""
    empty = pa.BufferOutputStream()
    pq.ParquetWriter(empty, schema).close()
    stored = pq.ParquetFile(pa.BufferReader(empty.getvalue())).schema
    return [stored.column(at).path for at in range(len(stored))]
