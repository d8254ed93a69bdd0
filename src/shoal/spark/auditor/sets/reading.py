"""Files of sets: what all of them say together, and the sets of each with labels that all files number alike."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal.auditor.findings import Finding, Notes
from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.hidden_data import Hidden
from shoal.auditor.reading.rows import NOTHING_HIDDEN, Rows, by_stream, has_row_column
from shoal.auditor.sets.judge import read_released_sets
from shoal.auditor.sets.promise import SetPromise
from shoal.auditor.sets.reading import Listed, list_rows
from shoal.auditor.sets.records import Sets, collect
from shoal.spark.auditor.engine import Message, result
from shoal.spark.auditor.hashing import of_text
from shoal.spark.auditor.join_trace import TruthBins
from shoal.spark.auditor.shares import Share


@dataclass(frozen=True, slots=True)
class Files:
    """The files of an audit."""

    release: list[Share]
    truth: list[Share]
    trace: list[Share]
    has_truth: bool
    is_file: bool
    """Whether the release is one path, whose order may be that of the truth."""


@dataclass(slots=True)
class Facts:
    """Facts of a file, or of all files."""

    rows: dict[tuple[str, int], int] = field(default_factory=dict)
    columns: dict[str, list[str]] = field(default_factory=dict)
    labels: dict[tuple[str, int], list[str]] = field(default_factory=dict)
    """The different labels of each file, in order of first appearance."""
    hidden: Hidden = NOTHING_HIDDEN
    has_row_column: bool = False
    unusable: int = 0
    """Rows of the truth without a person, or unreadable."""

    def merge(self, other: Facts) -> None:
        """Add other files."""
        self.rows |= other.rows
        for role, names in other.columns.items():
            self.columns[role] = list(dict.fromkeys((*self.columns.get(role, ()), *names)))
        self.labels |= other.labels
        self.hidden += other.hidden
        self.has_row_column |= other.has_row_column
        self.unusable += other.unusable

    def count(self, role: str) -> int:
        """The rows of all files of a role."""
        return sum(rows for (own, _), rows in self.rows.items() if own == role)

    def first(self, role: str, number: int) -> int:
        """The number of the first row of a file."""
        return sum(rows for (own, at), rows in self.rows.items() if own == role and at < number)

    def all_labels(self, role: str) -> list[str]:
        """The labels of all files, in order of first appearance."""
        files = sorted(number for own, number in self.labels if own == role)
        return list(dict.fromkeys(label for number in files for label in self.labels[role, number]))


def column_of(promise: SetPromise, columns: Sequence[str]) -> str:
    """The column of a release that has the sets."""
    return promise.item if promise.column not in columns and promise.item in columns else promise.column


@dataclass(frozen=True, slots=True)
class ReadFacts:
    """Reads the facts of a file of the release or of the truth."""

    policy: Policy
    promise: SetPromise

    def __call__(self, share: Share) -> Iterator[Message]:
        rows, found, key = share.read(), Facts(), (share.role, share.number)
        found.rows[key] = len(rows)
        found.columns[share.role] = rows.columns
        if share.role == "trace":
            yield result(found)
            return
        if share.role == "release":
            found.hidden = rows.hidden
            column = column_of(self.promise, rows.columns)
            if column in rows.columns:
                found.labels[key] = list(read_released_sets(rows, column, self.policy, Notes()).labels)
        else:
            found.has_row_column = has_row_column(rows)
            rows = by_stream(rows, self.policy.section("stream"))
            listed = list_rows(rows, self.policy, self.promise, is_by_person=self.promise.person in rows.columns)
            found.labels[key] = listed.entries.labels
            found.unusable = int((~listed.usable).sum())
        yield result(found)


@dataclass(frozen=True, slots=True)
class Plan:
    """What every task knows."""

    policy: Policy
    promise: SetPromise
    column: str
    labels: tuple[str, ...]
    """The labels of the release."""
    items: tuple[str, ...]
    """The items of the truth."""
    starts: dict[tuple[str, int], int]
    """The number of the first row of each file."""
    released: int
    is_by_person: bool
    numbers_rows: bool
    rows: TruthBins
    """Ranges of rows of the truth."""
    bins: int

    def released_sets(self, share: Share, notes: Notes | None = None) -> tuple[Ints, Sets]:
        """The sets of a file of the release, and the numbers of its rows."""
        rows, start = share.read(), self.starts["release", share.number]
        numbers = np.arange(start, start + len(rows))
        own = Notes(numbers=numbers)
        sets = read_released_sets(rows, self.column, self.policy, own)
        if notes is not None:
            notes.findings += own.findings
            notes.numbers = numbers
        return numbers, renumbered(sets, self.labels)

    def listed(self, share: Share) -> Listed:
        """The rows of a file of the truth."""
        rows: Rows = by_stream(
            share.read(), self.policy.section("stream"), self.starts["truth", share.number], numbers=self.numbers_rows
        )
        return list_rows(rows, self.policy, self.promise, is_by_person=self.is_by_person)


def renumbered(sets: Sets, labels: Sequence[str]) -> Sets:
    """Sets with the numbers that labels have in all files."""
    place = {label: number for number, label in enumerate(labels)}
    number = np.array([place[label] for label in sets.labels], np.int64)
    return collect(sets.owners, number[sets.items], len(sets), labels)


@dataclass(frozen=True, slots=True)
class SendTruth:
    """Sends the rows of a file of the truth to the bins of their people."""

    plan: Plan

    def __call__(self, share: Share) -> Iterator[Message]:
        plan, found = self.plan, self.plan.listed(share)
        start = plan.starts["truth", share.number]
        place = {label: number for number, label in enumerate(plan.items)}
        number = np.array([*(place[label] for label in found.entries.labels), -1], np.int64)
        keep = found.entries.label >= 0
        if found.persons is None:
            names: list[str] = [""] * len(found.usable)
            first, present = np.arange(start, start + len(names)), np.ones(len(names), np.bool_)
            of = first % plan.bins
        else:
            names = found.persons
            keep &= found.usable[found.entries.owner]
            first = np.zeros(len(names), np.int64)
            known, at = np.unique(found.person, return_index=True)
            first[known[known >= 0]] = at[known >= 0] + start
            present = np.zeros(len(names), np.bool_)
            present[found.person[found.usable]] = True
            of = np.array([of_text(name) % plan.bins for name in names], np.int64)
        owner = found.person[found.entries.owner[keep]]
        sets = collect(owner, number[found.entries.label[keep]], len(names), plan.items)
        for bin_ in np.unique(of).tolist():
            own = of == bin_
            some = sets.only(own)
            theirs = [names[at] for at in np.flatnonzero(own).tolist()] if plan.is_by_person else None
            data = theirs, first[own], present[own], some.offsets, some.items
            yield Message(int(bin_), "truth", pickle.dumps(data))


def people_of(parts: Iterable[bytes], plan: Plan) -> tuple[Ints, Sets]:
    """The records of a bin, one for each person with a usable row, and the first row of each."""
    number: dict[str, int] = {}
    owners, items, firsts, presents = [], [], [], []
    count = 0
    for names, first, present, offsets, entries in map(pickle.loads, parts):
        if names is None:
            of: Ints = np.arange(count, count + len(first))
            count += len(first)
        else:
            of = np.array([number.setdefault(name, len(number)) for name in names], np.int64)
            count = len(number)
        owners.append(np.repeat(of, np.diff(offsets)))
        items.append(entries)
        firsts.append((of, first))
        presents.append(of[present])
    first_row = np.full(count, np.iinfo(np.int64).max)
    has_row: Bools = np.zeros(count, np.bool_)
    for (of, first), present in zip(firsts, presents, strict=True):
        np.minimum.at(first_row, of, first)
        has_row[present] = True
    nothing = [np.zeros(0, np.int64)]
    sets = collect(np.concatenate(nothing + owners), np.concatenate(nothing + items), count, plan.items)
    return first_row[has_row], sets.only(has_row)


@dataclass(frozen=True, slots=True)
class SetCounts:
    """Counts of some records, which are added up."""

    sizes: Counter[int]
    """How many records have each number of labels."""
    records: Ints
    """How many records have each label."""
    findings: tuple[Finding, ...] = ()
    ranges: tuple[int, ...] = ()
    """Of records of the truth: how many are in each range of rows."""

    def __add__(self, other: SetCounts) -> SetCounts:
        ranges = tuple(a + b for a, b in zip(self.ranges, other.ranges, strict=True)) if self.ranges else other.ranges
        return SetCounts(self.sizes + other.sizes, self.records + other.records, self.findings + other.findings, ranges)

    @property
    def count(self) -> int:
        """All records."""
        return sum(self.sizes.values())

    @property
    def longest(self) -> int:
        """The labels of the longest record."""
        return max(self.sizes, default=0)

    @property
    def mean(self) -> float | None:
        """The average number of labels."""
        return sum(size * n for size, n in self.sizes.items()) / self.count if self.count else None


def counts_of(sets: Sets, **more: Any) -> SetCounts:
    """Count the records of a part."""
    records = np.bincount(sets.items, minlength=len(sets.labels))
    return SetCounts(Counter(sets.sizes.tolist()), records, **more)


@dataclass(frozen=True, slots=True)
class CountReleased:
    """Counts the sets of a file of the release."""

    plan: Plan

    def __call__(self, share: Share) -> Iterator[Message]:
        notes = Notes()
        _, sets = self.plan.released_sets(share, notes)
        yield result(counts_of(sets, findings=tuple(notes.findings)))


@dataclass(frozen=True, slots=True)
class CountPeople:
    """Counts the records of a bin of people."""

    plan: Plan

    def __call__(self, _number: int, kinds: dict[str, list[bytes]]) -> Iterator[Message]:
        first, sets = people_of(kinds["truth"], self.plan)
        ranges = np.bincount(self.plan.rows.of(first), minlength=self.plan.bins)
        yield result(counts_of(sets, ranges=tuple(ranges.tolist())))
