"""The smallest z that reaches a share of k-anonymous people: by the model, or by replaying a stream with every z.

The share is not monotone in z: when the last but one popular value is about to be hidden, its few remaining showings
stand out, and the share falls before it rises again. So every z is tried, and none is found by bisection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.models.z.events import Events
from shoal.models.z.probability import Probability
from shoal.models.z.rhythm import ZRhythm
from shoal.models.z.windows import WindowCurve, window_curves

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Progress = Callable[[str], None]

FEWEST_EPOCHS: Final = 3
FEWEST_SHOWN: Final = 100
_MARGIN: Final = 0.05
"""Nothing is tried between two z of the coarse pass that both miss the target by more than this."""
_WIDTHS: Final = (0.02, 1e-3, 1e-4)
_SAMPLES: Final = (1_000, 8_000, 40_000)
_FINE_BELOW: Final = 64


def reach_of(z: int) -> int:
    """The last z' for which a target must hold too: 1.1 times z, because estimates are never exact."""
    return z * 11 // 10


@dataclass(frozen=True, slots=True)
class Measured:
    """Counts at one z, over all epochs together; a person counts once in every epoch."""

    z: int
    epochs: int
    shown: int
    """People with a released row."""
    anonymous: int
    """Those of them whose released set at least k people share."""
    over_all: float
    """The share of k-anonymous people over everybody seen: (a). People who show nothing are alike."""
    over_active: float
    """Over people with an event in the epoch: (b)."""
    over_shown: float | None
    """Over people with a released row: (c), the share of a target. None where no one was shown."""
    released: float
    """The share of rows released."""
    with_shown: int
    """Epochs in which anybody was shown."""
    held: int
    """Those of them in which (c) reached the target on its own."""
    lowest: float | None
    """The lowest (c) of an epoch."""


class Replay:
    """A stream, or a part of it, replayed with every z."""

    def __init__(self, events: Events, window_ns: int, k: int, *, epochs: Ints | None = None) -> None:
        """Epochs are as long as the window; only `epochs` are counted, the others fill the windows before them."""
        curves = window_curves(
            events.times, events.persons, events.values, window_ns=window_ns, rotation_ns=window_ns, k=k
        )
        self.k = k
        of_event = events.times // window_ns
        counted = np.unique(of_event) if epochs is None else epochs
        self.curves: list[WindowCurve] = [one for one in curves if one.epoch in counted]
        self.people = len(np.unique(events.persons[np.isin(of_event, counted)]))
        self.events = sum(one.events for one in self.curves)
        self.active = sum(one.active for one in self.curves)
        self.typical = self.active / max(len(self.curves), 1)
        """People active in an epoch."""
        self.highest = max((int(one.thresholds[-1]) for one in self.curves if len(one.thresholds)), default=0)
        """The largest z at which anything is released."""
        self._shown, self._anonymous = self._pooled()

    def _pooled(self) -> tuple[Ints, Ints]:
        every = np.arange(self.highest + 2)
        shown, anonymous = np.zeros(len(every), np.int64), np.zeros(len(every), np.int64)
        for one in self.curves:
            places = np.searchsorted(one.thresholds, every)
            shown += np.append(one.shown, 0)[places]
            anonymous += np.append(one.anonymous, 0)[places]
        return shown, anonymous

    def shares(self) -> Floats:
        """The share (c) for every z from 0 on; 0 where no one is shown."""
        return np.divide(self._anonymous, self._shown, out=np.zeros(len(self._shown)), where=self._shown > 0)

    def released(self, z: int) -> float:
        """The share of rows released."""
        return sum(one.rows_at(z) for one in self.curves) / max(self.events, 1)

    def at(self, z: int, p: float) -> Measured:
        """The counts at a z, for a target p."""
        counts = [one.at(z) for one in self.curves]
        shown, anonymous = (sum(count[i] for count in counts) for i in (0, 1))
        # a person who shows nothing is k-anonymous where k people show nothing
        are_many = [self.people - seen >= self.k for seen, _ in counts]
        hidden = sum(self.people - seen for (seen, _), is_many in zip(counts, are_many, strict=True) if is_many)
        idle = sum(
            one.active - seen for one, (seen, _), is_many in zip(self.curves, counts, are_many, strict=True) if is_many
        )
        each = [alike / seen for seen, alike in counts if seen]
        return Measured(
            z=z, epochs=len(self.curves), shown=shown, anonymous=anonymous,
            over_all=(anonymous + hidden) / max(self.people * len(self.curves), 1),
            over_active=(anonymous + idle) / max(self.active, 1),
            over_shown=anonymous / shown if shown else None,
            released=self.released(z), with_shown=len(each), held=sum(share >= p for share in each),
            lowest=min(each, default=None),
        )  # fmt: skip

    def weakest(self, z: int) -> tuple[int, float]:
        """The z' from z to 1.1 z with the lowest share (c), and that share."""
        last = reach_of(z)
        every = np.zeros(last - z + 1)
        known = self.shares()[z : last + 1]
        every[: len(known)] = known
        lowest = int(np.argmin(every))
        return z + lowest, float(every[lowest])

    def is_enough(self, z: int) -> bool:
        """Whether enough is shown at a z for its share to mean something."""
        shown = [one.at(z)[0] for one in self.curves]
        # an epoch that shows no one is not evidence: one crowded epoch among empty ones counts as one
        return int(np.count_nonzero(shown)) >= FEWEST_EPOCHS and sum(shown) >= FEWEST_SHOWN

    def holds(self, z: int, p: float) -> bool:
        """Whether the share (c) reaches p for every z' from z to 1.1 z, with enough data."""
        return self.weakest(z)[1] >= p and self.is_enough(z)

    def smallest(self, p: float, *, first: int, least_released: float) -> int | None:
        """The smallest z for which that holds and enough is released."""
        reaches = self.shares() >= p
        start = None
        for z in range(first, len(reaches)):
            start = (start or z) if reaches[z] else None
            if start is not None and z >= reach_of(start):
                return start if self.is_enough(start) and self.released(start) >= least_released else None
        return None


