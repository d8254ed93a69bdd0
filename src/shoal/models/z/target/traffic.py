"""How busy epochs were, by quarters, and how busy the next one will be.

Crowds count people within a window, so what an epoch needs grows with the most events in any window that ends in it.
When traffic declines, that is the window at the epoch's start: most of its events belong to the epoch before.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.models.z.target.epoch_needs import QUARTERS

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_FEWEST_EVENTS: Final = 50
"""With fewer events there is no trend."""
_SLOWEST, _STEEPEST = 0.5, 2.5
"""A quarter to come has at least and at most this multiple of the average quarter of the last epoch."""


class Traffic:
    """Events by the quarters of recent epochs, oldest first, and the busiest window of each epoch."""

    def __init__(self, *, window_ns: int, rotation_ns: int, kept: int) -> None:
        self._kept = kept
        self._span = min(max(round(QUARTERS * window_ns / rotation_ns), 1), QUARTERS * kept)
        """Quarters that a window lasts."""
        self._quarters = np.empty((0, QUARTERS), dtype=np.int64)
        self.busiest = np.empty(0)
        """The most events within a window that ends in the epoch."""

    def add(self, quarters: Ints) -> None:
        """Record an epoch."""
        self.busiest = np.append(self.busiest, self.busiest_with(quarters))[-self._kept :]
        self._quarters = np.vstack((self._quarters, quarters))[-self._kept :]

    def add_unknown(self, count: int) -> None:
        """Record epochs without a lesson as steady ones, as busy as the one before."""
        steady = np.full(QUARTERS, round(float(self._quarters[-1].mean())), dtype=np.int64)
        for _ in range(count):
            self.add(steady)

    def busiest_with(self, quarters: Ints | Floats) -> float:
        """The most events within a window that ends in the next epoch, if these are its quarters."""
        before = self._quarters.reshape(-1)[-self._span :]
        unknown = np.full(self._span - len(before), float(np.mean(before if len(before) else quarters)))
        sums = np.cumsum(np.concatenate(([0.0], unknown, before, quarters)))
        return max(float((sums[self._span :] - sums[: -self._span]).max()), 1.0)

    def by_trend(self) -> Floats:
        """Quarters to come if the line through those of the last epoch goes on."""
        last = self._quarters[-1]
        mean = float(last.mean())
        places = np.arange(QUARTERS) - (QUARTERS - 1) / 2
        slope = float(places @ last) / float(places @ places) if last.sum() >= _FEWEST_EVENTS else 0.0
        ahead: Floats = np.clip(mean + slope * (places + QUARTERS), _SLOWEST * mean, _STEEPEST * mean)
        return ahead

    def by_day(self, day: int) -> Floats:
        """Quarters to come by those of the day before, scaled by the last epoch; `day` epochs make a day."""
        then, now = (max(int(self._quarters[at].sum()), 1) for at in (-day - 1, -1))
        ahead: Floats = self._quarters[-day] * (now / then)
        return ahead

    def not_falling(self, ahead: Floats) -> Floats:
        """The same quarters, but none below the average of the last epoch."""
        raised: Floats = np.maximum(ahead, self._quarters[-1].mean())
        return raised

    def dump(self) -> dict[str, npt.NDArray[Any]]:
        """Everything, as arrays."""
        return {"quarters": self._quarters.reshape(-1), "busiest": self.busiest}

    def load(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over what dump returned."""
        self._quarters, self.busiest = arrays["quarters"].reshape(-1, QUARTERS).copy(), arrays["busiest"].copy()
