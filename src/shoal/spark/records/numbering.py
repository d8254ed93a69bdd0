"""The records of a stream as blocks in which every record has its number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.errors import InputError
from shoal.spark.records.blocks import (
    BLOCKS,
    BODY,
    COUNT,
    OpenBlocks,
    PickRows,
    UnpackInto,
    UnpackRows,
    block_of,
    slices_of,
    unpacked,
)
from shoal.spark.records.columns import BAD, BLOCK, LINE, PART, ROW, cast, wire_schema
from shoal.spark.records.file_order import (
    FILE,
    PLACED,
    START,
    in_order_of_files,
    moves_rows,
    pieces_of,
    placed_block,
    with_files,
)
from shoal.spark.records.frames import mapped, quoted, types_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class NumberedRows:
    """Records with their numbers in the stream."""

    blocks: DataFrame
    """In any order."""
    opening: OpenBlocks
    first: int
    """The number of the first record."""
    count: int
    stored: DataFrame
    """What executors store; `blocks`, or what they are made of."""

    @property
    def types(self) -> pa.Schema:
        """The columns that the method reads, in the types that it sees."""
        return self.opening.types

    @property
    def end(self) -> int:
        """The number after the last record's."""
        return self.first + self.count

    @property
    def frame(self) -> DataFrame:
        """The columns of `types` and the column of numbers, in any order of rows."""
        return mapped(self.blocks, UnpackRows(self.opening), self._numbered)

    def mapped(self, work: Any, more: pa.Schema) -> DataFrame:
        """`frame` with the columns that a function adds to its batches, before Spark makes rows of them."""
        return mapped(self.blocks, UnpackInto(self.opening, work), pa.schema([*self._numbered, *more]))

    def first_rows(self, count: int) -> pa.RecordBatch:
        """The first records of `frame`, without making rows of the others."""
        found = self.picked(np.arange(self.first, min(self.first + count, self.end)))
        if not len(found):
            return pa.RecordBatch.from_pylist([], schema=self._numbered)
        return cast(found.to_batches()[0], self._numbered)

    @property
    def _numbered(self) -> pa.Schema:
        return pa.schema([*wire_schema(self.types), (ROW, pa.int64())])

    def picked(self, numbers: npt.NDArray[np.int64], *, with_values: bool = True) -> pa.Table:
        """The records with these numbers, which ascend, with their lines and why they could not be decoded."""
        work = PickRows(self.opening, self.blocks.sparkSession.sparkContext.broadcast(numbers), with_values)
        schema = pa.schema(
            [*(self.types if with_values else ()), (ROW, pa.int64()), (LINE, pa.int64()), (BAD, pa.string())]
        )
        if not len(numbers):
            return schema.empty_table()
        found = mapped(self.blocks, work, work.schema).toArrow().sort_by([(PART, "ascending"), (BLOCK, "ascending")])
        parts = [unpacked(value) for value in found.column(BODY)]
        return pa.Table.from_batches(parts).combine_chunks() if parts else schema.empty_table()


def numbered(
    blocks: DataFrame, types: pa.Schema, head: Sequence[str], *, first: int = 0, person: str | None = None
) -> NumberedRows:
    """Number the records of blocks, in the order of parts and blocks."""
    sizes = [tuple(row) for row in blocks.select(PART, BLOCK, COUNT).collect()]
    return _numbered(blocks, sizes, OpenBlocks(types, tuple(head), {}, person), first)


def _numbered(
    blocks: DataFrame, sizes: Iterable[tuple[int, int, int]], opening: OpenBlocks, first: int
) -> NumberedRows:
    total, starts = first, {}
    for part, block, count in sorted(sizes):
        starts[part, block] = total
        total += count
    return NumberedRows(blocks, replace(opening, starts=starts), first, total - first, blocks)


def require_columns(frame: DataFrame, columns: Sequence[str]) -> None:
    """Raise InputError if a DataFrame lacks a column that the method reads."""
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise InputError(f"the DataFrame has no column {', '.join(map(repr, missing))}; name the columns as it does")


def number_rows(
    frame: DataFrame,
    columns: Sequence[str],
    head: Sequence[str],
    *,
    order: str | Sequence[str] | None = None,
    first: int = 0,
) -> NumberedRows:
    """Number the rows of a DataFrame: by file and place in the file, or sorted by the columns `order`."""
    require_columns(frame, columns)
    by = [order] if isinstance(order, str) else list(order or ())
    placed = None if by else with_files(frame)
    if placed is not None:
        return _numbered_by_file(placed, columns, head, first)
    chosen = (frame.orderBy(*by) if by else frame).select(*map(quoted, columns))
    types = types_of(chosen)
    blocks = mapped(chosen, PackRows(types, tuple(head)), BLOCKS)
    # Spark divides the rows of a sort or a join again in every job: numbers counted in one would not fit the next.
    blocks = blocks.localCheckpoint() if moves_rows(chosen) else blocks.persist()
    return numbered(blocks, types, head, first=first)


def _numbered_by_file(frame: DataFrame, columns: Sequence[str], head: Sequence[str], first: int) -> NumberedRows:
    chosen = frame.select(*map(quoted, columns))
    types = types_of(chosen)
    stored = mapped(frame.select(*map(quoted, (*columns, FILE, START))), PackRows(types, tuple(head)), PLACED).persist()
    blocks, sizes = in_order_of_files(stored, frame)
    return replace(_numbered(blocks, sizes, OpenBlocks(types, tuple(head), {}), first), stored=stored)


@dataclass(frozen=True, slots=True)
class PackRows:
    """Packs the rows of a partition into blocks; blocks end where a piece of a file ends."""

    types: pa.Schema
    head: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context: Any = TaskContext.get()
        number, run, last = 0, -1, None
        for batch in batches:
            for place, rows in pieces_of(batch):
                run, last = run + (place != last), place
                for piece in slices_of(rows):
                    block = block_of(context.partitionId(), number, cast(piece, self.types), self.head)
                    yield block if place is None else placed_block(block, run, *place)
                    number += 1
