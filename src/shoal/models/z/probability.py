"""The probability that a person is k-anonymous, where all people are alike: a sum over combinations of attributes.

Three ways to compute the sum: enumerate all combinations; convolve on a lattice, with bounds; or walk the paper's tree
(appendix B), which leaves unlikely branches out.

The lattice: the logarithm of a combination's probability is a sum of independent terms of two values each, so the sum
is a convolution in one dimension. Rounding every term up, then down, bounds it from both sides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.errors import PolicyError
from shoal.kernels.z.binomials import spread_out, tails, tails_of_logs

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_ROUNDING: Final = 1e-10
"""More than the rounding errors of all floating point operations together; bounds are widened by it."""
_FIRST_CELLS: Final = 2048
_MOST_CELLS: Final = 1 << 22
_MOST_REFINED: Final = 64.0
"""The lattice becomes at most this many times finer in one step."""
ENOUGH: Final = 0.98
"""The coverage of the tree where θ2 is not given (equation B.2)."""
_MOST: Final = 1 << 24
"""Combinations that the tree may visit; beyond, the lattice is far better."""
_AT_ONCE: Final = 1 << 18
_THETA_STEP: Final = 0.25


@dataclass(frozen=True, slots=True)
class Probability:
    """A probability with bounds.

    With `confidence` 1 the bounds are proven for the model's formula; below 1 they are a confidence interval of a
    sample.
    """

    value: float
    lower: float
    upper: float
    method: str
    confidence: float = 1.0
    coverage: float = 1.0
    """The total probability of the combinations that were summed."""
    by_class: tuple[Probability, ...] = ()
    """The same for a person of each class, where there are several."""

    def __float__(self) -> float:
        return self.value


# ---- enumeration and the lattice


def enumerated(p: Floats, users: int, k: int) -> Probability:
    """Every combination of attributes, with its probability."""
    live = p[p > 0]
    chances = np.ones(1)
    for one in live:
        chances = np.concatenate((chances * (1 - one), chances * one))
    alike = np.empty(len(chances))
    tails(float(k - 1), float(users - 1), chances, alike)
    value = math.fsum((chances * alike).tolist()) if len(chances) <= 1 << 20 else float(chances @ alike)
    return Probability(value, max(value - _ROUNDING, 0.0), min(value + _ROUNDING, 1.0), "exact")


def on_lattice(p: Floats, users: int, k: int, width: float) -> Probability:
    """Refine the grid until the bounds are close enough."""
    if not 0 < width <= 1:
        raise PolicyError("width: must be a number above 0, up to 1")
    inside = p[(p > 0) & (p < 1)]
    chances = np.minimum(inside, 1 - inside)
    away = np.abs(np.log(inside) - np.log1p(-inside))
    start = float(np.log1p(-chances).sum())
    order = np.argsort(chances, kind="stable")
    lost = np.cumsum(chances[order])
    dropped = int(np.searchsorted(lost, width / 20, side="right"))
    slack = float(lost[dropped - 1]) if dropped else 0.0
    kept = np.sort(order[dropped:])
    chances, away = chances[kept], away[kept]
    by_distance = np.argsort(away, kind="stable")
    chances, away = chances[by_distance], away[by_distance]
    span = _span(start, users, k, width / 20)
    cells = _FIRST_CELLS
    while True:
        lower, upper = _sums(chances, away, start, span / cells, cells, users, k)
        low, high = max(lower * (1 - slack) - _ROUNDING, 0.0), min(upper + slack + _ROUNDING, 1.0)
        if high - low <= width or cells >= _MOST_CELLS:
            return Probability((low + high) / 2, low, high, "lattice")
        # the width shrinks in proportion to the cells: go straight to where it should be small enough
        finer = math.ceil(cells * min(1.1 * (high - low) / width, _MOST_REFINED))
        cells = min(max(finer, 2 * cells), _MOST_CELLS)


def _span(start: float, users: int, k: int, least: float) -> float:
    """How far below the likeliest combination others still matter: further down hardly anybody shares them."""
    low, high = 0.0, 60.0 + math.log(users)
    alike = np.empty(1)
    for _ in range(60):
        middle = (low + high) / 2
        tails_of_logs(float(k - 1), float(users - 1), start - middle, 0.0, alike)
        low, high = (middle, high) if alike[0] > least else (low, middle)
    return max(high, 1e-9)


def _sums(
    chances: Floats, away: Floats, start: float, step: float, cells: int, users: int, k: int
) -> tuple[float, float]:
    """The lower bound: all rounded up, without what is beyond the last cell; the upper: rounded down, with it."""
    masses, used = [], 1
    for rounded in (np.ceil(away / step), np.floor(away / step)):
        mass = np.zeros(cells + 1)
        mass[0] = 1.0
        reached = spread_out(chances, np.minimum(rounded, cells).astype(np.int64), mass)
        masses.append(mass)
        used = max(used, min(int(reached) + 1, cells))
    alike, beyond = np.empty(used), np.empty(1)
    tails_of_logs(float(k - 1), float(users - 1), start, step, alike)
    tails_of_logs(float(k - 1), float(users - 1), start - cells * step, 0.0, beyond)
    below, above = (float(mass[:used] @ alike) for mass in masses)
    return below, above + float(masses[1][cells] * beyond[0])


# ---- the tree


def on_tree(p: Floats, users: int, k: int, theta1: float, theta2: float | None) -> Probability:
    """Sum over the combinations that are likely enough.

    Attributes that fewer than `theta1` people are expected to publish count as published by no one. The root is the
    likeliest combination of the others; a child differs from its parent in one attribute, the likeliest change first,
    so that children and right siblings are never likelier. Branches below `theta2` / 2^attributes are cut off.
    """
    if not (theta1 >= 0 and math.isfinite(theta1)):
        raise PolicyError("theta1: must be a number of people, at least 0")
    if theta2 is not None and not (theta2 >= 0 and math.isfinite(theta2)):
        raise PolicyError("theta2: must be a number of at least 0; leave it out to have it chosen")
    return _Tree(p, users, k, theta1).sum_with(theta2)


class _Tree:
    """Combinations of the attributes that count, the likeliest at the root."""

    def __init__(self, p: Floats, users: int, k: int, theta1: float) -> None:
        # All probabilities as logarithms.
        self._users, self._k = users, k
        counts = (p >= theta1 / users) & (p > 0)
        likely, rare = p[counts], p[~counts & (p > 0)]
        self._attributes = len(likely)
        sure = np.maximum(likely, 1 - likely)
        with np.errstate(divide="ignore"):
            self._flips = np.sort(np.log1p(-sure[sure < 1]) - np.log(sure[sure < 1]))[::-1]
            self._without = float(np.log1p(-rare).sum())  # of the probability that nothing rare is published
        self._root = float(np.log(sure).sum())
        self._with_rare = _likeliest_with(rare, self._root)

    def sum_with(self, theta2: float | None) -> Probability:
        """The sum for one θ2, or for the first, ever smaller one that covers enough."""
        if theta2 is not None:
            found = self._sum(math.log(theta2) - self._attributes * math.log(2) if theta2 else -math.inf)
            if found is None:
                raise PolicyError(
                    f'theta2: more than {_MOST:,} combinations are as likely; use a larger one, or method "lattice"'
                )
            return found
        least = self._root
        best = self._sum(least)
        while best is not None and best.coverage < ENOUGH * math.exp(self._without):
            least += math.log(_THETA_STEP)
            finer = self._sum(least)
            if finer is None:
                break
            best = finer
        assert best is not None, "the root alone is one combination"
        return best

    def _sum(self, least: float) -> Probability | None:
        """The sum over all combinations of at least this logarithm; None where they are too many."""
        total = covered = 0.0
        left_over = _MOST
        for logs in self._walk(least):
            left_over -= len(logs)
            if left_over < 0:
                return None
            chances = np.exp(logs + self._without)
            total += float(chances @ self._alike(chances))
            covered += float(chances.sum())
        covered = min(covered, 1.0)
        # no combination left out is likelier than this, and unlikely combinations are hardly ever shared
        most = np.exp(np.array([max(least + self._without, self._with_rare)]))
        left = (1.0 - covered) * float(self._alike(np.minimum(most, 1.0))[0])
        lower, upper = max(total - _ROUNDING, 0.0), min(total + left + _ROUNDING, 1.0)
        return Probability(min(total, 1.0), lower, upper, "tree", coverage=covered)

    def _alike(self, chances: Floats) -> Floats:
        found = np.empty(len(chances))
        tails(float(self._k - 1), float(self._users - 1), chances, found)
        return found

    def _walk(self, least: float) -> Iterator[Floats]:
        """Logarithms of the combinations from the root on, some at a time."""
        yield np.array([self._root])
        waiting = [(np.array([self._root]), np.zeros(1, dtype=np.int64))]
        while waiting:
            logs, first = waiting.pop()
            beyond = np.searchsorted(-self._flips, logs - least, side="right")
            count = np.maximum(beyond - first, 0)
            for part in _parts(count):
                children, following = self._children(logs[part], first[part], count[part])
                yield children
                has_more = following < len(self._flips)
                waiting.append((children[has_more], following[has_more]))

    def _children(self, logs: Floats, first: Ints, count: Ints) -> tuple[Floats, Ints]:
        """The children that change one more attribute, `count` of them from `first` on; and where theirs begin."""
        parent = np.repeat(np.arange(len(logs)), count)
        nth = np.arange(len(parent)) - np.repeat(np.cumsum(count) - count, count)
        flipped = first[parent] + nth
        return logs[parent] + self._flips[flipped], flipped + 1


def _parts(count: Ints) -> Iterator[slice]:
    """Split parents so that not too many children are made at once; the last ones may have none."""
    ends = np.cumsum(count)
    start = 0
    while start < len(count) and ends[-1] > (done := int(ends[start - 1]) if start else 0):
        stop = max(start + 1, int(np.searchsorted(ends, done + _AT_ONCE, side="right")))
        yield slice(start, stop)
        start = stop


def _likeliest_with(rare: Floats, root: float) -> float:
    """The logarithm of the likeliest combination that shows something rare."""
    if not len(rare):
        return -math.inf
    sure = np.maximum(rare, 1 - rare)
    most = root + float(np.log(sure).sum())
    return most if (rare >= 0.5).any() else most + float((np.log(rare) - np.log1p(-rare)).max())
