"""How likely is a person k-anonymous of whom something is released?

Over all people, releasing nothing looks perfect: everybody shows the same empty set. So a target is over the people who
are shown: P(k-anonymous | shown) = (p - P(empty) * P(alike | empty)) / (1 - P(empty)).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.kernels.z.binomials import tails_of_logs
from shoal.models.z import classes as z_classes
from shoal.models.z.probability import Probability

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_AT_ONCE: Final = 1 << 22
_DROPPED: Final = 2e-4
"""Of the chance to be shown: values that add less are not drawn, and the interval is widened by it."""
_NOBODY: Final = 1e-200
_FEWEST_DRAWN: Final = 2
_ROUNDING: Final = 1e-12


def log_empty(published: Floats) -> Floats:
    """The logarithm of the probability to show nothing, for each class."""
    with np.errstate(divide="ignore"):
        found: Floats = np.log1p(-published).sum(axis=-1)
    return found


def shown_chance(published: Floats) -> Floats:
    """The probability to show something, for each class."""
    found: Floats = -np.expm1(log_empty(published))
    return found


def nobody(method: str, confidence: float = 1.0) -> Probability:
    """Where nobody is shown nothing is known of those who are."""
    return Probability(0.0, 0.0, 1.0, method, confidence)


def without_empty(found: Probability, published: Floats, users: int, k: int) -> Probability:
    """From the probability over all people, of one class, to the one over those who are shown."""
    empty = float(log_empty(published))
    shown = -math.expm1(empty)
    if shown < _NOBODY:
        return nobody(found.method, found.confidence)
    alike = np.empty(1)
    tails_of_logs(float(k - 1), float(users - 1), empty, 0.0, alike)
    hidden = math.exp(empty) * float(alike[0])
    return _conditional(found, hidden, shown)


def _conditional(found: Probability, hidden: float, shown: float) -> Probability:
    value, lower, upper = (
        min(max((one - hidden) / shown, 0.0), 1.0) for one in (found.value, found.lower, found.upper)
    )
    lower, upper = max(lower - _ROUNDING / shown, 0.0), min(upper + _ROUNDING / shown, 1.0)
    return Probability(min(max(value, lower), upper), lower, upper, found.method, found.confidence)


def without_empty_classes(found: Probability, published: Floats, users: Ints, k: int) -> Probability:
    """The same for several classes: an average over the people shown, so a class counts by how many of it are."""
    empty, shown = log_empty(published), shown_chance(published)
    weights = users * shown
    if weights.sum() < _NOBODY:
        return nobody(found.method, found.confidence)
    by_class = []
    for c, one in enumerate(found.by_class):
        if shown[c] < _NOBODY:
            by_class.append(nobody(found.method, found.confidence))
            continue
        alike = z_classes.alike(empty[:, None], users - (np.arange(len(users)) == c), k)
        by_class.append(_conditional(one, math.exp(empty[c]) * float(alike[0]), float(shown[c])))
    return _average(by_class, weights)


def _average(by_class: list[Probability], weights: Floats) -> Probability:
    parts = weights / weights.sum()
    value, lower, upper = (
        float(sum(part * getattr(one, name) for part, one in zip(parts, by_class, strict=True)))
        for name in ("value", "lower", "upper")
    )
    confidence = max(0.0, 1.0 - sum(1.0 - one.confidence for one in by_class))
    return Probability(value, lower, upper, by_class[0].method, confidence, by_class=tuple(by_class))


def sampled_shown(published: Floats, users: Ints, k: int, *, samples: int, seed: int, confidence: float) -> Probability:
    """Sets drawn as people who are shown show them; the interval is Bernstein's, with the variance that was found.

    Where the first value shown is drawn first, nobody drawn shows nothing, however few are shown.
    """
    random = np.random.default_rng(seed)
    shown = shown_chance(published)
    weights = users * shown
    if weights.sum() < _NOBODY:
        return nobody("sample", confidence)
    parts = weights / weights.sum()
    drawn, by_class, missed = [], [], 0.0
    # Whose set it is is drawn as well: all draws are alike then, and one interval holds for them.
    for c, count in enumerate(random.multinomial(samples, parts).tolist()):
        own, left_out = _draw(random, published, users, k, c, count) if count else (np.empty(0), 0.0)
        drawn.append(own)
        missed += float(parts[c]) * left_out
        by_class.append(_interval(own, left_out, confidence))
    found = _interval(np.concatenate(drawn), missed, confidence)
    return replace(found, by_class=tuple(by_class))


def _draw(
    random: np.random.Generator, published: Floats, users: Ints, k: int, c: int, count: int
) -> tuple[Floats, float]:
    """Whether people of a class who are shown are alike enough; and the chance of the sets that were left out."""
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
        size = min(count - at, max(1, _AT_ONCE // len(kept)))
        starts = np.minimum(np.searchsorted(first, random.random(size) * first[-1], side="right"), len(kept) - 1)
        is_shown = random.random((size, len(kept))) < p
        is_shown &= np.arange(len(kept)) > starts[:, None]
        is_shown[np.arange(size), starts] = True
        rows, columns = np.nonzero(is_shown)
        logs = np.stack([base[i] + np.bincount(rows, change[i][columns], size) for i in range(len(users))])
        found[at : at + size] = z_classes.alike(logs, others, k)
        at += size
    return found, missed


def _interval(drawn: Floats, missed: float, confidence: float) -> Probability:
    """Maurer and Pontil's bound, on both sides."""
    if len(drawn) < _FEWEST_DRAWN:
        return nobody("sample", confidence)
    value, count = float(drawn.mean()), len(drawn)
    room = math.log(4 / (1 - confidence))
    half = math.sqrt(2 * float(drawn.var(ddof=1)) * room / count) + 7 * room / (3 * (count - 1))
    lower, upper = (value - half) * (1 - missed), value + half + missed
    return Probability(value, max(lower, 0.0), min(upper, 1.0), "sample", confidence)
