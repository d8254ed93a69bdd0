"""Blocks: many rows as one binary value, an Arrow stream. Spark stores, moves and sorts blocks, never single rows.

A row that Spark handles itself is converted between Arrow and Spark's own format at every step, which costs many times
what a method does with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa

from shoal.spark.records.columns import BAD, BLOCK, LINE, PART, ROW, cast, wire_schema

ROWS_OF_A_BLOCK: Final = 100_000
BYTES_OF_A_BLOCK: Final = 16 << 20
COUNT: Final = "_shoal_count"
HEAD, BODY, ABOUT = "_shoal_head", "_shoal_body", "_shoal_about"
BLOCKS: Final = pa.schema(
    [(PART, pa.int32()), (BLOCK, pa.int32()), (COUNT, pa.int64()), (HEAD, pa.binary()), (BODY, pa.binary()),
     (ABOUT, pa.binary())]
)  # fmt: skip
"""A block has its place in the stream, columns that are needed apart from the others (head), the other ones (body),
and lines and reasons of records that came from text."""


def packed(*batches: pa.RecordBatch) -> pa.Array:
    """A column with one binary value for each batch."""
    sink, ends = pa.BufferOutputStream(), [0]
    for batch in batches:
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        ends.append(sink.tell())
    offsets = pa.py_buffer(np.array(ends, dtype=np.int32))
    return pa.Array.from_buffers(pa.binary(), len(batches), [None, offsets, sink.getvalue()])


def unpacked(value: pa.Scalar) -> pa.RecordBatch:
    """The batch of a binary value; its columns are views of the value."""
    return pa.ipc.open_stream(value.as_buffer()).read_next_batch()


def one_row(schema: pa.Schema, values: Mapping[str, Any]) -> pa.RecordBatch:
    """A batch of one row; values are plain ones or columns of one value."""
    columns = [
        value if isinstance(value := values.get(field.name), pa.Array) else pa.array([value], field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def slices_of(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Parts of a batch that fit in a block."""
    rows = max(1, min(ROWS_OF_A_BLOCK, batch.num_rows * BYTES_OF_A_BLOCK // max(batch.nbytes, 1)))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def block_of(
    part: int, block: int, batch: pa.RecordBatch, head: Sequence[str], about: pa.RecordBatch | None = None
) -> pa.RecordBatch:
    """A block of rows, as a row of Spark."""
    body = [name for name in batch.schema.names if name not in head]
    return one_row(BLOCKS, {
        PART: part, BLOCK: block, COUNT: batch.num_rows, HEAD: packed(batch.select(head)),
        BODY: packed(batch.select(body)) if body else None, ABOUT: None if about is None else packed(about),
    })  # fmt: skip


@dataclass(frozen=True, slots=True)
class Block:
    """An opened block."""

    part: int
    number: int
    first: int
    """The number of its first record in the stream."""
    batch: pa.RecordBatch
    about: pa.RecordBatch | None

    @property
    def rows(self) -> Any:
        """The numbers of its records."""
        return self.first + np.arange(self.batch.num_rows)


@dataclass(frozen=True, slots=True)
class OpenBlocks:
    """Opens blocks on an executor and numbers their records."""

    types: pa.Schema
    """The columns of the records."""
    head: tuple[str, ...]
    starts: Mapping[tuple[int, int], int]
    """The number of the first record of every block, by part and block."""
    person: str | None = None
    """The column of persons, if every record counts as one person: it holds the record's number."""

    def heads(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Block]:
        """Blocks with the columns of the head only; the others are null."""
        for part, number, row in self._each(batches):
            head = unpacked(row.column(HEAD)[0])
            columns = [
                head.column(field.name) if field.name in self.head else pa.nulls(head.num_rows, field.type)
                for field in self.types
            ]
            yield self._opened(part, number, row, columns)

    def blocks(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Block]:
        """Blocks with all columns."""
        for part, number, row in self._each(batches):
            head = unpacked(row.column(HEAD)[0])
            body = unpacked(row.column(BODY)[0]) if row.column(BODY)[0].is_valid else head
            columns = [(head if field.name in self.head else body).column(field.name) for field in self.types]
            yield self._opened(part, number, row, columns)

    @staticmethod
    def _each(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int, pa.RecordBatch]]:
        for batch in batches:
            for at, (part, number) in enumerate(
                zip(batch.column(PART).to_pylist(), batch.column(BLOCK).to_pylist(), strict=True)
            ):
                yield part, number, batch.slice(at, 1)

    def _opened(self, part: int, number: int, row: pa.RecordBatch, columns: list[Any]) -> Block:
        about = None
        if ABOUT in row.schema.names and row.column(ABOUT)[0].is_valid:
            about = unpacked(row.column(ABOUT)[0])
        first = self.starts[part, number]
        if self.person is not None:
            bad = None if about is None else np.asarray(about.column(BAD).is_valid())
            numbers = pa.array(first + np.arange(len(columns[0])), mask=bad)
            columns[self.types.get_field_index(self.person)] = numbers
        return Block(part, number, first, pa.RecordBatch.from_arrays(columns, schema=self.types), about)


@dataclass(frozen=True, slots=True)
class UnpackRows:
    """Turns blocks into rows of Spark with their numbers."""

    opening: OpenBlocks

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for block in self.opening.blocks(batches):
            yield cast(block.batch, wire_schema(block.batch.schema)).append_column(ROW, pa.array(block.rows))


@dataclass(frozen=True, slots=True)
class UnpackInto:
    """Unpacks blocks and does something with their rows, before Spark sees any of them."""

    opening: OpenBlocks
    work: Any

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found: Iterator[pa.RecordBatch] = self.work(UnpackRows(self.opening)(batches))
        return found


@dataclass(frozen=True, slots=True)
class PickRows:
    """The records with some numbers, with their lines and why they could not be decoded."""

    opening: OpenBlocks
    numbers: Any
    """Broadcast: ascending numbers."""
    with_values: bool = True
    """Whether their columns are needed too."""

    @property
    def schema(self) -> pa.Schema:
        """A row of Spark for each block: its picked records."""
        return pa.schema([(PART, pa.int32()), (BLOCK, pa.int32()), (BODY, pa.binary())])

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        wanted = self.numbers.value
        for block in self.opening.blocks(batches):
            start, stop = np.searchsorted(wanted, [block.first, block.first + block.batch.num_rows])
            if start == stop:
                continue
            places = pa.array(wanted[start:stop] - block.first)
            about = block.about if block.about is not None else about_of(block.batch.num_rows, None, {})
            columns = block.batch if self.with_values else block.batch.select([])
            found = columns.take(places).append_column(ROW, pa.array(wanted[start:stop]))
            for name in (LINE, BAD):
                found = found.append_column(name, about.column(name).take(places))
            yield one_row(self.schema, {PART: block.part, BLOCK: block.number, BODY: packed(found)})


def about_of(count: int, lines: Any, bad: Mapping[int, tuple[str | None, str]]) -> pa.RecordBatch:
    """Lines of records, and why some could not be decoded, by their places."""
    reasons = {row: orjson.dumps(why).decode() for row, why in bad.items()}
    return pa.record_batch(
        {
            LINE: pa.nulls(count, pa.int64()) if lines is None else pa.array(lines, pa.int64()),
            BAD: pa.array([reasons.get(row) for row in range(count)], pa.string())
            if bad
            else pa.nulls(count, pa.string()),
        }
    )
