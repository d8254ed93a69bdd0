"""One quasi-identifier, published and true side by side."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final

import numpy as np

from shoal.auditor.counting import Paths, numbered, shared_codes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.numbers import Floats, Numbers, Ranges, read_numbers, read_ranges
from shoal.auditor.reading.rows import Rows
from shoal.auditor.tuples.grid import Points, each, on_points, written
from shoal.auditor.tuples.promise import LabelRule, NumberRule, Rule

_MICROSECONDS: Final = 10**6
FAULTS: Final = {
    "unreadable-value": "A published value is neither a range nor a label.",
    "unknown-label": "A published label is not in the hierarchy.",
    "too-fine": "A published moment is finer than a microsecond.",
    "bad-range": "A published range ends before it begins.",
    "out-of-domain": "A published range reaches beyond the declared domain.",
    "off-grid": "A published range does not begin and end on the declared grid.",
    "not-a-cell": "A published range is not a cell of the declared grid.",
}


@dataclass(frozen=True, slots=True)
class Attribute(ABC):
    """One quasi-identifier in the release and in the truth."""

    name: str
    weight: float
    code: Ints
    """For every released row the number of the published value; -1 for null."""
    at_root: Bools
    """Which released rows show the whole domain."""
    loss: Floats
    """The loss of a released row in this column, from 0 to 1; 1 for null."""
    faults: dict[str, Bools]
    """Released rows by what is wrong with the published value, whatever the truth is."""
    carried: Bools
    """Which rows of the truth have a value."""
    usable: Bools
    """Which rows of the truth have no value or one that may be published."""

    @abstractmethod
    def covers(self, shown: Ints, known: Ints) -> Bools:
        """Return whether released rows cover rows of the truth, for pairs that both have a value."""


@dataclass(frozen=True, slots=True)
class Labels(Attribute):
    """A quasi-identifier published as a label."""

    true_code: Ints
    paths: Paths
    texts: list[str]

    def covers(self, shown: Ints, known: Ints) -> Bools:
        """Return whether the label is on the path from the true value to the root."""
        width = len(self.texts) + 1
        different, turn = numbered(self.true_code[known] * width + self.code[shown])
        covered: Bools = self.paths.level(different // width, different % width) >= 0
        return covered[turn]


@dataclass(frozen=True, slots=True)
class Spans(Attribute):
    """A quasi-identifier published as a range."""

    low: Floats
    high: Floats
    true_value: Floats
    """Clamped to the domain if the policy says so."""
    slack: float
    """How far a value may lie outside its range because it could not be read exactly."""
    are_moments: bool
    """Whether ends and values are microseconds since 1970."""

    def covers(self, shown: Ints, known: Ints) -> Bools:
        """Return whether the true value is within the range."""
        value = self.true_value[known]
        above: Bools = self.low[shown] <= value + self.slack
        below: Bools = value - self.slack <= self.high[shown]
        return above & below


@dataclass(frozen=True, slots=True)
class SpanFacts:
    """What all values of a numeric column together say about how to read each."""

    shows_moments: bool = False
    """Whether a released range has moments as ends."""
    has_moments: bool = False
    """Whether the truth has moments."""
    has_truth: bool = False
    is_whole: bool = True
    """Whether all released ends are whole numbers, in the unit of the column."""

    def __or__(self, other: SpanFacts) -> SpanFacts:
        """The facts of both parts of a column."""
        return SpanFacts(
            self.shows_moments or other.shows_moments,
            self.has_moments or other.has_moments,
            self.has_truth or other.has_truth,
            self.is_whole and other.is_whole,
        )


def read_attribute(rule: Rule, release: Rows, truth: Rows, facts: SpanFacts | None = None) -> Attribute:
    """Read both sides of a quasi-identifier; of a part of the rows, with the facts of all of them."""
    if isinstance(rule, LabelRule):
        return _labels(rule, release, truth)
    ranges, numbers = read_ranges(release.pieces(rule.name)), read_numbers(truth.pieces(rule.name))
    return _spans(rule, ranges, numbers, _facts(ranges, numbers) if facts is None else facts)


def read_span_facts(rule: NumberRule, release: Rows, truth: Rows) -> SpanFacts:
    """Read how the values of a numeric column are written."""
    return _facts(read_ranges(release.pieces(rule.name)), read_numbers(truth.pieces(rule.name)))


def _facts(ranges: Ranges, numbers: Numbers) -> SpanFacts:
    # Moments are whole in microseconds, numbers as they are; a column of moments does not ask.
    is_whole = _are_whole(ranges.low.value) and _are_whole(ranges.high.value)
    return SpanFacts(ranges.are_moments, numbers.are_moments, len(numbers.value) > 0, is_whole)


def _labels(rule: LabelRule, release: Rows, truth: Rows) -> Labels:
    texts, (true, shown) = shared_codes(truth.text(rule.name), release.text(rule.name))
    leaves, is_leaf = rule.tree.leaf_counts(), rule.tree.is_leaf()
    count = np.array([*(leaves.get(text, 0) for text in texts), 0], np.int64)  # code -1 picks the last
    leaf = np.array([*(is_leaf.get(text, False) for text in texts), False])
    root = np.array([*(text == rule.tree.root for text in texts), False])
    other = max(leaves[rule.tree.root] - 1, 1)
    return Labels(
        name=rule.name,
        weight=rule.weight,
        code=shown,
        at_root=root[shown],
        loss=np.where(shown < 0, 1.0, np.maximum(count[shown] - 1, 0) / other),
        faults={"unknown-label": (shown >= 0) & (count[shown] == 0)},
        carried=true >= 0,
        usable=(true < 0) | leaf[true],
        true_code=true,
        paths=Paths(texts, rule.tree),
        texts=texts,
    )


@dataclass(frozen=True, slots=True)
class _Domain:
    """The domain in the unit of the column."""

    low: float
    high: float
    points: Points | None
    """The grid; None if there is none."""
    is_whole: bool
    """Whether all ends are whole numbers, so that ends which are fractions were rounded inward."""

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


def _spans(rule: NumberRule, ranges: Ranges, numbers: Numbers, facts: SpanFacts) -> Spans:
    are_moments = rule.is_moment or facts.shows_moments or facts.has_moments
    # Seconds as fractions are not exact to the microsecond.
    slack = 1.0 if are_moments and facts.has_truth and not facts.has_moments else 0.0
    if are_moments:
        ranges = Ranges(ranges.low.in_microseconds(), ranges.high.in_microseconds())
        numbers = numbers.in_microseconds()
    low, high = ranges.low.value, ranges.high.value
    domain = _domain(rule, are_moments=are_moments, is_whole=facts.is_whole)
    there = ~np.isnan(low) & ~np.isnan(high)
    width = domain.high - domain.low
    return Spans(
        name=rule.name,
        weight=rule.weight,
        code=_range_codes(ranges, there),
        at_root=there & domain.is_whole_domain(low, high),
        loss=np.where(there, np.clip((high - low) / width, 0, 1) if width else 0.0, 1.0),
        faults=_range_faults(ranges, domain, there),
        carried=~np.isnan(numbers.value) | numbers.unreadable,
        usable=_usable(numbers, rule, domain, slack),
        low=low,
        high=high,
        true_value=np.clip(numbers.value, domain.low, domain.high) if rule.clamps else numbers.value,
        slack=slack,
        are_moments=are_moments,
    )


def _domain(rule: NumberRule, *, are_moments: bool, is_whole: bool) -> _Domain:
    unit = _MICROSECONDS if are_moments else 1
    low, high = (float(written(end) * unit) for end in (rule.low, rule.high))
    points = None if rule.grid is None else Points.of(rule.low, rule.high, rule.grid, unit)
    return _Domain(low, high, points, is_whole and not are_moments)


def _are_whole(values: Floats) -> bool:
    shown = values[~np.isnan(values)]
    return bool((shown == np.rint(shown)).all())


def _range_codes(ranges: Ranges, there: Bools) -> Ints:
    """Number the different ranges; adding 0 makes -0 and 0 one number."""
    code = np.zeros(len(there), np.int64)
    for end in (ranges.low, ranges.high):
        for part in (np.where(there, end.value, 0.0) + 0.0, end.rest):
            own = numbered(part)[1]
            code = numbered(code * (int(own.max(initial=0)) + 1) + own)[1]
    return np.where(there, code, -1)


def _range_faults(ranges: Ranges, domain: _Domain, there: Bools) -> dict[str, Bools]:
    low, high = ranges.low.value, ranges.high.value
    inside = domain.holds(low, high)
    return {
        "unreadable-value": ranges.unreadable,
        "too-fine": there & ((ranges.low.rest > 0) | (ranges.high.rest > 0)),
        "bad-range": there & (low > high),
        "out-of-domain": there & ~inside,
        "off-grid": there & inside & ~domain.on_grid(low, high),
    }


def _usable(numbers: Numbers, rule: NumberRule, domain: _Domain, slack: float) -> Bools:
    if rule.clamps:
        return ~numbers.unreadable
    inside = (numbers.value >= domain.low - slack) & (numbers.value <= domain.high + slack)
    return (np.isnan(numbers.value) | inside) & ~numbers.unreadable
