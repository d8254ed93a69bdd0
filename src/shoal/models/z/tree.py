"""The paper's way round enumeration (appendix B): combinations in a tree, unlikely branches left out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.errors import PolicyError
from shoal.kernels.z.binomials import tails
from shoal.models.z.probability import Probability

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
ENOUGH: Final = 0.98
"""How much must be covered where θ2 is not given (equation B.2)."""
_MOST: Final = 1 << 24
"""Combinations looked at; beyond, convolving is better by far."""
_AT_ONCE: Final = 1 << 18
_ROUNDING: Final = 1e-10
_FINER: Final = 0.25


def on_tree(p: Floats, users: int, k: int, theta1: float, theta2: float | None) -> Probability:
    """Sum over the combinations that are likely enough.

    Attributes that fewer than `theta1` people are expected to publish are taken as published by nobody. The root is the
    likeliest combination of the others; a child differs from its parent in one attribute, those first that differ most
    easily, so that children and right siblings are never likelier. What is below `theta2` / 2^attributes is cut off.
    """
    if not (theta1 >= 0 and math.isfinite(theta1)):
        raise PolicyError("theta1: must be a number of people, at least 0")
    if theta2 is not None and not (theta2 >= 0 and math.isfinite(theta2)):
        raise PolicyError("theta2: must be a number of at least 0; leave it out to have it found")
    return _Tree(p, users, k, theta1).looked_at(theta2)


class _Tree:
    """Combinations of the attributes that count, the likeliest at the root."""

    def __init__(self, p: Floats, users: int, k: int, theta1: float) -> None:
        # All probabilities as logarithms.
        self._users, self._k = users, k
        counts = (p >= theta1 / users) & (p > 0)
        likely, rare = p[counts], p[~counts & (p > 0)]
        self._attributes = len(likely)
        sure = np.maximum(likely, 1 - likely)
        with np.errstate(divide="ignore"):
            self._flips = np.sort(np.log1p(-sure[sure < 1]) - np.log(sure[sure < 1]))[::-1]
            self._without = float(np.log1p(-rare).sum())  # of the probability that nothing rare is published
        self._root = float(np.log(sure).sum())
        self._with_rare = _likeliest_with(rare, self._root)

    def looked_at(self, theta2: float | None) -> Probability:
        """The sum for one θ2, or for the first, ever smaller one that covers enough."""
        if theta2 is not None:
            found = self._sum(math.log(theta2) - self._attributes * math.log(2) if theta2 else -math.inf)
            if found is None:
                raise PolicyError(
                    f'theta2: more than {_MOST:,} combinations are as likely; take a larger one, or method "lattice"'
                )
            return found
        least = self._root
        best = self._sum(least)
        while best is not None and best.coverage < ENOUGH * math.exp(self._without):
            least += math.log(_FINER)
            finer = self._sum(least)
            if finer is None:
                break
            best = finer
        assert best is not None, "the root alone is one combination"
        return best

    def _sum(self, least: float) -> Probability | None:
        """Over all combinations of at least this logarithm; nothing where they are too many."""
        total = covered = 0.0
        left_over = _MOST
        for logs in self._walk(least):
            left_over -= len(logs)
            if left_over < 0:
                return None
            chances = np.exp(logs + self._without)
            total += float(chances @ self._alike(chances))
            covered += float(chances.sum())
        covered = min(covered, 1.0)
        # Nothing left out is likelier than this, and who shows something unlikely hardly ever finds others.
        most = np.exp(np.array([max(least + self._without, self._with_rare)]))
        left = (1.0 - covered) * float(self._alike(np.minimum(most, 1.0))[0])
        lower, upper = max(total - _ROUNDING, 0.0), min(total + left + _ROUNDING, 1.0)
        return Probability(min(total, 1.0), lower, upper, "tree", coverage=covered)

    def _alike(self, chances: Floats) -> Floats:
        found = np.empty(len(chances))
        tails(float(self._k - 1), float(self._users - 1), chances, found)
        return found

    def _walk(self, least: float) -> Iterator[Floats]:
        """Logarithms of the combinations from the root on, some at a time."""
        yield np.array([self._root])
        waiting = [(np.array([self._root]), np.zeros(1, dtype=np.int64))]
        while waiting:
            logs, first = waiting.pop()
            beyond = np.searchsorted(-self._flips, logs - least, side="right")
            count = np.maximum(beyond - first, 0)
            for part in _parts(count):
                children, following = self._children(logs[part], first[part], count[part])
                yield children
                has_more = following < len(self._flips)
                waiting.append((children[has_more], following[has_more]))

    def _children(self, logs: Floats, first: Ints, count: Ints) -> tuple[Floats, Ints]:
        """What differs in one attribute more, so many from `first` on; and where their own children begin."""
        parent = np.repeat(np.arange(len(logs)), count)
        nth = np.arange(len(parent)) - np.repeat(np.cumsum(count) - count, count)
        flipped = first[parent] + nth
        return logs[parent] + self._flips[flipped], flipped + 1


def _parts(count: Ints) -> Iterator[slice]:
    """Cut parents apart so that they do not have too many children at once; the last ones may have none."""
    ends = np.cumsum(count)
    start = 0
    while start < len(count) and ends[-1] > (done := int(ends[start - 1]) if start else 0):
        stop = max(start + 1, int(np.searchsorted(ends, done + _AT_ONCE, side="right")))
        yield slice(start, stop)
        start = stop


def _likeliest_with(rare: Floats, root: float) -> float:
    """The logarithm of the likeliest combination that shows something rare."""
    if not len(rare):
        return -math.inf
    sure = np.maximum(rare, 1 - rare)
    most = root + float(np.log(sure).sum())
    return most if (rare >= 0.5).any() else most + float((np.log(rare) - np.log1p(-rare)).max())
