"""What a column's values say about whose row it is: whether they repeat like a person's, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow.compute as pc

from shoal.inspection.columns.arrays import Flags, Floats, Integers, floats, is_there, value_codes
from shoal.inspection.columns.facts import Facts

HANDFUL: Final = 10
"""Fewer different values are never people: k of them could not be told from a few categories."""
_NEARLY_ALL: Final = 0.9
_ONE_VALUE: Final = 0.95
"""The share of the most common value from which on a column says too little to depend on another."""
_MANY: Final = 50
"""Different numbers from which on those of people and counts differ: small counts are common, small numbers are not."""
_OF_COUNTS: Final = 0.35
"""The share of the largest number below which the median of counts lies."""
_MOST_PAIRS: Final = 0.6
_SHORT_RUN: Final = 1.1
"""Runs of equal values for each different one, up to which the rows of each are together."""


@dataclass(frozen=True, slots=True)
class Repeats:
    """How often and where the values of a column repeat."""

    known: int
    distinct: int
    runs: int
    """Stretches of consecutive rows with the same value."""
    most: int
    least: int
    """Rows of the value with the most and with the fewest rows."""

    @property
    def per_value(self) -> float:
        """Rows for each different value."""
        return self.known / max(self.distinct, 1)

    @property
    def is_unique(self) -> bool:
        """Whether every row has another value."""
        return self.distinct == self.known

    @property
    def is_handful(self) -> bool:
        """Whether the different values are too few to be people."""
        return self.distinct < HANDFUL and not self.is_unique

    @property
    def is_together(self) -> bool:
        """Whether the rows of each value are consecutive."""
        return self.per_value >= 1.5 and self.runs <= _SHORT_RUN * self.distinct

    @property
    def is_even(self) -> bool:
        """Whether every value has about as many rows, as in an experiment with as many trials for each."""
        return self.most <= 2 * self.least and self.per_value >= 2


class Column:
    """A column, and how its values repeat."""

    def __init__(self, facts: Facts) -> None:
        self.facts, self.name = facts, facts.name

    @cached_property
    def codes(self) -> Integers:
        """A number for every different value."""
        return value_codes(self.facts.values)

    @cached_property
    def is_known(self) -> Flags:
        """Which rows have a value."""
        return is_there(self.facts.values)

    @cached_property
    def repeats(self) -> Repeats:
        """How often and where its values repeat."""
        own = self.codes[self.is_known]
        if not len(own):
            return Repeats(0, 0, 0, 0, 0)
        counts = np.bincount(own)
        counts = counts[counts > 0]
        runs = 1 + int(np.count_nonzero(own[1:] != own[:-1]))
        return Repeats(len(own), len(counts), runs, int(counts.max()), int(counts.min()))

    @cached_property
    def is_whole(self) -> bool:
        """Whether it has whole numbers only, also if they are written 22.0."""
        one = self.facts
        if one.kind == "whole":
            return True
        return one.kind == "number" and bool(pc.all(pc.equal(pc.floor(one.values), one.values)).as_py())

    @cached_property
    def can_identify(self) -> bool:
        """Whether its values may be identifiers: texts that are no phrases, or whole numbers that are no times."""
        one = self.facts
        if one.kind == "text":
            return one.shape not in ("place", "set", "free", "date", "comma", "path")
        return self.is_whole and one.time_unit is None

    @cached_property
    def has_digits(self) -> bool:
        """Whether it has texts with digits, as codes have, or numbers."""
        if self.facts.kind != "text":
            return True
        known = pc.unique(self.facts.values.drop_null())
        return bool(len(known)) and pc.mean(pc.match_substring_regex(known, r"\d|@")).as_py() >= _NEARLY_ALL

    @cached_property
    def numbers(self) -> Floats:
        """Its numbers, without the rows that have none."""
        return floats(self.facts.values.drop_null())

    @cached_property
    def is_row_number(self) -> bool:
        """Whether it numbers the rows, in their order: 0, 1, 2, … or 1, 2, 3, …"""
        if not self.is_whole or self.facts.missing or self.facts.rows < 2:
            return False
        first = self.numbers[0]
        return first in (0, 1) and bool(np.array_equal(self.numbers, first + np.arange(len(self.numbers))))

    @cached_property
    def is_numbering(self) -> bool:
        """Whether every row has another whole number."""
        return self.is_whole and not self.facts.missing and self.repeats.is_unique and self.facts.rows > 1

    @cached_property
    def is_rising(self) -> bool:
        """Whether each number is larger than the one before."""
        return bool((np.diff(self.numbers) > 0).all())

    @cached_property
    def is_counter(self) -> bool:
        """Whether it counts up again and again from the same number, as days or trials do: 0, 1, 2, 0, 1, 2, 0, …"""
        if not self.is_whole or len(self.numbers) < 2:
            return False
        ahead = np.diff(self.numbers) > 0
        return bool((ahead | (self.numbers[1:] == self.numbers.min())).all()) and not ahead.all()

    @cached_property
    def counts_something(self) -> bool:
        """Whether it may be a count, such as a number of children: all numbers from 0 or 1 on, unevenly often."""
        if self.facts.kind == "text" or not len(self.numbers):
            return False
        low, high = self.numbers.min(), self.numbers.max()
        if low not in (0, 1) or high > 3 * self.repeats.distinct or self.repeats.is_even:
            return False
        return self.repeats.distinct < _MANY or bool(np.median(self.numbers) < _OF_COUNTS * high)

    def determines(self, other: Column) -> bool:
        """Whether all rows with the same value have the same value of the other column."""
        return _is_constant_within(self.codes, other.codes, self.is_known)

    def is_crossed_with(self, other: Column, share: float = _MOST_PAIRS) -> bool:
        """Whether a share of all pairs of a value here and one there occur, and each once."""
        rows, possible = len(self.codes), self.repeats.distinct * other.repeats.distinct
        own, others = (int(one.codes.max(initial=0)) + 1 for one in (self, other))
        if not share * possible <= rows <= own * others:
            return False
        return len(np.unique(self.codes * others + other.codes)) == rows

    @cached_property
    def is_telling(self) -> bool:
        """Whether it has different values, none of which nearly every row has."""
        return self.repeats.distinct >= 2 and self.repeats.most <= _ONE_VALUE * self.repeats.known

    def dependents(self, others: Sequence[Column]) -> list[str]:
        """Names of the columns that are the same in all rows of a value, although they differ between values."""
        if self.repeats.per_value < 1.5:
            return []
        return [one.name for one in others if one is not self and one.is_telling and self.determines(one)]


def _is_constant_within(group: Integers, value: Integers, known: Flags) -> bool:
    group, value = group[known], value[known]
    if not len(group):
        return False
    of_group = np.empty(int(group.max()) + 1, np.int64)
    of_group[group] = value
    return bool((of_group[group] == value).all())


def columns_of(facts: Mapping[str, Facts]) -> dict[str, Column]:
    """The columns whose values can repeat."""
    return {name: Column(one) for name, one in facts.items() if one.kind not in ("list", "empty")}


def same_values(one: Column, other: Column) -> bool:
    """Whether two columns have many values in common, as callers and called numbers do."""
    first, second = ({*_some(column)} for column in (one, other))
    return len(first & second) >= max(3, 0.2 * min(len(first), len(second)))


def _some(column: Column) -> list[Any]:
    return list(pc.unique(column.facts.values.drop_null()).to_pylist())
