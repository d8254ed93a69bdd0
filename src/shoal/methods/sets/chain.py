"""The paper's Markov chain: how many steps it takes by Geweke's test, and by the bound of its Theorem 3."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, inf, log, sqrt
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.errors import PolicyError
from shoal.kernels.sets.sampling import Draws, Sizes, draw_samples, follow_chain
from shoal.methods.sets.data import SetData
from shoal.methods.sets.records import read_records
from shoal.methods.sets.sampling import make_scratch, random_key
from shoal.methods.sets.settings import MOST_ITEMS
from shoal.models.proportions import clopper_pearson
from shoal.models.sample_size import uniqueness_samples

_FIRST_STEPS: Final = 64
_MOST_STEPS: Final = 1 << 14
_EARLY, _LATE = 0.1, 0.5
_ALIKE: Final = 1e-9
"""Values closer than this differ only by rounding."""
_CLOSE, _PAPERS_CLOSE = 1.96, 1.0
"""Geweke scores up to this mean that the chain has converged: ours, and the paper's."""
_EPSILON, _DELTA = 0.01, 0.01


def as_chain(data: SetData, draws: Draws, *, is_literal: bool = False) -> Draws:
    """The same itemsets drawn by the paper's chain, with as many steps as Geweke's test asks for.

    Our test compares log-likelihoods along a chain of twice the length, with variances of means. The literal one is the
    paper's: the number of people who have the current itemset, plain variances, and scores from -1 to 1.
    """
    sizes = data.sizes(draws.size, by_person=True)
    assert sizes is not None  # some set is large enough
    lengths = range(data.longest + 1)
    shares = np.array([1 / comb(length, draws.size) if length >= draws.size else 0.0 for length in lengths])
    chain = draws._replace(sizes=sizes, shares=shares, steps=_FIRST_STEPS)
    close = _PAPERS_CLOSE if is_literal else _CLOSE
    while chain.steps < _MOST_STEPS and abs(_score(data, chain, is_literal=is_literal)) > close:
        chain = chain._replace(steps=2 * chain.steps)
    return chain


def _score(data: SetData, chain: Draws, *, is_literal: bool) -> float:
    trail = np.empty(chain.steps if is_literal else 2 * chain.steps)
    walk = chain._replace(steps=len(trail), key=chain.key ^ np.uint64(1))  # a random stream of its own
    follow_chain(data.sets, data.index.arrays, walk, 0, make_scratch(), trail, is_literal)
    return papers_geweke(trail) if is_literal else geweke(np.log(trail))


def geweke(values: npt.NDArray[np.float64]) -> float:
    """The difference between the means of the first tenth and the last half of a chain, in standard errors."""
    early, late = _parts(values)
    return _ratio(values, early.mean() - late.mean(), _variance_of_mean(early) + _variance_of_mean(late))


def papers_geweke(values: npt.NDArray[np.float64]) -> float:
    """The score as the paper prints it: the same difference over the root of the summed variances of the values.

    It is smaller than Geweke's by about the root of the number of values, so that independent values always pass.
    """
    early, late = _parts(values)
    return _ratio(values, early.mean() - late.mean(), early.var() + late.var())


def _parts(values: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    return values[: max(int(_EARLY * len(values)), 2)], values[-int(_LATE * len(values)) :]


def _ratio(values: npt.NDArray[np.float64], apart: Any, variance: Any) -> float:
    if float(np.ptp(values)) <= _ALIKE:
        return 0.0  # constant
    return float(apart) / sqrt(variance) if variance > 0 else inf


def _variance_of_mean(values: npt.NDArray[np.float64]) -> float:
    """By batch means: neighbours in a chain are correlated, so the plain variance would be too small."""
    batches = max(int(sqrt(len(values))), 2)
    length = len(values) // batches
    means = values[: batches * length].reshape(batches, length).mean(axis=1)
    return float(means.var(ddof=1) / batches)


@dataclass(frozen=True, slots=True)
class MixingBound:
    """The bound of Theorem 3 on the steps of the chain, for itemsets of one size."""

    size: int
    unique_share: float
    """R*: the share of the itemsets of the largest record that no other record has."""
    low: float
    high: float
    """R* is between low and high with confidence 0.99."""
    steps: float
    """|D| ln(1/ξ) / R*; infinite if no unique itemset was found."""


def mixing_bound(records: Any, m: int = 5, *, xi: float = 0.01, seed: int = 0) -> MixingBound:
    """Steps after which the paper's chain is within a total variation distance of ξ of the uniform distribution.

    Parameters
    ----------
    records
        As for :meth:`shoal.KmAnonymity.anonymize`.
    m
        Size of the itemsets.
    xi
        The distance ξ.
    seed
        Seed of the draws from the largest record.

    Examples
    --------
    >>> bound = mixing_bound([{"tea", "milk", "salt"}, {"tea", "milk"}], m=2)
    >>> 0.6 < bound.unique_share < 0.73, bound.low < 2 / 3 < bound.high
    (True, True)
    """
    if type(m) is not int or not 1 <= m <= MOST_ITEMS:
        raise PolicyError(f"m: must be a whole number from 1 to {MOST_ITEMS}")
    if not 0 < xi < 1:
        raise PolicyError("xi: must be above 0 and below 1")
    read = read_records(records)
    names = sorted(read.labels)
    return mixing_bound_of(SetData(read.starts, read.numbered(names), names), m, xi=xi, seed=seed)


def mixing_bound_of(data: SetData, m: int, *, xi: float = 0.01, seed: int = 0) -> MixingBound:
    """The bound for sets that were read before."""
    if m > data.longest:
        return MixingBound(m, 0.0, 0.0, 0.0, inf)
    count, last = uniqueness_samples(_EPSILON, _DELTA), len(data) - 1
    only_the_largest = Sizes(np.full(1, (1 << 64) - 1, np.uint64), np.array([last]), np.ones(1, np.int64))
    key = random_key(seed, data.fingerprint, "mixing", m)
    draws = Draws(only_the_largest, m, 2, by_person=True, samples_only=False, steps=0, shares=np.empty(0), key=key)
    drawn, people = np.empty((count, m), np.int32), np.empty(count, np.int64)
    draw_samples(data.sets, data.index.arrays, draws, 0, count, count, make_scratch(), drawn, people)
    unique = int((people == 1).sum())
    low, high = clopper_pearson(unique, count, 1 - _DELTA)
    share = unique / count
    return MixingBound(m, share, low, high, len(data) * log(1 / xi) / share if share else inf)
