"""combine and target on Spark: what is decided about all people of an epoch together.

Shards judge values. With combine, the rows of an epoch then meet in one task, which holds all of them. With a target,
one task for each epoch makes its profile, the driver chooses z, and the ranges of the output apply it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shoal.spark.blocks import ABOUT, HEAD
from shoal.spark.columns import BLOCK, PART
from shoal.spark.frames import mapped
from shoal.spark.recipe import Recipe
from shoal.spark.rows import NumberedRows
from shoal.spark.z.epochs import CombineEpochs
from shoal.spark.z.following import ChosenZ, chosen_z, counted_events, profiles_of
from shoal.spark.z.pieces import PIECES, Ranges
from shoal.spark.z.values import BIN, EPOCH, PEAKS, STRETCH, VALUES, JudgeValues

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class ByEpoch:
    """Decisions in pieces, and what is needed to read them."""

    pieces: DataFrame
    chosen: ChosenZ | None = None
    """With a target: the z that ranges of the output apply."""
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
    if method.settings.k is not None:
        by_epoch = values.repartitionById(bins, f.col(BIN)).sortWithinPartitions(STRETCH, EPOCH)
        combine = CombineEpochs(recipe, rows.types, admission, rows.end, ranges)
        return ByEpoch(mapped(by_epoch, combine, PIECES))
    values = values.persist()
    needed = [PART, BLOCK, HEAD, *([ABOUT] if rows.opening.person else [])]
    counted = counted_events(rows.blocks.select(*needed), recipe, rows.opening, admission)
    peaks = values.where(f"{PEAKS} is not null").repartitionById(bins, f.col(BIN)).sortWithinPartitions(STRETCH, EPOCH)
    chosen = chosen_z(method, counted, profiles_of(peaks, method), admission.value.clock)
    return ByEpoch(values.where(f"{PEAKS} is null").select(*PIECES.names), chosen, (values,))
