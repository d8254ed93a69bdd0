"""Files in: every file is decoded by one task."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from shoal.decode.base import Decoded
from shoal.methods.arrow_input import plain, plain_type, with_gaps
from shoal.pipeline.wiring import make_decoder
from shoal.policy import Policy
from shoal.sources.input_file import InputFile
from shoal.spark.records.blocks import BLOCKS, about_of, block_of, slices_of
from shoal.spark.records.columns import cast
from shoal.spark.records.frames import mapped
from shoal.spark.records.numbering import NumberedRows, numbered

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class FileRows:
    """The records of files, numbered as one machine numbers them."""

    rows: NumberedRows
    files: Sequence[InputFile]
    starts: Sequence[int]
    """The number of the first record of every file."""
    numbers_rows: bool
    """Whether every record counts as one person."""
    types: Mapping[str, pa.DataType]
    """Of the first file of the stream."""

    def place(self, row: int) -> dict[str, Any]:
        """Where a record is, for its dead letter."""
        file = bisect_right(self.starts, row) - 1
        return {"file": self.files[file].name, "row": row - self.starts[file] + 1}


def read_files(
    session: SparkSession,
    policy: Policy,
    files: Sequence[InputFile],
    columns: Sequence[str],
    head: Sequence[str],
    *,
    first: int = 0,
    types: dict[str, pa.DataType] | None = None,
) -> FileRows:
    """Decode files on executors; the first file determines the types, as in a run on one machine.

    In a stream, `first` is the number of the first record, and `types` are those of the files before.
    """
    with make_decoder(policy, files[0], tuple(columns), types) as decoder:
        types, numbers_rows = decoder.types, decoder.numbers_rows
        schema = pa.schema([(field.name, plain_type(field.type)) for field in decoder.schema])
    work = ReadFiles(policy, tuple(files), tuple(columns), types, schema, tuple(head))
    blocks = mapped(session.range(0, len(files), 1, len(files)), work, BLOCKS).persist()
    rows = numbered(blocks, schema, head, first=first, person=str(policy.stream.person) if numbers_rows else None)
    starts = [rows.opening.starts.get((file, 0), rows.end) for file in range(len(files))]
    for file in reversed(range(len(files) - 1)):  # a file without records begins where the next one does
        starts[file] = min(starts[file], starts[file + 1])
    return FileRows(rows, files, starts, numbers_rows, types)


@dataclass(frozen=True, slots=True)
class ReadFiles:
    """Decodes files on an executor."""

    policy: Policy
    files: tuple[InputFile, ...]
    columns: tuple[str, ...]
    types: dict[str, pa.DataType]
    schema: pa.Schema
    head: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                block = 0
                with make_decoder(self.policy, self.files[number], self.columns, self.types) as decoder:
                    for decoded in decoder.batches():
                        for rows, about in self._rows(decoded):
                            yield block_of(number, block, rows, self.head, about)
                            block += 1

    def _rows(self, decoded: Decoded) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch | None]]:
        """The records; one that could not be decoded is a row of nulls with a reason."""
        columns = [plain(decoded.batch.column(name)) for name in self.schema.names]
        rows = cast(pa.RecordBatch.from_arrays(columns, names=self.schema.names), self.schema)
        if decoded.refused:
            rows = with_gaps(rows, decoded.places)
        about = None
        if decoded.refused or decoded.lines is not None:
            bad = {one.row: (one.column, one.reason) for one in decoded.refused}
            about = about_of(decoded.rows, decoded.lines, bad)
        at = 0
        for piece in slices_of(rows):
            yield piece, None if about is None else about.slice(at, piece.num_rows)
            at += piece.num_rows
