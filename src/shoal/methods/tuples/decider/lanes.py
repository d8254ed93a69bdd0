"""Several lanes in parallel: each has its own pending tuples, all share the clusters that may be reused.

Time is logical. A round is a fixed number of arrivals; at its end, each lane decides those of its tuples that cannot
wait for the end of the next round. All lanes see the clusters known when the round ended, none sees what another lane
forms meanwhile. So the output depends on the input and the number of lanes, never on which thread was faster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.kernels.tuples import layout as t
from shoal.methods.tuples.decider.base import Arrays, Decided, Floats, Ints
from shoal.methods.tuples.decider.lane_assignment import LaneAssignment
from shoal.methods.tuples.decider.lane_threads import Tasks, run_all
from shoal.methods.tuples.decider.memory import POOL, no_arrivals, write_front
from shoal.methods.tuples.decider.sequential import SequentialDecider

_UNDER_WAY: Final = [t.PASSING, t.UNTIL, t.SLACK, t.ENDING]
_NO_CLUSTER: Final = np.zeros(0, dtype=np.bool_)
_Progress = tuple[int, int, int]
"""Of a lane after a round: decisions and generalizations not returned yet, and clusters so far by its own count."""


class Lanes:
    """A :class:`Decider` with one sequential decider for each lane.

    `assignment` says which lane a tuple goes to, `tasks` is work that a thread helps with when its lane is done.
    """

    def __init__(
        self, lanes: Sequence[SequentialDecider], assignment: LaneAssignment, tasks: Tasks, *, round_rows: int
    ) -> None:
        self.lanes = list(lanes)
        for number, lane in enumerate(self.lanes):
            lane.tally[t.LANE] = number
        self.assignment, self._tasks = assignment, tasks
        self._round = round_rows
        plan, ratios = self.lanes[0].plan, self.lanes[0].ratios
        self._is_timed, self._deadline, self._reuse = bool(plan[t.TIMED]), int(plan[t.DEADLINE]), int(plan[t.REUSE])
        self._is_in_turn = bool(plan[t.IS_DIVERSE]) or bool(ratios[t.MAX_SHARE])
        """Whether what one lane adds to a shared cluster limits what the next lane may add."""
        self.are_apart = not self._is_timed and not self._is_in_turn and self._reuse < round_rows
        """Whether no cluster outlives a round: then no lane needs to wait for another."""
        self._round_began: int | None = None
        self._turns = _Turns(len(self.lanes))

    # ---- what they know

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

    def take(self, arrivals: t.Arrivals) -> Decided:
        start, count = 0, len(arrivals.rows)
        if count and self._round_began is None:
            self._round_began = int(arrivals.times[0])
        arrivals = self._assigned(arrivals)
        while start < count:
            if ends := self._rounds_apart(start, count):
                self._run_apart(arrivals, start, ends)
                start = ends[-1]
                continue
            end = min(start + self._round - self._number % self._round, count)
            end, due = self._until_due(arrivals.times, start, end)
            if due is not None:
                self._accept(arrivals, start, end)
                for lane in self.lanes:  # the arrival that moves time past the deadline triggers the decision
                    lane.tally[t.AT] = arrivals.rows[end]
                self._barrier(due, slack=0)
            elif (self._number + end - start) % self._round == 0:
                arrivals = self._end_round(arrivals, start, end)
            else:
                self._accept(arrivals, start, end)
            start = end
        return self._decided()

    def pass_time(self, now: int) -> Decided:
        while (due := self._first_due(now)) <= now:
            self._barrier(due, slack=0)
        for lane in self.lanes:
            lane.tally[t.NOW] = max(now, int(lane.tally[t.NOW]))
        return self._decided()

    def finish(self) -> Decided:
        self._barrier(int(self.lanes[0].tally[t.NOW]), slack=0, ending=True)
        return self._decided()

    @property
    def _number(self) -> int:
        return int(self.lanes[0].tally[t.NUMBER])

    def _decided(self) -> Decided:
        return self._turns.in_order([lane.decided() for lane in self.lanes])

    def _assigned(self, arrivals: t.Arrivals) -> t.Arrivals:
        return arrivals._replace(lanes=self.assignment.lanes_of(arrivals.values, arrivals.rows))

    def _rounds_apart(self, start: int, count: int) -> list[int]:
        """Where rounds end that every lane can go through on its own."""
        if not self.are_apart or not self.assignment.is_chosen:
            return []
        return list(range(start + self._round - self._number % self._round, count + 1, self._round))

    def _until_due(self, times: Ints, start: int, end: int) -> tuple[int, int | None]:
        """How many arrivals come before a pending tuple is due by time, and when it is due."""
        if not self._is_timed:
            return end, None
        back = np.flatnonzero(np.diff(times[start:end]) < 0)  # the clock started over
        end = start + int(back[0]) + 1 if len(back) else end
        due = self._first_due(int(times[start]))
        if due > int(times[end - 1]):
            return end, None
        return start + int(np.searchsorted(times[start:end], due)), due

    def _first_due(self, arriving: int) -> int:
        """When the next pending tuple is due, counting one that arrives now."""
        oldest = [lane.oldest_arrival() for lane in self.lanes]
        return min(first for first in (arriving, *oldest) if first is not None) + self._deadline

    def _accept(self, arrivals: t.Arrivals, start: int, end: int) -> None:
        """Accept arrivals in the middle of a round."""
        for lane in self.lanes if end > start else ():
            lane.work(arrivals, start, end)

    def _end_round(self, arrivals: t.Arrivals, start: int, end: int) -> t.Arrivals:
        """Accept the last arrivals of a round and decide; return the arrivals with the lanes valid from now on."""
        if self._is_timed:
            now = int(arrivals.times[end - 1])
            assert self._round_began is not None
            slack, self._round_began = max(now - self._round_began, 0), now
        else:
            now, slack = self._number + end - start - 1, self._round
        self._barrier(now, slack=slack, run=(arrivals, start, end))
        if self.assignment.is_chosen:
            return arrivals
        self.assignment.choose(self.lanes[0].pending_values(), self.lanes[0].pending_rows())
        return self._assigned(arrivals)

    def _barrier(
        self, now: int, *, slack: int, run: tuple[t.Arrivals, int, int] | None = None, ending: bool = False
    ) -> None:
        """Let every lane decide what cannot wait until now + slack."""
        self._forget_old(now)
        groups = int(self.lanes[0].tally[t.GROUPS])
        for lane in self.lanes:
            lane.tally[_UNDER_WAY] = 1, now, slack, ending
        self._run_all(*(run or (no_arrivals(self.lanes[0].memory.sizes), 0, 0)))
        for lane in self.lanes:
            lane.tally[_UNDER_WAY] = 0
        self._share_new(groups, [[_progress(lane)] for lane in self.lanes])

    def _run_apart(self, arrivals: t.Arrivals, start: int, ends: list[int]) -> None:
        """Let every lane go through these rounds on its own; they share the clusters of the last one."""
        groups, now = int(self.lanes[0].tally[t.GROUPS]), self._number - start - 1
        progress: list[list[_Progress]] = [[] for _ in self.lanes]
        self._forget_old(now + ends[0])  # a flush within this round may have left clusters that are young enough

        def go(lane: SequentialDecider, own: list[_Progress]) -> None:
            for first, end in zip((start, *ends), ends, strict=False):
                if first != start:
                    keep_clusters(lane, _NO_CLUSTER)
                lane.tally[_UNDER_WAY] = 1, now + end, self._round, 0
                lane.work(arrivals, first, end)
                own.append(_progress(lane))
            lane.tally[_UNDER_WAY] = 0

        lanes = sorted(zip(self.lanes, progress, strict=True), key=lambda pair: -pair[0].pending)
        run_all([partial(go, lane, own) for lane, own in lanes], self._tasks)
        self._share_new(groups, progress)

    def _run_all(self, arrivals: t.Arrivals, start: int, end: int) -> None:
        if not self._is_in_turn:
            largest_first = sorted(self.lanes, key=lambda lane: -lane.pending)
            run_all([partial(lane.work, arrivals, start, end) for lane in largest_first], self._tasks)
            return
        for number, lane in enumerate(self.lanes):
            if number:  # two lanes may reuse one cluster: what the first adds to it limits the second
                copy_counts(self.lanes[number - 1], lane)
            lane.work(arrivals, start, end)
        for lane in self.lanes[:-1]:
            copy_counts(self.lanes[-1], lane)

    def _forget_old(self, now: int) -> None:
        """Forget the clusters that are too old to reuse; all lanes know the same ones."""
        is_young = now - created(self.lanes[0]) <= self._reuse
        for lane in self.lanes if not is_young.all() else ():
            keep_clusters(lane, is_young)

    def _share_new(self, first: int, progress: list[list[_Progress]]) -> None:
        """Number new clusters across lanes, and let all lanes know those of the last round, in the same order."""
        number, ahead = self._turns.add(first, progress)
        fresh, before = [new_clusters(lane) for lane in self.lanes], 0
        for lane, clusters, more in zip(self.lanes, fresh, ahead, strict=True):
            clusters["pool_i"][:, t.GROUP] += more
            clusters["joined"][:, t.J_CLUSTER] += before
            before += len(clusters["pool_i"])
            lane.tally[t.GROUPS] = number
        if number > first:
            whole = {name: np.concatenate([part[name] for part in fresh]) for name in fresh[0]}
            for lane in self.lanes:
                add_clusters(lane, whole)

    # ---- snapshots

    def dump(self) -> Arrays:
        found = {
            f"lane{number}.{name}": array
            for number, lane in enumerate(self.lanes)
            for name, array in lane.dump().items()
        }
        began = [] if self._round_began is None else [self._round_began]
        return {**found, "cuts": self.assignment.dump(), "began": np.array(began, dtype=np.int64)}

    def load(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        for number, lane in enumerate(self.lanes):
            prefix = f"lane{number}."
            lane.load({name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)})
        self.assignment.load(arrays["cuts"])
        self._round_began = int(arrays["began"][0]) if len(arrays["began"]) else None


def _progress(lane: SequentialDecider) -> _Progress:
    return lane.decided_rows, lane.decided_groups, int(lane.tally[t.GROUPS])


class _Turns:
    """The order of the lanes' decisions: round by round, and lane by lane in each."""

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        self._turns: list[tuple[int, int, int, int]] = []
        """Lane, decisions and generalizations of it by then, and what to add to its own numbers of new clusters."""

    def add(self, first: int, progress: list[list[_Progress]]) -> tuple[int, list[int]]:
        """Number the clusters of some rounds from `first` on; return the next number and what each lane adds now."""
        number, own, ahead = first, [first] * self._lanes, [0] * self._lanes
        for turn in zip(*progress, strict=True):
            for at, (rows, groups, formed) in enumerate(turn):
                ahead[at] = number - own[at]
                self._turns.append((at, rows, groups, ahead[at]))
                number, own[at] = number + formed - own[at], formed
        return number, ahead

    def in_order(self, decided: list[Decided]) -> Decided:
        """The decisions of all lanes since the last call, in order."""
        numbers = [part.numbers.copy() for part in decided]
        rows_done, groups_done = [0] * self._lanes, [0] * self._lanes
        before = np.concatenate(([0], np.cumsum([len(part) for part in decided])))
        order = [np.empty(0, dtype=np.int64)]
        for lane, rows, groups, ahead in self._turns:
            order.append(before[lane] + np.arange(rows_done[lane], rows))
            turn = slice(groups_done[lane], groups)
            numbers[lane][turn] += np.where(decided[lane].reused[turn] == 0, ahead, 0)
            rows_done[lane], groups_done[lane] = rows, groups
        self._turns = []
        parts = [replace(part, numbers=own) for part, own in zip(decided, numbers, strict=True)]
        return Decided.joined(parts).in_order(np.concatenate(order))


