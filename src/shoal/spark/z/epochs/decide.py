"""combine and target on Spark: what is decided about all people of an epoch together.

Shards judge values. The rows of an epoch then meet in one task, which holds all of them. With a target, the driver
chooses z before, by profiles that a task makes of each epoch.

In micro-batches, rows wait with their shards until their epoch is over (stream_shard.py). With a target nothing waits:
one task follows the stream (target_stream.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from shoal.spark.recipe import Recipe
from shoal.spark.records.blocks import ABOUT, HEAD
from shoal.spark.records.columns import BLOCK, PART
from shoal.spark.records.frames import mapped
from shoal.spark.records.numbering import NumberedRows
from shoal.spark.streams.state import ShardStates
from shoal.spark.z.epochs.close import CloseEpochs
from shoal.spark.z.epochs.stream_shard import ContinueValues
from shoal.spark.z.epochs.target_batch import FollowedEpochs, counted_events, followed_epochs, profiles_of
from shoal.spark.z.epochs.target_stream import FollowStream
from shoal.spark.z.epochs.value_shard import BIN, EPOCH, PEAKS, STRETCH, VALUES, JudgeValues
from shoal.spark.z.output_ranges import PIECES, Ranges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class ByEpoch:
    """Decisions in pieces, and what is needed to read them."""

    pieces: DataFrame
    followed: FollowedEpochs | None = None
    """With a target: the z of every epoch."""
    stored: tuple[DataFrame, ...] = ()
    """What executors store until everything is published."""


def decide_epochs(
    by_shard: DataFrame, rows: NumberedRows, recipe: Recipe, method: Any, admission: Any, ranges: Ranges
) -> ByEpoch:
    """Judge the values of shards, then decide about epochs; `method` chooses z."""
    from pyspark.sql import functions as f

    bins = max(2 * rows.blocks.sparkSession.sparkContext.defaultParallelism, 1)
    judge = JudgeValues(recipe, rows.types, admission, rows.end, ranges, bins)
    values = mapped(by_shard, judge, VALUES)

    def in_epochs(some: DataFrame) -> DataFrame:
        return some.repartitionById(bins, f.col(BIN)).sortWithinPartitions(STRETCH, EPOCH)

    close = CloseEpochs(recipe, rows.types, admission, rows.end, ranges)
    if method.settings.k is not None:
        return ByEpoch(mapped(in_epochs(values), close, PIECES))
    values = values.persist()
    needed = [PART, BLOCK, HEAD, *([ABOUT] if rows.opening.person else [])]
    counted = counted_events(rows.blocks.select(*needed), recipe, rows.opening, admission)
    profiles = profiles_of(in_epochs(values.where(f"{PEAKS} is not null")), method)
    followed = followed_epochs(method, counted, profiles, admission.value.clock)
    closed = mapped(in_epochs(values.where(f"{PEAKS} is null")), replace(close, z=followed.z), PIECES)
    return ByEpoch(closed, followed, (values,))


def continue_epochs(
    by_shard: DataFrame, rows: NumberedRows, recipe: Recipe, method: Any, admission: Any, ranges: Ranges,
    states: ShardStates, shards: int,
) -> ByEpoch:  # fmt: skip
    """The same for the next records of a stream, from the states of shards on."""
    from pyspark.sql import functions as f

    is_combined = method.settings.k is not None
    bins = max(2 * rows.blocks.sparkSession.sparkContext.defaultParallelism, 1) if is_combined else 1
    judge = ContinueValues(recipe, rows.types, admission, rows.end, ranges, bins, states)
    values = mapped(by_shard, judge, VALUES).repartitionById(bins, f.col(BIN))
    if is_combined:
        close = CloseEpochs(recipe, rows.types, admission, rows.end, ranges)
        return ByEpoch(mapped(values.sortWithinPartitions(STRETCH, EPOCH), close, PIECES))
    return ByEpoch(mapped(values, FollowStream(recipe, rows.types, admission, ranges, states, shards), PIECES))
