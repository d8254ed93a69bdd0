"""The model for several classes of people (section 6), and for the people of whom something is released.

People of any class may show the same combination. Over all people, releasing nothing looks perfect, because everybody
shows the same empty set. So a target is over the people who are shown:
P(k-anonymous | shown) = (p - P(empty) * P(alike | empty)) / (1 - P(empty)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.kernels.z.binomials import chances_of, chances_of_logs, tails_of_logs
from shoal.models.z.probability import Probability

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_ROUNDING: Final = 1e-10
_AT_ONCE: Final = 1 << 16
_DIRECT: Final = 4096
_SURE: Final = 45.0
_FEW_COUNTS: Final = 64
_CELLS_AT_ONCE: Final = 1 << 22
_DROPPED: Final = 2e-4
"""Of the probability to be shown: values that add less are not drawn, and the interval is widened by it."""
_NOBODY: Final = 1e-200
_FEWEST_DRAWN: Final = 2
_SHOWN_ROUNDING: Final = 1e-12


def passes(users: Ints, exposed: Floats, z: int) -> Floats:
    """For each class and attribute the probability that at least z - 1 others, of any class, exposed it.

    The paper prints the person's own class in the probabilities of the others; here each class has its own.
    """
    classes, attributes = exposed.shape
    found = np.empty((classes, attributes))
    for c in range(classes):
        others = users - (np.arange(classes) == c)
        found[c] = _reach(others, exposed, z - 1)
    return found


def _reach(trials: Ints, exposed: Floats, goal: int) -> Floats:
    """For each attribute (a column) the probability that the classes' counts add up to at least `goal`."""
    mean = trials @ exposed
    with np.errstate(divide="ignore", invalid="ignore"):
        # Chernoff's bound for both tails: beyond it a floating point sum equals 0 or 1
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
    """The same for a small goal: all smaller counts are enumerated for all attributes at once."""
    if goal <= 0:
        return np.ones(exposed.shape[1])
    with np.errstate(divide="ignore"):
        return alike(np.log(exposed), trials, goal + 1)


def _at_least(trials: Ints, shares: Floats, found: int) -> float:
    """The probability that independent binomial counts add up to at least `found`."""
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
    """The first count with a non-negligible probability, and the probabilities from there on."""
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
    """For each combination (logarithms, one row per class) the probability that at least k - 1 others show it."""
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
    return averaged(found, users)


def sampled(published: Floats, users: Ints, k: int, *, samples: int, seed: int, confidence: float) -> Probability:
    """Draw combinations as people of each class show them; the interval is Hoeffding's."""
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
    return averaged(found, users)


def averaged(by_class: list[Probability], weights: Floats | Ints) -> Probability:
    """The average over people; a class counts by its weight."""
    parts = weights / weights.sum()
    value, lower, upper = (
        float(sum(part * one for part, one in zip(parts, ones, strict=True)))
        for ones in zip(*((one.value, one.lower, one.upper) for one in by_class), strict=True)
    )
    # every class's interval fails with its own small probability
    confidence = max(0.0, 1.0 - sum(1.0 - one.confidence for one in by_class))
    return Probability(value, lower, upper, by_class[0].method, confidence, by_class=tuple(by_class))


def entropy(published: Floats, users: Ints) -> float:
    """The entropy of what one person publishes, in nats: the average over people."""
    inside = np.where((published > 0) & (published < 1), published, 0.5)
    # attributes are independent, so their entropies add up
    each = -(inside * np.log(inside) + (1 - inside) * np.log1p(-inside))
    return float((users / users.sum()) @ np.where((published > 0) & (published < 1), each, 0.0).sum(axis=1))


# ---- people of whom something is released


def log_empty(published: Floats) -> Floats:
    """The logarithm of the probability of showing nothing, for each class."""
    with np.errstate(divide="ignore"):
        found: Floats = np.log1p(-published).sum(axis=-1)
    return found


def shown_chance(published: Floats) -> Floats:
    """The probability of showing something, for each class."""
    found: Floats = -np.expm1(log_empty(published))
    return found


def none_shown(method: str, confidence: float = 1.0) -> Probability:
    """The result where no one is shown: nothing is known."""
    return Probability(0.0, 0.0, 1.0, method, confidence)


def without_empty(found: Probability, published: Floats, users: int, k: int) -> Probability:
    """Turn the probability over all people of one class into the one over those who are shown."""
    empty = float(log_empty(published))
    shown = -math.expm1(empty)
    if shown < _NOBODY:
        return none_shown(found.method, found.confidence)
    alike = np.empty(1)
    tails_of_logs(float(k - 1), float(users - 1), empty, 0.0, alike)
    hidden = math.exp(empty) * float(alike[0])
    return _conditional(found, hidden, shown)


