"""Rows in one order, divided among parts: the bounds between parts depend on the rows alone.

Spark's own sort chooses bounds by a random sample, another one in every run, so part files of the same rows differed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from shoal.spark.records.columns import ROW

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ROWS_OF_A_PART: Final = 100
"""Rows of the sample for each part, as Spark takes by default."""


def range_partitioned(frame: DataFrame, by: Sequence[str]) -> DataFrame:
    """Range-partitioned and sorted by columns that form a unique key."""
    from pyspark.sql import functions as f

    parts = int(str(frame.sparkSession.conf.get("spark.sql.shuffle.partitions")))
    drawn = frame.select(*by).orderBy(f.xxhash64(ROW), *by).limit(_ROWS_OF_A_PART * parts).collect()
    sample = sorted(map(tuple, drawn))
    bounds = sorted({sample[len(sample) * part // parts] for part in range(1, parts)}) if sample else []
    kinds = {field.name: field.dataType for field in frame.schema}
    keys = f.struct(*(f.col(name) for name in by))
    limits = [
        f.struct(*(f.lit(value).cast(kinds[name]).alias(name) for name, value in zip(by, bound, strict=True)))
        for bound in bounds
    ]
    return frame.repartitionById(parts, _part_of(keys, limits, 0)).sortWithinPartitions(*by)


def _part_of(keys: Column, limits: list[Any], first: int) -> Column:
    """The number of limits that are not above the keys, from `first` on: a binary search."""
    from pyspark.sql import functions as f

    if not limits:
        return f.lit(first)
    middle = len(limits) // 2
    below = _part_of(keys, limits[:middle], first)
    return f.when(keys < limits[middle], below).otherwise(_part_of(keys, limits[middle + 1 :], first + middle + 1))
