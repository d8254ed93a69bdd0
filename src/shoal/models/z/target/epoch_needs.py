"""What an epoch that is over needed, and which z suits the next one.

Once an epoch is over, what it would have shown of people is known exactly for every z (see windows.py). The z it
`needed` is the smallest from which the target holds over a stretch.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.models.z.target.target import NOTHING, KTarget
from shoal.models.z.windows import SetCurve

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_STRETCH: Final = 1.25
"""A z is enough for an epoch if every z up to this multiple of it is."""
_SHARE: Final = 2 / 3
"""The part of the need that z is set to: values that make people stand out are withheld one by one."""
_SEEN: Final = 0.2
"""The share of people that z should show, if only by one value."""
_FEW: Final = 30
"""With fewer people shown than this, one of them decides whether the target is met: release nothing instead."""


def _edges() -> Ints:
    found = [1]
    while (following := found[-1] + max(1, found[-1] // 50)) < NOTHING:
        found.append(following)
    return np.array(found, dtype=np.int64)


EDGES: Final = _edges()
"""Every z falls into the bin of the last edge up to it; bins are single numbers up to 100, then 2% wide."""


@dataclass(frozen=True, slots=True)
class EpochProfile:
    """An epoch that is over: what would have been shown of people at every z, and what was shown."""

    epoch: int
    people: int
    curve: SetCurve
    shown: int
    anonymous: int


def missed_bins(curve: SetCurve, target: KTarget) -> Bools:
    """Which bins contain a z that misses the target."""
    marks = curve.anonymous < target.p * curve.shown
    before = np.concatenate(([0], curve.thresholds[:-1]))[marks] + 1
    changes = np.zeros(len(EDGES) + 1, dtype=np.int64)
    np.add.at(changes, np.searchsorted(EDGES, before, side="right") - 1, 1)
    np.add.at(changes, np.searchsorted(EDGES, curve.thresholds[marks], side="right"), -1)
    found: Bools = np.cumsum(changes)[:-1] > 0
    return found


def needed(missed: Bools, least: int) -> int:
    """The smallest z from which the target is met over a stretch of bins."""
    good = ~any_between(missed, np.arange(len(EDGES)), bins_of(EDGES * _STRETCH))
    good[: int(np.searchsorted(EDGES, least))] = False
    # above all crowds nothing is shown and every bin is good, so there is one unless crowds fill the whole range
    return int(EDGES[np.argmax(good)]) if good.any() else NOTHING


def bins_of(z: Any) -> Ints:
    """The bin of each z."""
    found: Ints = np.searchsorted(EDGES, np.maximum(z, 1), side="right") - 1
    return found


def any_between(marks: Bools, first: Ints, last: Ints) -> Bools:
    """Whether any bin from a first one to a last one is marked."""
    sums = np.concatenate(([0], np.cumsum(marks)))
    found: Bools = sums[last + 1] > sums[first]
    return found


@dataclass(frozen=True, slots=True)
class Lesson:
    """The z that an epoch recommends to the next one."""

    epoch: int
    z: int


def lesson_of(profile: EpochProfile, target: KTarget) -> Lesson:
    """What an epoch teaches: two thirds of what it needed, less where hardly anybody would be shown."""
    curve = profile.curve
    enough = curve.thresholds[curve.shown >= max(_SEEN * profile.people, _FEW)]
    if not len(enough):
        return Lesson(profile.epoch, NOTHING)
    need = needed(missed_bins(curve, target), target.least)
    return Lesson(profile.epoch, max(target.least, min(ceil(_SHARE * need), int(enough[-1]))))
