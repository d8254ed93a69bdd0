"""Admission, the first step: which events are accepted, their numbers, and how the stream's time moves.

It looks at times and people alone. Everything that the second step, judgement, needs to know of it is in
:class:`Admitted`, so the two steps may happen in different processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from shoal.kernels import clock as kernel
from shoal.kernels.z.events import admit_text
from shoal.methods.release import NO_REASON, Counts
from shoal.methods.text_keys import Bools, Ints, Words
from shoal.methods.z.reader import AHEAD, LATE, Arrivals, Reader
from shoal.methods.z.settings import ZSettings
from shoal.times import EARLIEST, LATEST

REASONS: Final = {
    kernel.TAKEN: NO_REASON, kernel.RESTART: NO_REASON,
    kernel.LATE: LATE, kernel.AHEAD: AHEAD,
}  # fmt: skip
"""Why an event is refused, by the code of the clock."""


@dataclass(frozen=True, slots=True)
class Clock:
    """How the stream's time moved in one call: it was ``newest[i]`` after the arrival with number ``numbers[i]``.

    Every shard needs the whole of it: it says which of the waiting rows are decided now.
    """

    numbers: Ints
    newest: Ints
    restarts: tuple[int, ...] = ()
    """Numbers of the arrivals with which time started over, because the first clock was wrong."""
    is_end: bool = False
    """Whether everything that waits is decided."""

    def condensed(self) -> Clock:
        """The same without the arrivals that did not move time; one entry for each distinct time."""
        moved = np.ones(len(self.numbers), dtype=np.bool_)
        moved[1:] = self.newest[1:] != self.newest[:-1]
        return Clock(self.numbers[moved], self.newest[moved], self.restarts, self.is_end)

    def stretches(self) -> list[Clock]:
        """The parts before, between and after restarts; the first may be empty."""
        if not self.restarts:
            return [self]
        bounds = [0, *np.searchsorted(self.numbers, self.restarts).tolist(), len(self.numbers)]
        return [Clock(self.numbers[start:stop], self.newest[start:stop]) for start, stop in pairwise(bounds)]

    def decided_until(self, lateness_ns: int) -> int:
        """The time up to which all rows are decided."""
        return LATEST if self.is_end else int(self.newest[-1]) - lateness_ns


@dataclass(frozen=True, slots=True)
class Admitted:
    """Events after admission, in arrival order, and the clock of the call. Judgement needs nothing else."""

    rows: Arrivals
    clock: Clock

    def __len__(self) -> int:
        return len(self.rows.seqs)

    @property
    def numbers(self) -> Ints:
        """The number of each event, in the order of all that arrived."""
        return self.rows.seqs

    @property
    def times(self) -> Ints:
        """The time of each event, in nanoseconds since 1970."""
        return self.rows.times

    @property
    def batch(self) -> pa.RecordBatch:
        """The columns that the method reads."""
        return self.rows.batch

    @property
    def accepted(self) -> Bools:
        """Which events are not refused."""
        accepted: Bools = self.rows.reasons == NO_REASON
        return accepted


class Admission:
    """The clock of a stream and, in its counts, the number of the next event; the only state of this step."""

    def __init__(self, settings: ZSettings, person_key: Words, reader: Reader, counts: Counts) -> None:
        self._lateness_ns, self._max_gap_ns = settings.lateness_ns, settings.max_gap_ns
        self._person_key = person_key
        self._reader, self._counts = reader, counts
        self.clock = np.zeros(kernel.CLOCK, dtype=np.int64)
        self.clock[kernel.NEWEST] = EARLIEST  # time only ever moves forward, from the first event on too
        self._latest = EARLIEST  # the latest time of an accepted event, kept where events wait
        self.person = np.zeros((1, 2), dtype=np.int64)
        """Key of the person whose single event is being decided."""

    @property
    def newest(self) -> int:
        """The stream's time."""
        return int(self.clock[kernel.NEWEST])

    @property
    def is_confirmed(self) -> bool:
        """Whether a second person has confirmed the time: then it never starts over."""
        return bool(self.clock[kernel.CONFIRMED])

    def admit(self, rows: Arrivals) -> Admitted:
        """Number arrivals and let them move time; refuse those that are late or too far ahead, count all refused."""
        rows.seqs += self._counts.pushed
        self._counts.pushed += len(rows.seqs)
        usable = rows.reasons == NO_REASON
        codes = np.empty(len(usable), dtype=np.int8)
        newest = np.empty(len(usable), dtype=np.int64)
        others = kernel.admit(
            self.clock, rows.persons, rows.times, usable, self._lateness_ns, self._max_gap_ns, codes, newest
        )
        restarts: list[int] = []
        if others:
            rows.reasons[codes == kernel.LATE] = LATE
            rows.reasons[codes == kernel.AHEAD] = AHEAD
            restarts = np.flatnonzero(codes == kernel.RESTART).tolist()
        if self._lateness_ns:
            since = restarts[-1] if restarts else 0
            accepted = rows.times[since:][codes[since:] <= kernel.RESTART]
            self._latest = int(accepted.max(initial=EARLIEST if restarts else self._latest))
        self._counts.refuse_all(rows.reasons[rows.reasons != NO_REASON].tolist())
        return Admitted(rows, Clock(rows.seqs, newest, tuple(rows.seqs[restarts].tolist())))

    def admit_one(self, person: str, time: int) -> int:
        """Let one event move time; return the clock's code."""
        text = np.frombuffer(person.encode(), dtype=np.uint8)
        code: int = admit_text(
            self._person_key, self.clock, text, time, self._lateness_ns, self._max_gap_ns, self.person
        )
        if self._lateness_ns and code <= kernel.RESTART:
            self._latest = time if code == kernel.RESTART else max(self._latest, time)
        return code

    def admit_time(self, now_ns: int) -> Admitted:
        """Let time pass without an event."""
        clock = self.clock
        if clock[kernel.STARTED] == 0:
            clock[kernel.CLOSED] = kernel.LONG_AGO
        if clock[kernel.STARTED] == 0 or now_ns > clock[kernel.NEWEST]:
            clock[kernel.NEWEST] = now_ns
            clock[kernel.STARTED] = clock[kernel.CONFIRMED] = 1
        return self._admit_nothing(is_end=False)

    def admit_end(self) -> Admitted:
        """Let nothing wait any longer; what comes later and is older than an accepted event is late."""
        if self._latest > EARLIEST:
            self.clock[kernel.CLOSED] = max(int(self.clock[kernel.CLOSED]), self._latest)
        return self._admit_nothing(is_end=True)

    def _admit_nothing(self, *, is_end: bool) -> Admitted:
        clock = Clock(np.array([self._counts.pushed]), np.array([self.newest]), is_end=is_end)
        return Admitted(self._reader.read(self._reader.joined([])), clock)

    def dump(self) -> dict[str, Any]:
        """Everything, as arrays."""
        return {"clock": self.clock, "latest": np.array([self._latest])}

    def load(self, arrays: Mapping[str, Any]) -> None:
        """Take over what dump returned."""
        self.clock = arrays["clock"].copy()
        self._latest = int(arrays["latest"][0])
