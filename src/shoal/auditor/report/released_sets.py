"""Group people by the set of values released of them in an epoch, and rank the values by what they cost.

A set of values is known by the sum of two random 64-bit words for each of its values and for its epoch. So a set
without one of its values is a subtraction, equal sets are found by sorting, and no set is compared value by value. The
chance that any two of n different sets have the same words is below n² / 2¹²⁹.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.auditor.counting import dense, sum_by
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.report.windows_report import Cost
from shoal.auditor.sorting import distinct, firsts

Words = npt.NDArray[np.uint64]
"""Two 64-bit words per row."""
_SEED: Final = 20_260_107
"""Any number: the words only distinguish sets, and the same release gives the same report."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of people with the same set in the same epoch, one entry per group; and the values of their sets."""

    epoch: Ints
    """Number of the epoch."""
    people: Ints
    """How many have this set, at least 1."""
    length: Ints
    """How many values the set has; 0 for people whose released rows are all blank."""
    words: Words
    group: Ints
    """To which group a value belongs."""
    item: Ints
    """The value, as a number."""
    item_words: Words
    """The words of each value, indexed by value number."""
    of_person: Ints
    """The group of every person, in the order of epochs and persons."""


@dataclass(frozen=True, slots=True)
class Savings:
    """The effect of removing a value from everybody's set in an epoch: one entry per epoch and value."""

    epoch: Ints
    item: Ints
    holders: Ints
    """People whose set has the value."""
    saved: Ints
    """People whose set fewer than k people have, and who would reach k or no longer be shown."""


def group_sets(epoch: Ints, person: Ints, items: list[Ints]) -> Groups:
    """Group people by their sets; every released row has an epoch, a person, and a value or -1 in each of ``items``."""
    someone = dense(epoch, person)
    first = firsts(someone)
    owner, item = _distinct(someone, items)
    random = np.random.default_rng(_SEED)
    item_words = _random_words(random, int(item.max(initial=-1)) + 1)
    epoch_words = _random_words(random, int(epoch.max(initial=-1)) + 1)
    bounds = np.searchsorted(owner, np.arange(len(first) + 1))
    words = epoch_words[epoch[first]] + _sums(item_words[item], bounds)
    group = number_words(words)
    representative = firsts(group)  # one person of each group, in the order of groups
    represents = np.zeros(len(first), np.bool_)
    represents[representative] = True
    return Groups(
        epoch=epoch[first][representative],
        people=np.bincount(group, minlength=len(representative)),
        length=np.diff(bounds)[representative],
        words=words[representative],
        group=group[owner[represents[owner]]],
        item=item[represents[owner]],
        item_words=item_words,
        of_person=group,
    )


def number_words(words: Words) -> Ints:
    """Number different pairs of words from 0."""
    order = np.lexsort((words[:, 1], words[:, 0]))
    ranked = words[order]
    is_new = (ranked[1:] != ranked[:-1]).any(axis=1)
    numbers = np.zeros(len(words), np.int64)
    numbers[order[1:]] = np.cumsum(is_new)
    return numbers


def count_savings(groups: Groups, k: int, *, keeps_empty: bool) -> Savings:
    """Count, for every epoch and value, the people below k who would reach it if no set had the value.

    People with a set S that contains the value a then have the same set as those with S without a: the groups merge.
    People who showed only a are no longer shown, or have the empty set if rows are released
    without their values (``keeps_empty``). Groups only grow, so no one is worse off.
    """
    mine, other = groups.people[groups.group], _people_without(groups)
    is_gone = (groups.length[groups.group] == 1) & (not keeps_empty)
    is_enough = mine + other >= k
    saved = np.where((mine < k) & (is_enough | is_gone), mine, 0)
    saved += np.where((other < k) & is_enough & ~is_gone, other, 0)
    return _by_value(groups, mine, saved)


def _people_without(groups: Groups) -> Ints:
    """Return, for every value of every set, how many people have the set without the value."""
    count = len(groups.people)
    lessened = groups.words[groups.group] - groups.item_words[groups.item]
    numbers = number_words(np.concatenate([groups.words, lessened]))
    people = np.zeros(int(numbers.max(initial=-1)) + 1, np.int64)
    people[numbers[:count]] = groups.people
    return people[numbers[count:]]


