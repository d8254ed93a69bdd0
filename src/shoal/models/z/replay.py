"""How many people were k-anonymous, had z-anonymity with some z run over a stream: counted, for every z."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.models.z.events import Events
from shoal.models.z.windows import WindowCurve, window_curves

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

FEWEST_EPOCHS: Final = 3
FEWEST_SHOWN: Final = 100


def reach_of(z: int) -> int:
    """The last z' for which a target must hold as well: 1.1 times z. Estimates are never exact."""
    return z * 11 // 10


@dataclass(frozen=True, slots=True)
class Measured:
    """What was counted at one z, over all epochs together; a person counts once in every epoch."""

    z: int
    epochs: int
    shown: int
    """People with a released row."""
    anonymous: int
    """Those of them whose released set at least k people share."""
    over_all: float
    """The share of k-anonymous people over everybody seen: (a). Who shows nothing is alike to all who show nothing."""
    over_active: float
    """Over people with an event in the epoch: (b)."""
    over_shown: float | None
    """Over people with a released row: (c), what a target means. None where nobody was shown."""
    released: float
    """The share of rows that left."""
    with_shown: int
    """Epochs in which anybody was shown."""
    held: int
    """Those of them in which (c) reached the target on its own."""
    lowest: float | None
    """The lowest (c) of an epoch."""


class Replay:
    """A stream, or a part of it, with every z tried."""

    def __init__(self, events: Events, window_ns: int, k: int, *, first_epoch: int | None = None) -> None:
        """Epochs are as long as the window; those before `first_epoch` only fill the window of the first one."""
        curves = window_curves(
            events.times, events.persons, events.values, window_ns=window_ns, rotation_ns=window_ns, k=k
        )
        self.curves: list[WindowCurve] = [one for one in curves if first_epoch is None or one.epoch >= first_epoch]
        self.k = k
        is_measured = events.times // window_ns >= (first_epoch if first_epoch is not None else np.iinfo(np.int64).min)
        self.people = len(np.unique(events.persons[is_measured]))
        self.events = sum(one.events for one in self.curves)
        self.active = sum(one.active for one in self.curves)
        self.highest = max((int(one.thresholds[-1]) for one in self.curves if len(one.thresholds)), default=0)
        """The largest z at which anything left."""
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
        """The share (c) for every z from 0 on; 0 where nobody is shown."""
        return np.divide(self._anonymous, self._shown, out=np.zeros(len(self._shown)), where=self._shown > 0)

    def released(self, z: int) -> float:
        """The share of rows that leave."""
        return sum(one.rows_at(z) for one in self.curves) / max(self.events, 1)

    def at(self, z: int, p: float) -> Measured:
        """What was counted at a z, for a target p."""
        counts = [one.at(z) for one in self.curves]
        shown, anonymous = (sum(count[i] for count in counts) for i in (0, 1))
        # Whoever shows nothing is k-anonymous where k people show nothing.
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
        """Whether so much is shown at a z that its share says something."""
        shown = [one.at(z)[0] for one in self.curves]
        # An epoch that shows nobody says nothing: one crowded epoch among empty ones is one.
        return int(np.count_nonzero(shown)) >= FEWEST_EPOCHS and sum(shown) >= FEWEST_SHOWN

    def holds(self, z: int, p: float) -> bool:
        """Whether the share (c) reaches p for every z' from z to 1.1 z, and there is enough to tell."""
        return self.weakest(z)[1] >= p and self.is_enough(z)

    def smallest(self, p: float, *, first: int, least_released: float) -> int | None:
        """The smallest z for which that holds and enough leaves."""
        reaches = self.shares() >= p
        start = None
        for z in range(first, len(reaches)):
            start = (start or z) if reaches[z] else None
            if start is not None and z >= reach_of(start):
                return start if self.is_enough(start) and self.released(start) >= least_released else None
        return None
