"""The records of a stream as a DataFrame in which every record has its number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from shoal.errors import InputError
from shoal.spark.columns import ROW
from shoal.spark.frames import quoted, types_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PART, _PLACE = "_shoal_part", "_shoal_place"


@dataclass(frozen=True, slots=True)
class NumberedRows:
    """Records with their numbers in the stream."""

    frame: DataFrame
    """The columns of `types` and the column of numbers, in any order of rows."""
    types: pa.Schema
    """The columns that the method reads, in the types that it sees."""
    first: int
    """The number of the first record."""
    count: int

    @property
    def end(self) -> int:
        """The number after the last record's."""
        return self.first + self.count


def number_rows(
    frame: DataFrame, columns: Sequence[str], *, order: str | Sequence[str] | None = None, first: int = 0
) -> NumberedRows:
    """Number the rows of a DataFrame: in its own order, or sorted by the columns `order`."""
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise InputError(f"the DataFrame has no column {', '.join(map(repr, missing))}; name the columns as it does")
    by = [order] if isinstance(order, str) else list(order or ())
    sorted_frame = frame.orderBy(*by) if by else frame
    chosen = sorted_frame.select(*(quoted(name) for name in columns))
    types = types_of(chosen)
    if is_shuffled(chosen):
        # Spark divides the rows of a sort or a join anew in every job: numbers counted in one would not fit the next.
        chosen = chosen.localCheckpoint()
    numbered, count = with_numbers(chosen, first)
    return NumberedRows(numbered, types, first, count)


def is_shuffled(frame: DataFrame) -> bool:
    """Whether rows move between tasks before they are in the DataFrame, as in a sort, a join or a repartition."""
    plan = frame._jdf.queryExecution().executedPlan()  # noqa: SLF001 - PySpark shows plans in no other way
    return "Exchange" in str(plan.toString())


def with_numbers(frame: DataFrame, first: int) -> tuple[DataFrame, int]:
    """Add the number of every row, from `first` on, in the order of partitions; return how many there are."""
    from pyspark.sql import functions as f

    bits = 33  # of the place within a partition, in what monotonically_increasing_id() returns
    marked = frame.withColumn(_PLACE, f.monotonically_increasing_id())
    counts = marked.groupBy(f.shiftright(_PLACE, bits).alias(_PART)).count().collect()
    total = 0
    starts: dict[int, int] = {}
    for part, count in sorted((row[0], row[1]) for row in counts):
        starts[part] = first + total
        total += count
    if not starts:
        return marked.withColumn(ROW, f.col(_PLACE)).drop(_PLACE), 0
    whole = [starts.get(part, 0) for part in range(max(starts) + 1)]
    offsets: Any = f.array(*(f.lit(start).cast("long") for start in whole))
    place = f.col(_PLACE).bitwiseAND((1 << bits) - 1)
    number = f.element_at(offsets, (f.shiftright(_PLACE, bits) + 1).cast("int")) + place
    return marked.withColumn(ROW, number).drop(_PLACE), total
