"""Events on Spark: released rows meet their records, and go on to the tasks of their values, people and pseudonyms."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from shoal.auditor.findings import Finding, Notes
from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import TEXT, Bools, Ints
from shoal.auditor.reading.hidden_data import Hidden
from shoal.auditor.reading.rows import Rows
from shoal.auditor.released_columns import mentioned_people
from shoal.auditor.trace import DEAD, read_reasons
from shoal.auditor.z.aligned import Aligned, align
from shoal.auditor.z.judge import check_unchanged
from shoal.auditor.z.promise import ZPromise
from shoal.auditor.z.pseudonyms import PSEUDONYM
from shoal.spark.auditor.engine import Message, result
from shoal.spark.auditor.facts import EntryFacts, FileFacts
from shoal.spark.auditor.hashing import Hashes, mixed, of_text
from shoal.spark.auditor.linking import (
    Entries,
    TruthBins,
    joined_column,
    linked_batches,
    numbers_of,
    released_rows,
    send_others,
    send_positions,
    send_ranges,
    truth_rows,
    whole,
)
from shoal.spark.auditor.packing import divided, packed, unpacked
from shoal.spark.auditor.shares import Share
from shoal.spark.auditor.tables import mark_of, to_people
from shoal.spark.auditor.unchanged import send_values
from shoal.spark.auditor.z.facts import entry_batch, read_truth

_ENTRY: Final = ("entry", "row", "verdict", "position")


@dataclass(frozen=True, slots=True)
class Plan:
    """What every task knows. Bins of values come first, then as many of pseudonyms, people, carried values."""

    policy: Policy
    promise: ZPromise
    facts: FileFacts
    trace: EntryFacts
    records: TruthBins
    positions: int
    bins: int
    restarts: Ints


@dataclass(frozen=True, slots=True)
class SendReleased:
    """Sends released rows, and entries of the trace that have one, to the bin of their position."""

    plan: Plan

    def __call__(self, share: Share) -> Iterator[Message]:
        plan = self.plan
        yield from send_positions(share, plan.facts, plan.trace, plan.positions, self._entries)

    def _entries(self, share: Share) -> Entries:
        return entry_batch(share, self.plan.promise, self.plan.facts, self.plan.trace)


@dataclass(frozen=True, slots=True)
class SendRecords:
    """Sends records, and entries of the trace that have no released row, to the bin of the record."""

    plan: Plan
    hidden: Hidden

    def __call__(self, share: Share) -> Iterator[Message]:
        plan = self.plan
        if share.role == "trace":
            yield from send_others(*entry_batch(share, plan.promise, plan.facts, plan.trace), plan.records)
            return
        truth = read_truth(share, plan.policy, plan.facts)
        found = mentioned_people(truth.text(plan.promise.person), plan.promise.columns, self.hidden)
        yield result(Mentioned(frozenset(map(of_text, found))))
        yield from send_ranges(whole(truth), plan.facts.first(share), plan.records.size, "truth")


@dataclass(frozen=True, slots=True)
class Mentioned:
    """Who is mentioned in the metadata of the release, as hashes."""

    people: frozenset[int]


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found about the records of a bin."""

    findings: list[Finding]
    usable: int
    undecided: int


