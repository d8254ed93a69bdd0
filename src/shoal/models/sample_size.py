"""How many samples must pass before a share of itemsets can be promised.

The promise of one size is (ε, δ): with confidence 1 - δ at most ε of the itemsets have too few people. It holds with
σ = (1 - ε)(1 - δ), the probability that the itemset an adversary happens to know has enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

from shoal.errors import PolicyError

Bound = Literal["exact", "hoeffding1", "hoeffding2"]
BOUNDS: Final = ("exact", "hoeffding1", "hoeffding2")
_SIDES: Final = {"hoeffding1": 1, "hoeffding2": 2}
_STEPS: Final = 200
_ROUNDING: Final = 1 - 1e-10


@dataclass(frozen=True, slots=True)
class Promise:
    """The promise for itemsets of one size, and the samples it takes."""

    sigma: float
    bound: Bound
    epsilon: float
    delta: float

    @property
    def samples(self) -> int:
        """Samples that must all pass, with a single attempt."""
        return self.samples_of(1)

    def samples_of(self, share: int) -> int:
        """Samples that must all pass, with a single attempt, where `share` sizes split δ."""
        return samples_needed(self.epsilon, self.delta / share, self.bound)

    def delta_of(self, attempt: int, *, share: int = 1) -> float:
        """The part of δ that an attempt, counted from 1, may use: all attempts together never use more than δ.

        ``share`` is the number of sizes that split δ.
        """
        return self.delta / (attempt * (attempt + 1) * share)

    def samples_in(self, attempt: int, *, share: int = 1) -> int:
        """Samples that must all pass in an attempt."""
        return samples_needed(self.epsilon, self.delta_of(attempt, share=share), self.bound)


def samples_needed(epsilon: float, delta: float, bound: Bound) -> int:
    """The fewest samples that must all pass: more than ε of failures stay undetected with probability at most δ.

    Examples
    --------
    >>> samples_needed(0.01, 0.01, "exact")
    459
    """
    if bound == "exact":
        return math.ceil(math.log(delta) / math.log1p(-epsilon) * _ROUNDING)
    return math.ceil(math.log(_SIDES[bound] / delta) / (2 * epsilon * epsilon) * _ROUNDING)


def promise(sigma: float, bound: Bound = "exact") -> Promise:
    """The split of 1 - σ into ε and δ that takes the fewest samples.

    Examples
    --------
    >>> [promise(sigma).samples for sigma in (0.9, 0.99)], promise(0.99, "hoeffding2").samples
    ([46, 760], 45845)
    """
    if not 0.5 <= sigma < 1:
        raise PolicyError("sigma: must be at least 0.5 and below 1 where itemsets are sampled; 1 counts all of them")
    if bound == "exact":
        count = _fewest(sigma)
        return Promise(sigma, bound, 1 - _best_share(count), 1 / (count + 1))
    epsilon = _least_hoeffding(sigma, _SIDES[bound])
    return Promise(sigma, bound, epsilon, 1 - sigma / (1 - epsilon))


def _best_share(count: int) -> float:
    """The share q of good itemsets for which q (1 - q^n) is greatest: (n + 1)^(-1/n)."""
    return math.exp(-math.log1p(count) / count)


def _fewest(sigma: float) -> int:
    """The least n for which some q has q (1 - q^n) of at least σ; that grows with n."""

    def is_enough(count: int) -> bool:
        return _best_share(count) * (1 - 1 / (count + 1)) >= sigma

    high = 1
    while not is_enough(high):
        high *= 2
    low = high // 2
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def _least_hoeffding(sigma: float, sides: int) -> float:
    """The ε for which ln(sides / δ) / (2 ε²) is least: it falls, then rises, so thirds are cut off on either side."""

    def cost(epsilon: float) -> float:
        return math.log(sides / (1 - sigma / (1 - epsilon))) / (epsilon * epsilon)

    low, high = 0.0, 1 - sigma
    for _ in range(_STEPS):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if cost(left) <= cost(right) else (left, high)
    return (low + high) / 2


def uniqueness_samples(epsilon: float, delta: float) -> int:
    """Samples for a share known within ±ε with confidence 1 - δ (Hoeffding, two-sided).

    Examples
    --------
    >>> uniqueness_samples(0.01, 0.01)
    26492
    """
    return math.ceil(math.log(2 / delta) / (2 * epsilon * epsilon))
