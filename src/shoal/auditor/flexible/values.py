"""The quasi-identifiers of a flexible release: labels, ranges that are cells of a fixed grid, and their true values."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from shoal.auditor.counting import numbered
from shoal.auditor.flexible.promise import WithUnknown
from shoal.auditor.hierarchies.hierarchy import Taxonomy
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.numbers import Floats
from shoal.auditor.reading.rows import Rows
from shoal.auditor.rows.attributes import Attribute, Labels, Spans, read_attribute
from shoal.auditor.rows.grid import Points, cells_of, written
from shoal.auditor.rows.quasi import RangeFacts
from shoal.auditor.rows.rules import LabelRule, NumberRule, Rule

_MICROSECONDS: Final = 10**6
_HOUR: Final = 3600
_CELLS: Final = 1024
_CLOCK: Final = (1, 5, 15, 60, 300, 900, 3600, 7200, 14400, 28800, 86400, 604800, 2419200)
_NEAR: Final = 1e-9
"""A remainder at the end of the domain below this share of a step is not a cell."""


def read_flexible_attribute(
    rule: Rule, release: Rows, truth: Rows, facts: RangeFacts | None = None, *, is_whole: bool | None = None
) -> Attribute:
    """Read both sides of a quasi-identifier; a missing value published as null counts as no loss.

    Of a part of the rows, with the facts of all of them; ``is_whole`` is that of has_whole_cells for all of them.
    """
    attribute = read_attribute(rule, release, truth, facts)
    if isinstance(rule, NumberRule) and isinstance(attribute, Spans):
        attribute = _on_cells(attribute, rule, has_whole_cells(attribute) if is_whole is None else is_whole)
    if isinstance(rule, LabelRule):
        attribute = read_unknown(attribute, rule.tree)
    return replace(attribute, loss=np.where(attribute.code < 0, 0.0, attribute.loss))


def has_whole_cells(spans: Spans) -> bool:
    """Return whether all ends of readable ranges are whole numbers: other ends of cells were then rounded inward."""
    readable = _readable(spans)
    low, high = spans.low[readable], spans.high[readable]
    return bool((low == np.rint(low)).all() and (high == np.rint(high)).all())


def _readable(spans: Spans) -> Bools:
    there = (spans.code >= 0) & ~spans.faults["bad-range"]
    return there & np.isfinite(spans.low) & np.isfinite(spans.high)


def _on_cells(spans: Spans, rule: NumberRule, is_whole: bool) -> Spans:  # noqa: FBT001 - private
    """Check ranges against the cells of the grid, cut off at ``high`` or not."""
    grid = _Grid.of(rule, are_moments=spans.are_moments)
    there = spans.code >= 0
    whole = there & (spans.low <= grid.low) & (spans.high >= grid.high)
    faults = {code: rows for code, rows in spans.faults.items() if code not in {"out-of-domain", "off-grid"}}
    readable = _readable(spans)
    strange = there & ~faults["bad-range"] & ~readable
    is_whole = is_whole and not spans.are_moments
    strange[readable] = ~grid.has(spans.low[readable], spans.high[readable], is_whole=is_whole)
    return replace(spans, at_root=whole & (grid.cells > 1), faults={**faults, "not-a-cell": strange})


@dataclass(frozen=True, slots=True)
class _Grid:
    """Cells of a fixed number of steps that start at multiples of it, counted from the low end of the domain."""

    low: float
    high: float
    points: Points
    cells: int
    """Into how many steps the domain is cut."""
    sizes: tuple[int, ...]
    """How many steps a cell may have."""

    @classmethod
    def of(cls, rule: NumberRule, *, are_moments: bool) -> _Grid:
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
        return cls(float(low * scale), float(high * scale), points, _cells(high - low, step, rule), sizes)

    def has(self, begin: Floats, end: Floats, *, is_whole: bool) -> Bools:
        """Return which ranges are cells, or the whole domain; in a column of whole numbers, other ends are rounded."""
        pairs, turn = np.unique(np.stack([begin, end]), axis=1, return_inverse=True)
        found = [self._has(*pair, is_whole=is_whole) for pair in pairs.T.tolist()]
        return np.array(found, np.bool_)[turn.ravel()]

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


def _cells(span: Fraction, step: Fraction, rule: NumberRule) -> int:
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


def finest_codes(attribute: Attribute, rule: Rule) -> Ints:
    """Number the values of the truth, as far as the finest labels distinguish them."""
    if isinstance(rule, NumberRule) and isinstance(attribute, Spans):
        return numbered(finest_cells(attribute, rule))[1]
    return true_codes(attribute)


def finest_cells(attribute: Spans, rule: NumberRule) -> Floats:
    """Return the smallest cell of the grid that every value of the truth is in."""
    grid = _Grid.of(rule, are_moments=attribute.are_moments)
    cells = np.minimum(cells_of(attribute.true_value, grid.points), grid.cells - 1)
    return np.where(np.isnan(attribute.true_value), np.nan, cells)


def true_codes(attribute: Attribute) -> Ints:
    """Number the values of the truth; null gets its own number."""
    if isinstance(attribute, Labels):
        return attribute.true_code + 1
    if isinstance(attribute, Spans):
        return numbered(attribute.true_value)[1]
    raise NotImplementedError


def read_unknown(attribute: Attribute, tree: Taxonomy) -> Attribute:
    """Accept every value, and count the label of unlisted values as a full loss."""
    if not isinstance(tree, WithUnknown) or not isinstance(attribute, Labels):
        return attribute
    is_unknown = np.array([*(text == tree.label for text in attribute.texts), False])[attribute.code]
    return replace(attribute, usable=np.ones_like(attribute.usable), loss=np.where(is_unknown, 1.0, attribute.loss))
