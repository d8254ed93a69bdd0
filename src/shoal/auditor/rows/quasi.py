"""Quasi-identifiers as columns of relations: what a row shows, next to what its record has."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from shoal.auditor.counting import numbered
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.numbers import Floats, Numbers, Ranges, read_numbers, read_ranges
from shoal.auditor.reading.rows import Rows
from shoal.auditor.relation import Relation, Shape
from shoal.auditor.rows.grid import Points, each, on_points, written
from shoal.auditor.rows.rules import LabelRule, NumberRule, Rule
from shoal.auditor.rows.texts import texts_of

MICROSECONDS: Final = 10**6
FAULTS: Final = (
    "unreadable-value", "unknown-label", "too-fine", "bad-range", "out-of-domain", "off-grid", "not-a-cell"
)  # fmt: skip
"""What can be wrong with a published value, whatever the truth is: codes of checks."""
Columns = dict[str, Any]
Faults = Mapping[str, Bools]
"""By fault: in which released rows it is."""


class Quasi(ABC):
    """One quasi-identifier. All functions but those that read get rows with the columns `shown`, `true`, or both."""

    name: str
    weight: float
    shown: Shape
    """The columns of a released row; rows with equal ones show the same value."""
    true: Shape
    """The columns of a record."""

    @abstractmethod
    def read_shown(self, release: Rows) -> tuple[Columns, Faults]:
        """Read released rows."""

    @abstractmethod
    def read_true(self, truth: Rows) -> tuple[Columns, Bools]:
        """Read records, and which of them have no value or one that may be published."""

    @abstractmethod
    def codes(self, rows: Relation) -> Ints:
        """Number the published values; -1 for null."""

    @abstractmethod
    def is_shown(self, rows: Relation) -> Bools:
        """Which rows show a value."""

    @abstractmethod
    def is_recorded(self, rows: Relation) -> Bools:
        """Which records have a value."""

    @abstractmethod
    def at_root(self, rows: Relation) -> Bools:
        """Which rows show the whole domain."""

    @abstractmethod
    def loss(self, rows: Relation) -> Floats:
        """What is lost in each row, from 0 to 1; 1 for null."""

    @abstractmethod
    def covers(self, rows: Relation) -> Bools:
        """Which rows cover the values of their records, if both have one."""


def quasi_of(rule: Rule, facts: RangeFacts) -> Quasi:
    """The quasi-identifier of a rule; of numbers, with the facts of all rows."""
    return LabelColumn(rule) if isinstance(rule, LabelRule) else RangeColumn(rule, facts)


# ---- labels


class LabelColumn(Quasi):
    """A quasi-identifier published as a label of a hierarchy."""

    def __init__(self, rule: LabelRule) -> None:
        self.rule, self.name, self.weight = rule, rule.name, rule.weight
        self.label, self.value = f"{rule.name}: label", f"{rule.name}: value"
        self.shown, self.true = {self.label: str}, {self.value: str}
        self._below, self._is_leaf = rule.tree.leaf_counts(), rule.tree.is_leaf()

    def read_shown(self, release: Rows) -> tuple[Columns, Faults]:
        """Read labels."""
        found = texts_of(release, self.name)
        known = np.array([*(text in self._below and self._below[text] > 0 for text in found.texts), True], np.bool_)
        return {self.label: found}, {"unknown-label": ~known[found.codes]}

    def read_true(self, truth: Rows) -> tuple[Columns, Bools]:
        """Read values."""
        found = texts_of(truth, self.name)
        usable = np.array([*(self._is_leaf.get(text, False) for text in found.texts), True], np.bool_)
        return {self.value: found}, usable[found.codes]

    def codes(self, rows: Relation) -> Ints:
        """The numbers of the labels."""
        return rows.codes(self.label)

    def is_shown(self, rows: Relation) -> Bools:
        """Which rows have a label."""
        return rows.codes(self.label) >= 0

    def is_recorded(self, rows: Relation) -> Bools:
        """Which records have a value."""
        return rows.codes(self.value) >= 0

    def at_root(self, rows: Relation) -> Bools:
        """Which labels are the root."""
        root = np.array([*(text == self.rule.tree.root for text in rows[self.label].texts), False], np.bool_)
        return root[rows.codes(self.label)]

    def loss(self, rows: Relation) -> Floats:
        """The share of the other values that a label covers."""
        other = max(self._below[self.rule.tree.root] - 1, 1)
        losses = [max(self._below.get(text, 0) - 1, 0) / other for text in rows[self.label].texts]
        return np.array([*losses, 1.0])[rows.codes(self.label)]

    def covers(self, rows: Relation) -> Bools:
        """Whether the label is on the path from the value to the root."""
        label, value = rows[self.label], rows[self.value]
        width = len(label.texts) + 1
        pairs, turn = numbered((value.codes + 1) * width + label.codes + 1)
        values, labels = [None, *value.texts], [None, *label.texts]
        path_of: dict[int, tuple[str, ...]] = {}
        found = []
        for pair in pairs.tolist():
            own, shown = values[pair // width], labels[pair % width]
            if own is not None and pair // width not in path_of:
                path_of[pair // width] = self.rule.tree.path(own)
            found.append(shown in path_of.get(pair // width, ()))
        return np.array(found, np.bool_)[turn]


# ---- ranges


@dataclass(frozen=True, slots=True)
class RangeFacts:
    """What all values of a numeric column together say about how to read each."""

    shows_moments: bool = False
    """Whether a released range has moments as ends."""
    has_moments: bool = False
    """Whether the truth has moments."""
    has_truth: bool = False
    is_whole: bool = True
    """Whether all released ends are whole numbers, in the unit of the column."""
    is_finer: bool = False
    """Whether a released moment is finer than a microsecond."""

    def __or__(self, other: RangeFacts) -> RangeFacts:
        """The facts of both parts of a column."""
        return RangeFacts(
            self.shows_moments or other.shows_moments,
            self.has_moments or other.has_moments,
            self.has_truth or other.has_truth,
            self.is_whole and other.is_whole,
            self.is_finer or other.is_finer,
        )

    @staticmethod
    def of_ranges(ranges: Ranges) -> RangeFacts:
        """The facts of released rows. Moments are whole in microseconds; a column of moments does not ask."""
        ends = ranges.low, ranges.high
        is_whole = all(_are_whole(end.value) for end in ends)
        return RangeFacts(ranges.are_moments, is_whole=is_whole, is_finer=any(bool(end.rest.any()) for end in ends))

    @staticmethod
    def of_numbers(numbers: Numbers) -> RangeFacts:
        """The facts of records."""
        return RangeFacts(has_moments=numbers.are_moments, has_truth=len(numbers.value) > 0)


def _are_whole(values: Floats) -> bool:
    shown = values[~np.isnan(values)]
    return bool((shown == np.rint(shown)).all())


class RangeColumn(Quasi):
    """A quasi-identifier published as a range of a domain. Ends and values of moments count microseconds."""

    def __init__(self, rule: NumberRule, facts: RangeFacts) -> None:
        self.rule, self.name, self.weight, self.facts = rule, rule.name, rule.weight, facts
        self.low, self.high, self.rest = f"{rule.name}: low", f"{rule.name}: high", f"{rule.name}: rest"
        self.value, self.has = f"{rule.name}: value", f"{rule.name}: has value"
        self.shown: Shape = {self.low: float, self.high: float, **({self.rest: int} if facts.is_finer else {})}
        self.true: Shape = {self.value: float, self.has: bool}
        self.are_moments = rule.is_moment or facts.shows_moments or facts.has_moments
        # Seconds as fractions are not exact to the microsecond.
        self.slack = 1.0 if self.are_moments and facts.has_truth and not facts.has_moments else 0.0
        self.domain = Domain.of(rule, are_moments=self.are_moments, is_whole=facts.is_whole)

    def read_shown(self, release: Rows) -> tuple[Columns, Faults]:
        """Read ranges; a null has NaN at both ends."""
        ranges = read_ranges(release.pieces(self.name))
        if self.are_moments:
            ranges = Ranges(ranges.low.in_microseconds(), ranges.high.in_microseconds())
        there = ~np.isnan(ranges.low.value) & ~np.isnan(ranges.high.value)
        found: Columns = {
            name: np.where(there, end.value, np.nan) + 0.0  # -0 and 0 are one number
            for name, end in ((self.low, ranges.low), (self.high, ranges.high))
        }
        if self.facts.is_finer:
            found[self.rest] = ranges.low.rest * 1000 + ranges.high.rest
        return found, self._faults(ranges, there)

    def _faults(self, ranges: Ranges, there: Bools) -> Faults:
        low, high = ranges.low.value, ranges.high.value
        inside = self.domain.holds(low, high)
        return {
            "unreadable-value": ranges.unreadable,
            "too-fine": there & ((ranges.low.rest > 0) | (ranges.high.rest > 0)),
            "bad-range": there & (low > high),
            "out-of-domain": there & ~inside,
            "off-grid": there & inside & ~self.domain.on_grid(low, high),
        }

    def read_true(self, truth: Rows) -> tuple[Columns, Bools]:
        """Read numbers; a value outside the domain is the nearest end, if the policy says so."""
        numbers = read_numbers(truth.pieces(self.name))
        if self.are_moments:
            numbers = numbers.in_microseconds()
        value, domain = numbers.value, self.domain
        inside = (value >= domain.low - self.slack) & (value <= domain.high + self.slack)
        usable = ~numbers.unreadable & (self.rule.clamps | np.isnan(value) | inside)
        shown = np.clip(value, domain.low, domain.high) if self.rule.clamps else value
        return {self.value: shown, self.has: ~np.isnan(value) | numbers.unreadable}, usable

    def codes(self, rows: Relation) -> Ints:
        """Number the different ranges."""
        there = self.is_shown(rows)
        code = np.zeros(len(there), np.int64)
        for name in self.shown:
            own = numbered(np.where(there, rows[name], 0))[1]
            code = numbered(code * (int(own.max(initial=0)) + 1) + own)[1] if code.any() else own
        return np.where(there, code, -1)

    def is_shown(self, rows: Relation) -> Bools:
        """Which rows show a range."""
        shown: Bools = ~np.isnan(rows[self.low])
        return shown

    def is_recorded(self, rows: Relation) -> Bools:
        """Which records have a number."""
        found: Bools = rows[self.has]
        return found

    def at_root(self, rows: Relation) -> Bools:
        """Which ranges are the whole domain."""
        return self.domain.is_whole_domain(rows[self.low], rows[self.high])

    def loss(self, rows: Relation) -> Floats:
        """The width of a range, as a share of the domain."""
        width = self.domain.high - self.domain.low
        share = np.clip((rows[self.high] - rows[self.low]) / width, 0, 1) if width else np.zeros(len(rows))
        return np.where(self.is_shown(rows), share, 1.0)

    def covers(self, rows: Relation) -> Bools:
        """Whether the number is within the range; it may lie outside as far as it could not be read exactly."""
        value, slack = rows[self.value], self.slack
        inside: Bools = (rows[self.low] <= value + slack) & (value - slack <= rows[self.high])
        return inside


@dataclass(frozen=True, slots=True)
class Domain:
    """A domain in the unit of its column."""

    low: float
    high: float
    points: Points | None
    """The grid; None if there is none."""
    is_whole: bool
    """Whether all ends are whole numbers, so that ends which are fractions were rounded inward."""

    @classmethod
    def of(cls, rule: NumberRule, *, are_moments: bool, is_whole: bool) -> Domain:
        """The domain of a rule."""
        unit = MICROSECONDS if are_moments else 1
        low, high = (float(written(end) * unit) for end in (rule.low, rule.high))
        points = None if rule.grid is None else Points.of(rule.low, rule.high, rule.grid, unit)
        return cls(low, high, points, is_whole and not are_moments)

    def holds(self, low: Floats, high: Floats) -> Bools:
        """Return which ranges are within the domain."""
        return (low >= self.low) & (high <= self.high)

    def is_whole_domain(self, low: Floats, high: Floats) -> Bools:
        """Return which ranges are the whole domain."""
        return self._begins(low) & self._ends(high)

    def on_grid(self, low: Floats, high: Floats) -> Bools:
        """Return which ranges begin and end on the grid, or at an end of the domain."""
        points = self.points
        if points is None:
            return np.ones(len(low), np.bool_)
        begins, ends = on_points(low, points) | self._begins(low), on_points(high, points) | self._ends(high)
        if self.is_whole:
            begins |= each(low, lambda end: math.ceil(points.point(points.below(end))) == end, np.bool_)
            ends |= each(high, lambda end: points.point(points.below(math.nextafter(end + 1, end))) >= end, np.bool_)
        return begins & ends

    def _begins(self, low: Floats) -> Bools:
        found: Bools = (low == self.low) | (low == (math.ceil(self.low) if self.is_whole else self.low))
        return found

    def _ends(self, high: Floats) -> Bools:
        found: Bools = (high == self.high) | (high == (math.floor(self.high) if self.is_whole else self.high))
        return found


def unit_facts(rule: Rule, release: Rows, truth: Rows) -> RangeFacts:
    """The facts of a column of numbers, read from some rows of either side; of labels there are none."""
    if isinstance(rule, LabelRule):
        return RangeFacts()
    ranges, numbers = read_ranges(release.pieces(rule.name)), read_numbers(truth.pieces(rule.name))
    return RangeFacts.of_ranges(ranges) | RangeFacts.of_numbers(numbers)
