"""Tuple methods on Spark: rows go to shards of similar rows, each shard is decided alone, k holds on the union.

1. The first rows of the stream determine the cuts between shards; where it drifts, they are learnt again.
2. Every row is read once, and gets its shard and the time of the whole stream.
3. Each shard decides its rows in their order.
4. Rows that found too few others in their shard are decided again together, in one more shard, by their own deadlines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.methods.release import SUPPRESSED
from shoal.spark.decision_rows import dead_decisions
from shoal.spark.outcome import Decisions
from shoal.spark.recipe import Recipe
from shoal.spark.records.columns import (
    AHEAD,
    CLOCK,
    DELAY,
    KEYS,
    ROW,
    SHARD,
    TIME,
    USABLE,
    VERDICT,
    cast,
    decision_schema,
)
from shoal.spark.records.frames import by_shard, in_one_shard, mapped, only, shards_of
from shoal.spark.records.numbering import NumberedRows
from shoal.spark.tuples.clock import SKELETON, STATE, TIMES, MoveClock
from shoal.spark.tuples.cuts import CutsFrom, TupleSharder
from shoal.spark.tuples.drift import learn_all_cuts
from shoal.spark.tuples.shard import TupleShard, shard_recipe
from shoal.spark.tuples.trace import DecidedAgain, TupleTrace, tuple_metrics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ASSIGNED = pa.schema([(SHARD, pa.int32()), (CLOCK, pa.int64())])
_READ = pa.schema(
    [(SHARD, pa.int32()), (TIME, pa.int64()), *((name, pa.int64()) for name in KEYS), (USABLE, pa.bool_())]
)

LEFT: Final = f"coalesce({VERDICT} = '{SUPPRESSED}', false)"
"""Decisions that one more shard replaces, in a batch."""


def decide_tuples(rows: NumberedRows, recipe: Recipe, *, shards: int) -> Decisions:
    """Decide all rows of a finite stream."""
    inner, settings = shard_recipe(recipe), recipe.settings()
    method = inner.make()
    method.bind(pa.schema([*rows.types, (CLOCK, pa.timestamp("ns", tz="UTC"))]))
    schema = decision_schema(method.output_schema)
    all_cuts = learn_all_cuts(rows, recipe, shards)
    count, last = max(each.shards for each in all_cuts), rows.end - 1
    assigned = assign_shards(rows, recipe, all_cuts, is_timed=settings.is_timed)
    ahead = None
    if settings.is_timed:
        assigned = _with_clock(assigned, settings.max_gap_ns).persist()
        last = assigned.selectExpr(f"max({CLOCK})").collect()[0][0] or 0
        ahead = mapped(assigned.where(AHEAD).select(ROW, CLOCK), RefuseAhead(method.output_schema), schema)
        assigned = assigned.where(f"not {AHEAD}")
    decide = DecideShards(inner, rows.types, last)
    alone = mapped(by_shard(assigned, count), decide, schema).persist()
    again, kept = left_rows(alone.where(LEFT), count), alone
    if again.rows:
        ours = in_one_shard(only(assigned, alone.where(LEFT), again.rows), count)  # one task: they may be many
        together = mapped(ours, replace(decide, again=True), schema).persist()
        kept = alone.where(f"not {LEFT}").union(together)
    if ahead is not None:
        kept = kept.union(ahead)
    return Decisions(
        kept, method.output_schema,
        trace_of=lambda dead: TupleTrace(settings.k, settings.is_timed, dead),
        metrics_of=partial(tuple_metrics, shards=count, is_timed=settings.is_timed, again=again),
    )  # fmt: skip


def assign_shards(rows: NumberedRows, recipe: Recipe, all_cuts: tuple[CutsFrom, ...], *, is_timed: bool) -> DataFrame:
    """Read every row once, and say which shard it goes to."""
    return rows.mapped(AssignShards(recipe, rows.types, all_cuts, is_timed=is_timed), _READ if is_timed else _ASSIGNED)


@dataclass(frozen=True, slots=True)
class AssignShards:
    """Reads rows on an executor and says which shard each goes to."""

    recipe: Recipe
    types: pa.Schema
    all_cuts: tuple[CutsFrom, ...]
    is_timed: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sorter: TupleSharder | None = None
        for batch in batches:
            sorter = sorter or TupleSharder(self.recipe, self.all_cuts)
            read = sorter.read(cast(batch, self.types), np.asarray(batch.column(ROW)))
            more: dict[str, npt.NDArray[Any]] = {SHARD: read.shards.astype(np.int32)}
            if self.is_timed:
                more |= {TIME: read.times, USABLE: read.usable}
                more |= {name: read.persons[:, place] for place, name in enumerate(KEYS)}
            else:
                more[CLOCK] = np.asarray(batch.column(ROW))
            fields = _READ if self.is_timed else _ASSIGNED
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, *(pa.array(more[field.name], field.type) for field in fields)],
                schema=pa.schema([*batch.schema, *fields]),
            )


def _with_clock(read: DataFrame, max_gap_ns: int) -> DataFrame:
    """Add the time of the whole stream at every row."""
    skeleton = read.select(*SKELETON).repartition(1).sortWithinPartitions(ROW)
    times = mapped(skeleton, MoveClock(max_gap_ns), TIMES)
    return read.drop(TIME, USABLE, *KEYS).join(times.drop(STATE), ROW)


@dataclass(frozen=True, slots=True)
class RefuseAhead:
    """Refuses rows whose time is too far ahead of the stream's."""

    published: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            reasons = pa.repeat("ahead", batch.num_rows)
            yield dead_decisions(batch.column(ROW), batch.column(CLOCK), reasons, self.published)


@dataclass(frozen=True, slots=True)
class DecideShards:
    """Decides shards on an executor; rows come sorted by shard and number."""

    recipe: Recipe
    types: pa.Schema
    last: int | None
    """The time of the whole stream at its end, if it is known."""
    again: bool = False
    """Whether the rows were decided in other shards before."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, parts in shards_of(batches):
            shard = TupleShard(self.recipe, number, self.types, again=self.again)
            for part in parts:
                yield shard.push(part)
            yield from shard.finish(self.last)


def left_rows(left: DataFrame, shards: int) -> DecidedAgain:
    """How many rows are left for one more shard, and how long they were pending; none if there is one shard only."""
    from pyspark.sql import functions as f

    if shards == 1:
        return DecidedAgain()  # among fewer rows none finds more others
    ((rows, delay),) = left.agg(f.count(ROW), f.sum(DELAY)).collect()
    return DecidedAgain(rows, delay or 0)
