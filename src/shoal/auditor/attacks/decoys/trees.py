"""Boosted trees: a classifier that finds what several columns show together."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.numbers import Floats

_BINS: Final = 32
_FEWEST: Final = 40
"""A part of fewer records is not divided."""


class Trees:
    """Gradient boosting of small trees on binned features, logistic loss."""

    def __init__(self, *, rounds: int = 60, depth: int = 3, rate: float = 0.2) -> None:
        self._rounds, self._depth, self._rate = rounds, depth, rate
        self._trees: list[Any] = []
        self._edges: list[Floats] = []
        self._start = 0.0
        self.gains: Floats = np.zeros(0)
        """How much each feature helped."""

    def fit(self, x: Floats, y: Bools) -> Trees:
        """Learn from records (lines) and their features (columns) which are real."""
        self._edges = [np.unique(np.quantile(column, np.linspace(0, 1, _BINS)[1:-1])) for column in x.T]
        binned = self._binned(x)
        share = min(max(float(y.mean()), 1e-6), 1 - 1e-6)
        self._start = float(np.log(share / (1 - share)))
        score = np.full(len(y), self._start)
        self.gains = np.zeros(x.shape[1])
        for _ in range(self._rounds):
            chance = 1 / (1 + np.exp(-score))
            tree = self._grow(binned, y - chance, chance * (1 - chance), np.arange(len(y)), self._depth)
            self._trees.append(tree)
            score += self._rate * _answer(tree, binned)
        return self

    def score(self, x: Floats) -> Floats:
        """Return the log-odds that a record is real."""
        binned = self._binned(x)
        found: Floats = self._start + self._rate * np.sum([_answer(tree, binned) for tree in self._trees], axis=0)
        return found

    def _binned(self, x: Floats) -> npt.NDArray[np.int64]:
        columns = [np.searchsorted(edges, column) for edges, column in zip(self._edges, x.T, strict=True)]
        return np.stack(columns, axis=1).astype(np.int64)

    def _grow(self, binned: Any, slope: Floats, weight: Floats, rows: Ints, depth: int) -> Any:
        total, heavy = slope[rows].sum(), weight[rows].sum()
        value = total / (heavy + 1.0)
        if depth == 0 or len(rows) < _FEWEST:
            return value
        best = (1e-6, -1, -1)
        for feature in range(binned.shape[1]):
            bins = binned[rows, feature]
            left = np.cumsum(np.bincount(bins, weights=slope[rows], minlength=_BINS))[:-1]
            mass = np.cumsum(np.bincount(bins, weights=weight[rows], minlength=_BINS))[:-1]
            gain = left**2 / (mass + 1) + (total - left) ** 2 / (heavy - mass + 1) - total**2 / (heavy + 1)
            at = int(gain.argmax())
            best = max(best, (float(gain[at]), feature, at))
        gained, feature, at = best
        if feature < 0:
            return value
        self.gains[feature] += gained
        is_left = binned[rows, feature] <= at
        below = [self._grow(binned, slope, weight, rows[side], depth - 1) for side in (is_left, ~is_left)]
        return feature, at, *below


def _answer(tree: Any, binned: Any) -> Floats:
    if not isinstance(tree, tuple):
        return np.full(len(binned), tree)
    feature, at, left, right = tree
    return np.where(binned[:, feature] <= at, _answer(left, binned), _answer(right, binned))


def auc(score: Floats, is_real: Bools) -> float:
    """Return the chance that something real scores above a decoy; ties count half."""
    values, back = np.unique(score, return_inverse=True)
    real = np.bincount(back, weights=is_real, minlength=len(values))
    fake = np.bincount(back, weights=~is_real, minlength=len(values))
    below = np.cumsum(fake) - fake
    return float((real * (below + fake / 2)).sum() / max(real.sum() * fake.sum(), 1e-300))
