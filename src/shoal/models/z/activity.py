"""How active people are: a mixture of Poisson counts, of which nobody sees the zeros."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_ROUNDS: Final = 400
_LEAST: Final = 0.05
"""People who are hardly ever active cannot be told from many more who are even less so."""


def activity_classes(counts: Ints, classes: int) -> tuple[Floats, Floats]:
    """Shares of the active people, and means, of up to so many classes; quieter classes first.

    A person who is there shows a Poisson number of values with the mean of their class, and is seen only if it is not
    0. The most likely classes are found by expectation and maximization, from the same start every time.

    Parameters
    ----------
    counts
        How many different values each active person showed, at least 1.
    """
    size, weight = np.unique(counts, return_counts=True)
    sizes, weights = size.astype(np.float64), weight / weight.sum()
    factorials = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, size[-1] + 1)))))[size]
    means = _start(sizes, weights, classes)
    shares = np.full(len(means), 1.0 / len(means))
    for _ in range(_ROUNDS):
        logs = sizes * np.log(means[:, None]) - _log_grown(means)[:, None] - factorials
        likely = np.log(shares)[:, None] + logs
        likely = np.exp(likely - likely.max(axis=0))
        belongs = likely / likely.sum(axis=0) * weights
        total = np.maximum(belongs.sum(axis=1), 1e-12)
        previous, shares = shares, total / total.sum()
        means = _untruncated((belongs @ sizes) / total)
        if np.abs(shares - previous).max() < 1e-7:
            break
    order = np.argsort(means, kind="stable")
    return shares[order], means[order]


def _start(sizes: Floats, weights: Floats, classes: int) -> Floats:
    """Means spread over what is seen, no two alike."""
    reached = np.cumsum(weights)
    places = (np.arange(classes) + 0.5) / classes
    spread = sizes[np.searchsorted(reached, np.minimum(places, reached[-1]))]
    found: Floats = np.maximum(np.unique(spread), 1.0) * 0.999 + 0.01
    return found


def _log_grown(means: Floats) -> Floats:
    """log(exp(mean) - 1), without leaving the range of numbers."""
    found: Floats = means + np.log(-np.expm1(-means))
    return found


def _untruncated(seen: Floats) -> Floats:
    """The mean of a Poisson count of which the ones above 0 have this mean."""
    low, high = np.full_like(seen, _LEAST), np.maximum(seen, 2 * _LEAST)
    for _ in range(60):
        middle = (low + high) / 2
        is_more = middle / -np.expm1(-middle) > seen
        low, high = np.where(is_more, low, middle), np.where(is_more, middle, high)
    return (low + high) / 2


def interests(crowds: Floats, sizes: Floats, means: Floats) -> Floats:
    """For each value the share of interest with which the classes together make so large a crowd.

    A person of a class exposes a value with the chance 1 - exp(-mean * share).
    """
    goal = np.minimum(crowds, 0.999 * sizes.sum())
    found: Floats = np.zeros(len(goal))
    for _ in range(100):
        stays = np.exp(-means[:, None] * found)
        step = (goal - sizes @ (1 - stays)) / ((sizes * means) @ stays)
        found += step  # the curve bends down: from below Newton's steps never go too far
        if np.abs(step).max(initial=0.0) <= 1e-13 * max(1.0, float(found.max(initial=0.0))):
            break
    return found
