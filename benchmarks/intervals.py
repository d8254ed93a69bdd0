"""An interval for the ratio of two times, from pairs of runs that were measured at nearly the same moment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

FEWEST_PAIRS = 6
"""With fewer, even the range of all ratios covers the true one with less than 95%."""


@dataclass(frozen=True)
class Interval:
    """A ratio between its bounds."""

    low: float
    ratio: float
    high: float


def ratio_interval(ratios: Sequence[float], confidence: float = 0.95) -> Interval:
    """The Hodges-Lehmann estimate of a ratio and its exact Wilcoxon interval, both on logarithms.

    The only assumption: the logarithms are independent and symmetric about the true one. Runs of a pair whose order is
    drawn at random are symmetric whatever the noise is, so a few extreme pairs neither move the interval far nor widen
    it, as they would a mean with Student's t. The interval covers the true ratio at least as often as `confidence`
    says. It is bounded by averages of two pairs (of one and the same, too): the Walsh averages.
    """
    if len(ratios) < FEWEST_PAIRS:
        raise ValueError(f"an interval needs at least {FEWEST_PAIRS} pairs, not {len(ratios)}")
    logs = np.log(np.asarray(ratios, dtype=float))
    first, second = np.triu_indices(len(logs))
    averages = np.sort((logs[first] + logs[second]) / 2)
    outside = left_out(len(logs), (1 - confidence) / 2)
    bounds = averages[outside], np.median(averages), averages[-1 - outside]
    return Interval(*(math.exp(value) for value in bounds))


def left_out(pairs: int, tail: float) -> int:
    """How many Walsh averages an interval leaves out at each end, so that it errs there with a chance of `tail`."""
    return int(np.searchsorted(np.cumsum(signed_rank_chances(pairs)), tail, side="right")) - 1


def signed_rank_chances(pairs: int) -> np.ndarray:
    """The chance of each sum of the ranks 1 … `pairs` when a fair coin decides which of them count."""
    chances = np.ones(1)
    for rank in range(1, pairs + 1):
        longer = np.zeros(len(chances) + rank)
        longer[: len(chances)] += chances / 2
        longer[rank:] += chances / 2
        chances = longer
    return chances
