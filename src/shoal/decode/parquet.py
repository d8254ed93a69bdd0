"""Parquet files, a row group at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from shoal.decode.base import BATCH_ROWS, Decoded, Position
from shoal.decode.tables import TableDecoder, pieces
from shoal.errors import InputError, TruncatedInput

_MAGIC: Final = b"PAR1"
_BATCH_BYTES: Final = 16 * 1024 * 1024
_TEXTS: Final = (pa.string(), pa.large_string())
_READABLE: Final = frozenset(("PLAIN", "PLAIN_DICTIONARY", "RLE", "RLE_DICTIONARY", "BIT_PACKED"))
"""Encodings of columns that Arrow can read as dictionaries."""
_SHORTEST_TEXT: Final = 4
"""Bytes that an empty text takes in a page without a dictionary."""


class ParquetDecoder(TableDecoder):
    """Reads only the needed columns of a Parquet file."""

    _opened: tuple[Any, Any] | None = None

    @property
    def schema(self) -> pa.Schema:
        return self._resolve(self._parquet().schema_arrow)

    def batches(self, position: Position | None = None) -> Iterator[Decoded]:
        first, skip = (position["row_group"], position["row"]) if position else (0, 0)
        schema = self.schema
        try:
            for group in range(first, self._parquet().num_row_groups):
                yield from self._group(group, schema, skip=skip)
                skip = 0
        finally:
            self.close()

    def close(self) -> None:
        if self._opened is not None:
            parquet, source = self._opened
            self._opened = None
            parquet.close()
            source.close()

    def _group(self, group: int, schema: pa.Schema, *, skip: int) -> Iterator[Decoded]:
        rows = self._parquet().metadata.row_group(group).num_rows
        done = 0
        for batch in self._read(group):
            for part, after in pieces(batch, max(0, min(skip - done, batch.num_rows))):
                end = done + after
                next_start = {"row_group": group, "row": end} if end < rows else {"row_group": group + 1, "row": 0}
                yield self._decode(part, schema, next_start)
            done += batch.num_rows

    def _read(self, group: int) -> Iterator[pa.RecordBatch]:
        parquet = self._parquet()
        reader = parquet.iter_batches(
            batch_size=_batch_rows(parquet.metadata.row_group(group)),
            row_groups=[group],
            columns=list(self._columns),
            use_threads=False,  # small pieces are handed over too often: two threads take longer than one
        )
        while True:
            try:
                batch = next(reader, None)
            except (pa.ArrowException, OSError):
                raise TruncatedInput(
                    f"{self._file.name}: row group {group + 1} of {parquet.num_row_groups} cannot be read; "
                    "the rows before it were used; fetch the file again"
                ) from None
            if batch is None:
                return
            yield batch

    def _parquet(self) -> Any:
        if self._opened is None:
            source = self._file.open_seekable()
            try:
                self._opened = _with_dictionaries(source), source
            except (pa.ArrowException, OSError):
                error = self._unopenable(source)
                source.close()
                raise error from None
        return self._opened[0]

    def _unopenable(self, source: Any) -> InputError:
        source.seek(0)
        if source.read(len(_MAGIC)) == _MAGIC:
            return TruncatedInput(f"{self._file.name}: breaks off before its footer; fetch the whole file again")
        return InputError(f"{self._file.name}: is not a Parquet file; check the path and the format")


def _with_dictionaries(source: Any) -> Any:
    """The file, opened so that a column of few different texts is read as these texts and the place of each."""
    parquet = pq.ParquetFile(source)
    names = [field.name for field in parquet.schema_arrow if field.type in _TEXTS]
    few = [name for name in names if _has_few_values(parquet.metadata, name)]
    return pq.ParquetFile(source, metadata=parquet.metadata, read_dictionary=few) if few else parquet


def _has_few_values(metadata: Any, name: str) -> bool:
    """Whether a column of text takes less room than texts without a dictionary would."""
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    at = [metadata.schema.column(at).path for at in range(metadata.num_columns)].index(name)
    chunks = [group.column(at) for group in groups]
    if not all(chunk.has_dictionary_page and _READABLE.issuperset(chunk.encodings) for chunk in chunks):
        return False
    room = _SHORTEST_TEXT * sum(chunk.num_values for chunk in chunks)
    return bool(sum(chunk.total_uncompressed_size for chunk in chunks) < room)


def _batch_rows(group: Any) -> int:
    """How many rows make a batch of bounded size."""
    row_bytes = max(1, group.total_byte_size // max(1, group.num_rows))
    return int(max(1, min(BATCH_ROWS, _BATCH_BYTES // row_bytes)))