def created(lane: SequentialDecider) -> Ints:
    """When the clusters known at the beginning of the round were formed."""
    times: Ints = lane.memory.stream.pool_i[: int(lane.tally[t.VISIBLE]), t.CREATED]
    return times


def new_clusters(lane: SequentialDecider) -> Arrays:
    """The clusters formed in this round."""
    start, end = int(lane.tally[t.VISIBLE]), int(lane.tally[t.POOL_SIZE])
    joined = lane.memory.joined()
    joined = joined[joined[:, t.J_CLUSTER] >= start]
    joined[:, t.J_CLUSTER] -= start
    return {**{name: getattr(lane.memory.stream, name)[start:end].copy() for name in POOL}, "joined": joined}


def known_joined(lane: SequentialDecider) -> Ints:
    """Published rows of the clusters known at the beginning of the round, with their persons."""
    joined = lane.memory.joined()
    return joined[joined[:, t.J_CLUSTER] < int(lane.tally[t.VISIBLE])]


def copy_counts(source: SequentialDecider, target: SequentialDecider) -> None:
    """Give a lane what another has added to the clusters known at the beginning of the round."""
    known, found = int(source.tally[t.VISIBLE]), source.memory.stream.class_f
    own = target.memory.stream.class_f
    values = min(own.shape[3], found.shape[3])
    own[:known, :, :, :values] = found[:known, :, :, :values]
    joined = target.memory.joined()
    new = joined[joined[:, t.J_CLUSTER] >= int(target.tally[t.VISIBLE])]
    target.memory.write_joined(np.concatenate([known_joined(source), new]))


