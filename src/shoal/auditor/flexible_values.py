"""The quasi-identifiers of a flexible release: labels, ranges that are cells of a fixed grid, and their true values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shoal.auditor.columns import Bools, Ints
from shoal.auditor.reading import Rows
from shoal.auditor.tuples_numbers import Floats
from shoal.auditor.tuples_promise import NumberRule, Rule
from shoal.auditor.tuples_values import Attribute, Labels, Spans, numbered, read_attribute

_MICROSECONDS = 1e6
_NEAR = 1e-6
"""How far, in steps of the grid, a point may be off and still be meant: fractions do not add up."""


def read_flexible_attribute(rule: Rule, release: Rows, truth: Rows) -> Attribute:
    """Read both sides of a quasi-identifier; what was missing and left as null has lost nothing."""
    attribute = read_attribute(rule, release, truth)
    if isinstance(rule, NumberRule) and isinstance(attribute, Spans):
        attribute = _on_cells(attribute, rule)
    return replace(attribute, loss=np.where(attribute.code < 0, 0.0, attribute.loss))


def _on_cells(spans: Spans, rule: NumberRule) -> Spans:
    """Hold ranges against the cells of widths grid times 1, 2, 4, … from ``low``, cut off at ``high`` or not."""
    unit = _MICROSECONDS if spans.are_moments else 1.0
    low, high = rule.low * unit, rule.high * unit
    there = spans.code >= 0
    whole = there & (spans.low <= low + spans.slack) & (spans.high >= high - spans.slack)
    faults = {code: rows for code, rows in spans.faults.items() if code not in {"out-of-domain", "off-grid"}}
    if rule.grid is None:
        inside = (spans.low >= low - spans.slack) & (spans.high <= high + spans.slack)
        return replace(spans, at_root=whole, faults={**faults, "out-of-domain": there & ~inside})
    step = rule.grid * unit
    readable = there & ~faults["bad-range"]
    cell = _are_cells(spans.low[readable], spans.high[readable], low, high, step)
    strange = np.zeros(len(there), np.bool_)
    strange[readable] = ~cell
    return replace(spans, at_root=whole & (high - low > step), faults={**faults, "not-a-cell": strange})


def _are_cells(begin: Floats, end: Floats, low: float, high: float, step: float) -> Bools:
    at = (begin - low) / step
    index = np.rint(at)
    width = (end - begin) / step
    starts = (np.abs(at - index) <= _NEAR) & (index >= 0) & (begin <= high)
    # The widest cell that starts at a point: the largest power of two that divides its index.
    number = index.astype(np.int64)
    widest = np.where(number == 0, np.inf, (number & -number).astype(np.float64))
    full = _is_power(width, widest)
    closed = _is_power(width + 1 / step, widest) if _are_whole(begin, end, step) else np.zeros_like(full)
    cut = (np.abs(end - high) <= _NEAR * step) & (widest * step >= (high - begin) - _NEAR * step)
    return starts & (full | closed | cut)


def _are_whole(begin: Floats, end: Floats, step: float) -> bool:
    return bool(step % 1 == 0 and (begin % 1 == 0).all() and (end % 1 == 0).all())


def _is_power(width: Floats, most: Floats) -> Bools:
    exponent = np.rint(np.log2(np.maximum(width, 2.0**-60)))
    near: Bools = np.abs(np.exp2(exponent) - width) <= _NEAR
    return near & (exponent >= 0) & (np.exp2(exponent) <= most)


def finest_codes(attribute: Attribute, rule: Rule) -> Ints:
    """Number the values of the truth as far as the finest labels tell them apart."""
    if isinstance(rule, NumberRule) and isinstance(attribute, Spans) and rule.grid is not None:
        unit = _MICROSECONDS if attribute.are_moments else 1.0
        value = np.minimum(attribute.true_value, np.nextafter(rule.high * unit, -np.inf))
        return numbered(np.floor((value - rule.low * unit) / (rule.grid * unit)))[1]
    return true_codes(attribute)


def true_codes(attribute: Attribute) -> Ints:
    """Number the values of the truth; a missing one is a value of its own."""
    if isinstance(attribute, Labels):
        return attribute.true_code + 1
    if isinstance(attribute, Spans):
        return numbered(attribute.true_value)[1]
    raise NotImplementedError
