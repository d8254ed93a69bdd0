"""What an epoch that is over needed, and what it teaches the controller of a z that follows the stream.

Once an epoch is over, what it would have shown of people is known exactly for every z (see windows.py). The z it
`needed` is the smallest from which the target holds over a stretch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.models.z.target.target import NOTHING, KTarget
from shoal.models.z.windows import SetCurve

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

QUARTERS: Final = 4
"""Parts of an epoch whose events are counted, for the trend."""
_STRETCH: Final = 1.25
"""A z is enough for an epoch if every z up to this multiple of it is."""
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
    """An epoch that is over: what would have been shown of people at every z."""

    epoch: int
    people: int
    curve: SetCurve
    quarters: Ints
    """Events in each quarter of the epoch."""


def missed_bins(curve: SetCurve, target: KTarget) -> Bools:
    """Which bins contain a z that misses the target."""
    return _bins_with(curve, curve.anonymous < target.p * curve.shown)


def thin_bins(curve: SetCurve) -> Bools:
    """Which bins contain a z that shows few people or none: next time it may show one."""
    found = _bins_with(curve, curve.shown < _FEW)
    found[int(bins_of(curve.thresholds.max(initial=0))) :] = True
    return found


def _bins_with(curve: SetCurve, marks: Bools) -> Bools:
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
    """What the controller learns from an epoch."""

    epoch: int
    need: int
    shown: int
    """People shown at the need."""
    quarters: Ints
    bad: Bools
    """Bins above the need in which the target was missed although many people were shown: the crowds cause it, so it
    recurs."""
    thin: Bools


def lesson_of(profile: EpochProfile, target: KTarget) -> Lesson:
    """What an epoch teaches."""
    missed, thin = missed_bins(profile.curve, target), thin_bins(profile.curve)
    need = needed(missed, target.least)
    is_bad = missed & ~thin
    is_bad[: int(bins_of(need))] = False
    return Lesson(profile.epoch, need, profile.curve.at(need)[0], profile.quarters.copy(), is_bad, thin)


def dump_lessons(lessons: tuple[Lesson, ...]) -> dict[str, npt.NDArray[Any]]:
    """Lessons as arrays."""
    numbers = [[one.epoch, one.need, one.shown, *one.quarters.tolist()] for one in lessons]
    bins = [np.packbits((one.bad, one.thin), axis=1).reshape(-1) for one in lessons]
    return {
        "lessons": np.array(numbers, dtype=np.int64).reshape(-1),
        "lesson_bins": np.array(bins, dtype=np.uint8).reshape(-1),
    }


def load_lessons(arrays: dict[str, npt.NDArray[Any]]) -> tuple[Lesson, ...]:
    """The lessons that dump_lessons wrote."""
    numbers = arrays["lessons"].reshape(-1, 3 + QUARTERS)
    bins = unpack_bins(arrays["lesson_bins"]).reshape(len(numbers), 2, len(EDGES))
    return tuple(
        Lesson(int(row[0]), int(row[1]), int(row[2]), row[3:].copy(), bad, thin)
        for row, (bad, thin) in zip(numbers, bins, strict=True)
    )


def unpack_bins(packed: npt.NDArray[Any]) -> Bools:
    """Rows of bins that were packed into bits."""
    rows = packed.reshape(-1, (len(EDGES) + 7) // 8)
    return np.unpackbits(rows, axis=1, count=len(EDGES)).astype(np.bool_)
