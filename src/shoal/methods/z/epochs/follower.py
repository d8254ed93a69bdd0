"""A z that follows the stream: set at every epoch's start, so that a share of people is k-anonymous.

Only the number of people who must be behind a value changes, and only from epoch to epoch. Every z in force is a
promise like a fixed one; that the share is reached is aimed at, not promised (see models/z/controller.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from shoal.kernels.z.crowd import PRIVATE
from shoal.kernels.z.peaks import move_peaks, note_peaks
from shoal.methods.text_keys import Bools, Ints
from shoal.methods.z.crowds.columns import CrowdColumn
from shoal.methods.z.crowds.crowd import Levels
from shoal.methods.z.reader import Arrivals
from shoal.models.z.target.controller import EpochOutcome, ZController
from shoal.models.z.target.epoch_needs import QUARTERS, EpochProfile, Lesson, dump_lessons, lesson_of, load_lessons
from shoal.models.z.target.target import NOTHING, KTarget
from shoal.models.z.windows import SetCurve, set_curve

_SMALLEST: Final = 1024
_OUTCOMES: Final = 1000
"""Epochs whose outcomes are kept."""
_UNKNOWN: Final = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class ZChange:
    """z was set for an epoch."""

    start_ns: int
    """When the epoch begins."""
    z: int

    @property
    def moment(self) -> str:
        """When the epoch begins, as text."""
        return f"{np.datetime64(self.start_ns, 'ns').astype('datetime64[s]')}Z"


class EpochPeaks:
    """The largest crowd behind each (person, value) pair of an epoch."""

    def __init__(self) -> None:
        self.clear()

    def __len__(self) -> int:
        return int(self._taken[0])

    def clear(self) -> None:
        """Forget everything."""
        self._table = np.zeros((_SMALLEST, 3), dtype=np.int64)
        self._taken = np.zeros(1, dtype=np.int64)

    def note(self, persons: Ints, values: Ints, sizes: Ints) -> None:
        """Record the crowds behind events, by the keys of person and value; 0 is ignored."""
        at = 0
        while (at := note_peaks(self._table, self._taken, persons, values, sizes, at)) < len(sizes):
            roomier = np.zeros((2 * len(self._table), 3), dtype=np.int64)
            move_peaks(self._table, roomier)
            self._table = roomier

    def pairs(self) -> Ints:
        """Rows [person, value, peak], in an order that depends only on them."""
        rows = self._table[self._table[:, 2] > 0]
        return rows[np.lexsort((rows[:, 1], rows[:, 0]))]

    def load(self, pairs: Ints) -> None:
        """Take over what pairs returned."""
        self.clear()
        self.note(np.ascontiguousarray(pairs[:, :1]), np.ascontiguousarray(pairs[:, 1:2]), pairs[:, 2])


def _outcome(row: list[int]) -> EpochOutcome:
    epoch, z, people, shown, anonymous, is_met = row
    return EpochOutcome(epoch, z, people, shown, anonymous, bool(is_met))


def epochs_in(times: Ints, rows: Ints, rotation_ns: int) -> list[slice]:
    """Stretches of usable rows that lie in one epoch each; the first and last row of each are usable."""
    if not len(rows):
        return []
    starts = np.flatnonzero(np.diff(times[rows] // rotation_ns)) + 1
    bounds = [0, *starts.tolist(), len(rows)]
    return [slice(int(rows[start]), int(rows[end - 1]) + 1) for start, end in pairwise(bounds)]


def quarters_of(times: Ints, epoch: int, rotation_ns: int) -> Ints:
    """How many events of an epoch are in each of its quarters."""
    return np.bincount((times - epoch * rotation_ns) * QUARTERS // rotation_ns, minlength=QUARTERS)


def profile_of(epoch: int, peaks: EpochPeaks, quarters: Ints, k: int, *, keeps_blank: bool) -> EpochProfile:
    """What every z would have shown in an epoch; `quarters` are its events."""
    person, value, peak = peaks.pairs().T
    people = len(np.unique(person))
    curve = set_curve(person, value, peak, k)
    if keeps_blank:  # people who show nothing have rows too, and share the empty set
        # NOTHING: above all crowds no one shows anything
        empty = people - np.append(curve.shown, 0)
        is_shared = empty >= k
        curve = SetCurve(
            np.append(curve.thresholds, NOTHING),
            np.full_like(empty, people),
            np.append(curve.anonymous, 0) + np.where(is_shared, empty, 0),
        )
    return EpochProfile(epoch, people, curve, quarters)


class Follower:
    """Follows a stream epoch by epoch; events come in the order of their times."""

    def __init__(self, target: KTarget, *, rotation_ns: int, window_ns: int, keeps_blank: bool) -> None:
        self.target = target
        self._rotation_ns, self._window_ns, self._keeps_blank = rotation_ns, window_ns, keeps_blank
        self._controller = ZController(target, rotation_ns=rotation_ns, window_ns=window_ns)
        self._peaks = EpochPeaks()
        self._quarters = np.zeros(QUARTERS, dtype=np.int64)
        self._changes: deque[ZChange] = deque(maxlen=_OUTCOMES)
        self._learnt: tuple[Lesson, ...] = ()
        self._collected: list[Lesson] | None = None
        self.forget()

    def forget(self) -> None:
        """Begin again."""
        self._controller.forget()
        self._peaks.clear()
        self._counted: EpochProfile | None = None
        self._quarters[:] = 0
        self._first_ns = self._epoch = _UNKNOWN
        self.outcomes: deque[EpochOutcome] = deque(maxlen=_OUTCOMES)
        self._closed = self._shown = self._met = 0

    @property
    def z(self) -> int:
        """The z in force."""
        return self._controller.z

    def take_changes(self) -> list[ZChange]:
        """Every z set since the last call, at most the last thousand."""
        changes = list(self._changes)
        self._changes.clear()
        return changes

    def metrics(self) -> dict[str, Any]:
        """Counts of past epochs: all, those that show anybody, and those of them in which the target was met."""
        counted = {"epochs": self._closed, "epochs_shown": self._shown, "epochs_met": self._met}
        return {"z": self.z, **counted, "outcomes": [asdict(outcome) for outcome in self.outcomes]}

    def enter(self, time_ns: int) -> int:
        """The z for an event at a time; the first event of an epoch closes the epoch before."""
        epoch = time_ns // self._rotation_ns
        if epoch != self._epoch:
            if self._epoch == _UNKNOWN:
                self._first_ns = time_ns
            else:
                self._close()
                if epoch - self._epoch > self._controller.patience:  # after so long a silence, start over
                    self._controller.forget()
                    self._first_ns = time_ns
            self._epoch = epoch
            if self._learnt and self._controller.is_empty and self._is_typical(epoch):
                self._controller.adopt(self._learnt, epoch)
            self._changes.append(ZChange(epoch * self._rotation_ns, self._controller.open(epoch)))
        return self._controller.z

    def follow(self, first_ns: int, profile: EpochProfile) -> int:
        """The z for an epoch whose events were counted elsewhere, by the time of the first of them."""
        z = self.enter(first_ns)
        self._counted = profile
        return z

    def _is_typical(self, epoch: int) -> bool:
        """Whether an epoch began after the stream did, and its crowds are full when it ends."""
        is_filled = (epoch + 1) * self._rotation_ns - self._first_ns >= self._window_ns
        return is_filled and epoch > self._first_ns // self._rotation_ns

    # ---- what an earlier stream teaches

    def begin_with(self, lessons: tuple[Lesson, ...]) -> None:
        """Choose the first z by what an earlier stream taught."""
        self._learnt = lessons

    def collect(self) -> None:
        """Keep from now on what every epoch teaches."""
        self._collected = []

    def collected(self, newest_ns: int) -> tuple[Lesson, ...]:
        """What the epochs taught; the last one counts if the stream went on to its end, within a twentieth."""
        if self._epoch != _UNKNOWN and newest_ns >= (self._epoch + 1) * self._rotation_ns - self._rotation_ns // 20:
            self._close()
        return tuple(self._collected or ())

    # ---- deciding

    def judge(self, attributes: Sequence[CrowdColumn], arrivals: Arrivals, usable: Bools) -> tuple[list[Levels], Ints]:
        """The level of every value of rows in time order, and the z of each row; -1 for rows that are refused."""
        levels = [np.full(len(usable), PRIVATE, dtype=np.int32) for _ in attributes]
        in_force = np.full(len(usable), -1, dtype=np.int64)
        for part in epochs_in(arrivals.times, np.flatnonzero(usable), self._rotation_ns):
            z = self.enter(int(arrivals.times[part.start]))
            in_force[part] = np.where(usable[part], z, -1)
            self._count(arrivals.times[part][usable[part]])
            for column, reading, level in zip(attributes, arrivals.readings, levels, strict=True):
                sizes = column.count(reading, part, persons=arrivals.persons, times=arrivals.times, usable=usable)
                self._peaks.note(arrivals.persons[part], reading.keys[part], sizes)
                level[part] = np.where(sizes >= z, 0, PRIVATE)
        return levels, in_force

    def judge_one(
        self, attributes: Sequence[CrowdColumn], texts: list[str | None], person: Ints, time: int
    ) -> list[int]:
        """The level of every value of one event."""
        z, levels = self.enter(time), []
        self._quarters[(time - self._epoch * self._rotation_ns) * QUARTERS // self._rotation_ns] += 1
        for column, text in zip(attributes, texts, strict=True):
            size, key = column.count_one(text, person=person, time=time)
            self._peaks.note(person, key, size)
            levels.append(0 if size[0] >= z else PRIVATE)
        return levels

    def _count(self, times: Ints) -> None:
        """Count events of the running epoch by its quarters."""
        self._quarters += quarters_of(times, self._epoch, self._rotation_ns)

    def _close(self) -> None:
        profile, is_typical = self._profile(), self._is_typical(self._epoch)
        outcome = self._controller.close(profile, counts=is_typical)
        if is_typical and self._collected is not None:
            self._collected.append(lesson_of(profile, self.target))
        self._peaks.clear()
        self._counted = None
        self._quarters[:] = 0
        self.outcomes.append(outcome)
        self._closed += 1
        self._shown += outcome.shown > 0
        self._met += outcome.shown > 0 and outcome.is_met

    def _profile(self) -> EpochProfile:
        if self._counted is not None:
            return self._counted
        keeps_blank = self._keeps_blank
        return profile_of(self._epoch, self._peaks, self._quarters.copy(), self.target.k, keeps_blank=keeps_blank)

    # ---- state

    def dump(self) -> dict[str, Any]:
        """Everything, as arrays."""
        outcomes = np.array([astuple(outcome) for outcome in self.outcomes], dtype=np.int64).reshape(-1, 6)
        marks = np.array([self._first_ns, self._epoch, self._closed, self._shown, self._met], dtype=np.int64)
        mine = {"marks": marks, "peaks": self._peaks.pairs(), "running": self._quarters, "outcomes": outcomes}
        mine |= self._controller.dump()
        if self.target.learn:
            mine |= dump_lessons(self._learnt)
        return {f"follow.{name}": array for name, array in mine.items()}

    def load(self, arrays: Mapping[str, Any]) -> None:
        """Take over what dump returned."""
        marks = (int(mark) for mark in arrays["follow.marks"])
        self._first_ns, self._epoch, self._closed, self._shown, self._met = marks
        self._peaks.load(arrays["follow.peaks"].reshape(-1, 3))
        self._quarters = arrays["follow.running"].copy()
        rows = arrays["follow.outcomes"].reshape(-1, 6).tolist()
        self.outcomes = deque((_outcome(row) for row in rows), maxlen=_OUTCOMES)
        self._changes.clear()
        own = {name.removeprefix("follow."): array for name, array in arrays.items()}
        self._controller.load(own)
        self._learnt = load_lessons(own) if self.target.learn else ()
