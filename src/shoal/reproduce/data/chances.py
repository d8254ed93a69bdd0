"""Draw values by tables of shares, for the imitations of the papers' data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Shares = Sequence[Sequence[float]]


def draw_given(random: np.random.Generator, given: Ints, shares: Shares) -> Ints:
    """A choice for every entry of `given`, by the row of shares it names; a row need not add up to anything."""
    table = np.asarray(shares, dtype=np.float64)
    edges = np.cumsum(table, axis=1) / table.sum(axis=1, keepdims=True)
    lots = random.random(len(given))
    chosen = np.zeros(len(given), dtype=np.int64)
    for edge in edges.T[:-1]:
        chosen += lots >= edge[given]
    return chosen


def draw(random: np.random.Generator, rows: int, shares: Sequence[float]) -> Ints:
    """Choices by one row of shares."""
    return draw_given(random, np.zeros(rows, dtype=np.int64), [shares])


def draw_between(random: np.random.Generator, rows: int, quantiles: Sequence[tuple[float, float]]) -> Floats:
    """Numbers whose quantiles are these pairs of a share and a number, straight in between."""
    at, values = zip(*quantiles, strict=True)
    return np.asarray(np.interp(random.random(rows), at, values))