@dataclass(frozen=True, slots=True)
class CheckEvents:
    """Checks the records of a bin and their released rows; sends them on."""

    plan: Plan

    def __call__(self, number: int, kinds: dict[str, list[bytes]]) -> Iterator[Message]:
        plan, promise = self.plan, self.plan.promise
        first, truth = number * plan.records.size, truth_rows(kinds.get("truth", ()))
        linked = linked_batches(kinds)
        entries = _Entries.of([*linked, *(unpacked(data) for data in kinds.get("others", ()))], first, promise)
        release = released_rows(linked)
        aligned = align(promise, release, truth)
        shown = entries.position >= 0
        notes = Notes(numbers=entries.position[shown])
        twice = int((entries.exists & ~entries.first).sum())
        notes.violation("decided-twice", "The trace decides a record more than once.", count=twice)
        self._check_alone(aligned, notes)
        counted = np.flatnonzero(entries.first & (entries.verdict != DEAD) & (entries.verdict >= 0))
        usable = aligned.usable[entries.row[counted]]
        sentence = "A record without a person or a time was not refused."
        notes.violation("unusable-accepted", sentence, count=int((~usable).sum()))
        counted = counted[usable]
        dead = entries.first & (entries.verdict == DEAD)
        read_reasons(entries.trace, dead, notes)
        if len(release):
            check_unchanged(aligned, entries.row[shown], notes)
        has_verdict = np.zeros(len(truth), np.bool_)
        has_verdict[entries.row[entries.exists]] = True
        yield result(Checked(notes.findings, int(aligned.usable.sum()), int((~has_verdict).sum())))
        yield from self._undecided(aligned, has_verdict, first, entries, counted)
        yield from self._values(aligned, entries, counted, first)
        yield from self._pseudonyms(aligned, entries, shown)
        yield from self._people(aligned, entries, counted)
        yield from self._carried(release, aligned, entries, shown)

    def _check_alone(self, aligned: Aligned, notes: Notes) -> None:
        notes.violation("unreadable-row", "A released row cannot be read or has no time.", rows=~aligned.shown_readable)
        well_formed = np.array([bool(PSEUDONYM.fullmatch(text)) for text in aligned.persons] + [False])
        notes.violation(
            "bad-pseudonym",
            "The person column contains something other than a pseudonym of 32 lowercase hex characters.",
            rows=~well_formed[aligned.shown_person] & aligned.shown_readable,
        )
        empty = np.logical_and.reduce([values.shown < 0 for values in aligned.values.values()])
        if all(attribute.on_private != "blank" for attribute in self.plan.promise.attributes):
            sentence = "A row was released although all its values are private."
            notes.violation("empty-row", sentence, rows=empty & aligned.shown_readable)

    def _undecided(
        self, aligned: Aligned, has_verdict: Bools, first: int, entries: _Entries, counted: Ints
    ) -> Iterator[Message]:
        """Send records without a verdict, and the last accepted one, to where they are compared."""
        rows = np.flatnonzero(~has_verdict)
        last = None
        if len(counted):
            row = int(entries.row[counted[-1]])
            last = (int(entries.entry[counted[-1]]), int(aligned.time[row]), row + first)
        yield Message(0, "undecided", pickle.dumps((rows + first, aligned.time[rows], aligned.usable[rows], last)))

    def _values(self, aligned: Aligned, entries: _Entries, counted: Ints, first: int) -> Iterator[Message]:
        """Send accepted records to the bins of their values."""
        rows = entries.row[counted]
        position = entries.position[counted]
        at = np.where(position >= 0, np.cumsum(entries.position >= 0)[counted] - 1, -1)
        start = np.searchsorted(self.plan.restarts, rows + first, side="right")
        persons = _hashes(aligned.persons)
        for attribute in self.plan.promise.attributes:
            values = aligned.values[attribute.name]
            texts = values.texts
            known, published = values.truth[rows], np.append(values.shown, -1)[at]
            kept = np.flatnonzero((known >= 0) | (published >= 0))
            of = np.full(len(kept), of_text(attribute.name) % self.plan.bins)
            if not attribute.generalizes:
                of = (_hashes(texts)[known[kept]] % np.uint64(self.plan.bins)).astype(np.int64)
            columns = {
                "value": pa.array([*texts, None], TEXT).take(pa.array(np.where(known < 0, len(texts), known)[kept])),
                "shown": pa.array([*texts, None], TEXT).take(
                    pa.array(np.where(published < 0, len(texts), published)[kept])
                ),
                "person": pa.array(persons[aligned.person[rows[kept]]]),
                "time": pa.array(aligned.time[rows[kept]]),
                "entry": pa.array(entries.entry[counted[kept]]),
                "start": pa.array(start[kept].astype(np.int64)),
                "position": pa.array(position[kept]),
                "z": pa.array(entries.z[attribute.name][counted[kept]]),
            }
            for number, part in divided(pa.record_batch(columns), of):
                yield Message(number, f"value {attribute.name}", packed(part))

    def _pseudonyms(self, aligned: Aligned, entries: _Entries, shown: Bools) -> Iterator[Message]:
        """Send released rows to the bins of their pseudonyms and of their people, and identifiers to those of texts."""
        plan = self.plan
        hashes = _hashes(aligned.persons)
        raw = np.unique(hashes[aligned.person[aligned.person >= 0]])
        for number, part in divided(pa.record_batch({"hash": pa.array(raw)}), _bin(raw, plan.bins)):
            yield Message(number + plan.bins, "identifiers", packed(part))
        row = entries.row[shown]
        known = (row >= 0) & aligned.shown_readable & (aligned.shown_person >= 0)
        if len(aligned.usable):
            known &= aligned.usable[row]
        person = hashes[aligned.person[row]] if len(aligned.person) else np.zeros(len(row), np.uint64)
        columns = {
            "pseudonym": pa.array(hashes[aligned.shown_person]),
            "person": pa.array(np.where(known, person, 0)),
            "epoch": pa.array(aligned.shown_time // plan.promise.rotation_ns),
            "readable": pa.array(aligned.shown_readable),
            "known": pa.array(known),
            "position": pa.array(entries.position[shown]),
        }
        batch = pa.record_batch(columns)
        named = np.flatnonzero(aligned.shown_person >= 0)
        of = _bin(hashes[aligned.shown_person[named]], plan.bins)
        for number, part in divided(batch.take(pa.array(named)), of):
            yield Message(number + plan.bins, "pseudonyms", packed(part))
        linked = np.flatnonzero(known)
        for number, part in divided(batch.take(pa.array(linked)), _bin(person[linked], plan.bins)):
            yield Message(number + 2 * plan.bins, "people", packed(part))

    def _carried(self, release: Rows, aligned: Aligned, entries: _Entries, shown: Bools) -> Iterator[Message]:
        """Send released rows to the bins of their carried values."""
        if not len(aligned.person):
            return
        person = aligned.person[entries.row[shown]]
        known = np.flatnonzero(aligned.shown_readable & (person >= 0) & (entries.row[shown] >= 0))
        of_class = mixed([_hashes(values.texts)[values.shown] for values in aligned.values.values()])
        yield from send_values(
            release, self.plan.promise.carry, (), known, _hashes(aligned.persons)[person[known]], of_class[known],
            entries.position[shown][known], range(3 * self.plan.bins, 4 * self.plan.bins),
        )  # fmt: skip

    def _people(self, aligned: Aligned, entries: _Entries, counted: Ints) -> Iterator[Message]:
        rows = entries.row[counted]
        released = set(aligned.person[rows[entries.position[counted] >= 0]].tolist())
        marks = [(mark_of(aligned.persons[at]), at in released) for at in np.unique(aligned.person[rows]).tolist()]
        for message in to_people(marks, self.plan.bins):
            yield Message(message.bin, "later", message.data)


def _bin(hashes: Hashes, bins: int) -> Ints:
    return (mixed([hashes]) % np.uint64(bins)).astype(np.int64)


def _hashes(texts: Sequence[str]) -> Hashes:
    """Hashes of texts; the last place is for null."""
    return np.array([*map(of_text, texts), 0], np.uint64)


@dataclass(frozen=True, slots=True)
class _Entries:
    """The entries of a bin, in the order of the trace; records are counted from the first of the bin, -1 for none."""

    entry: Ints
    row: Ints
    exists: Bools
    first: Bools
    verdict: Ints
    position: Ints
    z: dict[str, Ints]
    trace: Rows

    @classmethod
    def of(cls, batches: Sequence[pa.RecordBatch], first: int, promise: ZPromise) -> _Entries:
        names = [f"z.{attribute.name}" for attribute in promise.attributes]
        numbers = numbers_of(batches, [*_ENTRY, *names])
        order = np.argsort(numbers["entry"])
        numbers = {name: values[order] for name, values in numbers.items()}
        exists = numbers["row"] >= 0
        row = np.where(exists, numbers["row"] - first, -1)
        is_first = np.zeros(len(row), np.bool_)
        is_first[np.unique(row, return_index=True)[1]] = True
        reasons = joined_column(batches, "\1reason", TEXT).take(pa.array(order))
        trace = Rows((({"reason": reasons}, np.zeros(len(row), np.bool_)),), "trace")
        return cls(
            numbers["entry"], row, exists, is_first & exists, numbers["verdict"], numbers["position"],
            {name[2:]: numbers[name] for name in names}, trace,
        )  # fmt: skip