class ModelCurve:
    """The model's probabilities over people who are shown, each computed only as precisely as needed."""

    def __init__(self, model: ZRhythm, k: int) -> None:
        self.model, self.k = model, k
        self._known: dict[tuple[int, int], Probability] = {}

    def at(self, z: int, effort: int = 1) -> Probability:
        """The probability at a z, with bounds: effort 0 is rough, 2 exact."""
        found = self._known.get((z, effort))
        if found is None:
            found = self.model.p_shown_k_anonymous(z, self.k, width=_WIDTHS[effort], samples=_SAMPLES[effort])
            self._known[z, effort] = found
        return found

    def best(self, z: int) -> Probability:
        """The most precise value known so far, never a rough one."""
        return self._known.get((z, 2)) or self.at(z)

    def reaches(self, z: int, p: float) -> bool:
        """Whether the lower bound reaches p; bounds that do not decide it are narrowed."""
        for effort in range(len(_WIDTHS)):
            found = self.at(z, effort)
            if found.lower >= p:
                return True
            if found.upper < p:
                return False
        return False

    def holds(self, z: int, p: float) -> bool:
        """Whether it reaches p for every z' from z to 1.1 z."""
        return all(self.reaches(other, p) for other in range(z, reach_of(z) + 1))

    def _is_near(self, z: int, p: float) -> bool:
        return self.at(z, 0).upper >= p - _MARGIN

    def last_z(self, first: int, least_released: float) -> int:
        """The largest z that releases at least this share of exposures; the share falls as z rises."""
        low, high = first, max(first, self.model.users)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.model.released_share(middle) >= least_released else (low, middle - 1)
        return low

    def smallest(self, p: float, *, first: int, last: int, progress: Progress = lambda text: None) -> int | None:
        """The smallest z up to `last` that reaches p, for every z' up to 1.1 z too."""
        start: int | None = None
        for z, next_z in pairwise([*coarse(first, last), last + 1]):
            is_near = self._is_near(z, p) or (next_z <= last and self._is_near(next_z, p))
            progress(f"z = {z:,} of up to {last:,}")
            for one in range(z, next_z):
                start = (start or one) if is_near and self.reaches(one, p) else None
                if start is not None and one >= reach_of(start):
                    return start
        if start is not None and all(self.reaches(z, p) for z in range(last + 1, reach_of(start) + 1)):
            return start
        return None


def coarse(first: int, last: int) -> Iterator[int]:
    """Every z up to 64, then steps of an eighth of the standard deviation of a crowd of that size."""
    z = first
    while z <= last:
        yield z
        z += 1 if z < _FINE_BELOW else max(1, math.isqrt(z) // 8)
