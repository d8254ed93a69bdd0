"""The time of a tuple stream: event time that never goes back."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.kernels import clock as clock_kernel
from shoal.kernels.tuples.clock import move_by_all, move_clock
from shoal.methods.refusals import AHEAD
from shoal.methods.trace import NO_REASON
from shoal.times import EARLIEST

Ints = npt.NDArray[np.int64]


class StreamClock:
    """Moves with the records; an event too far ahead moves it only when a second person confirms it."""

    def __init__(self, max_gap_ns: int) -> None:
        self._max_gap = max_gap_ns
        self.state = np.zeros(clock_kernel.CLOCK, dtype=np.int64)
        self.state[clock_kernel.NEWEST] = EARLIEST

    @property
    def now(self) -> int:
        """The time of the stream."""
        return int(self.state[clock_kernel.NEWEST])

    def moved(self, persons: Ints, given: Ints, reasons: npt.NDArray[np.int16]) -> tuple[Ints, Ints]:
        """The clock's state after a chunk, and the time at each usable row; marks rows too far ahead in `reasons`.

        The clock itself does not move: assign the returned state when the chunk is accepted.
        """
        state = self.state.copy()
        usable = np.flatnonzero(reasons == NO_REASON)
        codes, newest = np.zeros(len(usable), dtype=np.int8), np.zeros(len(usable), dtype=np.int64)
        move_by_all(state, persons[usable], given[usable], self._max_gap, codes, newest)
        is_ahead = codes == clock_kernel.AHEAD
        reasons[usable[is_ahead]] = AHEAD
        return state, newest[~is_ahead]

    def move(self, keys: Any, time: int) -> bool:
        """Let one person's event move the clock; False where it is too far ahead."""
        code = move_clock(self.state, keys[0, 0], keys[0, 1], time, self._max_gap)
        return bool(code != clock_kernel.AHEAD)

    def advance(self, time: int) -> None:
        """Move the clock without a record."""
        if self.state[clock_kernel.STARTED] == 0 or time > self.now:
            self.state[clock_kernel.NEWEST] = time
            self.state[clock_kernel.STARTED] = self.state[clock_kernel.CONFIRMED] = 1

    def confirm(self) -> None:
        """Never start over: rows were decided by this clock."""
        if self.state[clock_kernel.STARTED]:
            self.state[clock_kernel.CONFIRMED] = 1
