"""Measure the diversity of sets of sensitive values, and their distance from a reference, for many sets at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.numbers import Floats

MISSING: Final = 0
"""The number of the missing value in every column."""


@dataclass(frozen=True, slots=True)
class Sets:
    """Multisets of values: one entry for every different value of every set, by set, then by value."""

    member: Ints
    """The set an entry belongs to; sets are numbered from 0 without gaps."""
    value: Ints
    times: Ints
    count: int
    """How many sets there are."""

    @property
    def sizes(self) -> Ints:
        """How many values every set has, counted as often as they occur."""
        return np.bincount(self.member, self.times, self.count).astype(np.int64)

    @property
    def share(self) -> Floats:
        """The share of every entry in its set."""
        return self.times / self.sizes[self.member]


def gather(member: Ints, value: Ints, count: int) -> Sets:
    """Collect rows into sets."""
    width = int(value.max(initial=0)) + 1
    pair, times = np.unique(member * width + value, return_counts=True)
    return Sets(pair // width, pair % width, times, count)


def growing(group: Ints, value: Ints, step: Ints, count: int) -> tuple[Sets, Ints]:
    """Make a set of every group after every step of its growth; return the group of each set too.

    Steps of a group run from 0 without gaps; step 0 may have any number of rows, the others have one each.
    """
    steps = _steps(group, step, count)
    width, stride = int(value.max(initial=0)) + 1, int(step.max(initial=0)) + 1
    pair, turn = np.unique(group * width + value, return_inverse=True)
    seen = np.sort(turn * stride + step)
    kinds = np.bincount(pair // width, minlength=count)
    own = np.repeat(np.arange(count), steps)
    at = np.arange(len(own)) - np.repeat(np.cumsum(steps) - steps, steps)
    # Combine every set with every value its group ever has, then drop those it does not have yet.
    member = np.repeat(np.arange(len(own)), kinds[own])
    turn_of = np.arange(len(member)) - np.repeat(np.cumsum(kinds[own]) - kinds[own], kinds[own])
    which = (np.cumsum(kinds) - kinds)[own[member]] + turn_of
    times = np.searchsorted(seen, which * stride + at[member], side="right") - np.searchsorted(seen, which * stride)
    there = times > 0
    return Sets(member[there], pair[which[there]] % width, times[there], len(own)), own


def growth_sizes(group: Ints, value: Ints, step: Ints, count: int) -> Ints:
    """Return how many entries `growing` makes of each group at most."""
    rows = np.bincount(group, minlength=count)
    return _steps(group, step, count) * np.minimum(rows, int(value.max(initial=0)) + 1)


def _steps(group: Ints, step: Ints, count: int) -> Ints:
    steps = np.zeros(count, np.int64)
    np.maximum.at(steps, group, step + 1)
    return steps


def distinct(sets: Sets) -> Ints:
    """Return how many different values every set has."""
    return np.bincount(sets.member, minlength=sets.count)


def effective(sets: Sets) -> Floats:
    """Return the exponential of every set's entropy: l if l values are equally frequent."""
    share = sets.share
    return np.exp(-np.bincount(sets.member, share * np.log(share), sets.count))


@dataclass(frozen=True, slots=True)
class References:
    """Reference distributions: one entry for every value of every reference, sorted by reference, then value."""

    width: int
    """Values are below it."""
    key: Ints
    """reference * width + value, rising."""
    share: Floats
    begin: Ints
    """Start of every reference's entries; one more for the end."""


def refer(reference: Ints, value: Ints, weight: Floats, *, count: int, width: int) -> References:
    """Make references from weighted values; weights of 0 are ignored."""
    there = weight > 0
    key, turn = np.unique(reference[there] * width + value[there], return_inverse=True)
    total = np.bincount(turn, weight[there], len(key))
    own = key // width
    share = total / np.bincount(own, total, count)[own]
    return References(width, key, share, np.searchsorted(key, np.arange(count + 1) * width))


def known_sets(sets: Sets) -> Sets:
    """Leave the missing value out of all sets; a set may become empty."""
    there = sets.value != MISSING
    return Sets(sets.member[there], sets.value[there], sets.times[there], sets.count)


def known_references(references: References) -> References:
    """Leave the missing value out of all references, whose shares are those of the known values then."""
    there = references.key % references.width != MISSING
    key, share, count = references.key[there], references.share[there], len(references.begin) - 1
    own = key // references.width
    total = np.bincount(own, share, count)[own]
    return References(
        references.width, key, share / total, np.searchsorted(key, np.arange(count + 1) * references.width)
    )


