"""The state of a z-anonymity stream: its clock, its reorder buffer and the crowd behind every value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from shoal.kernels import clock as clock_kernel
from shoal.kernels.z.events import admit_text
from shoal.methods.arrow_input import as_bytes
from shoal.methods.base import NO_REASON
from shoal.methods.text_keys import Bools, Ints, Words
from shoal.methods.z.columns import CrowdColumn
from shoal.methods.z.follower import Follower
from shoal.methods.z.reader import AHEAD, LATE, Arrivals
from shoal.methods.z.reorder_buffer import OneWaiting, ReorderBuffer, Waiting
from shoal.methods.z.settings import ZSettings
from shoal.methods.z.values import Levels
from shoal.times import EARLIEST, LATEST

REASONS: Final = {
    clock_kernel.TAKEN: NO_REASON, clock_kernel.RESTART: NO_REASON,
    clock_kernel.LATE: LATE, clock_kernel.AHEAD: AHEAD,
}  # fmt: skip
"""Why an event is refused, by the code of the clock."""


@dataclass(slots=True)
class Judged:
    """Rows judged by z, in the order decided."""

    arrivals: Arrivals
    levels: list[Levels]
    """For each attribute: 0 for the value itself, n for its n-th ancestor, negative where it is private."""
    passed: Bools
    """Which rows may be published."""
    z: Ints | None
    """The z that each row was judged with, where it follows the stream."""


class Decider:
    """Decides about events in time order; the only part of the method whose state changes."""

    def __init__(
        self,
        settings: ZSettings,
        attributes: Sequence[CrowdColumn],
        person_key: Words,
        *,
        follower: Follower | None,
        keeps_blank: bool,
    ) -> None:
        self._lateness_ns, self._max_gap_ns = settings.lateness_ns, settings.max_gap_ns
        self._keeps_blank = keeps_blank  # rows whose value is private are published without it
        self._person_key = person_key
        self._follower = follower
        self.attributes = attributes
        self.buffer = ReorderBuffer()
        self.clock = np.zeros(clock_kernel.CLOCK, dtype=np.int64)
        self.clock[clock_kernel.NEWEST] = EARLIEST  # time only ever moves forward, from the first event on too
        self._person = np.zeros((1, 2), dtype=np.int64)  # scratch: key of the person whose single event is decided

    @property
    def newest(self) -> int:
        """The stream's time."""
        return int(self.clock[clock_kernel.NEWEST])

    # ---- time

    def admit(self, arrivals: Arrivals) -> list[int]:
        """Let arrivals move time and refuse those that are late or too far ahead; return where time starts over."""
        usable = arrivals.reasons == NO_REASON
        codes = np.empty(len(usable), dtype=np.int8)
        arrivals.newest = np.empty(len(usable), dtype=np.int64)
        others = clock_kernel.admit(
            self.clock, arrivals.persons, arrivals.times, usable, self._lateness_ns, self._max_gap_ns,
            codes, arrivals.newest,
        )  # fmt: skip
        if not others:
            return []
        arrivals.reasons[codes == clock_kernel.LATE] = LATE
        arrivals.reasons[codes == clock_kernel.AHEAD] = AHEAD
        restarts: list[int] = np.flatnonzero(codes == clock_kernel.RESTART).tolist()
        return restarts

    def admit_one(self, person: str, time: int) -> int:
        """Let one event move time; return the clock's code."""
        text = np.frombuffer(person.encode(), dtype=np.uint8)
        code: int = admit_text(
            self._person_key, self.clock, text, time, self._lateness_ns, self._max_gap_ns, self._person
        )
        return code

    def advance(self, now_ns: int) -> int:
        """Let time pass; return the time up to which no event can come any more."""
        clock = self.clock
        if clock[clock_kernel.STARTED] == 0:
            clock[clock_kernel.CLOSED] = clock_kernel.LONG_AGO
        if clock[clock_kernel.STARTED] == 0 or now_ns > clock[clock_kernel.NEWEST]:
            clock[clock_kernel.NEWEST] = now_ns
            clock[clock_kernel.STARTED] = clock[clock_kernel.CONFIRMED] = 1
        return self.newest - self._lateness_ns

    def close(self, time: int) -> None:
        """Refuse events before this time from now on: later rows were decided."""
        self.clock[clock_kernel.CLOSED] = max(int(self.clock[clock_kernel.CLOSED]), time)

    def forget(self) -> Waiting:
        """Forget all events, because the first clock was wrong; return the rows that waited."""
        for column in self.attributes:
            column.crowd.clear()
        if self._follower is not None:
            self._follower.forget()
        return self.buffer.take_until(LATEST)

    def expire(self, limit: int) -> None:
        """Forget what no event from a time on can count; an idle stream gives its memory back."""
        for column in self.attributes:
            column.crowd.expire(max(limit - column.window_ns, 2 * EARLIEST))
            column.crowd.trim()

    # ---- the reorder buffer

    def reorder(self, arrivals: Arrivals) -> tuple[Waiting, Ints]:
        """Let usable rows wait; return the rows whose turn has come, and the arrival with which each is decided."""
        waiting = Waiting(arrivals.seqs, arrivals.times, arrivals.persons, arrivals.batch)
        self.buffer.add(waiting.pick(arrivals.reasons == NO_REASON))
        passed = arrivals.newest - self._lateness_ns
        ready = self.buffer.take_until(int(passed[-1]))
        # a row is decided with the arrival that moves time past it, as if records were pushed one by one
        return ready, np.maximum(np.searchsorted(passed, ready.times), ready.seqs - arrivals.seqs[0])

    def let_wait(self, time: int, seq: int, record: dict[str, Any]) -> None:
        """Let the event wait that was just admitted."""
        self.buffer.add_one(OneWaiting(time, seq, (int(self._person[0, 0]), int(self._person[0, 1])), record))

    def next_ready(self) -> OneWaiting | None:
        """The next waiting record whose turn has come."""
        one = self.buffer.pop_one(self.newest - self._lateness_ns)
        if one is not None:
            self._person[0] = one.key
        return one

    # ---- z

    def judge(self, arrivals: Arrivals) -> Judged:
        """Count the people behind every value of rows in time order; the only place where the crowds change."""
        usable, z = arrivals.reasons == NO_REASON, None
        if self._follower is None:
            levels = [
                column.decide(reading, persons=arrivals.persons, times=arrivals.times, usable=usable)
                for column, reading in zip(self.attributes, arrivals.readings, strict=True)
            ]
        else:
            levels, z = self._follower.judge(self.attributes, arrivals, usable)
        passed = usable if self._keeps_blank else levels[0] >= 0
        for level in [] if self._keeps_blank else levels[1:]:
            passed |= level >= 0
        return Judged(arrivals, levels, passed, z)

    def judge_one(self, texts: list[str | None], time: int) -> list[int]:
        """The level of every value of the event that was just admitted or taken out of the buffer."""
        if self._follower is not None:
            return self._follower.judge_one(self.attributes, texts, self._person, time)
        return [
            column.decide_one(text, person=self._person, time=time)
            for column, text in zip(self.attributes, texts, strict=True)
        ]

    # ---- state

    def dump(self) -> dict[str, Any]:
        """Everything, as arrays."""
        waiting = self.buffer.dump()
        arrays: dict[str, Any] = {
            "clock": self.clock,
            "held.rows": as_bytes(waiting.batch.serialize()),
            "held.seqs": waiting.seqs,
            "held.times": waiting.times,
            "held.persons": waiting.persons,
        }
        for number, column in enumerate(self.attributes):
            arrays[f"crowd{number}.pool"], arrays[f"crowd{number}.attrs"] = column.crowd.dump()
        return arrays if self._follower is None else {**arrays, **self._follower.dump()}

    def load(self, arrays: Mapping[str, Any]) -> None:
        """Take over what dump returned."""
        self.clock = arrays["clock"].copy()
        rows = pa.ipc.read_record_batch(pa.py_buffer(arrays["held.rows"]), self.buffer.schema)
        self.buffer.add(Waiting(arrays["held.seqs"], arrays["held.times"], arrays["held.persons"], rows))
        for number, column in enumerate(self.attributes):
            column.crowd.load(arrays[f"crowd{number}.pool"], arrays[f"crowd{number}.attrs"])
        if self._follower is not None:
            self._follower.load(arrays)
