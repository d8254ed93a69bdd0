"""The quasi-identifiers of a flexible release: labels, of which one may be for unlisted values, and cells of a grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from shoal.auditor.engine import Here, Place
from shoal.auditor.flexible.cells import Grid
from shoal.auditor.flexible.promise import WithUnknown
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.numbers import Floats, Ranges, read_numbers, read_ranges
from shoal.auditor.reading.rows import Rows
from shoal.auditor.relation import Relation, Texts
from shoal.auditor.rows.attributes import Attribute, attribute_of
from shoal.auditor.rows.quasi import Columns, Faults, LabelColumn, RangeColumn, RangeFacts
from shoal.auditor.rows.rules import LabelRule, NumberRule, Rule


class FlexibleLabels(LabelColumn):
    """A column of labels. A missing value published as null is no loss, the label of unlisted values a full one."""

    def read_true(self, truth: Rows) -> tuple[Columns, Bools]:
        """Read values; if unlisted ones have a label, all can be published."""
        found, usable = super().read_true(truth)
        return found, np.ones_like(usable) if isinstance(self.rule.tree, WithUnknown) else usable

    def loss(self, rows: Relation) -> Floats:
        """The share of the other values that a label covers."""
        unknown = rows[self.label].of(self.rule.tree.label) if isinstance(self.rule.tree, WithUnknown) else -2
        loss = np.where(self.is_shown(rows), super().loss(rows), 0.0)
        return np.where(self.codes(rows) == unknown, 1.0, loss)

    def finest(self, rows: Relation) -> Texts:
        """The values of records as far as published ones can distinguish them."""
        found: Texts = rows[self.value]
        return found


class FlexibleRanges(RangeColumn):
    """A column of ranges, each a cell of a fixed grid, cut off at the high end of the domain or not."""

    def __init__(self, rule: NumberRule, facts: RangeFacts) -> None:
        super().__init__(rule, facts)
        self.grid = Grid.of(rule, are_moments=self.are_moments)

    def read_shown(self, release: Rows) -> tuple[Columns, Faults]:
        """Read ranges."""
        found, faults = super().read_shown(release)
        low, high, bad = found[self.low], found[self.high], faults["bad-range"]
        readable = _are_readable(low, high)
        strange = ~np.isnan(low) & ~bad & ~readable
        is_whole = self.facts.is_whole and not self.are_moments
        strange[readable] = ~self.grid.has(low[readable], high[readable], is_whole=is_whole)
        kept = {code: rows for code, rows in faults.items() if code not in ("out-of-domain", "off-grid")}
        return found, {**kept, "not-a-cell": strange}

    def at_root(self, rows: Relation) -> Bools:
        """Which ranges are the whole domain, if that is more than a cell."""
        whole: Bools = (rows[self.low] <= self.grid.low) & (rows[self.high] >= self.grid.high)
        return whole & (self.grid.cells > 1)

    def loss(self, rows: Relation) -> Floats:
        """The width of a range, as a share of the domain; a missing value published as null is no loss."""
        return np.where(self.is_shown(rows), super().loss(rows), 0.0)

    def finest(self, rows: Relation) -> Ints:
        """The values of records as far as published ones can distinguish them: the smallest cell of each."""
        return self.grid.finest(rows[self.value])


def _are_readable(low: Floats, high: Floats) -> Bools:
    return np.isfinite(low) & np.isfinite(high) & (low <= high)


FlexibleQuasi = FlexibleLabels | FlexibleRanges


def flexible_quasi(rule: Rule, facts: RangeFacts) -> FlexibleQuasi:
    """The quasi-identifier of a rule."""
    return FlexibleLabels(rule) if isinstance(rule, LabelRule) else FlexibleRanges(rule, facts)


def quasi_identifiers(place: Place, rules: Sequence[Rule]) -> tuple[FlexibleQuasi, ...]:
    """The quasi-identifiers of a policy, after a look at how all files write their numbers."""
    found = {rule.name: RangeFacts() for rule in rules}
    for role in ("release", "truth"):
        for facts in place.facts(role, partial(_facts, rules, is_release=role == "release")):
            found |= {name: found[name] | own for name, own in facts.items()}
    return tuple(flexible_quasi(rule, found[rule.name]) for rule in rules)


def _facts(rules: Sequence[Rule], rows: Rows, *, is_release: bool) -> dict[str, RangeFacts]:
    names = [rule.name for rule in rules if isinstance(rule, NumberRule)]
    if not is_release:
        return {name: RangeFacts.of_numbers(read_numbers(rows.pieces(name))) for name in names}
    return {name: _of_cells(read_ranges(rows.pieces(name))) for name in names}


def _of_cells(ranges: Ranges) -> RangeFacts:
    """If all ends of readable ranges are whole numbers, other ends of cells were rounded inward."""
    low, high = ranges.low.value, ranges.high.value
    ends = np.concatenate([low[readable := _are_readable(low, high)], high[readable]])
    return replace(RangeFacts.of_ranges(ranges), is_whole=bool((ends == np.rint(ends)).all()))


def read_flexible_attribute(rule: Rule, release: Rows, truth: Rows) -> Attribute:
    """Read both sides of a quasi-identifier, as attacks look at it."""
    (found,) = quasi_identifiers(Here({"release": release, "truth": truth}), [rule])
    return attribute_of(found, release, truth)