def away(sets: Sets, references: References, of_set: Ints, *, is_ordered: bool) -> Floats:
    """Return the distance of every set from its reference: of all values, or of the known ones if it is greater.

    A set without a known value reveals none; one that has some is far from a reference that has none.
    """
    measure = ordered if is_ordered else variation
    known, expected = known_sets(sets), known_references(references)
    apart = measure(known, expected, of_set)
    apart = np.where(np.diff(expected.begin)[of_set] == 0, 1.0, apart)
    apart = np.where(known.sizes == 0, 0.0, apart)
    return np.maximum(measure(sets, references, of_set), apart)


def variation(sets: Sets, references: References, of_set: Ints) -> Floats:
    """Return half the sum of differences of shares: the earth mover's distance if all values are equally far apart."""
    if not len(references.key):  # without a reference the distance is the largest
        return np.ones(sets.count)
    share, expected = sets.share, _expected(sets, references, of_set)
    off = np.bincount(sets.member, np.abs(share - expected), sets.count)
    missing = 1 - np.bincount(sets.member, expected, sets.count)
    return (off + np.maximum(missing, 0)) / 2


def _expected(sets: Sets, references: References, of_set: Ints) -> Floats:
    asked = of_set[sets.member] * references.width + sets.value
    place = np.minimum(np.searchsorted(references.key, asked), len(references.key) - 1)
    return np.where(references.key[place] == asked, references.share[place], 0.0)


def ordered(sets: Sets, references: References, of_set: Ints) -> Floats:
    """Return the earth mover's distance of ordered values, scaled so that the whole range has length 1.

    Over the m values that the set or the reference has, in order: the sum of differences of the cumulative shares,
    divided by m - 1. Between two values of a set its cumulative share is constant while the reference's rises, so
    the differences in between are summed at once, up to where the reference exceeds the set and from there on.
    """
    if not len(references.key):
        return np.ones(sets.count)
    reference = of_set[sets.member]
    rises, summed = _cumulative(references)
    own = _running(sets.share, sets.member)
    begin, end = references.begin[reference], references.begin[reference + 1]
    asked = reference * references.width + sets.value
    place = np.searchsorted(references.key, asked)
    is_last = np.append(sets.member[1:] != sets.member[:-1], True)
    until = np.where(is_last, end, np.append(place[1:], 0))
    # Cumulative shares lie in [0, 1], so those of all references form one rising array.
    passed = np.clip(np.searchsorted(reference_line(references, rises), reference * 2.0 + own), place, until)
    between = own * (2 * passed - place - until) + summed[place] + summed[until] - 2 * summed[passed]
    absent = ~_is_known(references, asked, place)
    before = np.where(place > begin, np.append(rises, 0.0)[place - 1], 0.0)
    is_first = np.append(True, is_last[:-1])
    total = between + absent * np.abs(own - before) + is_first * (summed[place] - summed[begin])
    kinds = np.diff(references.begin)[of_set] + np.bincount(sets.member, absent, sets.count)
    distance = np.bincount(sets.member, total.astype(np.float64), sets.count) / np.maximum(kinds - 1, 1)
    return np.where(kinds > 1, distance, 0.0)


def reference_line(references: References, rises: Floats) -> Floats:
    """Return the cumulative shares of all references as one rising array, offset by 2 each."""
    return (references.key // references.width) * 2.0 + rises


def _is_known(references: References, asked: Ints, place: Ints) -> Bools:
    known: Bools = references.key[np.minimum(place, len(references.key) - 1)] == asked
    return known


def _cumulative(references: References) -> tuple[Floats, Floats]:
    """Return every reference's cumulative shares, and running sums of these over all (from 0)."""
    rises = np.minimum(_running(references.share, references.key // references.width), 1.0)
    # Sums over very many references keep their last digits in the longer format, if the platform has one.
    return rises, np.append(np.zeros(1, np.longdouble), np.cumsum(rises, dtype=np.longdouble))


def _running(values: Floats, member: Ints) -> Floats:
    """Return running sums that restart with every member; entries are sorted by member."""
    if not len(values):
        return values
    total = np.cumsum(values)
    first = np.append(True, member[1:] != member[:-1])
    start = np.flatnonzero(first)
    return total - np.repeat(total[start] - values[start], np.diff(np.append(start, len(values))))
