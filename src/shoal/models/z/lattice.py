"""The sum over all combinations of attributes, for one class of people: by enumeration, and on a lattice with bounds.

The logarithm of a combination's probability is a sum of independent terms of two values each, so the sum is a
convolution in one dimension. Rounding every term up, then down, bounds it from both sides.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.errors import PolicyError
from shoal.kernels.z.binomials import spread_out, tails, tails_of_logs
from shoal.models.z.probability import Probability

Floats = npt.NDArray[np.float64]

_FIRST_CELLS: Final = 2048
_MOST_CELLS: Final = 1 << 22
_FINER: Final = 64.0
_ROUNDING: Final = 1e-10
"""More than all rounding of floating point numbers together; bounds are widened by it."""


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
    """Refine the grid until the bounds are near enough."""
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
        # The bounds near one another as cells become finer: go straight to where they should be near enough.
        finer = math.ceil(cells * min(1.1 * (high - low) / width, _FINER))
        cells = min(max(finer, 2 * cells), _MOST_CELLS)


def _span(start: float, users: int, k: int, least: float) -> float:
    """How far below the likeliest combination ones are of any weight: below, hardly anybody else has the same."""
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
    """From below: all rounded up, without what lies beyond the last cell; from above: rounded down, with it."""
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
