"""The quasi-identifiers of a flexible release: labels, ranges that are cells of a fixed grid, and their true values."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from shoal.auditor.columns import Bools, Ints
from shoal.auditor.flexible_unknown import read_unknown
from shoal.auditor.reading import Rows
from shoal.auditor.tuples_numbers import Floats
from shoal.auditor.tuples_promise import LabelRule, NumberRule, Rule
from shoal.auditor.tuples_values import Attribute, Labels, Spans, numbered, read_attribute

_MICROSECONDS: Final = 1e6
_HOUR: Final = 3600.0
_CELLS: Final = 1024
_CLOCK: Final = (1, 5, 15, 60, 300, 900, 3600, 7200, 14400, 28800, 86400, 604800, 2419200)
_NEAR: Final = 1e-6
"""How far, in steps of the grid, a point may be off and still be meant: fractions do not add up."""


def read_flexible_attribute(rule: Rule, release: Rows, truth: Rows) -> Attribute:
    """Read both sides of a quasi-identifier; what was missing and left as null has lost nothing."""
    attribute = read_attribute(rule, release, truth)
    if isinstance(rule, NumberRule) and isinstance(attribute, Spans):
        attribute = _on_cells(attribute, rule)
    if isinstance(rule, LabelRule):
        attribute = read_unknown(attribute, rule.tree)
    return replace(attribute, loss=np.where(attribute.code < 0, 0.0, attribute.loss))


def _on_cells(spans: Spans, rule: NumberRule) -> Spans:
    """Hold ranges against the cells of the grid, cut off at ``high`` or not."""
    unit = _MICROSECONDS if spans.are_moments else 1.0
    grid = _Grid.of(rule, unit, are_moments=spans.are_moments)
    there = spans.code >= 0
    whole = there & (spans.low <= grid.low + spans.slack) & (spans.high >= grid.high - spans.slack)
    faults = {code: rows for code, rows in spans.faults.items() if code not in {"out-of-domain", "off-grid"}}
    readable = there & ~faults["bad-range"]
    strange = np.zeros(len(there), np.bool_)
    strange[readable] = ~grid.has(spans.low[readable], spans.high[readable])
    return replace(spans, at_root=whole & (grid.cells > 1), faults={**faults, "not-a-cell": strange})


@dataclass(frozen=True, slots=True)
class _Grid:
    """Cells that hold a fixed number of steps and start at multiples of it, counted from the low end of the domain."""

    low: float
    high: float
    step: float
    sizes: tuple[int, ...]
    """How many steps a cell may hold."""

    @classmethod
    def of(cls, rule: NumberRule, unit: float, *, are_moments: bool) -> _Grid:
        """Take the policy's grid; an hour for moments without one, a 1,024th of the domain for numbers."""
        span = rule.high - rule.low
        usual = min(_HOUR, span) if are_moments else span / _CELLS
        step = rule.grid or usual or 1.0
        doubled = _doubled(1, span / step)
        clock = _clock(step, span / step) if are_moments else ()
        return cls(rule.low * unit, rule.high * unit, step * unit, tuple(dict.fromkeys((*doubled, *clock))))

    @property
    def cells(self) -> int:
        """Into how many steps the domain is cut."""
        return max(1, math.ceil((self.high - self.low) / self.step - _NEAR))

    def has(self, begin: Floats, end: Floats) -> Bools:
        """Tell which ranges are cells, or the whole domain."""
        is_whole = bool((begin == np.rint(begin)).all() and (end == np.rint(end)).all())
        # Ends that are no whole numbers are rounded inward where the column has whole numbers only.
        fine = max(_NEAR * self.step, 4 * float(np.spacing(max(abs(self.low), abs(self.high)))))
        off = 1.0 if is_whole and (self.low % 1 or self.step % 1 or self.high % 1) else fine
        found = (np.abs(begin - self.low) <= off) & (np.abs(end - self.high) <= off)
        for size in self.sizes:
            width = size * self.step
            index = np.rint((begin - self.low) / width) if off < width / 2 else np.floor((begin - self.low) / width)
            first = self.low + index * width
            last = first + width
            ends = np.abs(end - last) <= off
            if is_whole:
                ends |= np.abs(end - (np.ceil(last) - 1)) <= off  # the last number belongs to the next cell
            ends |= (last >= self.high - off) & (np.abs(end - self.high) <= off)
            found |= (np.abs(begin - first) <= off) & (index >= 0) & (begin <= self.high + off) & ends
        return found


def _doubled(start: int, cells: float) -> list[int]:
    """Return a number and its doubles as long as they are needed to hold all cells."""
    found = [start]
    while found[-1] < cells:
        found.append(found[-1] * 2)
    return found


def _clock(step: float, cells: float) -> list[int]:
    """Return the widths that people know of time, in steps, each of whole ones of the one before; then doubles."""
    found = [1]
    for seconds in _CLOCK:
        size = round(seconds / step)
        if found[-1] < size < cells and size % found[-1] == 0 and math.isclose(size * step, seconds):
            found.append(size)
    return [*found, *_doubled(found[-1], cells)]


def finest_codes(attribute: Attribute, rule: Rule) -> Ints:
    """Number the values of the truth as far as the finest labels tell them apart."""
    if isinstance(rule, NumberRule) and isinstance(attribute, Spans):
        unit = _MICROSECONDS if attribute.are_moments else 1.0
        grid = _Grid.of(rule, unit, are_moments=attribute.are_moments)
        return numbered(np.minimum(np.floor((attribute.true_value - grid.low) / grid.step), grid.cells - 1))[1]
    return true_codes(attribute)


def true_codes(attribute: Attribute) -> Ints:
    """Number the values of the truth; a missing one is a value of its own."""
    if isinstance(attribute, Labels):
        return attribute.true_code + 1
    if isinstance(attribute, Spans):
        return numbered(attribute.true_value)[1]
    raise NotImplementedError
