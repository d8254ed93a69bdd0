"""The time of the whole stream at every row, where deadlines are durations: one pass over all rows, before any shard.

Shards with clocks of their own would decide late rows differently from one machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from shoal.kernels.clock import CONFIRMED, STARTED
from shoal.methods.release import NO_REASON
from shoal.methods.tuples.reader import StreamClock
from shoal.spark.records.columns import AHEAD, CLOCK, KEYS, ROW, TIME, USABLE

SKELETON: Final = (ROW, TIME, *KEYS, USABLE)
"""What the pass reads of every row."""
STATE: Final = "_shoal_state"
TIMES: Final = pa.schema([(ROW, pa.int64()), (CLOCK, pa.int64()), (AHEAD, pa.bool_()), (STATE, pa.binary())])
"""What it says about every row; a last row without a number has the state of the clock, if it is asked for."""


@dataclass(frozen=True, slots=True)
class MoveClock:
    """Moves the clock of the stream by rows that come in their order, all in one task."""

    max_gap_ns: int
    state: bytes | None = None
    """After the rows before, if the stream goes on; empty at its beginning."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        clock = StreamClock(self.max_gap_ns)
        if self.state:
            clock.state = np.frombuffer(self.state, dtype=np.int64).copy()
        waiting: list[pa.RecordBatch] = []  # until a second person confirms the time, it may be set back
        for batch in batches:
            waiting.append(_moved(clock, batch))
            if clock.state[CONFIRMED]:
                yield _monotone(waiting)
                waiting = []
        if waiting:
            yield _monotone(waiting)
        if self.state is not None:
            found = {ROW: None, CLOCK: clock.now, AHEAD: None, STATE: clock.state.tobytes()}
            yield pa.RecordBatch.from_pylist([found], schema=TIMES)


def time_after(max_gap_ns: int, state: bytes) -> int | None:
    """The time of the stream by a state of its clock; None while nobody has confirmed it."""
    clock = StreamClock(max_gap_ns)
    if state:
        clock.state = np.frombuffer(state, dtype=np.int64).copy()
    return clock.now if clock.state[STARTED] and clock.state[CONFIRMED] else None


def _moved(clock: StreamClock, batch: pa.RecordBatch) -> pa.RecordBatch:
    usable = np.asarray(batch.column(USABLE))
    persons = np.column_stack([np.asarray(batch.column(name)) for name in KEYS])
    reasons = np.where(usable, NO_REASON, 0).astype(np.int16)
    before = clock.now
    clock.state, at_usable = clock.moved(persons, np.asarray(batch.column(TIME)), reasons)
    moves = usable & (reasons == NO_REASON)
    latest = np.cumsum(moves) - 1  # other rows have the time of the row before them
    times = np.append(at_usable, before)[latest]
    states = pa.nulls(batch.num_rows, pa.binary())
    return pa.RecordBatch.from_arrays(
        [batch.column(ROW), pa.array(times), pa.array(usable & ~moves), states], schema=TIMES
    )


def _monotone(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """The batches as one; where time was set back, rows before that have the time it was set back to."""
    whole = pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
    times = np.asarray(whole.column(CLOCK))
    lowest = np.minimum.accumulate(times[::-1])[::-1]
    return whole.set_column(1, CLOCK, pa.array(lowest))
