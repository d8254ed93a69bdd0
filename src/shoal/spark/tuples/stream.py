"""Tuple methods on streams: every micro-batch continues the shards of the one before.

What the driver knows between micro-batches is sealed with the state: the cuts between shards, the clock of the stream,
the first rows until cuts are learnt on them. Before that, all rows go to shard 0. After every stretch of rows, cuts
that divided it unevenly are learnt again; rows that are pending stay in their shard.

Rows that find too few others in their shard at the end of the stream are decided together in one more. Rows that become
due before that must be decided at once: they are suppressed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.crypto.snapshots import open_state, seal_state
from shoal.methods.arrow_input import as_bytes
from shoal.methods.release import RELEASED, SUPPRESSED
from shoal.spark.outcome import Decisions, Outcome
from shoal.spark.recipe import Recipe
from shoal.spark.records.blocks import packed
from shoal.spark.records.columns import AHEAD, AT_END, CLOCK, KEYS, ROW, TIME, USABLE, cast, decision_schema
from shoal.spark.records.frames import by_shard_with_markers, collected, frame_of, in_one_shard, mapped, shards_of
from shoal.spark.records.numbering import NumberedRows
from shoal.spark.streams.logs import opened_rows, sealed_rows
from shoal.spark.streams.state import ShardStates
from shoal.spark.tuples import cuts as learning
from shoal.spark.tuples.clock import SKELETON, STATE, TIMES, MoveClock, time_after
from shoal.spark.tuples.cuts import Cuts, CutsFrom, TupleSharder, is_uneven
from shoal.spark.tuples.decide import LEFT, DecideShards, RefuseAhead, assign_shards, left_rows
from shoal.spark.tuples.drift import ROWS_OF_A_STRETCH
from shoal.spark.tuples.shard import TupleShard, shard_recipe
from shoal.spark.tuples.trace import DecidedAgain, TupleTrace, tuple_metrics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Ints = npt.NDArray[np.int64]
_MOST_WAITING: Final = 100_000
"""Rows that wait on the driver for a second person; with more of them from one person, time counts as it is."""


def continue_tuples(
    rows: NumberedRows, recipe: Recipe, *, shards: int, states: ShardStates, state: bytes | None, is_end: bool = False
) -> tuple[Decisions, Callable[[Outcome], bytes]]:
    """Decide the next rows of a stream; `state` is what was known after the rows before.

    The second result makes the next one, given what was decided. Shards keep their states when the decisions are
    published, and note where. At the end of the stream everything that is pending is decided.
    """
    inner, settings = shard_recipe(recipe), recipe.settings()
    method = inner.make()
    method.bind(pa.schema([*rows.types, (CLOCK, pa.timestamp("ns", tz="UTC"))]))
    schema = decision_schema(method.output_schema)
    known = TupleStream.opened(recipe, state).with_cuts(rows, recipe, shards)
    assigned = assign_shards(rows, recipe, (CutsFrom(rows.first, known.cuts),), is_timed=settings.is_timed)
    ahead, last = None, rows.end - 1 if rows.end else None
    stored: list[DataFrame] = []
    if settings.is_timed:
        assigned, known = _certain(assigned, settings.max_gap_ns, known, is_end=is_end)
        times, known = _moved_clock(assigned, settings.max_gap_ns, known)
        assigned = assigned.drop(TIME, USABLE, *KEYS).join(times.drop(STATE), ROW)
        stored.append(times)
        last = time_after(settings.max_gap_ns, known.clock)
        ahead = mapped(assigned.where(AHEAD).select(ROW, CLOCK), RefuseAhead(method.output_schema), schema)
        assigned = assigned.where(f"not {AHEAD}")
    work = ContinueShards(inner, rows.types, last, states, is_end)
    in_order = by_shard_with_markers(assigned, known.shards)
    decided = mapped(in_order, work, schema).persist()
    stored.append(decided)
    left = f"{LEFT} and {AT_END}"
    again = left_rows(decided.where(left), known.shards) if is_end else DecidedAgain()
    if again.rows:
        give = replace(work, gives_left=True)
        ours = in_one_shard(mapped(in_order, give, give.schema), known.shards)
        stored.append(mapped(ours, DecideShards(inner, rows.types, last, again=True), schema).persist())
        decided = decided.where(f"not coalesce({left}, false)").union(stored[-1])
    oldest = None if settings.is_timed else rows.end - 1 - int(settings.deadline)
    decisions = Decisions(
        decided if ahead is None else decided.union(ahead), method.output_schema,
        trace_of=lambda dead: TupleTrace(settings.k, settings.is_timed, np.concatenate((known.dead, dead))),
        metrics_of=partial(_metrics, is_timed=settings.is_timed, again=again), stored=tuple(stored),
    )  # fmt: skip
    return decisions, lambda outcome: known.after(outcome, oldest).sealed(recipe)


@dataclass(frozen=True, slots=True)
class TupleStream:
    """What the driver knows between micro-batches."""

    cuts: Cuts = ()
    shards: int = 1
    """That were ever used: some may only have rows that are pending."""
    is_learning: bool = True
    sample: pa.RecordBatch | None = None
    """The first rows, while there are too few to learn cuts."""
    clock: bytes = b""
    waiting: pa.RecordBatch | None = None
    """Rows with their shards that came before a second person confirmed the time of the stream."""
    dead: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """Numbers of the rows that were refused since the oldest one that may be pending, where deadlines count rows."""
    pushed: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    """How many rows every shard was given."""
    pushed_before: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    """The same at the beginning of the present stretch."""

    @classmethod
    def opened(cls, recipe: Recipe, state: bytes | None) -> TupleStream:
        """From sealed(); without a state, at the beginning of the stream."""
        if state is None:
            return cls()
        found = open_state(recipe.secret(), state)
        arrays = found.arrays
        sample, waiting = (
            pa.ipc.open_stream(data).read_next_batch() if (data := arrays[name].tobytes()) else None
            for name in ("sample", "waiting")
        )
        return cls(
            tuple(tuple(cut) for cut in arrays["cuts"].reshape(-1, 4).tolist()),
            found.header["shards"],
            found.header["is_learning"],
            sample,
            arrays["clock"].tobytes(),
            waiting,
            *(arrays[name].copy() for name in ("dead", "pushed", "pushed_before")),
        )

    def sealed(self, recipe: Recipe) -> bytes:
        """The state, sealed."""
        arrays: dict[str, npt.NDArray[Any]] = {
            "cuts": np.array(self.cuts, dtype=np.float64).reshape(-1), "sample": _as_bytes(self.sample),
            "waiting": _as_bytes(self.waiting),
            "clock": np.frombuffer(self.clock, dtype=np.uint8), "dead": self.dead, "pushed": self.pushed,
            "pushed_before": self.pushed_before,
        }  # fmt: skip
        return seal_state(recipe.secret(), {"shards": self.shards, "is_learning": self.is_learning}, arrays)

    def with_cuts(self, rows: NumberedRows, recipe: Recipe, shards: int) -> TupleStream:
        """With cuts for these rows: those known, or new ones where enough rows are there to learn them."""
        if not self.is_learning or not rows.count:
            return self
        needed = learning.LEARNING_ROWS - (self.sample.num_rows if self.sample is not None else 0)
        first = rows.first_rows(needed)
        sample = cast(first, rows.types)
        if self.sample is not None:
            sample = pa.concat_batches([self.sample, sample])
        if sample.num_rows < learning.LEARNING_ROWS:
            return replace(self, is_learning=True, sample=sample)
        sorter = TupleSharder(recipe)
        sorter.learn(sample, shards)
        (learnt,) = sorter.all_cuts
        known = replace(self, cuts=learnt.cuts, is_learning=False, sample=None, pushed_before=self.pushed)
        return replace(known, shards=max(known.shards, learnt.shards))

    def after(self, outcome: Outcome, oldest: int | None) -> TupleStream:
        """After a micro-batch; `oldest` is the number before that of any pending row."""
        pushed = np.zeros(self.shards, dtype=np.int64)
        for note in (note for note in outcome.notes if not note["again"]):
            pushed[note["shard"]] = note["pushed"]
        dead = self.dead
        if oldest is not None and outcome.refused is not None:
            dead = np.concatenate((dead, np.sort(outcome.refused["row"].to_numpy())))
        known = replace(self, pushed=pushed, dead=dead if oldest is None else dead[dead >= oldest])
        return known.after_a_stretch()

    def after_a_stretch(self) -> TupleStream:
        """If a stretch is full, judge its rows and begin the next: cuts that divide them unevenly are learnt again.

        Every stretch is judged alone. Counted from the first row on, a shift late in a long stream would be a small
        share of all rows, and noticed ever later.
        """
        before = np.zeros_like(self.pushed)
        before[: len(self.pushed_before)] = self.pushed_before
        found = (self.pushed - before)[: len(self.cuts) + 1]
        if found.sum() < ROWS_OF_A_STRETCH * learning.LEARNING_ROWS:
            return self
        return replace(self, is_learning=self.is_learning or is_uneven(found), pushed_before=self.pushed)


def _as_bytes(batch: pa.RecordBatch | None) -> npt.NDArray[np.uint8]:
    found: npt.NDArray[np.uint8] = (
        np.empty(0, dtype=np.uint8) if batch is None else as_bytes(packed(batch).buffers()[2])
    )
    return found


def _certain(read: DataFrame, max_gap_ns: int, known: TupleStream, *, is_end: bool) -> tuple[DataFrame, TupleStream]:
    """Rows whose time is certain: none until a second person confirms the time of the stream, then all that waited.

    A wrong clock of the first person may be set back by the second. A shard that had seen it would be ahead of the
    stream, and decide nothing any more.
    """
    if known.waiting is not None:
        read = read.union(frame_of([known.waiting], read))
    if is_end or time_after(max_gap_ns, known.clock) is not None:
        return read, replace(known, waiting=None)
    times, moved = _moved_clock(read, max_gap_ns, known)
    times.unpersist()
    if time_after(max_gap_ns, moved.clock) is not None or read.count() > _MOST_WAITING:
        return read, replace(known, waiting=None)
    return read.where("false"), replace(known, waiting=collected(read, read.columns))


def _moved_clock(read: DataFrame, max_gap_ns: int, known: TupleStream) -> tuple[DataFrame, TupleStream]:
    """The time of the whole stream at every row; and what is known with the clock after them."""
    skeleton = read.select(*SKELETON).repartition(1).sortWithinPartitions(ROW)
    times = mapped(skeleton, MoveClock(max_gap_ns, known.clock), TIMES).persist()
    found = times.where(f"{ROW} is null").select(STATE).collect()  # none if Spark knows that there are no rows
    return times, replace(known, clock=bytes(found[0][0])) if found else known


@dataclass(frozen=True, slots=True)
class ContinueShards:
    """Continues shards on an executor; rows come sorted by shard and number."""

    recipe: Recipe
    types: pa.Schema
    last: int | None
    """The time of the whole stream after these rows; None if it is not certain yet."""
    states: ShardStates
    is_end: bool
    gives_left: bool = False
    """Whether to return the rows that find too few others at the end, as they came, instead of decisions."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of what is returned."""
        shard = self._make(0)
        return shard.kept_schema if self.gives_left else shard.schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, parts in shards_of(batches):
            shard: TupleShard = self.states.open(number, partial(self._make, number), self._replay)
            given, found = [], []
            for part in parts:
                rows = part.filter(part.column(ROW).is_valid())
                if rows.num_rows:
                    given.append(rows)
                    found.append(shard.push(rows))
            if self.is_end:
                found += shard.finish(self.last)
                yield from [shard.left] if self.gives_left else found
                continue
            yield from found
            if self.last is not None:
                yield shard.pass_time(self.last)
            chain = self.states.keep(number, shard, partial(sealed_rows, self.recipe, given, last=self.last))
            yield shard.note(chain=chain)

    def _make(self, number: int, state: bytes | None = None) -> TupleShard:
        return TupleShard(self.recipe, number, self.types, state, keeps=True)

    def _replay(self, shard: TupleShard, log: bytes) -> None:
        """Decide again what a shard was given."""
        rows, header = opened_rows(self.recipe, log)
        if rows is not None:
            shard.push(rows)
        if header["last"] is not None:
            shard.pass_time(header["last"])


def _metrics(
    notes: list[dict[str, Any]], counts: dict[str, int], *, is_timed: bool, again: DecidedAgain
) -> dict[str, Any]:
    """The metrics of the whole stream so far; notes count all that their shards have decided."""
    decided, suppressed = (sum(note[name] for note in notes) for name in ("decided", "suppressed"))
    whole = {RELEASED: decided - suppressed, SUPPRESSED: suppressed - again.rows}
    shards = sum(not note["again"] for note in notes)
    return tuple_metrics(notes, whole, shards=shards, is_timed=is_timed, again=again, is_stream=True)
