"""Shards of events: values are assigned to shards, and each shard judges its values by the time of the whole stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from shoal.crypto.snapshots import open_state, seal_state
from shoal.methods.arrow_input import as_bytes
from shoal.methods.release import Release
from shoal.methods.z.admission import Clock
from shoal.methods.z.shards import NO_SHARD
from shoal.spark.recipe import Recipe
from shoal.spark.records.blocks import ROWS_OF_A_BLOCK, OpenBlocks, packed, unpacked
from shoal.spark.records.columns import BLOCK, PART, ROW, SHARD
from shoal.spark.streams.snapshots import dump_shard, open_shard
from shoal.spark.streams.state import ShardStates
from shoal.spark.z.clocks import clock_between, clock_outline
from shoal.spark.z.output_ranges import Pieces, Ranges

Ints = npt.NDArray[np.int64]
_ROWS: Final = "_shoal_rows"
ASSIGNED: Final = pa.schema([(SHARD, pa.int32()), (PART, pa.int32()), (BLOCK, pa.int32()), (_ROWS, pa.binary())])
"""The rows of a block that go to a shard."""


@dataclass(frozen=True, slots=True)
class SplitRows:
    """Assigns rows to shards by column and value; a row goes to every shard that owns one of its values."""

    recipe: Recipe
    opening: OpenBlocks
    shards: int
    admission: Any
    """Broadcast: what admission found out."""
    reaches: int | None = None
    """The number of a record whose block is sent to every shard, if only without rows: time passes in all of them."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        method: Any = None
        for block in self.opening.blocks(batches):
            if method is None:
                method = self.recipe.make()
                method.bind(self.opening.types)
            numbers, rows = block.rows, block.batch
            refused = self.admission.value.refused
            start, stop = np.searchsorted(refused, [block.first, block.first + len(numbers)])
            if start < stop:
                numbers = np.delete(numbers, refused[start:stop] - block.first)
                rows = rows.take(pa.array(numbers - block.first))
            numbered = rows.append_column(ROW, pa.array(numbers))
            found = {shard: numbered.slice(0, 0) for shard in range(self.shards)} if block.first == self.reaches else {}
            found |= self._parts(method, numbered, numbers)
            count = len(found)
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array(found, pa.int32()),
                    pa.repeat(pa.scalar(block.part, pa.int32()), count),
                    pa.repeat(pa.scalar(block.number, pa.int32()), count),
                    packed(*found.values()),
                ],
                schema=ASSIGNED,
            )

    def _parts(self, method: Any, rows: pa.RecordBatch, numbers: Ints) -> Iterator[tuple[int, pa.RecordBatch]]:
        owners = method.owners(rows, self.shards)
        spread = np.where((owners == NO_SHARD).all(axis=0), numbers % self.shards, NO_SHARD)
        if len(owners) == 1:
            of = np.maximum(owners[0], spread)
            order = np.argsort(of.astype(np.int16) if self.shards < 2**15 else of, kind="stable")  # radix sort
            sorted_rows = rows.take(pa.array(order))
            bounds = [0, *np.cumsum(np.bincount(of, minlength=self.shards)).tolist()]
            for shard, (start, stop) in enumerate(pairwise(bounds)):
                if start < stop:
                    yield shard, sorted_rows.slice(start, stop - start)
            return
        names = [column.name for column in method.settings.attributes]
        for shard in range(self.shards):
            here = np.flatnonzero((owners == shard).any(axis=0) | (spread == shard))
            if not len(here):
                continue
            part = rows.take(pa.array(here))
            for name, own in zip(names, owners, strict=True):
                at = rows.schema.get_field_index(name)
                blanked = rows.column(at).take(pa.array(here, mask=own[here] != shard))
                part = part.set_column(at, rows.schema.field(at), blanked)
            yield shard, part


