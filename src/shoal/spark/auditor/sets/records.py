"""Records of the truth on Spark: numbered as on one machine, with the released rows that the trace names for them."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.auditor.findings import Finding, Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.sets.records import Sets, collect
from shoal.spark.auditor.engine import Message, result
from shoal.spark.auditor.sets.reading import Plan, SendTruth, people_of
from shoal.spark.auditor.sets.tallies import chances_of
from shoal.spark.auditor.shares import Share


@dataclass(frozen=True, slots=True)
class Records:
    """What tasks know about records, once all were counted."""

    plan: Plan
    starts: tuple[int, ...]
    """The number of the first record of each range of rows; at the end the number of records."""
    is_allowed: Bools
    """Which items are released."""
    label_of: Ints | None
    """The label of each item; -1 for none. None if labels are not known."""
    labels: tuple[str, ...]
    """The labels of the release first, then those that should have been released."""
    has_trace: bool
    sizes: tuple[int, ...]
    """The sizes of sets that are counted."""


@dataclass(frozen=True, slots=True)
class SendEntries:
    """Sends entries of the trace to the ranges of their records, and the truth to the bins of its people."""

    records: Records

    def __call__(self, share: Share) -> Iterator[Message]:
        if share.role == "truth":
            yield from SendTruth(self.records.plan)(share)
            return
        trace, notes, starts = share.read(), Notes(), self.records.starts
        row, position = trace.numbers("row"), trace.numbers("position")
        fits = (row >= 0) & (row < starts[-1]) & (position < self.records.plan.released)
        sentence = "The trace names a record or a row that does not exist."
        notes.violation("trace-broken", sentence, count=int((~fits).sum()))
        yield result(Entries(tuple(notes.findings)))
        row, position = row[fits], position[fits]
        of = np.searchsorted(starts, row, side="right") - 1
        for number in np.unique(of).tolist():
            own = of == number
            yield Message(int(number), "trace", pickle.dumps((share.number, row[own], position[own])))


@dataclass(frozen=True, slots=True)
class Entries:
    """What is wrong with entries of the trace."""

    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class SendPeople:
    """Sends the records of a bin of people to the ranges of their first rows; hands entries of the trace on."""

    records: Records

    def __call__(self, number: int, kinds: dict[str, list[bytes]]) -> Iterator[Message]:
        plan = self.records.plan
        for data in kinds.get("trace", ()):
            yield Message(number, "trace", data)
        if "truth" not in kinds:
            return
        first, sets = people_of(kinds["truth"], plan)
        of = plan.rows.of(first)
        for place in np.unique(of).tolist():
            some = sets.only(of == place)
            yield Message(int(place), "records", pickle.dumps((first[of == place], some.offsets, some.items)))


@dataclass(frozen=True, slots=True)
class Kept:
    """Records of a range: all, those that may be released, and the place of each in the release."""

    number: Ints
    before: Sets
    truth: Sets
    position: Ints | None
    findings: tuple[Finding, ...] = ()
    dropped: int = 0
    shown: Ints | None = None
    """All released rows that the trace names for these records."""
    longest: int = 0
    with_items: int = 0

    @classmethod
    def of(cls, number: int, kinds: dict[str, list[bytes]], records: Records) -> Kept:
        """The records of a range, in the order of the truth."""
        plan = records.plan
        parts = [pickle.loads(data) for data in kinds.get("records", ())]
        first = np.concatenate([np.zeros(0, np.int64), *(part[0] for part in parts)])
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        sizes = np.concatenate([np.zeros(0, np.int64), *(np.diff(part[1]) for part in parts)])
        items = np.concatenate([np.zeros(0, np.int64), *(part[2] for part in parts)])
        before = collect(np.repeat(rank, sizes), items, len(first), plan.items)
        keep = records.is_allowed[before.items]
        truth = collect(before.owners, before.items, len(before), plan.items, keep)
        numbers = np.arange(len(first)) + records.starts[number]
        found = cls(
            numbers, before, truth, None, longest=int(truth.sizes.max(initial=0)),
            with_items=int((truth.sizes > 0).sum()),
        )  # fmt: skip
        return found._placed(kinds.get("trace", ())) if records.has_trace else found

    def _placed(self, parts: Any) -> Kept:
        found = sorted((pickle.loads(data) for data in parts), key=lambda part: part[0])
        nothing, start = [np.zeros(0, np.int64)], int(self.number[0]) if len(self.number) else 0
        row = np.concatenate(nothing + [part[1] for part in found]) - start
        position = np.concatenate(nothing + [part[2] for part in found])
        left, notes = position >= 0, Notes()
        different = np.unique(row)
        sentence = "The trace names a record or a released row twice."
        notes.violation("trace-broken", sentence, count=len(row) - len(different))
        notes.violation("undecided", "Records are not in the trace.", count=len(self.number) - len(different))
        place = np.full(len(self.number), -1, np.int64)
        place[row] = position
        kept_back = np.unique(row[~left & (self.truth.sizes > 0)[row]])
        sentence = "According to the trace, records with items were not released."
        notes.violation("record-missing", sentence, count=len(kept_back))
        keep = place >= 0
        return Kept(
            self.number[keep], self.before, self.truth.only(keep), place[keep], tuple(notes.findings),
            int((~keep).sum()), position[left], self.longest, self.with_items,
        )  # fmt: skip


def known(truth: Sets, label_of: Ints) -> Sets:
    """The truth without items that have no label."""
    has_label = label_of[truth.items] >= 0
    return truth if has_label.all() else collect(truth.owners, truth.items, len(truth), truth.labels, has_label)


@dataclass(frozen=True, slots=True)
class FindBelow:
    """Finds, in a range of records, how likely a subset of a person is below k."""

    records: Records
    below: Mapping[tuple[str, int], Ints]

    def __call__(self, number: int, kinds: dict[str, list[bytes]]) -> Iterator[Message]:
        kept, label_of = Kept.of(number, kinds, self.records), self.records.label_of
        sides = {"before": kept.before}
        if label_of is not None:
            sides["after"] = known(kept.truth, label_of)
        for (side, size), below in self.below.items():
            if side in sides:
                yield result(chances_of(sides[side], side, size, below)[0])
