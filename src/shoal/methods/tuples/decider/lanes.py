"""Several lanes in parallel: each has its own pending tuples and its own published clusters.

A tuple belongs to one lane, and a lane decides its tuples as one sequential decider would. Where a tuple would be
suppressed because its lane has too few people, all lanes are joined first, so the tuple is decided among all pending
tuples. At fixed numbers of arrivals tuples are assigned to lanes again, if that is needed. So the output depends on the
input and the number of threads, never on which thread was faster or on how the input was cut into batches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.kernels.tuples import layout as t
from shoal.methods.tuples.decider.base import Arrays, Decided, Floats, Ints
from shoal.methods.tuples.decider.lane_assignment import LaneAssignment
from shoal.methods.tuples.decider.lane_content import LaneContent
from shoal.methods.tuples.decider.lane_threads import Tasks, run_all, run_helped
from shoal.methods.tuples.decider.sequential import SequentialDecider

ROWS_OF_A_LANE: Final = 16
"""A lane needs at least this many times k arrivals within the deadline."""
PENDING_OF_A_LANE: Final = 4
"""Where the deadline is a duration, a lane needs at least this many times k pending tuples."""
FIRST_CHECK: Final = 64
"""Where there is one lane, it is checked at the earliest after this many arrivals whether there can be more."""
_LEAST_ROUND: Final = 4096
_SEGMENT: Final = 16_384
"""Arrivals that lanes accept before it is seen whether one of them has stopped."""
_MOST_UNEVEN: Final = 1.5
"""Tuples are assigned again if a lane gets more than this many times its share of the arrivals."""
WORTH_THREADS: Final = 256


class Lanes:
    """A :class:`Decider` with one sequential decider for each lane.

    `assignment` says which lane a tuple goes to, `tasks` is work that a thread helps with when its lane is done.
    Every `round_rows` arrivals it is checked whether the tuples should be assigned to lanes again.
    """

    def __init__(
        self, lanes: Sequence[SequentialDecider], assignment: LaneAssignment, tasks: Tasks, *, round_rows: int | None
    ) -> None:
        self.lanes = list(lanes)
        for number, lane in enumerate(self.lanes):
            lane.tally[t.LANE] = lane.tally[t.GROUPS] = number
        self.assignment, self._tasks = assignment, tasks
        plan = self.lanes[0].plan
        self._is_timed, self._deadline, self._k = bool(plan[t.TIMED]), int(plan[t.DEADLINE]), int(plan[t.K])
        self._arrived = np.zeros(len(self.lanes), dtype=np.int64)
        """Arrivals of each lane since the last check."""
        self._round = round_rows or max(_LEAST_ROUND, 0 if self._is_timed else 2 * self._deadline)
        self._soon = min(self._round, FIRST_CHECK if self._is_timed else max(FIRST_CHECK, self._deadline))

    # ---- what they know

    @property
    def used(self) -> list[SequentialDecider]:
        """The lanes that tuples are assigned to."""
        return self.lanes[: self.assignment.lanes]

    @property
    def pending(self) -> int:
        return sum(lane.pending for lane in self.lanes)

    @property
    def nbytes(self) -> int:
        return sum(lane.nbytes for lane in self.lanes)

    @property
    def tally(self) -> Ints:
        tallies = np.array([lane.tally for lane in self.lanes])
        total: Ints = tallies.sum(axis=0)
        total[t.LONGEST] = tallies[:, t.LONGEST].max()
        return total

    @property
    def sums(self) -> Floats:
        total: Floats = np.sum([lane.sums for lane in self.lanes], axis=0)
        return total

    def pending_rows(self) -> Ints:
        return np.sort(np.concatenate([lane.pending_rows() for lane in self.lanes]))

    def know_values(self) -> None:
        for lane in self.lanes:
            lane.know_values()

    # ---- deciding

    def take(self, arrivals: t.Arrivals) -> list[Decided]:
        start, count = 0, len(arrivals.rows)
        arrivals = self._assigned(arrivals)
        while start < count:
            take_segment = partial(self._take_segment, arrivals, start)
            is_long = min(self._soon, count - start) >= WORTH_THREADS
            is_helped = len(self.used) == 1 and is_long  # one lane leaves threads to tasks
            start, arrivals = run_helped(take_segment, self._tasks) if is_helped else take_segment()
        return self._decided()

    def _take_segment(self, arrivals: t.Arrivals, start: int) -> tuple[int, t.Arrivals]:
        """Accept some arrivals from `start` on; return how far it came, and the arrivals as they are assigned now."""
        before = self.assignment.version
        end, arrived, is_check = self._next_segment(arrivals, start)
        start = self._accept(arrivals, start, end)
        if self.assignment.version == before:
            self._arrived = arrived
            if is_check:
                self._deal_if_needed()
        return start, arrivals if self.assignment.version == before else self._assigned(arrivals)

    def pass_time(self, now: int) -> list[Decided]:
        oldest = [lane.oldest_arrival() for lane in self.used]
        if len(self.used) > 1 and any(first is not None and first + self._deadline <= now for first in oldest):
            saved = [_Saved(lane) for lane in self.used]
            for lane in self.used:
                _let_stop(lane, may_stop=True)
                lane.work_until(now)
            if any(lane.tally[t.STUCK] for lane in self.used):
                for one in saved:
                    one.restore()
                self._join()
        for lane in self.used:
            lane.work_until(now)
        return self._decided()

    def finish(self) -> list[Decided]:
        self._join()
        return [*self._decided(), *self.lanes[0].finish()]

    def _decided(self) -> list[Decided]:
        return [part for lane in self.lanes for part in lane.decided()]

    def _assigned(self, arrivals: t.Arrivals) -> t.Arrivals:
        return arrivals._replace(lanes=self.assignment.lanes_of(arrivals.values, arrivals.rows))

    def _accept(self, arrivals: t.Arrivals, start: int, end: int) -> int:
        """Accept arrivals; where a lane stops, all go back to that arrival and are joined. Return how far it came."""
        lanes = self.used
        if len(lanes) == 1:
            lanes[0].work(arrivals, start, end)
            return end
        may_go_back = end - start > 1 or self._is_timed
        saved = self._work_all(arrivals, start, end, saves=may_go_back)
        stops = [int(lane.tally[t.NEXT]) for lane in lanes if lane.tally[t.STUCK]]
        if not stops:
            return end
        stop = min(stops)
        if may_go_back:
            for one in saved:
                one.restore()
            self._work_all(arrivals, start, stop)
        self._join()
        if not self._is_timed:  # the arrival that made the tuple due is accepted already
            self.lanes[0].tally[t.AT] = arrivals.rows[stop - 1]
            self.lanes[0].work(arrivals, stop, stop)
        return stop

    def _work_all(self, arrivals: t.Arrivals, start: int, end: int, *, saves: bool = False) -> list[_Saved]:
        """Let all lanes accept arrivals, and stop where they cannot publish a tuple; return what they were before."""
        saved: list[_Saved] = []

        def work(lane: SequentialDecider) -> None:
            if saves:
                saved.append(_Saved(lane))
            _let_stop(lane, may_stop=True)
            lane.work(arrivals, start, end)
            lane.empty_output()

        if end - start < WORTH_THREADS:
            for lane in self.used:
                work(lane)
        else:
            largest_first = sorted(self.used, key=lambda lane: -lane.pending)
            run_all([partial(work, lane) for lane in largest_first], self._tasks)
        return saved

    # ---- assignment

    def _next_segment(self, arrivals: t.Arrivals, start: int) -> tuple[int, Ints, bool]:
        """How far lanes go from `start` on before tuples may be assigned again.

        Return the end, the arrivals of each lane since the last check, and whether it is checked at the end. Checks
        that can be foreseen to change nothing are passed over: the fewer segments, the less lanes wait for each other.
        """
        end, arrived, number = start, self._arrived.copy(), int(self.lanes[0].tally[t.NUMBER])
        last = min(len(arrivals.rows), start + _SEGMENT)
        step = self._round if len(self.used) > 1 else self._soon  # sooner where there is one lane
        while end < last:
            to_check = step - number % step
            part = arrivals.lanes[end : min(end + to_check, last)]
            if len(self.used) > 1:
                arrived += np.bincount(part, minlength=len(arrived))
            end, number = end + len(part), number + len(part)
            if len(part) == to_check:
                if self._is_timed or self._is_assigned_badly(arrived, len(self.lanes)):
                    return end, arrived, True
                arrived[:] = 0
        return end, arrived, False

    def _is_assigned_badly(self, arrived: Ints, wanted: int) -> bool:
        """Whether there should be more or fewer lanes, or one gets too large a part of the arrivals."""
        return wanted != len(self.used) or bool(arrived.max() * wanted > _MOST_UNEVEN * arrived.sum())

    def _deal_if_needed(self) -> None:
        wanted = len(self.lanes)
        if self._is_timed:
            wanted = max(1, min(wanted, self.pending // (PENDING_OF_A_LANE * self._k)))
        if self._is_assigned_badly(self._arrived, wanted):
            self._deal(wanted)
        self._arrived = np.zeros_like(self._arrived)

    def _join(self) -> None:
        """Move everything to the first lane."""
        if len(self.used) > 1:
            self._deal(1)
        _let_stop(self.lanes[0], may_stop=False)

    def _deal(self, wanted: int) -> None:
        """Assign the pending tuples and the published clusters of all lanes to this many lanes."""
        lanes = self.used
        content = LaneContent(lanes)
        self.assignment.choose(content.values, content.rows, wanted)
        of_tuples = self.assignment.lanes_of(content.values, content.rows)
        of_clusters = self.assignment.lanes_of(content.centers, content.clusters)
        for number, lane in enumerate(self.lanes[: max(wanted, len(lanes))]):
            content.give(lane, of_tuples == number, of_clusters == number)
        self._arrived = np.zeros_like(self._arrived)

    # ---- snapshots

    def dump(self) -> Arrays:
        found = {
            f"lane{number}.{name}": array
            for number, lane in enumerate(self.lanes)
            for name, array in lane.dump().items()
        }
        return {**found, "cuts": self.assignment.dump(), "arrived": self._arrived.copy()}

    def load(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        for number, lane in enumerate(self.lanes):
            prefix = f"lane{number}."
            lane.load({name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)})
        self.assignment.load(arrays["cuts"])
        self._arrived = arrays["arrived"].copy()


def _let_stop(lane: SequentialDecider, *, may_stop: bool) -> None:
    lane.tally[t.MAY_STOP] = may_stop


class _Saved:
    """A lane as it is now."""

    def __init__(self, lane: SequentialDecider) -> None:
        lane.empty_output()
        self._lane, self._state, self._decided = lane, lane.dump(), list(lane.parts)

    def restore(self) -> None:
        """Undo everything since; the lane may stop again."""
        self._lane.load(self._state)
        self._lane.parts = self._decided
        _let_stop(self._lane, may_stop=True)
