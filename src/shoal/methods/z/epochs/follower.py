"""A z that follows the stream: set at every epoch's start, so that a share of people is k-anonymous.

Only the number of people who must be behind a value changes, and only from epoch to epoch. Every z in force is a
promise like a fixed one. Of the values that z people show, those that would make too many people stand out are withheld
(see shown_sets.py); that the share is reached is aimed at, not promised.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from shoal.kernels.z.crowd import PRIVATE
from shoal.methods.text_keys import Bools, Ints
from shoal.methods.z.crowds.columns import CrowdColumn
from shoal.methods.z.crowds.crowd import Levels
from shoal.methods.z.epochs.shown_sets import EpochRows, ShownSets
from shoal.methods.z.reader import Arrivals
from shoal.models.z.target.controller import EpochOutcome, ZController
from shoal.models.z.target.epoch_needs import EpochProfile, Lesson, lesson_of
from shoal.models.z.target.target import NOTHING, KTarget
from shoal.models.z.windows import SetCurve, set_curve

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


def profile_of(epoch: int, pairs: Ints, k: int, *, keeps_blank: bool, shown: int, anonymous: int) -> EpochProfile:
    """What every z would have shown in an epoch, by its pairs of person, value and peak; and what was shown."""
    person, value, peak = pairs[:, :3].T
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
    return EpochProfile(epoch, people, curve, shown, anonymous)


class Follower:
    """Follows a stream epoch by epoch; events come in the order of their times."""

    def __init__(self, target: KTarget, *, rotation_ns: int, windows_ns: list[int], keeps_blank: bool) -> None:
        self.target = target
        self._rotation_ns, self._windows_ns, self.keeps_blank = rotation_ns, windows_ns, keeps_blank
        self._window_ns = max(windows_ns)
        self._controller = ZController(target, rotation_ns=rotation_ns)
        self._sets = self.shown_sets()
        self._changes: deque[ZChange] = deque(maxlen=_OUTCOMES)
        self._learnt: tuple[Lesson, ...] = ()
        self._collected: list[Lesson] | None = None
        self.forget()

    def shown_sets(self) -> ShownSets:
        """What decides about the values of an epoch, with nothing shown yet."""
        return ShownSets(self.target, self._windows_ns, keeps_blank=self.keeps_blank)

    def forget(self) -> None:
        """Begin again."""
        self._controller.forget()
        self._sets.clear()
        self._counted: EpochProfile | None = None
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

        def counted(part: slice) -> EpochRows:
            sizes = [
                column.count(reading, part, persons=arrivals.persons, times=arrivals.times, usable=usable)
                for column, reading in zip(attributes, arrivals.readings, strict=True)
            ]
            keys = np.stack([reading.keys[part, 0] for reading in arrivals.readings])
            return EpochRows(arrivals.persons[part], keys, np.stack(sizes), arrivals.times[part], usable[part])

        return self._judge(arrivals.times, usable, len(attributes), counted)

    def judge_counted(self, rows: EpochRows) -> tuple[list[Levels], Ints]:
        """The same for rows of any epochs whose people were counted elsewhere."""

        def counted(part: slice) -> EpochRows:
            return EpochRows(
                rows.persons[part], rows.values[:, part], rows.sizes[:, part], rows.times[part], rows.usable[part]
            )

        return self._judge(rows.times, rows.usable, len(rows.values), counted)

    def _judge(
        self, times: Ints, usable: Bools, columns: int, counted: Callable[[slice], EpochRows]
    ) -> tuple[list[Levels], Ints]:
        levels = np.full((columns, len(usable)), PRIVATE, dtype=np.int32)
        in_force = np.full(len(usable), -1, dtype=np.int64)
        for part in epochs_in(times, np.flatnonzero(usable), self._rotation_ns):
            z = self.enter(int(times[part.start]))
            in_force[part] = np.where(usable[part], z, -1)
            levels[:, part] = self._sets.publish(counted(part), z, self._end_ns)
        return list(levels), in_force

    def judge_one(
        self, attributes: Sequence[CrowdColumn], texts: list[str | None], person: Ints, time: int
    ) -> list[int]:
        """The level of every value of one event."""
        z = self.enter(time)
        values = zip(attributes, texts, strict=True)
        counted = [column.count_one(text, person=person, time=time) for column, text in values]
        sizes, keys = (np.stack([one.reshape(-1)[:1] for one in ones]) for ones in zip(*counted, strict=True))
        rows = EpochRows(person, keys, sizes, np.array([time]), np.ones(1, dtype=np.bool_))
        levels: list[int] = self._sets.publish(rows, z, self._end_ns)[:, 0].tolist()
        return levels

    @property
    def _end_ns(self) -> int:
        """When the running epoch ends."""
        return (self._epoch + 1) * self._rotation_ns

    def _close(self) -> None:
        profile, is_typical = self._profile(), self._is_typical(self._epoch)
        outcome = self._controller.close(profile, counts=is_typical)
        if is_typical and self._collected is not None:
            self._collected.append(lesson_of(profile, self.target))
        self._sets.clear()
        self._counted = None
        self.outcomes.append(outcome)
        self._closed += 1
        self._shown += outcome.shown > 0
        self._met += outcome.shown > 0 and outcome.is_met

    def _profile(self) -> EpochProfile:
        if self._counted is not None:
            return self._counted
        sets, k = self._sets, self.target.k
        shown = {"shown": sets.shown, "anonymous": sets.anonymous}
        return profile_of(self._epoch, sets.pairs(), k, keeps_blank=self.keeps_blank, **shown)

    # ---- state

    def dump(self) -> dict[str, Any]:
        """Everything, as arrays."""
        outcomes = np.array([astuple(outcome) for outcome in self.outcomes], dtype=np.int64).reshape(-1, 6)
        marks = np.array([self._first_ns, self._epoch, self._closed, self._shown, self._met], dtype=np.int64)
        mine = {"marks": marks, "outcomes": outcomes, **self._sets.dump(), **self._controller.dump()}
        if self.target.learn:
            mine["lessons"] = np.array([astuple(lesson) for lesson in self._learnt], dtype=np.int64).reshape(-1, 2)
        return {f"follow.{name}": array for name, array in mine.items()}

    def load(self, arrays: Mapping[str, Any]) -> None:
        """Take over what dump returned."""
        marks = (int(mark) for mark in arrays["follow.marks"])
        self._first_ns, self._epoch, self._closed, self._shown, self._met = marks
        rows = arrays["follow.outcomes"].reshape(-1, 6).tolist()
        self.outcomes = deque((_outcome(row) for row in rows), maxlen=_OUTCOMES)
        self._changes.clear()
        own = {name.removeprefix("follow."): array for name, array in arrays.items()}
        self._sets.load(own)
        self._controller.load(own)
        lessons = own["lessons"].reshape(-1, 2).tolist() if self.target.learn else []
        self._learnt = tuple(Lesson(epoch, z) for epoch, z in lessons)