@dataclass(frozen=True, slots=True)
class JudgeShards:
    """Judges shards on an executor; the parts of blocks come in order, one shard after another."""

    recipe: Recipe
    types: pa.Schema
    admission: Any
    """Broadcast: what admission found out."""
    end: int
    """The number after the last record's."""
    ranges: Ranges
    states: ShardStates | None = None
    """Where shards are kept between micro-batches; None if these records are the whole stream."""
    is_end: bool = False
    """Whether a stream of micro-batches ends with these records."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, parts in groupby(gathered_rows(batches), key=itemgetter(0)):
            yield from self._judged(number, (rows for _, rows in parts))

    def _judged(self, number: int, parts: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        clock, states = self.admission.value.clock, self.states
        if states is None:
            shard = ZShard(self.recipe, number, self.types)
            shard.begin(clock, self.ranges.first, self.ranges)
            for rows in parts:
                yield from shard.judge(rows)
            yield from shard.finish(self.end)
            return
        shard = states.open(number, partial(ZShard, self.recipe, number, self.types), self._replay)
        shard.begin(clock, self.ranges.first, self.ranges)
        log = []
        for rows in parts:
            log.append(rows)
            yield from shard.judge(rows)
        if self.is_end:
            yield from shard.finish(self.end)
            return
        yield from shard.pass_time(self.end)
        given = Given(clock, self.ranges.first, self.end, log)
        chain = states.keep(number, shard, lambda: given.dump(self.recipe))
        yield shard.note(chain=chain)

    def _replay(self, shard: ZShard, log: bytes) -> None:
        """Judge again what a shard was given."""
        given = Given.load(self.recipe, log)
        shard.begin(given.clock, given.first)
        for rows in given.rows:
            for _ in shard.judge(rows):
                pass
        for _ in shard.pass_time(given.end):
            pass


@dataclass(frozen=True, slots=True)
class Given:
    """What a shard was given in a micro-batch: from this it can judge again."""

    clock: Clock
    """How all records moved time; from a log, only as far as it matters to what is judged again."""
    first: int
    """The number of the micro-batch's first record, in whichever shard."""
    end: int
    """The number after its last record's."""
    rows: Sequence[pa.RecordBatch]

    def dump(self, recipe: Recipe) -> bytes:
        """All of it, sealed."""
        rows, clock = as_bytes(packed(pa.concat_batches(self.rows)).buffers()[2]), clock_outline(self.clock)
        arrays: dict[str, npt.NDArray[Any]] = {"numbers": clock.numbers, "newest": clock.newest, "rows": rows}
        header = {"restarts": list(clock.restarts), "first": self.first, "end": self.end}
        return seal_state(recipe.secret(), header, arrays)

    @classmethod
    def load(cls, recipe: Recipe, log: bytes) -> Given:
        """Open what dump returned."""
        state = open_state(recipe.secret(), log)
        clock = Clock(state.arrays["numbers"], state.arrays["newest"], tuple(state.header["restarts"]))
        rows = pa.ipc.open_stream(pa.py_buffer(state.arrays["rows"])).read_next_batch()
        return cls(clock, state.header["first"], state.header["end"], [rows])


