"""Confidence intervals for proportions and means."""

from __future__ import annotations

import math
from functools import cache
from typing import Final

_STEPS: Final = 200
_TERMS: Final = 500
_TINY: Final = 1e-300


def clopper_pearson(found: int, samples: int, confidence: float = 0.99) -> tuple[float, float]:
    """The exact confidence interval of a share, given `found` successes among `samples`.

    Examples
    --------
    >>> low, high = clopper_pearson(0, 100, 0.95)
    >>> low, round(high, 4)
    (0.0, 0.0362)
    """
    tail = (1 - confidence) / 2
    low = 0.0 if found == 0 else _solve(lambda share: at_least(found, samples, share) - tail)
    high = 1.0 if found == samples else _solve(lambda share: tail - (1 - at_least(found + 1, samples, share)))
    return low, high


def at_least(found: int, samples: int, share: float) -> float:
    """The probability of at least `found` successes among `samples`, for this share."""
    if found <= 0:
        return 1.0
    return _beta_share(found, samples - found + 1, share)


@cache
def students_t(freedom: int, confidence: float) -> float:
    """The two-sided quantile of Student's t distribution, for this confidence.

    Examples
    --------
    >>> round(students_t(9, 0.95), 4), round(students_t(99, 0.999), 4)
    (2.2622, 3.3915)
    """
    # P(|T| > t) is the beta share of freedom / (freedom + t²), which falls from 1 to 0 as t grows.
    share = _solve(lambda x: _beta_share(freedom / 2, 0.5, x) - (1 - confidence))
    return math.sqrt(freedom * (1 - share) / share)


def _solve(rising: object) -> float:
    """The root of an increasing function on [0, 1], by bisection."""
    assert callable(rising)
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2


def _beta_share(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function, by Lentz's continued fraction."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    up, down = 1.0, 1 - (a + b) * x / (a + 1)
    down = 1 / (down if abs(down) > _TINY else _TINY)
    value = down
    for m in range(1, _TERMS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            down = 1 + term * down
            down = 1 / (down if abs(down) > _TINY else _TINY)
            up = 1 + term / up
            up = up if abs(up) > _TINY else _TINY
            value *= up * down
        if abs(up * down - 1) < 1e-15:
            break
    return value
