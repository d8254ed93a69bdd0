"""How itemsets are drawn: by rejection, by person, or by the paper's Markov chain."""

from __future__ import annotations

from math import comb, sqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.kernels.sets.sampling import Draws, Scratch, follow_chain
from shoal.methods.sets.data import SetData
from shoal.methods.sets.settings import MOST_ITEMS

_FIRST_STEPS: Final = 64
_MOST_STEPS: Final = 1 << 14
_EARLY, _LATE = 0.1, 0.5
_ALIKE: Final = 1e-9
"""Logarithms of likelihoods no further apart differ by rounding."""
_CLOSE: Final = 1.96
"""Geweke's score within which the early and the late part of a chain are taken for alike."""


def make_scratch() -> Scratch:
    """Room for one thread."""
    return Scratch(
        np.zeros(1, np.uint64), np.zeros(MOST_ITEMS, np.int32), np.zeros(MOST_ITEMS, np.int32),
        np.zeros(MOST_ITEMS, np.int32), np.zeros(MOST_ITEMS, np.int64),
    )  # fmt: skip


def make_draws(
    data: SetData, size: int, k: int, key: npt.NDArray[np.uint64], *, by_person: bool = False
) -> Draws | None:
    """How to draw itemsets of a size one by one, independently; None when nobody has so many items."""
    sizes = data.sizes(size, by_person=by_person)
    if sizes is None:
        return None
    return Draws(sizes, size, k, by_person, samples_only=False, steps=0, shares=np.empty(0), key=key)


def as_chain(data: SetData, draws: Draws) -> Draws:
    """The same itemsets drawn by the paper's chain, walked for as long as Geweke's test asks."""
    sizes = data.sizes(draws.size, by_person=True)
    assert sizes is not None  # somebody has so many items
    lengths = range(data.longest + 1)
    shares = np.array([1 / comb(length, draws.size) if length >= draws.size else 0.0 for length in lengths])
    chain = draws._replace(sizes=sizes, shares=shares, steps=_FIRST_STEPS)
    while chain.steps < _MOST_STEPS and abs(_score(data, chain)) > _CLOSE:
        chain = chain._replace(steps=2 * chain.steps)
    return chain


def _score(data: SetData, chain: Draws) -> float:
    """Geweke's score of one walk of twice the length: how far early likelihoods are from late ones."""
    trail = np.empty(2 * chain.steps)
    walk = chain._replace(steps=len(trail), key=chain.key ^ np.uint64(1))  # coins of its own
    follow_chain(data.sets, data.index.arrays, walk, 0, make_scratch(), trail)
    return geweke(np.log(trail))


def geweke(values: npt.NDArray[np.float64]) -> float:
    """The difference between the means of the first tenth and the last half of a chain, in standard errors."""
    early, late = values[: max(int(_EARLY * len(values)), 2)], values[-int(_LATE * len(values)) :]
    if float(np.ptp(values)) <= _ALIKE:
        return 0.0  # what never moves is at rest
    spread = sqrt(_variance_of_mean(early) + _variance_of_mean(late))
    apart = float(early.mean() - late.mean())
    return apart / spread if spread > 0 else float("inf")


def _variance_of_mean(values: npt.NDArray[np.float64]) -> float:
    """From means of batches: neighbours in a chain are alike, so their own spread would tell too little."""
    batches = max(int(sqrt(len(values))), 2)
    length = len(values) // batches
    means = values[: batches * length].reshape(batches, length).mean(axis=1)
    return float(means.var(ddof=1) / batches)
