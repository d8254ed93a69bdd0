"""Events on Spark: released rows meet their records, are checked with them, and go on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from shoal.auditor.findings import Finding, Notes
from shoal.auditor.reading.columns import Bools
from shoal.auditor.reading.hidden_data import Hidden
from shoal.auditor.released_columns import mentioned_people
from shoal.auditor.trace import DEAD
from shoal.auditor.z.aligned import Aligned, align
from shoal.auditor.z.combined import check_groups
from shoal.auditor.z.judge import check_unchanged
from shoal.auditor.z.pseudonyms import PSEUDONYM
from shoal.auditor.z.trace import Refused, check_refused, read_refused
from shoal.spark.auditor.engine import Message, result
from shoal.spark.auditor.hashing import of_text
from shoal.spark.auditor.join_trace import (
    linked_batches,
    released_rows,
    send_others,
    send_positions,
    send_ranges,
    truth_rows,
    whole,
)
from shoal.spark.auditor.packing import unpacked
from shoal.spark.auditor.shares import Share
from shoal.spark.auditor.z.entries import Entries, Events, entry_batch
from shoal.spark.auditor.z.epochs import send_epochs
from shoal.spark.auditor.z.facts import read_truth
from shoal.spark.auditor.z.order import send_arrivals, send_decided
from shoal.spark.auditor.z.plan import Plan
from shoal.spark.auditor.z.sending import send_events, send_undecided


@dataclass(frozen=True, slots=True)
class SendReleased:
    """Sends released rows, and entries of the trace that have one, to the bin of their position."""

    plan: Plan

    def __call__(self, share: Share) -> Iterator[Message]:
        plan = self.plan
        yield from send_positions(share, plan.facts, plan.trace, plan.positions, lambda share: entry_batch(share, plan))


@dataclass(frozen=True, slots=True)
class SendRecords:
    """Sends records, and entries of the trace that have no released row, to the bin of the record."""

    plan: Plan
    hidden: Hidden

    def __call__(self, share: Share) -> Iterator[Message]:
        plan = self.plan
        if share.role == "trace":
            yield from send_others(*entry_batch(share, plan), plan.records)
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
        notes = Notes()
        events = self._read(number, kinds, notes)
        aligned, entries = events.aligned, events.entries
        twice = int((entries.exists & ~entries.first).sum())
        notes.violation("decided-twice", "The trace decides a record more than once.", count=twice)
        self._check_alone(aligned, notes)
        refused = self._check_decided(events, notes)
        if len(events.release):
            check_unchanged(aligned, entries.row[events.shown], notes)
        has_verdict: Bools = np.zeros(len(aligned.time), np.bool_)
        has_verdict[entries.row[entries.exists]] = True
        yield result(Checked(notes.findings, int(aligned.usable.sum()), int((~has_verdict).sum())))
        yield from send_undecided(self.plan, events, has_verdict)
        yield from send_arrivals(self.plan, number, events, refused)
        yield from send_decided(self.plan, events)
        yield from send_events(self.plan, events)
        yield from send_epochs(self.plan, events)

    def _read(self, number: int, kinds: dict[str, list[bytes]], notes: Notes) -> Events:
        plan, first, linked = self.plan, number * self.plan.records.size, linked_batches(kinds)
        entries = Entries.of([*linked, *(unpacked(data) for data in kinds.get("others", ()))], first, plan)
        notes.numbers = entries.position[entries.position >= 0]
        release = released_rows(linked)
        aligned = align(plan.promise, release, truth_rows(kinds.get("truth", ())))
        counted = np.flatnonzero(entries.first & (entries.verdict != DEAD) & (entries.verdict >= 0))
        usable = aligned.usable[entries.row[counted]]
        sentence = "A record without a person or a time was not refused."
        notes.violation("unusable-accepted", sentence, count=int((~usable).sum()))
        counted = counted[usable]
        rows = entries.row[counted]
        return Events(first, aligned, release, entries, counted, rows, plan.starts(rows + first))

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

    def _check_decided(self, events: Events, notes: Notes) -> Refused:
        entries, aligned = events.entries, events.aligned
        refused = read_refused(
            entries.trace, entries.row, entries.first & (entries.verdict == DEAD), aligned.usable, notes
        )
        check_refused(refused, 0, notes)  # whether late ones were late, the order of arrivals shows
        if entries.waited is not None:
            epoch = aligned.time[events.rows] // self.plan.promise.rotation_ns
            check_groups(entries.waited[events.counted], epoch, entries.verdict[events.counted], notes)
        return refused
