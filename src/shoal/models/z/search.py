"""The smallest z for which the model promises a share of k-anonymous people.

The share is not monotone in z: when the last but one popular value is about to be hidden, its few remaining showings
stand out, and the share falls before it rises again. So every z is looked at, and none is found by halving.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

from shoal.models.z.model import ZModel
from shoal.models.z.probability import Probability
from shoal.models.z.replay import reach_of

Tell = Callable[[str], None]

_MARGIN: Final = 0.05
"""Between two z of the coarse pass that both miss the target by more nothing is looked at."""
_WIDTHS: Final = (0.02, 1e-3, 1e-4)
_SAMPLES: Final = (1_000, 8_000, 40_000)
_FINE_BELOW: Final = 64


class Outlook:
    """The model's probabilities over people who are shown, each only as exactly as it is needed."""

    def __init__(self, model: ZModel, k: int) -> None:
        self.model, self.k = model, k
        self._is_single = len(model.sizes) == 1
        self._known: dict[tuple[int, int], Probability] = {}

    def at(self, z: int, effort: int = 1) -> Probability:
        """The probability at a z, with bounds: effort 0 is rough, 2 exact."""
        found = self._known.get((z, effort))
        if found is None:
            exactly = {"width": _WIDTHS[effort]} if self._is_single else {"samples": _SAMPLES[effort]}
            found = self.model.p_shown_k_anonymous(z, self.k, **exactly)
            self._known[z, effort] = found
        return found

    def best(self, z: int) -> Probability:
        """The most exact there is already, and no rough one."""
        return self._known.get((z, 2)) or self.at(z)

    def reaches(self, z: int, p: float) -> bool:
        """Whether the lower bound reaches p; bounds that leave it open are drawn nearer."""
        for effort in range(len(_WIDTHS)):
            found = self.at(z, effort)
            if found.lower >= p:
                return True
            if found.upper < p:
                return False
        return False

    def holds(self, z: int, p: float) -> bool:
        """Whether it does for every z' from z to 1.1 z."""
        return all(self.reaches(other, p) for other in range(z, reach_of(z) + 1))

    def _is_near(self, z: int, p: float) -> bool:
        return self.at(z, 0).upper >= p - _MARGIN

    def last_z(self, first: int, least_released: float) -> int:
        """The largest z at which so large a share of exposures leaves; that share only ever falls."""
        low, high = first, max(first, self.model.users)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.model.released_share(middle) >= least_released else (low, middle - 1)
        return low

    def smallest(self, p: float, *, first: int, last: int, tell: Tell = lambda text: None) -> int | None:
        """The smallest z up to `last` that reaches p, for every z' up to 1.1 z too."""
        start: int | None = None
        for z, next_z in pairwise([*coarse(first, last), last + 1]):
            is_near = self._is_near(z, p) or (next_z <= last and self._is_near(next_z, p))
            tell(f"z = {z:,} of up to {last:,}")
            for one in range(z, next_z):
                start = (start or one) if is_near and self.reaches(one, p) else None
                if start is not None and one >= reach_of(start):
                    return start
        if start is not None and all(self.reaches(z, p) for z in range(last + 1, reach_of(start) + 1)):
            return start
        return None


def coarse(first: int, last: int) -> Iterator[int]:
    """Every z up to 64, then steps of an eighth of the spread of a crowd of that size."""
    z = first
    while z <= last:
        yield z
        z += 1 if z < _FINE_BELOW else max(1, math.isqrt(z) // 8)
