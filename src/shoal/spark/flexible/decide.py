"""The flexible method on Spark: shards by normal quasi-identifiers, one calibration, F0 to F2 on the union.

1. The first window of the stream calibrates: sparse columns, P(s), K_s, density. It also determines the shards.
2. Each shard forms groups of its own records. A group has enough people of one shard; other shards only add to them.
3. What is pending in any shard at the end of the stream goes to one more shard. What is pending there is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.methods.flexible.calibration import Calibration
from shoal.methods.release import DEAD, RELEASED
from shoal.spark.flexible.cuts import Cut, FlexibleSharder
from shoal.spark.flexible.shard import PENDING, FlexibleShard
from shoal.spark.outcome import Decisions
from shoal.spark.recipe import Recipe
from shoal.spark.records.columns import DECIDED, DETAILS, GROUP, REASON, ROW, SHARD, VERDICT, cast, decision_schema
from shoal.spark.records.frames import by_shard, in_one_shard, mapped, only, shards_of
from shoal.spark.records.numbering import NumberedRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def decide_flexible(rows: NumberedRows, recipe: Recipe, *, shards: int) -> Decisions:
    """Decide all records of a finite stream."""
    method: Any = recipe.make()
    method.bind(rows.types)
    schema = decision_schema(method.output_schema)
    sorter = FlexibleSharder(recipe, rows.types)
    first = cast(first_window(rows, sorter, recipe.settings().window), rows.types)
    calibration = sorter.calibrate(first)
    cuts = sorter.learn(first, calibration, shards)
    work = AssignShards(recipe, rows.types, calibration, cuts)
    assigned = rows.mapped(work, pa.schema([(SHARD, pa.int32())]))
    count, last = len(cuts) + 1, rows.end - 1
    decide = DecideShards(recipe, rows.types, calibration, last)
    alone = mapped(by_shard(assigned, count), decide, schema).persist()
    together = _decide_left(alone, assigned, decide, count, schema)
    kept = alone.where(f"coalesce({VERDICT}, '') != '{PENDING}'")
    if together is not None:
        kept = kept.union(together.where(f"coalesce({VERDICT}, '') != '{PENDING}'"))
    known = {"shards": count, "rows": rows.count, "calibration": calibration, "k": recipe.settings().k}
    return Decisions(
        kept, method.output_schema, FlexibleTrace, partial(flexible_metrics, **known), calibration=calibration
    )


def first_window(rows: NumberedRows, sorter: FlexibleSharder, window: int) -> pa.RecordBatch:
    """The first records with their numbers: a window of usable ones, or all there are."""
    wanted = window
    while True:
        found = rows.first_rows(wanted)
        if sorter.usable(cast(found, rows.types)).codes.shape[1] >= window or wanted >= rows.count:
            return found
        wanted *= 2


def _decide_left(
    alone: DataFrame, assigned: DataFrame, decide: DecideShards, count: int, schema: pa.Schema
) -> DataFrame | None:
    """Decide records that are pending in their shards, together in one more."""
    left = alone.where(f"{VERDICT} = '{PENDING}'")
    if count == 1 or not (many := left.count()):
        return None
    return mapped(in_one_shard(only(assigned, left, many), count), decide.another(), schema).persist()


@dataclass(frozen=True, slots=True)
class AssignShards:
    """Says on an executor which shard each record goes to."""

    recipe: Recipe
    types: pa.Schema
    calibration: Calibration
    cuts: tuple[Cut, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sorter: FlexibleSharder | None = None
        for batch in batches:
            sorter = sorter or FlexibleSharder(self.recipe, self.types)
            shards = sorter.shards(cast(batch, self.types), self.calibration, self.cuts)
            yield batch.append_column(SHARD, pa.array(shards.astype(np.int32)))


@dataclass(frozen=True, slots=True)
class DecideShards:
    """Decides shards on an executor; records come sorted by shard and number."""

    recipe: Recipe
    types: pa.Schema
    calibration: Calibration
    last: int
    again: bool = False

    def another(self) -> DecideShards:
        """For records that were pending in other shards."""
        return DecideShards(self.recipe, self.types, self.calibration, self.last, again=True)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, parts in shards_of(batches):
            shard = FlexibleShard(self.recipe, number, self.types, self.calibration, again=self.again)
            for part in parts:
                yield shard.push(part)
            yield from shard.finish(self.last)


@dataclass(frozen=True, slots=True)
class FlexibleTrace:
    """Turns decisions into the trace that one machine would write; delays count usable records of the whole stream."""

    dead: npt.NDArray[np.int64]
    """Numbers of the refused records, ascending."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the trace."""
        whole = [(name, pa.int64()) for name in ("group", "delay", "k", "k_s")]
        return pa.schema([("row", pa.int64()), ("verdict", pa.string()), ("reason", pa.string()), *whole])

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The trace of decisions, batch by batch."""
        for batch in batches:
            rows, decided = np.asarray(batch.column(ROW)), np.asarray(batch.column(DECIDED))
            verdicts, details = batch.column(VERDICT), batch.column(DETAILS)
            is_dead = pc.equal(verdicts, DEAD)
            k, k_s = (pc.if_else(is_dead, None, pc.list_element(details, place)) for place in (0, 1))
            delay = self._usable(decided) - self._usable(rows)
            columns = [batch.column(ROW), verdicts, batch.column(REASON), batch.column(GROUP), pa.array(delay), k, k_s]
            yield pa.RecordBatch.from_arrays(
                [column.cast(field.type) for column, field in zip(columns, self.schema, strict=True)],
                schema=self.schema,
            )

    def _usable(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Usable records up to these, these included."""
        return rows + 1 - np.searchsorted(self.dead, rows, side="right")


def flexible_metrics(
    notes: list[dict[str, Any]], counts: dict[str, int], *, shards: int, rows: int, calibration: Calibration, k: int
) -> dict[str, Any]:
    """The metrics of the union of all shards."""
    found = shard_metrics(notes, counts, shards=shards, calibration=calibration, k=k)
    return found | {"pending": float(rows - counts[RELEASED] - counts[DEAD])}


def shard_metrics(
    notes: list[dict[str, Any]], counts: dict[str, int], *, shards: int, calibration: Calibration, k: int
) -> dict[str, Any]:
    """What the notes of shards say about the rows that they released."""
    found: dict[str, Any] = {}
    for note in notes:
        for name, value in note["losses"].items():
            found[name] = found.get(name, 0.0) + value / max(counts[RELEASED], 1)
        for name, value in note["seen"].items():
            found[name] = found.get(name, 0.0) + value
    found["k_s"] = float(calibration.k_s[k])
    found |= {f"sparse_share_{name}": calibration.shares[name] for name in calibration.sparse}
    return found | {"shards": shards}
