"""What a batch of tuples does on Spark, in one process: cuts, the clock, shards, one more shard, trace and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import shoal
from shoal.methods.release import DEAD, RELEASED, SUPPRESSED
from shoal.spark.outcome import SORTED
from shoal.spark.recipe import Recipe
from shoal.spark.records.columns import (
    AHEAD,
    CLOCK,
    DELAY,
    NOTE,
    ROW,
    SHARD,
    VERDICT,
    cast,
    decision_schema,
    wire_schema,
)
from shoal.spark.tuples import cuts as learning
from shoal.spark.tuples.clock import SKELETON, MoveClock
from shoal.spark.tuples.cuts import CutsFrom
from shoal.spark.tuples.decide import AssignShards, DecideShards, RefuseAhead
from shoal.spark.tuples.drift import cuts_of_stretches, sampled_rows, stretches
from shoal.spark.tuples.shard import TupleShard, shard_recipe
from shoal.spark.tuples.trace import DecidedAgain, TupleTrace, tuple_metrics


@dataclass(frozen=True)
class Union:
    """What all shards decided."""

    decided: pa.Table
    """In the order of publication, without notes."""
    again: pa.Table
    """The first decisions about rows that were decided again."""
    shards: int
    recipe: Recipe
    metrics: dict[str, Any]

    def counts(self) -> dict[str, int]:
        """Records by verdict."""
        return verdicts(self.decided)

    @property
    def trace(self) -> pa.Table:
        """The trace."""
        settings = self.recipe.settings()
        dead = np.sort(np.asarray(self._with(DEAD)[ROW]))
        made = TupleTrace(settings.k, settings.is_timed, dead)
        return pa.Table.from_batches(list(made.batches(self.decided.combine_chunks().to_batches())))

    @property
    def rows(self) -> pa.Table:
        """What is published."""
        shown = [RELEASED, SUPPRESSED] if self.recipe.settings().suppressed == "root" else [RELEASED]
        found = self._with(*shown)
        return found.select([name for name in found.column_names if not name.startswith("_shoal")])

    def audit(self, truth: pa.RecordBatch, policy: dict[str, Any]) -> Any:
        """The report of the auditor."""
        return shoal.audit(self.rows, pa.table(truth), self.trace, policy)

    def _with(self, *kinds: str) -> pa.Table:
        return self.decided.filter(pc.is_in(self.decided[VERDICT], pa.array(kinds)))


def verdicts(decided: pa.Table) -> dict[str, int]:
    found = {RELEASED: 0, SUPPRESSED: 0, DEAD: 0}
    for entry in decided[VERDICT].drop_null().value_counts().to_pylist():
        found[entry["values"]] = entry["counts"]
    return found


def cuts_for(recipe: Recipe, rows: pa.RecordBatch, shards: int, *, rows_of_learning: int) -> tuple[CutsFrom, ...]:
    """The cuts of a stream, learnt on this many rows of each stretch of ten times as many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learning, "LEARNING_ROWS", rows_of_learning)
        starts = stretches(0, rows.num_rows)
        numbers = sampled_rows(starts, rows.num_rows)
        return cuts_of_stretches(rows.take(pa.array(numbers)), numbers, starts, recipe, shards)


def in_shards(recipe: Recipe, rows: pa.RecordBatch, all_cuts: Sequence[CutsFrom], *, halves: bool = False) -> Union:
    """Decide all rows; with `halves`, each shard is stored and opened again half way."""
    settings, count = recipe.settings(), max(each.shards for each in all_cuts)
    assigned, ahead, last = assigned_rows(recipe, rows, all_cuts)
    decide: Any = (DecideInHalves if halves else DecideShards)(shard_recipe(recipe), rows.schema, last)
    alone = _decided(decide, assigned)
    is_left = pc.fill_null(pc.equal(alone[VERDICT], SUPPRESSED), fill_value=False)
    again, parts = alone.filter(is_left).slice(0, None if count > 1 else 0), [alone]
    if len(again):
        ours = assigned.filter(pc.is_in(assigned[ROW], again[ROW]))
        in_one = pa.repeat(pa.scalar(count, pa.int32()), len(ours))
        ours = ours.set_column(ours.schema.get_field_index(SHARD), SHARD, in_one)
        parts = [alone.filter(pc.invert(is_left)), _decided(replace(decide, again=True), ours)]
    whole = pa.concat_tables([*parts, *ahead])
    notes = [orjson.loads(note) for note in whole[NOTE].drop_null().to_pylist()]
    decided = whole.filter(pc.is_null(whole[NOTE])).sort_by([(name, "ascending") for name in SORTED])
    redone = DecidedAgain(len(again), pc.sum(again[DELAY]).as_py() or 0)
    metrics = tuple_metrics(notes, verdicts(decided), shards=count, is_timed=settings.is_timed, again=redone)
    return Union(decided, again, count, recipe, metrics)


def assigned_rows(
    recipe: Recipe, rows: pa.RecordBatch, all_cuts: Sequence[CutsFrom]
) -> tuple[pa.Table, list[pa.Table], int]:
    """Rows with shard and clock; decisions about those that are too far ahead; the time at the end."""
    is_timed, method = recipe.settings().is_timed, shard_recipe(recipe).make()
    method.bind(pa.schema([*rows.schema, (CLOCK, pa.timestamp("ns", tz="UTC"))]))
    numbers = pa.array(np.arange(rows.num_rows))
    assign = AssignShards(recipe, rows.schema, tuple(all_cuts), is_timed=is_timed)
    found = pa.Table.from_batches(assign([cast(rows, wire_schema(rows.schema)).append_column(ROW, numbers)]))
    if not is_timed:
        return found, [], rows.num_rows - 1
    moved = MoveClock(recipe.settings().max_gap_ns)(found.select(SKELETON).combine_chunks().to_batches())
    times = pa.Table.from_batches(list(moved))
    found = found.append_column(CLOCK, times[CLOCK])
    far = found.filter(times[AHEAD]).select([ROW, CLOCK]).combine_chunks().to_batches()
    refused = list(RefuseAhead(method.output_schema)(far))
    dead = pa.Table.from_batches(refused, schema=decision_schema(method.output_schema))
    return found.filter(pc.invert(times[AHEAD])), [dead], pc.max(times[CLOCK]).as_py()


def _decided(decide: Any, rows: pa.Table) -> pa.Table:
    in_order = rows.sort_by([(SHARD, "ascending"), (ROW, "ascending")]).combine_chunks()
    return pa.Table.from_batches(decide(in_order.to_batches()))


@dataclass(frozen=True)
class DecideInHalves:
    """Decides shards; each is stored and opened again half way."""

    recipe: Recipe
    types: pa.Schema
    last: int
    again: bool = False

    def __call__(self, batches: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
        rows, found = pa.Table.from_batches(batches), []
        for number in range(pc.max(rows[SHARD]).as_py() + 1):
            own = rows.filter(pc.equal(rows[SHARD], number)).combine_chunks()
            half = len(own) // 2
            first, second = (part.to_batches() for part in (own.slice(0, half), own.slice(half)))
            shard = TupleShard(self.recipe, number, self.types, again=self.again, keeps=True)
            found += map(shard.push, first)
            shard = TupleShard(self.recipe, number, self.types, shard.dump(), again=self.again, keeps=True)
            found += [*map(shard.push, second), *shard.finish(self.last)]
        return found
