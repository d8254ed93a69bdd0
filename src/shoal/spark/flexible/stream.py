"""The flexible method on streams: every micro-batch continues the shards of the one before.

1. Until a window of usable records has come, records wait in what the driver knows, which is sealed with the state.
2. They calibrate and determine the shards, as in a batch. Both stay fixed.
3. Each shard forms groups of its own records; what is pending stays in it from micro-batch to micro-batch.
4. What is pending in any shard at the end of the stream goes to one more shard. What is pending there is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.crypto.snapshots import open_state, seal_state
from shoal.methods.arrow_input import as_bytes
from shoal.methods.flexible.calibration import Calibration
from shoal.methods.release import NO_REASON, RELEASED
from shoal.methods.schema_reader import tuple_reasons
from shoal.spark.decision_rows import dead_decisions
from shoal.spark.flexible.cuts import Cut, FlexibleSharder
from shoal.spark.flexible.decide import AssignShards, DecideShards, FlexibleTrace, first_window, shard_metrics
from shoal.spark.flexible.shard import PENDING, FlexibleShard
from shoal.spark.outcome import Decisions, Outcome
from shoal.spark.recipe import Recipe
from shoal.spark.records.blocks import packed
from shoal.spark.records.columns import ROW, SHARD, VERDICT, cast, decision_schema
from shoal.spark.records.frames import by_shard_with_markers, frame_of, in_one_shard, mapped, shards_of, types_of
from shoal.spark.records.numbering import NumberedRows
from shoal.spark.streams.logs import opened_rows, sealed_rows
from shoal.spark.streams.state import ShardStates

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Ints = npt.NDArray[np.int64]


def continue_flexible(
    rows: NumberedRows, recipe: Recipe, *, shards: int, states: ShardStates, state: bytes | None, is_end: bool = False
) -> tuple[Decisions, Callable[[Outcome], bytes]]:
    """Decide the next records of a stream; `state` is what was known after the records before.

    The second result makes the next one, given what was decided. Shards keep their states when the decisions are
    published, and note where.
    """
    method: Any = recipe.make()
    method.bind(rows.types)
    published: pa.Schema = method.output_schema
    known = FlexibleStream.opened(recipe, state)
    frame = rows.frame
    if known.waiting is not None:
        frame = frame.union(frame_of([known.waiting], frame))
    if known.calibration is None:
        known = known.accepting(rows, recipe, shards, is_end=is_end)
    if known.calibration is None:
        refuse = RefuseUnusable(recipe, rows.types, published)
        decided = mapped(rows.frame, refuse, decision_schema(published)).persist()
        stored: tuple[DataFrame, ...] = (decided,)
    else:
        decided, stored = _continued(frame, rows, recipe, known, states, is_end=is_end)
    decisions = Decisions(
        decided, published,
        trace_of=lambda dead: FlexibleTrace(np.concatenate((known.dead, dead))),
        metrics_of=partial(_metrics, known=known, k=recipe.settings().k), stored=stored, calibration=known.calibration,
    )  # fmt: skip
    return decisions, lambda outcome: known.after(outcome, rows.end).sealed(recipe)


def _continued(
    frame: DataFrame, rows: NumberedRows, recipe: Recipe, known: FlexibleStream, states: ShardStates, *, is_end: bool
) -> tuple[DataFrame, tuple[DataFrame, ...]]:
    """The decisions of all shards, and what executors store of them."""
    assert known.calibration is not None
    count, last = len(known.cuts) + 1, rows.end - 1
    assign = AssignShards(recipe, rows.types, known.calibration, known.cuts)
    assigned = mapped(frame, assign, pa.schema([*types_of(frame), (SHARD, pa.int32())]))
    work = ContinueFlexible(recipe, rows.types, known.calibration, states, last if is_end else None)
    in_order = by_shard_with_markers(assigned, count)
    schema = work.schema
    decided = mapped(in_order, work, schema).persist()
    if not is_end:
        return decided, (decided,)
    stored = [decided]
    is_kept = f"coalesce({VERDICT}, '') != '{PENDING}'"
    kept = decided.where(is_kept)
    if count > 1 and decided.where(f"{VERDICT} = '{PENDING}'").count():
        give = replace(work, gives_pending=True)
        left = in_one_shard(mapped(in_order, give, give.schema), count)
        together = DecideShards(recipe, rows.types, known.calibration, last, again=True)
        stored.append(mapped(left, together, schema).persist())
        kept = kept.union(stored[-1].where(is_kept))
    return kept, tuple(stored)


@dataclass(frozen=True, slots=True)
class FlexibleStream:
    """What the driver knows between micro-batches."""

    calibration: Calibration | None = None
    cuts: tuple[Cut, ...] = ()
    waiting: pa.RecordBatch | None = None
    """Usable records with their numbers, while there are too few to calibrate."""
    dead: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """Numbers of the records that were refused since the oldest pending one: delays count usable records."""

    @classmethod
    def opened(cls, recipe: Recipe, state: bytes | None) -> FlexibleStream:
        """From sealed(); without a state, at the beginning of the stream."""
        if state is None:
            return cls()
        found = open_state(recipe.secret(), state)
        calibration, waiting = found.header["calibration"], found.arrays["waiting"].tobytes()
        return cls(
            None if calibration is None else Calibration.of(calibration),
            tuple(Cut(*cut) for cut in found.arrays["cuts"].reshape(-1, 4).tolist()),
            pa.ipc.open_stream(waiting).read_next_batch() if waiting else None,
            found.arrays["dead"].copy(),
        )

    def sealed(self, recipe: Recipe) -> bytes:
        """The state, sealed."""
        header = {"calibration": None if self.calibration is None else self.calibration.describe()}
        nothing = np.empty(0, dtype=np.uint8)
        arrays: dict[str, npt.NDArray[Any]] = {
            "cuts": np.array(self.cuts, dtype=np.int64).reshape(-1), "dead": self.dead,
            "waiting": nothing if self.waiting is None else as_bytes(packed(self.waiting).buffers()[2]),
        }  # fmt: skip
        return seal_state(recipe.secret(), header, arrays)

    def accepting(self, rows: NumberedRows, recipe: Recipe, shards: int, *, is_end: bool) -> FlexibleStream:
        """With more records: calibrated if a window is full or the stream ends, else they all wait."""
        sorter, window = FlexibleSharder(recipe, rows.types), recipe.settings().window
        waits = 0 if self.waiting is None else self.waiting.num_rows
        first = first_window(rows, sorter, window - waits)
        usable = sorter.usable(cast(first, rows.types)).reasons == NO_REASON
        found = first.filter(pa.array(usable))
        if self.waiting is not None:
            found = pa.concat_batches([self.waiting, found])
        if found.num_rows < window and not is_end:
            return replace(self, waiting=found)
        sample = cast(found, rows.types)
        calibration = sorter.calibrate(sample)
        return replace(self, calibration=calibration, cuts=sorter.learn(sample, calibration, shards), waiting=None)

    def after(self, outcome: Outcome, end: int) -> FlexibleStream:
        """After a micro-batch; `end` is the number of the next record."""
        pending = [note["oldest"] for note in outcome.notes if note["oldest"] is not None]
        if self.waiting is not None:
            pending += self.waiting.column(ROW).to_pylist()[:1]
        dead = self.dead
        if outcome.refused is not None:
            dead = np.concatenate((dead, np.sort(outcome.refused["row"].to_numpy())))
        return replace(self, dead=dead[dead >= min(pending, default=end)])


@dataclass(frozen=True, slots=True)
class RefuseUnusable:
    """Refuses unusable records on an executor, while the others wait for the calibration."""

    recipe: Recipe
    types: pa.Schema
    published: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sorter, names = FlexibleSharder(self.recipe, self.types), tuple_reasons(self.recipe.settings().schema)
        for batch in batches:
            reasons = sorter.usable(cast(batch, self.types)).reasons
            dead = np.flatnonzero(reasons != NO_REASON)
            numbers = batch.column(ROW).take(pa.array(dead))
            found = pa.array(names, pa.string()).take(pa.array(reasons[dead]))
            yield dead_decisions(numbers, numbers, found, self.published)


@dataclass(frozen=True, slots=True)
class ContinueFlexible:
    """Continues shards on an executor; records come sorted by shard and number."""

    recipe: Recipe
    types: pa.Schema
    calibration: Calibration
    states: ShardStates
    last: int | None
    """The number of the stream's last record, if it ends with these."""
    gives_pending: bool = False
    """Whether to return the records that are pending at the end, as they came, instead of decisions."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of what is returned."""
        shard = self._make(0)
        return shard.kept_schema if self.gives_pending else shard.schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, parts in shards_of(batches):
            shard: FlexibleShard = self.states.open(number, partial(self._make, number), self._replay)
            given, found = [], []
            for part in parts:
                rows = part.filter(part.column(ROW).is_valid())
                if rows.num_rows:
                    given.append(rows)
                    found.append(shard.push(rows))
            if self.last is not None:
                found += shard.finish(self.last)
                yield from [shard.kept] if self.gives_pending else found
                continue
            yield from found
            chain = self.states.keep(number, shard, partial(sealed_rows, self.recipe, given))
            yield shard.note(chain=chain)

    def _make(self, number: int, state: bytes | None = None) -> FlexibleShard:
        return FlexibleShard(self.recipe, number, self.types, self.calibration, state, keeps=True)

    def _replay(self, shard: FlexibleShard, log: bytes) -> None:
        """Decide again what a shard was given."""
        rows, _ = opened_rows(self.recipe, log)
        if rows is not None:
            shard.push(rows)


def _metrics(notes: list[dict[str, Any]], counts: dict[str, int], *, known: FlexibleStream, k: int) -> dict[str, Any]:
    """The metrics of the whole stream so far; notes count all that their shards have decided."""
    if known.calibration is None:
        return {"pending": float(0 if known.waiting is None else known.waiting.num_rows)}
    last = [note for note in notes if note["again"]]
    whole = {RELEASED: sum(note["released"] for note in notes)}
    found = shard_metrics(notes, whole, shards=len(known.cuts) + 1, calibration=known.calibration, k=k)
    return found | {"pending": float(sum(note["pending"] for note in last or notes))}