def keep_clusters(lane: SequentialDecider, is_kept: npt.NDArray[np.bool_]) -> None:
    """Forget all other clusters known at the beginning of the round; none is formed in it yet."""
    count = int(np.count_nonzero(is_kept))
    for name in POOL if count else ():
        array = getattr(lane.memory.stream, name)
        array[:count] = array[: len(is_kept)][is_kept]
    joined = known_joined(lane)
    joined = joined[is_kept[joined[:, t.J_CLUSTER]]] if len(joined) else joined
    joined[:, t.J_CLUSTER] = (np.cumsum(is_kept) - 1)[joined[:, t.J_CLUSTER]]
    lane.memory.write_joined(joined)
    lane.tally[t.POOL_SIZE] = lane.tally[t.VISIBLE] = count


def add_clusters(lane: SequentialDecider, clusters: Arrays) -> None:
    """Add clusters to those known, in place of those this lane has formed in this round."""
    known, sizes = int(lane.tally[t.VISIBLE]), lane.memory.sizes
    count = known + len(clusters["pool_i"])
    if 2 * count + sizes.pending // sizes.k + 8 > sizes.clusters:
        lane.resize(sizes.with_room(clusters=2 * sizes.clusters + 2 * count))
    joined = clusters["joined"].copy()
    joined[:, t.J_CLUSTER] += known
    lane.memory.write_joined(np.concatenate([known_joined(lane), joined]))
    for name in POOL:
        write_front(getattr(lane.memory.stream, name)[known:], clusters[name])
    lane.tally[t.POOL_SIZE] = lane.tally[t.VISIBLE] = count
