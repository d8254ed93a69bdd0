"""The controller of a z that follows the stream: chosen at every epoch's start by what earlier epochs needed.

z only has to be about right. Within an epoch, a value that would make too many people stand out is withheld although z
people show it (see kernels/z/shown_sets.py), so a z that is too low does not miss the target: it withholds more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.models.z.target.epoch_needs import EpochProfile, Lesson, lesson_of
from shoal.models.z.target.target import KTarget

_REMEMBERED: Final = 25
"""Epochs without an event after which a stream starts over, if a day is shorter."""
_LONGEST_DAY: Final = 288
_DAY_NS: Final = 86_400_000_000_000


@dataclass(frozen=True, slots=True)
class EpochOutcome:
    """The result of the z in force in an epoch."""

    epoch: int
    z: int
    people: int
    shown: int
    anonymous: int
    is_met: bool


class ZController:
    """Chooses z epoch by epoch; it depends only on the epochs passed to close()."""

    def __init__(self, target: KTarget, *, rotation_ns: int) -> None:
        self.target = target
        whole, rest = divmod(_DAY_NS, rotation_ns)
        self._day = whole if rest == 0 and 1 < whole <= _LONGEST_DAY else None
        self.patience = max(self._day or 0, _REMEMBERED)
        """After more epochs of silence than this, what was learnt is too old."""
        self.forget()

    def forget(self) -> None:
        """Start over."""
        self.z = self.target.first
        self._taught: dict[int, int] = {}
        """The z that recent epochs recommend, oldest first."""

    def close(self, profile: EpochProfile, *, counts: bool) -> EpochOutcome:
        """Record an epoch that is over; `counts` unless its crowds were still filling up."""
        if counts:
            self._learn(lesson_of(profile, self.target))
        is_met = self.target.is_met(profile.shown, profile.anonymous)
        people = max(profile.people, profile.shown)  # a person whose values are all missing may have blank rows
        return EpochOutcome(profile.epoch, self.z, people, profile.shown, profile.anonymous, is_met)

    def _learn(self, lesson: Lesson) -> None:
        oldest = lesson.epoch - (self._day or 1)
        self._taught = {epoch: z for epoch, z in self._taught.items() if epoch > oldest} | {lesson.epoch: lesson.z}

    def open(self, epoch: int) -> int:
        """Choose the z of an epoch that begins: by the last one, or by the same time a day ago if that is smaller."""
        if self._taught and epoch - max(self._taught) > self.patience:
            self.forget()
        if not self._taught:
            self.z = self.target.first
        else:
            last = self._taught[max(self._taught)]
            self.z = min(last, self._taught.get(epoch - (self._day or 1), last))
        return self.z

    @property
    def is_empty(self) -> bool:
        """Whether nothing was learnt yet."""
        return not self._taught

    def adopt(self, lessons: tuple[Lesson, ...], epoch: int) -> None:
        """Begin with what an earlier stream taught, as if it were that of the day before an epoch."""
        day = self._day or 1
        dated = {epoch - 1 - (epoch - 1 - one.epoch) % day: one.z for one in lessons}
        self._taught = dict(sorted(dated.items()))

    # ---- state

    def dump(self) -> dict[str, npt.NDArray[Any]]:
        """Everything, as arrays."""
        taught = np.array(list(self._taught.items()), dtype=np.int64)
        return {"z": np.array([self.z], dtype=np.int64), "taught": taught.reshape(-1)}

    def load(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over what dump returned."""
        self.z = int(arrays["z"][0])
        self._taught = dict(arrays["taught"].reshape(-1, 2).tolist())
