"""A sensitive column of a plain table: how diverse its values are in each class, and how far from the whole table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.tables.classes import Counted, count_values, entropy_l, recursive_c
from shoal.auditor.tables.coded_rows import Matrix
from shoal.auditor.tables.coding import Codes
from shoal.auditor.tables.distances import equal_distance, largest_gain, largest_share, ordered_distance
from shoal.auditor.tables.promise import TablePromise
from shoal.errors import PolicyError

_ROUNDING: Final = 1e-9
"""Measures are sums of fractions; a bound is broken only beyond their rounding."""


_BROKEN: Final = {
    "l": ("below-l", "with fewer than {bound} different values"),
    "entropy_l": ("below-entropy-l", "whose values are less even than entropy_l = {bound}"),
    "recursive_c": (
        "below-recursive-l",
        "whose most frequent value is not rarer than {c} times all values from number {least} on, by frequency",
    ),
    "t": ("above-t", "whose values are further from those of the table than t = {bound}"),
    "alpha": ("above-alpha", "in which one value has a larger share than alpha = {bound}"),
    "beta": ("above-beta", "in which a value is more likely than beta = {bound} allows"),
}
_LEAST: Final = ("l", "entropy_l")
"""Measures whose worst class has the smallest figure; of the others it has the largest."""
CODES: Final = frozenset(code for code, _ in _BROKEN.values())


class SensitiveColumn:
    """Counts a column over all parts of a table, and remembers the worst class."""

    def __init__(self, codes: Codes, place: int, promise: TablePromise) -> None:
        self._codes, self._place, self._promise = codes, place, promise
        self._overall = np.zeros(0, np.int64)
        self._rank: Ints | None = None
        self._distance_used: str | None = None
        self._same: npt.NDArray[np.int32] | None = None
        """For every value the number of the first one that means the same; None if all differ."""
        self._is_missing: Bools = np.zeros(0, np.bool_)
        """Which values are none: they protect nobody, so only the others count as different or even."""
        self._worst: dict[str, float] = {}
        self._broken: dict[str, int] = {}

    def see(self, rows: Matrix) -> None:
        """Count the values of a batch."""
        count = np.bincount(rows[:, self._place], minlength=len(self._codes))
        self._overall = np.append(self._overall, np.zeros(len(count) - len(self._overall), np.int64)) + count

    def expect(self, overall: Ints) -> None:
        """Set how often each value is in the whole table; parts of it are measured."""
        self._overall = overall

    @property
    def found(self) -> tuple[dict[str, float], dict[str, int], str | None]:
        """The worst figures, the rows that break a bound, and the distance that t is measured in."""
        return self._worst, self._broken, self._distance_used

    def merge(self, worst: Mapping[str, float], broken: Mapping[str, int], distance: str | None) -> None:
        """Add what was found in another part of the table."""
        for measure, figure in worst.items():
            best = min if measure in _LEAST else max
            self._worst[measure] = best(self._worst.get(measure, figure), figure)
        for measure, rows in broken.items():
            self._broken[measure] = self._broken.get(measure, 0) + rows
        self._distance_used = distance or self._distance_used

    def measure(self, key: Ints, size: int, rows: Matrix) -> None:
        """Measure the classes of a part, which are given by the key of every row."""
        if not len(rows):
            return
        if self._distance_used is None:
            self._order_values()
        value, width = rows[:, self._place], len(self._overall)
        is_known = ~self._is_missing[value]
        self._measure_shares(count_values(key, size, value, width), self._overall)
        if not is_known.all():
            overall = np.where(self._is_missing[:width], 0, self._overall)
            key, value, of_class = key[is_known], value[is_known], key
            if not len(key):
                return
            self._measure_shares(count_values(key, size, value, width), overall, _rows_of(of_class, key))
            self._measure_diversity(key, size, value, _rows_of(of_class, key))
        else:
            self._measure_diversity(key, size, value, None)

    def _measure_shares(self, counted: Counted, overall: Ints, sizes: Ints | None = None) -> None:
        """How far shares are from those of the table, and how large; `sizes`: all rows of each class.

        Values that count as different are further from the table.
        """
        promise, sizes = self._promise, counted.rows if sizes is None else sizes
        away = self._distance(counted, overall)
        self._most("t", away, _above(away, promise.t), sizes)
        gain = largest_gain(counted, overall)
        self._most("beta", gain, _above(gain, promise.beta), sizes)

    def _measure_diversity(self, key: Ints, size: int, value: npt.NDArray[np.int32], sizes: Ints | None) -> None:
        """How many known values there are, and how even; values that mean the same are less diverse."""
        promise, width = self._promise, len(self._overall)
        counted = count_values(key, size, value if self._same is None else self._same[value], width)
        sizes = counted.rows if sizes is None else sizes
        values = np.diff(np.append(counted.starts, len(counted.count)))
        self._least("l", values, None if promise.l is None else values < promise.l, sizes)
        even = entropy_l(counted)
        self._least("entropy_l", even, _below(even, promise.entropy_l), sizes)
        if promise.recursive_l is not None:
            c, least = promise.recursive_l
            ratio = recursive_c(counted, least)
            self._most("recursive_c", ratio, ratio > c * (1 - _ROUNDING), sizes)  # it must be smaller than c
        share = largest_share(counted)
        self._most("alpha", share, _above(share, promise.alpha), sizes)

    def report(self, notes: Notes) -> None:
        """Add the worst class's figures and what is broken."""
        name, promise = self._codes.name, self._promise
        for measure in _BROKEN:
            if measure in self._worst:
                worst = self._worst[measure]
                shown: Any = int(worst) if measure == "l" else worst if math.isfinite(worst) else None
                notes.metrics.setdefault(measure, {})[name] = shown
        notes.metrics.setdefault("t_distance", {})[name] = self._distance_used
        c, least = promise.recursive_l or (None, None)
        for measure, (code, words) in _BROKEN.items():
            sentence = words.format(bound=getattr(promise, measure, None), c=c, least=least)
            notes.violation(code, f"Column {name}: rows are in classes {sentence}.", count=self._broken.get(measure, 0))

    def _distance(self, counted: Counted, overall: Ints) -> Any:
        if self._rank is not None:
            return ordered_distance(counted, overall, self._rank)
        return equal_distance(counted, overall)

    def _order_values(self) -> None:
        """Rank the values if all of them are numbers, others have no order; and find those that mean the same."""
        same = self._codes.meanings()
        self._is_missing = self._codes.missing()
        self._same = same if (same != np.arange(len(same))).any() else None
        wanted = self._promise.t_distance
        texts = [text if seen else "0" for text, seen in zip(self._codes.texts, self._overall, strict=True)]
        numbers = _numbers(texts)
        if wanted == "ordered" and numbers is None:
            raise PolicyError(
                f'[table] t_distance: column {self._codes.name} has values that are not numbers; use "equal"'
            )
        self._distance_used = "equal" if wanted == "equal" or numbers is None else "ordered"
        if self._distance_used == "ordered":
            different = np.unique(numbers[self._overall > 0])
            self._rank = np.minimum(np.searchsorted(different, numbers), len(different) - 1)

    def _least(self, measure: str, found: Any, broken: Bools | None, sizes: Ints) -> None:
        self._worst[measure] = min(self._worst.get(measure, math.inf), float(found.min()))
        self._add(measure, broken, sizes)

    def _most(self, measure: str, found: Any, broken: Bools | None, sizes: Ints) -> None:
        self._worst[measure] = max(self._worst.get(measure, 0.0), float(found.max()))
        self._add(measure, broken, sizes)

    def _add(self, measure: str, broken: Bools | None, sizes: Ints) -> None:
        if broken is not None:
            self._broken[measure] = self._broken.get(measure, 0) + int(sizes[broken].sum())


def _rows_of(every: Ints, key: Ints) -> Ints:
    """Return how many rows each class has, of the classes that occur in `key`."""
    classes, rows = np.unique(every, return_counts=True)
    return np.asarray(rows[np.searchsorted(classes, np.unique(key))], np.int64)


def _numbers(texts: list[str | None]) -> Any:
    """Return finite numbers, or None if a text is not one."""
    try:
        found = np.array([float(text) if text is not None else np.nan for text in texts])
    except ValueError:
        return None
    return found if np.isfinite(found).all() else None


def _below(found: Any, bound: float | None) -> Bools | None:
    return None if bound is None else np.asarray(found < bound * (1 - _ROUNDING))


def _above(found: Any, bound: float | None) -> Bools | None:
    return None if bound is None else np.asarray(found > bound * (1 + _ROUNDING) + _ROUNDING)
