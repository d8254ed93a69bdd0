"""DataFrames and Arrow: functions on batches, sorted shards, small results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from inspect import signature
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from shoal.spark.cluster.workers import InWorker
from shoal.spark.records.columns import ROW, SHARD

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MOST_BROADCAST: Final = 5_000_000


def mapped(frame: DataFrame, work: Any, schema: pa.Schema) -> DataFrame:
    """Apply a function from batches to batches to every partition."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return frame.mapInArrow(InWorker(work), from_arrow_schema(schema))


def types_of(frame: DataFrame) -> pa.Schema:
    """The Arrow types of a DataFrame's columns."""
    from pyspark.sql.pandas.types import to_arrow_schema

    # From 4.3 on PySpark has no default for the zone of times.
    zone: Any = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
    found: pa.Schema = to_arrow_schema(frame.schema, **zone)
    return found


def by_shard(frame: DataFrame, shards: int) -> DataFrame:
    """One partition for each shard, its rows in the order of the stream."""
    from pyspark.sql import functions as f

    return frame.repartitionById(shards, f.col(SHARD)).sortWithinPartitions(SHARD, ROW)


def by_shard_with_markers(frame: DataFrame, shards: int) -> DataFrame:
    """As by_shard, plus a marker row (without a number) for each shard, so that shards without rows run too."""
    from pyspark.sql import functions as f

    every = frame.sparkSession.range(0, shards, 1, 1).select(f.col("id").cast("int").alias(SHARD))
    return by_shard(frame.unionByName(every, allowMissingColumns=True), shards)


def in_one_shard(frame: DataFrame, shard: int) -> DataFrame:
    """All rows in this shard, in one partition, in the order of the stream."""
    from pyspark.sql import functions as f

    return frame.withColumn(SHARD, f.lit(shard).cast("int")).repartition(1).sortWithinPartitions(ROW)


def without(frame: DataFrame, others: DataFrame) -> DataFrame:
    """Rows of a frame that another one does not have, by number. Few of them are sent to every task."""
    count = others.count()
    return frame.join(_sent(others, count), ROW, "left_anti") if count else frame


def only(frame: DataFrame, others: DataFrame, count: int) -> DataFrame:
    """Rows of a frame that another one has too, by number; it has `count`. Few of them are sent to every task."""
    return frame.join(_sent(others, count), ROW, "left_semi")


def _sent(others: DataFrame, count: int) -> DataFrame:
    from pyspark.sql import functions as f

    numbers = others.select(ROW)
    return f.broadcast(numbers) if count <= _MOST_BROADCAST else numbers


def runs_of(batch: pa.RecordBatch, column: str) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The parts of a batch with the same number in a column, one after another."""
    numbers = np.asarray(batch.column(column))
    starts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)] if len(numbers) else []
    for start, end in pairwise(starts):
        yield int(numbers[start]), batch.slice(start, end - start)


def shards_of(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
    """The shards of rows that come sorted by shard: the number of each, and its rows, batch by batch."""
    runs = (run for batch in batches for run in runs_of(batch, SHARD))
    for number, parts in groupby(runs, key=itemgetter(0)):
        yield number, (part for _, part in parts)


def collected(frame: DataFrame, names: Sequence[str]) -> pa.RecordBatch:
    """A small DataFrame as one batch, sorted by the number of rows."""
    table = frame.select(*map(quoted, names)).toArrow().sort_by(ROW).combine_chunks()
    batch: pa.RecordBatch = table.to_batches()[0] if len(table) else pa.RecordBatch.from_pylist([], schema=table.schema)
    return batch


def frame_of(batches: Sequence[pa.RecordBatch], like: DataFrame) -> DataFrame:
    """Batches as a DataFrame with the columns of another."""
    # Spark 4.3 reads only the first chunk of a table.
    return like.sparkSession.createDataFrame(pa.Table.from_batches(batches).combine_chunks(), like.schema)


def with_times(frame: DataFrame, published: pa.Schema) -> DataFrame:
    """Rows of a DataFrame, which has microseconds only, in the types of the wire; with their times as times again."""
    from pyspark.sql import functions as f

    if not any(pa.types.is_timestamp(field.type) for field in published):
        return frame
    return frame.select(*(_time(f.col(quoted(field.name)), field.type).alias(field.name) for field in published))


def _time(column: Column, kind: pa.DataType) -> Column:
    from pyspark.sql import functions as f

    if not pa.types.is_timestamp(kind):
        return column
    if kind.tz is not None:
        return f.timestamp_micros(column)
    return f.timestamp_add("MICROSECOND", column, f.lit("1970-01-01").cast("timestamp_ntz"))


def quoted(name: str) -> str:
    """A column name as Spark reads it, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"
