"""The model for several classes of people (section 6): who is alike may be of any class."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.kernels.z.binomials import chances_of, chances_of_logs
from shoal.models.z.probability import Probability

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_ROUNDING: Final = 1e-10
_AT_ONCE: Final = 1 << 16
_DIRECT: Final = 4096
_SURE: Final = 45.0
_FEW_COUNTS: Final = 64


def passes(users: Ints, exposed: Floats, z: int) -> Floats:
    """For each class and attribute the probability that at least z - 1 others, of any class, exposed it.

    The paper prints the person's own class in the chances of the others; each class has its own.
    """
    classes, attributes = exposed.shape
    found = np.empty((classes, attributes))
    for c in range(classes):
        others = users - (np.arange(classes) == c)
        found[c] = _reach(others, exposed, z - 1)
    return found


def _reach(trials: Ints, exposed: Floats, goal: int) -> Floats:
    """For each attribute (a column) the probability that the classes' counts add up to at least so many."""
    mean = trials @ exposed
    with np.errstate(divide="ignore", invalid="ignore"):
        # Chernoff's bound, of both tails: what is beyond it no sum of floating point numbers could tell from 0 or 1.
        away = mean - goal + np.where(goal > 0, goal * np.log(goal / mean), 0.0)
    is_open = (away < _SURE) | (mean <= 0)
    found = np.where(mean > goal, 1.0, 0.0)
    if goal <= _FEW_COUNTS:
        found[is_open] = _more_than_few(trials, exposed[:, is_open], goal)
        return found
    for a in np.flatnonzero(is_open).tolist():
        found[a] = _at_least(trials, exposed[:, a], goal)
    return found


def _more_than_few(trials: Ints, exposed: Floats, goal: int) -> Floats:
    """The same where so few are needed that all smaller counts can be listed for all attributes at once."""
    if goal <= 0:
        return np.ones(exposed.shape[1])
    with np.errstate(divide="ignore"):
        return alike(np.log(exposed), trials, goal + 1)


def _at_least(trials: Ints, shares: Floats, found: int) -> float:
    """The probability that independent binomial counts add up to at least so many."""
    if found <= 0:
        return 1.0
    first, mass = 0, np.ones(1)
    for n, share in zip(trials.tolist(), shares.tolist(), strict=True):
        low, chances = _likely(n, share)
        mass = _convolved(mass, chances)
        first += low
    below = max(found - first, 0)
    return float(mass[below:].sum()) if below < len(mass) else 0.0


def _likely(trials: int, share: float) -> tuple[int, Floats]:
    """Counts that are likely at all, from the first on, with their chances."""
    spread = 40.0 + 12.0 * math.sqrt(trials * share * (1 - share))
    low = max(0, math.floor(trials * share - spread))
    high = min(trials, math.ceil(trials * share + spread))
    chances = np.empty(high - low + 1)
    chances_of(float(low), float(trials), share, chances)
    return low, chances


def _convolved(one: Floats, other: Floats) -> Floats:
    if min(len(one), len(other)) < _DIRECT:
        return np.convolve(one, other)
    size = len(one) + len(other) - 1
    found: Floats = np.fft.irfft(np.fft.rfft(one, size) * np.fft.rfft(other, size), size)
    return np.maximum(found, 0.0)


def alike(logs: Floats, others: Ints, k: int) -> Floats:
    """For combinations (a row a class of logarithms) the probability that at least k - 1 others show the same."""
    count = logs.shape[1]
    few = np.zeros((k - 1, count))
    few[0] = 1.0
    for trials, own in zip(others.tolist(), logs, strict=True):
        chances = np.empty((k - 1, count))
        for j in range(k - 1):
            chances_of_logs(float(j), float(trials), own, chances[j])
        following = np.zeros_like(few)
        for j in range(k - 1):
            following[j:] += chances[j] * few[: k - 1 - j]
        few = following
    found: Floats = np.clip(1.0 - few.sum(axis=0), 0.0, 1.0)
    return found


def enumerated(published: Floats, users: Ints, k: int) -> Probability:
    """Every combination of the attributes that anybody publishes."""
    live = published[:, (published > 0).any(axis=0)]
    with np.errstate(divide="ignore"):
        shown, hidden = np.log(live), np.log1p(-live)
    logs = np.zeros((len(users), 1))
    for a in range(live.shape[1]):
        logs = np.concatenate((logs + hidden[:, a : a + 1], logs + shown[:, a : a + 1]), axis=1)
    found = []
    for c in range(len(users)):
        others = users - (np.arange(len(users)) == c)
        total = 0.0
        for start in range(0, logs.shape[1], _AT_ONCE):
            part = logs[:, start : start + _AT_ONCE]
            total += float(np.exp(part[c]) @ alike(part, others, k))
        found.append(Probability(total, max(total - _ROUNDING, 0.0), min(total + _ROUNDING, 1.0), "exact"))
    return overall(found, users)


def sampled(published: Floats, users: Ints, k: int, *, samples: int, seed: int, confidence: float) -> Probability:
    """Combinations drawn as people of each class show them; the interval is Hoeffding's."""
    random = np.random.default_rng(seed)
    with np.errstate(divide="ignore"):
        shown, hidden = np.log(published), np.log1p(-published)
    half = math.sqrt(math.log(2 / (1 - confidence)) / (2 * samples))
    found = []
    for c in range(len(users)):
        others = users - (np.arange(len(users)) == c)
        total, left = 0.0, samples
        while left:
            count = min(left, max(1, _AT_ONCE * 16 // max(published.shape[1], 1)))
            is_shown = random.random((count, published.shape[1])) < published[c]
            logs = np.stack([np.where(is_shown, shown[i], hidden[i]).sum(axis=1) for i in range(len(users))])
            total += float(alike(logs, others, k).sum())
            left -= count
        value = total / samples
        found.append(Probability(value, max(value - half, 0.0), min(value + half, 1.0), "sample", confidence))
    return overall(found, users)


def overall(found: list[Probability], users: Ints) -> Probability:
    """The average over all people."""
    weights = users / users.sum()
    value, lower, upper = (
        float(sum(weight * getattr(one, name) for weight, one in zip(weights, found, strict=True)))
        for name in ("value", "lower", "upper")
    )
    # Every class's interval fails with its own small probability.
    confidence = max(0.0, 1.0 - sum(1.0 - one.confidence for one in found))
    return Probability(value, lower, upper, found[0].method, confidence, by_class=tuple(found))
