"""Several lanes side by side: each holds tuples of its own, all share the clusters that may be reused.

Time is logical. A round is a fixed number of arrivals; when it is over, each lane decides those of its tuples that
cannot wait for the end of the next. All lanes look at the clusters known when the round ended, none at what another
forms meanwhile, so what comes out depends on the input and the number of lanes, never on which thread was faster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.kernels.tuples import layout as t
from shoal.methods.tuples.lane_assignment import Dealing
from shoal.methods.tuples.lane_threads import Chores, run_all
from shoal.methods.tuples.sensitive import SensitiveCodes
from shoal.methods.tuples.state import Arrays, Decided, TupleState

Ints = npt.NDArray[np.int64]
_UNDER_WAY: Final = [t.PASSING, t.UNTIL, t.SLACK, t.ENDING]
_NONE: Final = np.zeros(0, dtype=np.bool_)
_Noted = tuple[int, int, int]
"""Of a lane after a round: decisions, generalizations and, by its own count, clusters so far."""


class Lanes:
    """The state of a stream that is decided in lanes; from outside it looks like one state."""

    def __init__(
        self, make: Callable[[], TupleState], dealing: Dealing, chores: Chores, *, lanes: int, round_rows: int
    ) -> None:
        self.lanes = [make() for _ in range(lanes)]
        for number, lane in enumerate(self.lanes):
            lane.tally[t.LANE] = number
        self._dealing, self._chores = dealing, chores
        self._round = round_rows
        plan = self.lanes[0].stream.plan
        self._is_timed, self._deadline, self._reuse = bool(plan[t.TIMED]), int(plan[t.DEADLINE]), int(plan[t.REUSE])
        self._is_in_turn = bool(plan[t.IS_DIVERSE]) or bool(self.lanes[0].stream.ratios[t.MAX_SHARE])
        """Whether what one lane adds to a shared cluster counts for what the next may add."""
        self._are_apart = not self._is_timed and not self._is_in_turn and self._reuse < round_rows
        """Whether no cluster outlives a round: then no lane needs to wait for another."""
        self._round_began: int | None = None
        self._turns: list[tuple[int, int, int, int]] = []
        """Lane, decisions and generalizations noted by then, and how far its new numbers are ahead."""

    # ---- questions

    @property
    def held(self) -> int:
        """Tuples that wait."""
        return sum(lane.held for lane in self.lanes)

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return sum(lane.nbytes for lane in self.lanes)

    @property
    def tally(self) -> Ints:
        """Counts so far, of all lanes."""
        tallies = np.array([lane.tally for lane in self.lanes])
        total: Ints = tallies.sum(axis=0)
        total[t.LONGEST] = tallies[:, t.LONGEST].max()
        return total

    @property
    def sums(self) -> npt.NDArray[np.float64]:
        """Losses so far, of all lanes."""
        total: npt.NDArray[np.float64] = np.sum([lane.sums for lane in self.lanes], axis=0)
        return total

    def held_rows(self) -> Ints:
        """Numbers of the rows that wait, ascending."""
        return np.sort(np.concatenate([lane.held_rows() for lane in self.lanes]))

    def know_values(self, codes: Sequence[SensitiveCodes], is_ordered: Sequence[bool]) -> None:
        """Make room for sensitive values that have come up."""
        for lane in self.lanes:
            lane.know_values(codes, is_ordered)

    # ---- deciding

    def take(self, arrivals: t.Arrivals) -> Decided:
        """Take arrivals in, round by round."""
        start, count = 0, len(arrivals.rows)
        if count and self._round_began is None:
            self._round_began = int(arrivals.times[0])
        dealt = self._deal(arrivals)
        while start < count:
            if ends := self._rounds_apart(start, count):
                self._run_apart(dealt, start, ends)
                start = ends[-1]
                continue
            end = min(start + self._round - self._number % self._round, count)
            end, due = self._until_due(arrivals.times, start, end)
            if due is not None:
                self._hold(dealt, start, end)
                for lane in self.lanes:  # the arrival that moves time past them sets them off
                    lane.tally[t.AT] = arrivals.rows[end]
                self._barrier(due, slack=0)
            elif (self._number + end - start) % self._round == 0:
                dealt = self._end_round(dealt, start, end)
            else:
                self._hold(dealt, start, end)
            start = end
        return self._decided()

    @property
    def _number(self) -> int:
        return int(self.lanes[0].tally[t.NUMBER])

    def _rounds_apart(self, start: int, count: int) -> list[int]:
        """Where rounds end that every lane can go through on its own."""
        if not self._are_apart or not self._dealing.is_chosen:
            return []
        return list(range(start + self._round - self._number % self._round, count + 1, self._round))

    def _until_due(self, times: Ints, start: int, end: int) -> tuple[int, int | None]:
        """How far arrivals go before a held tuple is due by time, and when it is."""
        if not self._is_timed:
            return end, None
        back = np.flatnonzero(np.diff(times[start:end]) < 0)  # the clock started over
        end = start + int(back[0]) + 1 if len(back) else end
        due = self._first_due(int(times[start]))
        if due > int(times[end - 1]):
            return end, None
        return start + int(np.searchsorted(times[start:end], due)), due

    def _first_due(self, arriving: int) -> int:
        """When the next held tuple is due, counting one that arrives now."""
        waiting = [lane.oldest_arrived() for lane in self.lanes]
        return min(first for first in (arriving, *waiting) if first is not None) + self._deadline

    def _deal(self, arrivals: t.Arrivals) -> t.Arrivals:
        return arrivals._replace(lanes=self._dealing.deal(arrivals.values, arrivals.rows))

    def _hold(self, arrivals: t.Arrivals, start: int, end: int) -> None:
        """Take arrivals in; a round is not over."""
        for lane in self.lanes if end > start else ():
            lane.work(arrivals, start, end)

    def _end_round(self, arrivals: t.Arrivals, start: int, end: int) -> t.Arrivals:
        """Take in the last arrivals of a round and decide; return the arrivals as they are dealt from now on."""
        if self._is_timed:
            now = int(arrivals.times[end - 1])
            assert self._round_began is not None
            slack, self._round_began = max(now - self._round_began, 0), now
        else:
            now, slack = self._number + end - start - 1, self._round
        self._barrier(now, slack=slack, run=(arrivals, start, end))
        if self._dealing.is_chosen:
            return arrivals
        self._dealing.choose(*self.lanes[0].held_values())
        return self._deal(arrivals)

    def _barrier(
        self, now: int, *, slack: int, run: tuple[t.Arrivals, int, int] | None = None, ending: bool = False
    ) -> None:
        """Let every lane decide what cannot wait until now + slack."""
        self._forget_old(now)
        groups = int(self.lanes[0].tally[t.GROUPS])
        for lane in self.lanes:
            lane.tally[_UNDER_WAY] = 1, now, slack, ending
        self._run_all(*(run or (self.lanes[0].no_arrivals(), 0, 0)))
        for lane in self.lanes:
            lane.tally[_UNDER_WAY] = 0
        if self._is_in_turn:
            self._tell_counts()
        self._number_groups(groups, [[_noted(lane)] for lane in self.lanes])

    def _run_apart(self, arrivals: t.Arrivals, start: int, ends: list[int]) -> None:
        """Let every lane go through these rounds on its own; what they share in the end is of the last one."""
        groups, now = int(self.lanes[0].tally[t.GROUPS]), self._number - start - 1
        noted: list[list[_Noted]] = [[] for _ in self.lanes]
        self._forget_old(now + ends[0])  # a flush within this round may have left clusters that are young enough

        def go(lane: TupleState, notes: list[_Noted]) -> None:
            for first, end in zip((start, *ends), ends, strict=False):
                if first != start:
                    lane.keep_clusters(_NONE)
                lane.tally[_UNDER_WAY] = 1, now + end, self._round, 0
                lane.work(arrivals, first, end)
                notes.append(_noted(lane))
            lane.tally[_UNDER_WAY] = 0

        lanes = sorted(zip(self.lanes, noted, strict=True), key=lambda pair: -pair[0].held)
        run_all([partial(go, lane, notes) for lane, notes in lanes], self._chores)
        self._number_groups(groups, noted)

    def _run_all(self, arrivals: t.Arrivals, start: int, end: int) -> None:
        if self._is_in_turn:
            self._run_in_turn(arrivals, start, end)
            return
        largest_first = sorted(self.lanes, key=lambda lane: -lane.held)
        run_all([partial(lane.work, arrivals, start, end) for lane in largest_first], self._chores)

    def _run_in_turn(self, arrivals: t.Arrivals, start: int, end: int) -> None:
        """Two lanes may reuse one cluster: what the first adds to it must count for the second."""
        for number, lane in enumerate(self.lanes):
            if number:
                before, known = self.lanes[number - 1], int(lane.tally[t.VISIBLE])
                lane.stream.class_f[:known] = before.stream.class_f[:known, :, :, : lane.stream.class_f.shape[3]]
                lane.know_joined(before.known_joined())
            lane.work(arrivals, start, end)

    def _tell_counts(self) -> None:
        """Let every lane know what all of them have added to the clusters they share; the last one does."""
        known, last = int(self.lanes[-1].tally[t.VISIBLE]), self.lanes[-1].stream.class_f
        for lane in self.lanes[:-1]:
            lane.stream.class_f[:known, :, :, : last.shape[3]] = last[:known, :, :, : lane.stream.class_f.shape[3]]
            lane.know_joined(self.lanes[-1].known_joined())

    def _number_groups(self, first: int, noted: list[list[_Noted]]) -> None:
        """Number new clusters round by round, in each lane by lane, and share those of the last round."""
        number, own, ahead = first, [first] * len(self.lanes), [0] * len(self.lanes)
        for turn in zip(*noted, strict=True):
            for at, (rows, groups, formed) in enumerate(turn):
                ahead[at] = number - own[at]
                self._turns.append((at, rows, groups, ahead[at]))
                number, own[at] = number + formed - own[at], formed
        fresh = [lane.new_clusters() for lane in self.lanes]
        for lane, clusters, more in zip(self.lanes, fresh, ahead, strict=True):
            clusters["pool_i"][:, t.GROUP] += more
            lane.tally[t.GROUPS] = number
        if number > first:
            self._share(fresh)

    def _decided(self) -> Decided:
        """What was decided since last asked: turn by turn, in each lane after lane."""
        decided = [lane.decided() for lane in self.lanes]
        numbers = [part.numbers.copy() for part in decided]
        rows_done, groups_done = [0] * len(decided), [0] * len(decided)
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

    def _forget_old(self, now: int) -> None:
        """Let all lanes forget the clusters that may not be reused any more; all know the same."""
        is_young = now - self.lanes[0].clusters_created() <= self._reuse
        for lane in self.lanes if not is_young.all() else ():
            lane.keep_clusters(is_young)

    def _share(self, fresh: list[Arrays]) -> None:
        """Let all lanes know the new clusters, in the same order."""
        before = 0
        for part in fresh:
            part["joined"][:, t.J_CLUSTER] += before
            before += len(part["pool_i"])
        whole = {name: np.concatenate([part[name] for part in fresh]) for name in fresh[0]}
        for lane in self.lanes:
            lane.add_clusters(whole)

    def pass_time(self, now: int) -> Decided:
        """Decide what is due by now."""
        while (due := self._first_due(now)) <= now:
            self._barrier(due, slack=0)
        for lane in self.lanes:
            lane.tally[t.NOW] = max(now, int(lane.tally[t.NOW]))
        return self._decided()

    def finish(self) -> Decided:
        """Decide everything; the clock stands still."""
        self._barrier(int(self.lanes[0].tally[t.NOW]), slack=0, ending=True)
        return self._decided()

    # ---- writing down

    def dump(self) -> Arrays:
        """Everything that matters."""
        found = {
            f"lane{number}.{name}": array
            for number, lane in enumerate(self.lanes)
            for name, array in lane.dump().items()
        }
        began = [] if self._round_began is None else [self._round_began]
        return {**found, "dealing": self._dealing.dump(), "began": np.array(began, dtype=np.int64)}

    def load(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over what dump wrote."""
        for number, lane in enumerate(self.lanes):
            prefix = f"lane{number}."
            lane.load({name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)})
        self._dealing.load(arrays["dealing"])
        self._round_began = int(arrays["began"][0]) if len(arrays["began"]) else None


def _noted(lane: TupleState) -> _Noted:
    return lane.decided_rows, lane.decided_groups, int(lane.tally[t.GROUPS])
