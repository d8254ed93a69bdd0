"""FADS with whole-window NumPy arrays: the baseline of the compiled kernels.

Deadline and reuse are counts of arrivals; no grid, no diversity. The same decisions as tests/reference/fads.py, to the
last bit: sums over attributes go column by column, in the order of the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Candidates = Callable[[int, Ints], Ints | None]
"""From the expiring row and the held ones, those it may form a cluster with; None if they are too few people."""


@dataclass(frozen=True)
class NumericColumn:
    """A number and its domain."""

    name: str
    low: float
    high: float
    weight: float = 1.0

    def points(self, values: Sequence[Any]) -> Floats:
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)

    def scaled(self, values: Floats) -> Floats:
        if self.high == self.low:
            return np.zeros_like(values)
        return (values - self.low) / (self.high - self.low)


class CategoricalColumn:
    """A tree as tables over its leaves, which are numbered depth first: a node is an interval of leaves."""

    def __init__(self, name: str, nested: Mapping[str, Any], weight: float = 1.0):
        self.name, self.weight = name, weight
        self.spans: list[tuple[str, int, int]] = []
        self.leaves: list[str] = []
        ((root, below),) = nested.items()
        self._walk(root, below)
        size = len(self.leaves)
        self.first, self.last = np.zeros((size, size), np.int64), np.zeros((size, size), np.int64)
        for _, first, last in sorted(self.spans, key=lambda span: span[1] - span[2]):  # wide ones first
            self.first[first : last + 1, first : last + 1] = first
            self.last[first : last + 1, first : last + 1] = last
        self.loss = (self.last - self.first) / max(size - 1, 1)
        self.labels = {(first, last): label for label, first, last in reversed(self.spans)}

    def _walk(self, label: str, below: Any) -> None:
        begin = len(self.leaves)
        if below:
            for child in below:
                self._walk(child, below[child] if isinstance(below, Mapping) else None)
        else:
            self.leaves.append(label)
        self.spans.append((label, begin, len(self.leaves) - 1))

    def points(self, values: Sequence[Any]) -> Floats:
        codes = {leaf: code for code, leaf in enumerate(self.leaves)}
        return np.array([np.nan if value is None else codes[value] for value in values], dtype=np.float64)


Column = NumericColumn | CategoricalColumn


class Table:
    """A stream as arrays, attribute by row: the points, which are carried, and what distances are made of."""

    def __init__(self, columns: Sequence[Column], values: Sequence[Sequence[Any]], people: Sequence[Any]):
        self.columns = list(columns)
        self.weights = [float(column.weight) for column in columns]
        self.points = np.array([column.points(given) for column, given in zip(columns, values, strict=True)])
        self.carried = ~np.isnan(self.points)
        self.points[~self.carried] = 0.0
        self.is_complete = bool(self.carried.all())
        self.people = np.unique(np.asarray(people), return_inverse=True)[1]
        self.has_strangers_only = len(np.unique(self.people)) == len(self.people)
        self.scaled = [
            column.scaled(self.points[at]) if isinstance(column, NumericColumn) else self.points[at].astype(np.int64)
            for at, column in enumerate(columns)
        ]

    @property
    def size(self) -> int:
        return self.points.shape[1]

    def apart(self, at: int, row: int, others: Ints) -> Floats:
        """Distances in one attribute."""
        column, scaled = self.columns[at], self.scaled[at]
        if isinstance(column, NumericColumn):
            return np.abs(scaled[row] - scaled[others])
        return column.loss[scaled[row]][scaled[others]]

    def distances(self, row: int, others: Ints) -> Floats:
        """Distances over the attributes both carry; 1 where there are none."""
        total = np.zeros(len(others))
        if self.is_complete:
            for at, weight in enumerate(self.weights):
                total += weight * self.apart(at, row, others)
            return total / add_up(self.weights)
        weights = np.zeros(len(others))
        for at in np.flatnonzero(self.carried[:, row]):
            both = self.carried[at, others]
            total += self.weights[at] * self.apart(at, row, others) * both
            weights += self.weights[at] * both
        return np.divide(total, weights, out=np.ones(len(others)), where=weights > 0)

    def count_people(self, rows: Ints) -> int:
        return len(rows) if self.has_strangers_only else len(np.unique(self.people[rows]))

    def nearest(self, row: int, others: Ints, k: int) -> Ints:
        """The row and the k-1 nearest of other people, ties to the earlier; `others` in order of arrival."""
        others = others[self.people[others] != self.people[row]]
        apart = self.distances(row, others)
        if not self.has_strangers_only:
            order = np.argsort(apart, kind="stable")
            _, first = np.unique(self.people[others[order]], return_index=True)
            kept = np.sort(order[first])
            others, apart = others[kept], apart[kept]
        return np.append(row, others[least(apart, k - 1)])


def add_up(numbers: Sequence[float]) -> float:
    total = 0.0
    for number in numbers:
        total += number
    return total


def least(values: Floats, count: int) -> Ints:
    """Places of the least values, of equal ones the first."""
    if count == 0:
        return np.zeros(0, np.int64)
    limit = values[np.argpartition(values, count - 1)[count - 1]]
    below, equal = np.flatnonzero(values < limit), np.flatnonzero(values == limit)
    return np.concatenate([below, equal[: count - len(below)]])


@dataclass(frozen=True)
class Releases:
    """Rows in the order they leave (group -1: suppressed), and the generalizations, one line a cluster."""

    row: Ints
    group: Ints
    delay: Ints
    reused: Bools
    own_loss: Floats
    all_loss: Floats
    lo: Floats
    hi: Floats
    shown: Bools
    carriers: Ints


class Stream:
    """The loop over expiring rows, the pool of clusters and what was released."""

    def __init__(self, table: Table, *, k: int, deadline: int, reuse: int, missing: str, min_carriers: int | None):
        self.table, self.k, self.deadline, self.reuse, self.missing = table, k, deadline, reuse, missing
        self.min_carriers = -(-k // 2) if min_carriers is None else min_carriers
        most, width = table.size // k + 1, len(table.columns)
        self.lo, self.hi, self.loss = np.zeros((most, width)), np.zeros((most, width)), np.ones((most, width))
        self.shown, self.carriers = np.zeros((most, width), np.bool_), np.zeros((most, width), np.int64)
        self.created = np.zeros(most, np.int64)
        self.clusters = self.oldest_usable = 0
        self.is_held = np.ones(table.size, np.bool_)
        self.left: list[tuple[Ints, Ints, Ints, Bools, Floats, Floats]] = []

    def run(self, candidates: Candidates) -> Releases:
        """At most one row is due when another arrives, so the rows still held expire in order of arrival."""
        last = self.table.size - 1
        for row in range(self.table.size):
            if self.is_held[row]:
                now = min(row + self.deadline, last)
                self.decide(row, now, candidates(row, row + np.flatnonzero(self.is_held[row : now + 1])))
        row, group, delay, reused, own, every = (np.concatenate(part) for part in zip(*self.left, strict=True))
        done = slice(self.clusters)
        return Releases(
            row, group, delay, reused, own, every, self.lo[done], self.hi[done], self.shown[done], self.carriers[done]
        )

    def decide(self, row: int, now: int, candidates: Ints | None) -> None:
        while self.oldest_usable < self.clusters and now - self.created[self.oldest_usable] > self.reuse:
            self.oldest_usable += 1
        old, old_loss = self.best_reusable(row)
        if candidates is None:
            self.release(np.array([row]), old, now, reused=old >= 0)
            return
        members = self.table.nearest(row, candidates, self.k)
        self.form(members)
        if old >= 0 and old_loss <= self.own_losses(members[:1], slice(self.clusters, self.clusters + 1))[0]:
            self.release(members[:1], old, now, reused=True)
            return
        self.created[self.clusters] = now
        self.clusters += 1
        self.release(np.sort(members), self.clusters - 1, now, reused=False)

    def form(self, members: Ints) -> None:
        """Write the hull of the members where the next cluster goes; it becomes one when it is counted."""
        table, at = self.table, self.clusters
        points, carried = table.points[:, members], table.carried[:, members]
        lo = np.where(carried, points, np.inf).min(axis=1)
        hi = np.where(carried, points, -np.inf).max(axis=1)
        carriers = carried.sum(axis=1)
        self.carriers[at] = carriers
        self.shown[at] = carriers >= {"paper": 1, "hidden": len(members)}.get(self.missing, self.min_carriers)
        for place in np.flatnonzero(self.shown[at]):
            column = table.columns[place]
            if isinstance(column, CategoricalColumn):
                pair = int(lo[place]), int(hi[place])
                lo[place], hi[place] = column.first[pair], column.last[pair]
                self.loss[at, place] = column.loss[pair]
            else:
                self.loss[at, place] = column.scaled(hi[place]) - column.scaled(lo[place])
        self.loss[at, ~self.shown[at]] = 1.0
        self.lo[at], self.hi[at] = lo, hi

    def best_reusable(self, row: int) -> tuple[int, float]:
        """The covering cluster of least loss, of equals the oldest, and the loss; -1 if there is none."""
        pool = slice(self.oldest_usable, self.clusters)
        if pool.start == pool.stop:
            return -1, 0.0
        point, carried = self.table.points[:, row], self.table.carried[:, row]
        covered = self.shown[pool] & (self.lo[pool] <= point) & (point <= self.hi[pool])
        fits = (covered | ~carried).all(axis=1)
        if self.missing == "hidden":
            fits &= (carried | ~self.shown[pool]).all(axis=1)
        if not fits.any():
            return -1, 0.0
        losses = np.where(fits, self.own_losses(np.array([row]), pool), np.inf)
        best = int(losses.argmin())
        return pool.start + best, losses[best]

    def own_losses(self, rows: Ints, clusters: slice) -> Floats:
        """Losses over the attributes carried, of many rows in one cluster or of one row in many clusters."""
        total, weights = 0.0, 0.0
        for at, weight in enumerate(self.table.weights):
            carried = self.table.carried[at, rows]
            total = total + weight * self.loss[clusters, at] * carried
            weights = weights + weight * carried
        return np.divide(total, weights, out=np.zeros(np.shape(total)), where=weights > 0)

    def all_losses(self, rows: Ints, cluster: int) -> Floats:
        total = np.zeros(len(rows))
        for at, weight in enumerate(self.table.weights):
            hidden = ~self.table.carried[at, rows] & (self.missing == "paper")
            total += weight * np.where(hidden, 1.0, self.loss[cluster, at])
        return total / add_up(self.table.weights)

    def release(self, rows: Ints, group: int, now: int, *, reused: bool) -> None:
        own = every = np.ones(len(rows))
        if group >= 0:
            own, every = self.own_losses(rows, slice(group, group + 1)), self.all_losses(rows, group)
        self.is_held[rows] = False
        self.left.append((rows, np.full(len(rows), group), now - rows, np.full(len(rows), reused), own, every))


def fads(
    table: Table, *, k: int, deadline: int, reuse: int, missing: str = "covered", min_carriers: int | None = None
) -> Releases:
    """Everything a stream releases, flushed at its end."""
    stream = Stream(table, k=k, deadline=deadline, reuse=reuse, missing=missing, min_carriers=min_carriers)
    return stream.run(lambda row, held: held if table.count_people(held) >= k else None)