def _conditional(found: Probability, hidden: float, shown: float) -> Probability:
    value, lower, upper = (
        min(max((one - hidden) / shown, 0.0), 1.0) for one in (found.value, found.lower, found.upper)
    )
    lower, upper = max(lower - _SHOWN_ROUNDING / shown, 0.0), min(upper + _SHOWN_ROUNDING / shown, 1.0)
    return Probability(min(max(value, lower), upper), lower, upper, found.method, found.confidence)


def without_empty_classes(found: Probability, published: Floats, users: Ints, k: int) -> Probability:
    """The same for several classes: the average over the people shown, so a class counts by its people shown."""
    empty, shown = log_empty(published), shown_chance(published)
    weights = users * shown
    if weights.sum() < _NOBODY:
        return none_shown(found.method, found.confidence)
    by_class = []
    for c, one in enumerate(found.by_class):
        if shown[c] < _NOBODY:
            by_class.append(none_shown(found.method, found.confidence))
            continue
        same = alike(empty[:, None], users - (np.arange(len(users)) == c), k)
        by_class.append(_conditional(one, math.exp(empty[c]) * float(same[0]), float(shown[c])))
    return averaged(by_class, weights)


def sampled_shown(
    parts: Sequence[tuple[float, Floats, Ints]], k: int, *, samples: int, seed: int, confidence: float
) -> Probability:
    """Draw sets as people who are shown show them; the interval is the empirical Bernstein interval.

    A part is a weight, the probabilities that people of each class publish each value, and the people of each class.
    The first value of a set is drawn first, so that no set is empty, however few people are shown.
    """
    random = np.random.default_rng(seed)
    weights = [weight * users * shown_chance(published) for weight, published, users in parts]
    total = float(sum(own.sum() for own in weights))
    if total < _NOBODY:
        return none_shown("sample", confidence)
    shares = np.concatenate(weights) / total
    # part and class are drawn too: then all draws are identically distributed, and one interval holds for them
    counts = iter(random.multinomial(samples, shares).tolist())
    drawn, by_class, missed = [], [], 0.0
    for (_, published, users), own in zip(parts, weights, strict=True):
        for c in range(len(users)):
            count = next(counts)
            one, left_out = _draw(random, published, users, k, c, count) if count else (np.empty(0), 0.0)
            drawn.append(one)
            missed += float(own[c]) / total * left_out
            by_class.append(_interval(one, left_out, confidence))
    found = _interval(np.concatenate(drawn), missed, confidence)
    return replace(found, by_class=tuple(by_class) if len(parts) == 1 else ())


def _draw(
    random: np.random.Generator, published: Floats, users: Ints, k: int, c: int, count: int
) -> tuple[Floats, float]:
    """The probability of being k-anonymous for drawn sets of a class; and the probability of sets left out."""
    own = published[c]
    order = np.argsort(-own, kind="stable")
    rest = np.cumsum(own[order][::-1])[::-1]
    chance = float(shown_chance(own))
    kept = order[: max(1, int((rest > _DROPPED * chance).sum()))]
    missed = float(rest[len(kept)]) / chance if len(kept) < len(own) else 0.0
    with np.errstate(divide="ignore"):
        hidden = np.log1p(-np.minimum(published, 1 - 1e-16))
        change = np.log(published[:, kept]) - hidden[:, kept]
    base, others = hidden.sum(axis=1), users - (np.arange(len(users)) == c)
    p = own[kept]
    first = np.cumsum(p * np.exp(np.concatenate(([0.0], np.cumsum(np.log1p(-np.minimum(p, 1 - 1e-16)))[:-1]))))
    found, at = np.empty(count), 0
    while at < count:
        size = min(count - at, max(1, _CELLS_AT_ONCE // len(kept)))
        starts = np.minimum(np.searchsorted(first, random.random(size) * first[-1], side="right"), len(kept) - 1)
        is_shown = random.random((size, len(kept))) < p
        is_shown &= np.arange(len(kept)) > starts[:, None]
        is_shown[np.arange(size), starts] = True
        rows, columns = np.nonzero(is_shown)
        logs = np.stack([base[i] + np.bincount(rows, change[i][columns], size) for i in range(len(users))])
        found[at : at + size] = alike(logs, others, k)
        at += size
    return found, missed


def _interval(drawn: Floats, missed: float, confidence: float) -> Probability:
    """Maurer and Pontil's bound, on both sides."""
    if len(drawn) < _FEWEST_DRAWN:
        return none_shown("sample", confidence)
    value, count = float(drawn.mean()), len(drawn)
    room = math.log(4 / (1 - confidence))
    half = math.sqrt(2 * float(drawn.var(ddof=1)) * room / count) + 7 * room / (3 * (count - 1))
    lower, upper = (value - half) * (1 - missed), value + half + missed
    return Probability(value, max(lower, 0.0), min(upper, 1.0), "sample", confidence)
