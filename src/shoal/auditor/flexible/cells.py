"""The cells of a fixed grid: the only ranges that a flexible release may show."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.numbers import Floats
from shoal.auditor.rows.grid import Points, cells_of, written
from shoal.auditor.rows.rules import NumberRule

_MICROSECONDS: Final = 10**6
_HOUR: Final = 3600
_CELLS: Final = 1024
_CLOCK: Final = (1, 5, 15, 60, 300, 900, 3600, 7200, 14400, 28800, 86400, 604800, 2419200)
_NEAR: Final = 1e-9
"""A remainder at the end of the domain below this share of a step is not a cell."""
_NO_CELL: Final = -(2**62)


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells of a fixed number of steps that start at multiples of it, counted from the low end of the domain."""

    low: float
    high: float
    points: Points
    cells: int
    """Into how many steps the domain is cut."""
    sizes: tuple[int, ...]
    """How many steps a cell may have."""

    @classmethod
    def of(cls, rule: NumberRule, *, are_moments: bool) -> Grid:
        """Take the policy's grid; an hour for moments without one, a 1,024th of the domain for numbers."""
        scale = _MICROSECONDS if are_moments else 1
        low, high = written(rule.low), written(rule.high)
        usual = min(Fraction(_HOUR), high - low) if are_moments else (high - low) / _CELLS
        step = usual if rule.grid is None else written(rule.grid)
        if rule.grid is None:
            points = Points.between(low * scale, step * scale)
        else:
            points = Points.of(rule.low, rule.high, rule.grid, scale)
        clock = _clock(step, float((high - low) / step)) if are_moments else ()
        sizes = tuple(dict.fromkeys((*_doubled(1, float((high - low) / step)), *clock)))
        return cls(float(low * scale), float(high * scale), points, _steps(high - low, step, rule), sizes)

    def has(self, begin: Floats, end: Floats, *, is_whole: bool) -> Bools:
        """Return which ranges are cells, or the whole domain; in a column of whole numbers, other ends are rounded."""
        pairs, turn = np.unique(pairs_of(begin, end), return_inverse=True)
        found = [self._has(pair.real, pair.imag, is_whole=is_whole) for pair in pairs.tolist()]
        return np.array(found, np.bool_)[turn]

    def _has(self, begin: float, end: float, *, is_whole: bool) -> bool:
        point = self.points.point
        if begin == self.low and end == self.high:
            return True
        for size in self.sizes:
            first = self.points.below(begin) // size * size
            after = first + size
            if not 0 <= first < self.cells:
                continue
            last = self.high if after >= self.cells else point(after)
            if (point(first), last) == (begin, end):
                return True
            # The number at the end of a cell belongs to the next one, except at the end of the domain.
            whole_last = math.floor(last) if after >= self.cells else math.ceil(last) - 1
            if is_whole and math.ceil(point(first)) == begin and whole_last == end:
                return True
        return is_whole and (math.ceil(self.low), math.floor(self.high)) == (begin, end)

    def finest(self, values: Floats) -> Ints:
        """Return the smallest cell that every value is in; no cell for no value."""
        return np.where(np.isnan(values), _NO_CELL, np.minimum(cells_of(values, self.points), self.cells - 1))


def pairs_of(begin: Floats, end: Floats) -> Any:
    """Return pairs of numbers as one column."""
    return np.column_stack([begin, end]).view(np.complex128).ravel()


def _steps(span: Fraction, step: Fraction, rule: NumberRule) -> int:
    """Count the steps of the domain; a remainder counts unless it is a rounding error."""
    steps = float(span / step)
    error = _NEAR * max(1.0, steps) + 4 * math.ulp(max(abs(rule.low), abs(rule.high))) / float(step)
    return max(1, round(steps) if abs(steps - round(steps)) <= error else math.ceil(steps))


def _doubled(start: int, cells: float) -> list[int]:
    """Return a number and its doubles until one covers all cells."""
    found = [start]
    while found[-1] < cells:
        found.append(found[-1] * 2)
    return found


def _clock(step: Fraction, cells: float) -> list[int]:
    """Return the usual widths of time in steps, each a multiple of the one before; then doubles."""
    found = [1]
    for seconds in _CLOCK:
        size = seconds / step
        if found[-1] < size < cells and size % found[-1] == 0:
            found.append(int(size))
    return [*found, *_doubled(found[-1], cells)]