def gathered_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of shards, many at a time."""
    waiting: list[pa.RecordBatch] = []
    rows, current = 0, -1
    for batch in batches:
        for shard, value in zip(batch.column(SHARD).to_pylist(), batch.column(_ROWS), strict=True):
            if waiting and (shard != current or rows >= ROWS_OF_A_BLOCK):
                yield current, pa.concat_batches(waiting)
                waiting, rows = [], 0
            current = shard
            waiting.append(unpacked(value))
            rows += waiting[-1].num_rows
    if waiting:
        yield current, pa.concat_batches(waiting)


class ZShard:
    """Judges the rows of one shard in their order.

    Parameters
    ----------
    state
        From dump() after the micro-batch before.
    """

    def __init__(self, recipe: Recipe, number: int, types: pa.Schema, state: bytes | None = None) -> None:
        self.number = number
        self._recipe, self._types = recipe, types
        self._method: Any = recipe.make()
        self._open = self._times = np.empty(0, dtype=np.int64)
        """Numbers and times of the rows that wait for late ones."""
        if state is not None:
            snapshot, waiting = open_shard(recipe, state)
            self._open, self._times = (waiting[name].copy() for name in ("open", "times"))
            self._method.restore(snapshot)
        self._method.bind(types)
        self._lateness_ns = self._method.settings.lateness_ns

    def begin(self, clock: Clock, first: int, ranges: Ranges | None = None) -> None:
        """Begin with records that were admitted together, from `first` on; `clock` is how they moved the stream's time.

        Without ranges of an output, what is decided is not returned: it was published before.
        """
        self._clock, self._next = clock, first
        self._pieces = None if ranges is None else Pieces(ranges, waits=bool(self._lateness_ns))

    def judge(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Judge rows; the stream's time moves as far as the last of them."""
        if not batch.num_rows:
            return
        numbers = np.asarray(batch.column(ROW))
        clock = clock_between(self._clock, self._next, int(numbers[-1]) + 1)
        self._next = int(numbers[-1]) + 1
        read = self._method.read_admitted(batch.select(self._types.names), numbers, clock)
        if self._lateness_ns:
            self._open = np.concatenate((self._open, read.numbers))
            self._times = np.concatenate((self._times, read.times))
        yield from self._decided(self._method.judge(read))

    def pass_time(self, end: int) -> Iterator[pa.RecordBatch]:
        """Judge what is due after the arrivals before `end`."""
        yield from self._decided(self._method.judge(self._nothing(clock_between(self._clock, self._next, end))))

    def finish(self, end: int) -> Iterator[pa.RecordBatch]:
        """Judge what waits: the stream has ended."""
        if self._next < end:
            yield from self.pass_time(end)
        last = Clock(np.array([end]), self._clock.newest[-1:], is_end=True)
        yield from self._decided(self._method.judge(self._nothing(last)))
        yield self.note()

    def note(self, **more: Any) -> pa.RecordBatch:
        """Sizes of the shard."""
        found = {"live_pairs": self._method.live_pairs, "state_bytes": self._method.state_bytes, "shard": self.number}
        return Pieces.note(orjson.dumps({**found, **more}).decode())

    def dump(self) -> bytes:
        """The state, sealed."""
        return dump_shard(self._recipe, self._method.snapshot(), {"open": self._open, "times": self._times})

    def _nothing(self, clock: Clock) -> Any:
        return self._method.read_admitted(pa.RecordBatch.from_pylist([], schema=self._types), [], clock)

    def _decided(self, release: Release) -> Iterator[pa.RecordBatch]:
        if self._pieces is None and not self._lateness_ns:
            return
        numbers = np.asarray(release.trace.column("row"))
        times = self._closed(numbers) if self._lateness_ns else numbers
        if self._pieces is not None:
            turns = turns_of(self._clock, numbers, times, self._lateness_ns)
            yield from self._pieces.of(self.number, release.trace, turns, times, release.rows)

    def _closed(self, numbers: Ints) -> Ints:
        """The times of rows that waited and are decided now."""
        places = np.searchsorted(self._open, numbers)
        times = self._times[places]
        is_open = np.ones(len(self._open), dtype=np.bool_)
        is_open[places] = False
        self._open, self._times = self._open[is_open], self._times[is_open]
        return times


def turns_of(clock: Clock, numbers: Ints, times: Ints, lateness_ns: int) -> Ints:
    """The number of the arrival with which each row is decided: the first that makes it too late for earlier ones.

    Where time starts over before that, a row is refused with the arrival that starts it over.
    """
    if not lateness_ns:  # each is decided with its own arrival
        return numbers
    ends = np.array([*clock.restarts, np.iinfo(np.int64).max])
    bounds = [0, *np.searchsorted(clock.numbers, clock.restarts).tolist(), len(clock.numbers)]
    stretches, turns = np.searchsorted(ends, numbers, side="right"), np.empty_like(numbers)
    for stretch in np.unique(stretches):
        own, start, stop = stretches == stretch, bounds[stretch], bounds[stretch + 1]
        places = np.searchsorted(clock.newest[start:stop], times[own] + lateness_ns)
        turns[own] = np.append(clock.numbers[start:stop], ends[stretch])[places]
    return np.maximum(turns, numbers)