def _by_value(groups: Groups, holders: Ints, saved: Ints) -> Savings:
    stride = len(groups.item_words) or 1
    pairs, place = np.unique(groups.epoch[groups.group] * stride + groups.item, return_inverse=True)
    epoch, item = np.divmod(pairs, stride)
    return Savings(epoch, item, sum_by(place, holders, len(pairs)), sum_by(place, saved, len(pairs)))


def _distinct(someone: Ints, items: list[Ints]) -> tuple[Ints, Ints]:
    """Return (person, value) once each, in the order of persons."""
    owner, item = np.concatenate([someone] * len(items)), np.concatenate(items)
    has_value: Bools = item >= 0
    owner, item = owner[has_value], item[has_value]
    stride = int(item.max(initial=0)) + 1
    owner, item = np.divmod(distinct(owner * stride + item), stride)
    return owner, item


def _random_words(random: np.random.Generator, count: int) -> Words:
    return random.integers(0, 2**64, size=(count, 2), dtype=np.uint64)


def _sums(words: Words, bounds: Ints) -> Words:
    """Sum the words between bounds, modulo 2**64."""
    running = np.zeros((len(words) + 1, 2), np.uint64)
    np.cumsum(words, axis=0, out=running[1:])
    return running[bounds[1:]] - running[bounds[:-1]]


_TOP: Final = 10
_TOP_OF_A_WINDOW: Final = 3
Names = list[tuple[str, str]]
"""Attribute and value, by number."""


@dataclass(frozen=True, slots=True)
class _CostTable:
    """The cost of values, by epoch or over all epochs."""

    epoch: Ints
    item: Ints
    saved: Ints
    holders: Ints
    rows: Ints
    windows: Ints

    def entry(self, place: int, names: Names) -> Cost:
        """Return one entry with its name."""
        attribute, value = names[self.item[place]]
        numbers = (self.saved, self.holders, self.rows, self.windows)
        return Cost(attribute, value, *(int(column[place]) for column in numbers))


def rank_costs(
    savings: Savings, epoch: Ints, items: list[Ints], names: Names
) -> tuple[list[Cost], dict[int, list[Cost]]]:
    """Return the ten values that cost most over all epochs, and the three that cost most in each."""
    rows, once = _rows(savings, epoch, items, len(names)), np.ones(len(savings.item), np.int64)
    columns = (savings.epoch, savings.item, savings.saved, savings.holders, rows, once)
    by_epoch = _CostTable(*(column[savings.saved > 0] for column in columns))
    over_all = _totals(by_epoch, savings, items, len(names))
    top = _ranked(over_all, names)[:_TOP]
    of_each: dict[int, list[Cost]] = {}
    ranked = _ranked(by_epoch, names)
    epochs = by_epoch.epoch[ranked]
    is_top = np.arange(len(epochs)) - np.searchsorted(epochs, epochs) < _TOP_OF_A_WINDOW
    for place in ranked[is_top].tolist():
        of_each.setdefault(int(by_epoch.epoch[place]), []).append(by_epoch.entry(place, names))
    return [over_all.entry(place, names) for place in top.tolist()], of_each


def _rows(savings: Savings, epoch: Ints, items: list[Ints], stride: int) -> Ints:
    """Count the released rows with each epoch's values."""
    pairs = savings.epoch * stride + savings.item  # rises
    rows = np.zeros(len(pairs), np.int64)
    for item in items:
        asked = (epoch * stride + item)[item >= 0]
        rows += np.bincount(np.searchsorted(pairs, asked), minlength=len(pairs))
    return rows


def _totals(by_epoch: _CostTable, savings: Savings, items: list[Ints], count: int) -> _CostTable:
    """Sum over epochs; people and rows also of epochs without a saving."""
    saved = sum_by(by_epoch.item, by_epoch.saved, count)
    holders = sum_by(savings.item, savings.holders, count)
    rows = sum((np.bincount(item[item >= 0], minlength=count) for item in items), np.zeros(count, np.int64))
    windows = np.bincount(by_epoch.item, minlength=count)
    item = np.flatnonzero(saved)
    return _CostTable(np.zeros(len(item), np.int64), item, saved[item], holders[item], rows[item], windows[item])


def _ranked(ledger: _CostTable, names: Names) -> Ints:
    """Sort entries by epoch, most people saved, fewest people who lose the value, name."""
    used = sorted(set(ledger.item.tolist()), key=lambda item: names[item])
    by_name = np.zeros(len(names), np.int64)
    by_name[used] = np.arange(len(used))
    return np.lexsort((by_name[ledger.item], ledger.holders, -ledger.saved, ledger.epoch))
