"""Released rows meet their entries of the trace, then their records: rows are checked one by one, records once."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.auditor.counting import is_someone, shared_codes
from shoal.auditor.findings import Finding, Notes
from shoal.auditor.reading.columns import TEXT, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.rows.attributes import Attribute, Labels, Spans
from shoal.auditor.tuples.clusters import (
    Link,
    Losses,
    check_cover,
    check_roots,
    check_values,
    sum_loss,
)
from shoal.auditor.tuples.deadlines import WrittenDelays, check_written_delays
from shoal.auditor.tuples.events import note_events
from shoal.auditor.tuples.filled import FilledCells, count_filled
from shoal.auditor.tuples.trace import Decisions
from shoal.auditor.tuples.truth import (
    ReleasedColumns,
    check_refused,
    check_unchanged,
    names_someone,
    read_records,
)
from shoal.spark.auditor.carried_columns import send_values
from shoal.spark.auditor.engine import Message, result
from shoal.spark.auditor.hashing import Hashes, mixed, of_floats, of_text, of_texts
from shoal.spark.auditor.join_trace import (
    linked_batches,
    released_rows,
    truth_rows,
)
from shoal.spark.auditor.packing import as_batch, divided, packed, unpacked
from shoal.spark.auditor.tuples.entries import Entries, link_of
from shoal.spark.auditor.tuples.sending import Plan


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found about the records of a bin."""

    findings: list[Finding]
    losses: Losses
    delays: WrittenDelays
    undecided: int
    root_rows: int
    known: int
    filled: FilledCells


@dataclass(frozen=True, slots=True)
class CheckRecords:
    """Checks the records of a bin and their released rows; sends the rows on to their classes and clusters."""

    plan: Plan
    dead_before: tuple[int, ...]
    """Refused records before each bin."""
    newest: int
    """The last arrival that the trace knows of, if deadlines count arrivals."""

    def __call__(self, number: int, kinds: dict[str, list[bytes]]) -> Iterator[Message]:
        plan, promise = self.plan, self.plan.promise
        first, truth = number * plan.records.size, truth_rows(kinds.get("truth", ()))
        linked = linked_batches(kinds)
        others = [unpacked(data) for data in kinds.get("others", ())]
        release = released_rows(linked)
        entries = Entries.of([*linked, *others], first, has_events=plan.has_events)
        decisions = entries.decisions
        notes = Notes(numbers=entries.position[decisions.is_shown])
        attributes = plan.attributes(release, truth)
        records = read_records(promise.person, promise.time if promise.is_timed else None, truth, attributes)
        twice = int((decisions.exists & ~decisions.first).sum())
        notes.violation("decided-twice", "The trace decides a record more than once.", count=twice)
        check_refused(entries.trace, decisions, records, notes)
        link = link_of(decisions, records.usable)
        check_values(attributes, release.broken, notes)
        check_roots(attributes, link.is_root, notes)
        check_cover(attributes, link.row, link.known, notes, missing=promise.rule_of_nulls, exempt=link.is_root)
        unchanged = check_unchanged(promise, release, truth, link.row, notes)
        self._check_names(release, truth, link.row, notes)
        if plan.has_events:
            early = entries.decisions.row + first > entries.event
            note_events(decisions, early & decisions.exists, entries.displaced & decisions.counted, notes)
        delays = check_written_delays(decisions, promise, notes)
        arrived = self._arrived(number, decisions, len(truth))
        undecided = self._check_undecided(decisions, arrived, len(truth), notes)
        yield result(
            Checked(
                notes.findings, sum_loss(attributes, link, decisions), delays or WrittenDelays(), undecided,
                int(link.is_root.sum()), int(link.known.sum()),
                count_filled(attributes, link.row, unchanged, link.is_root),
            )
        )  # fmt: skip
        yield from self._on(release, truth, attributes, entries, link, arrived)

    def _check_names(self, release: Rows, truth: Rows, row: Ints, notes: Notes) -> None:
        promise = self.plan.promise
        persons = truth.text(promise.person)
        named = np.zeros(len(release), np.bool_)
        if self.plan.has_identifiers:
            for name in (*promise.sensitive, *promise.carry):
                named |= names_someone(persons, release.text(name), row)
        notes.warning("identifier-in-column", "A row carries the identifier of its person.", rows=named)

    def _arrived(self, number: int, decisions: Decisions, count: int) -> Ints | None:
        """The arrivals, without refused ones, up to every record; None if deadlines are durations."""
        if self.plan.promise.is_timed:
            return None
        alive = np.ones(count, np.bool_)
        alive[decisions.dead_rows] = False
        before = number * self.plan.records.size - self.dead_before[number]
        return np.asarray(np.cumsum(alive) - 1 + before, np.int64)

    def _check_undecided(self, decisions: Decisions, arrived: Ints | None, count: int, notes: Notes) -> int:
        has_verdict = np.zeros(count, np.bool_)
        has_verdict[decisions.row[decisions.exists]] = True
        if arrived is not None and not self.plan.promise.may_be_late and self.newest >= 0:
            lost = ~has_verdict & (arrived <= self.newest - self.plan.promise.deadline)
            sentence = "The trace has no verdict on a record that should have one."
            notes.violation("lost", sentence, count=int(lost.sum()))
            notes.info(
                "pending", "Records had no verdict yet when the trace ended.", count=int((~has_verdict & ~lost).sum())
            )
        return int((~has_verdict).sum())

    @staticmethod
    def _decided(decisions: Decisions, arrived: Ints | None, row: Ints) -> Ints:
        """When released rows were decided, in arrivals; long ago if that is not known."""
        assert decisions.delay is not None
        long_ago = np.full(len(row), np.iinfo(np.int64).min)
        if arrived is None:
            return long_ago
        known = decisions.counted[decisions.is_shown] & (row >= 0)
        return np.where(known, np.append(arrived, 0)[row] + decisions.delay[decisions.is_shown], long_ago)

    def _on(
        self, release: Rows, truth: Rows, attributes: Sequence[Attribute], entries: Entries, link: Link,
        arrived: Ints | None,
    ) -> Iterator[Message]:  # fmt: skip
        """Send rows to the bins of their classes and of their clusters."""
        promise, decisions = self.plan.promise, entries.decisions
        if self.plan.is_strange and self.plan.has_identifiers:
            positions = entries.position[decisions.is_shown]
            yield from send_suspects(release, truth, attributes, positions, promise, self.plan.classes)
        if not len(release):
            return
        shown = decisions.is_shown
        texts, (code,) = shared_codes(truth.text(promise.person))
        person = np.append(np.where(is_someone(code, texts), code, -1), -1)[link.row]
        assert decisions.delay is not None
        numbers: dict[str, Any] = {
            "position": entries.position[shown],
            "group": link.group,
            "formed": link.formed,
            "first": decisions.first[shown],
            "reused": decisions.reused[shown],
            "event": entries.event[shown],
            "row": entries.record[shown],
            "delay": decisions.delay[shown],
            "displaced": entries.displaced[shown],
            "decided": self._decided(decisions, arrived, link.row),
            **{
                f"carried{at}": link.known & np.append(attribute.carried, False)[link.row]
                for at, attribute in enumerate(attributes)
            },
        }
        names = pa.array([*texts, None], TEXT).take(pa.array(np.where(person >= 0, person, len(texts))))
        extra = {f"\0{name}": pa.array(np.asarray(values, np.int64)) for name, values in numbers.items()}
        extra["\1person"] = names
        if entries.carriers is not None:
            extra["\1carriers"] = entries.carriers.filter(pa.array(shown))
        hashes, count = class_hashes(attributes), self.plan.classes
        known = np.flatnonzero((person >= 0) & ~release.broken)
        of_person = np.array([*map(of_text, texts), 0], np.uint64)[person]
        yield from send_values(
            release, promise.carry, promise.sensitive, known, of_person[known],
            np.where(link.is_root, 0, hashes)[known], entries.position[shown][known], range(2 * count, 3 * count),
        )  # fmt: skip
        of_class = hashes % np.uint64(count)
        of_group = mixed([link.group.astype(np.uint64)]) % np.uint64(self.plan.classes)
        judged, at = ~link.is_root & ~release.broken, 0
        for part in release.parts:
            rows = slice(at, at + len(part[1]))
            at += len(part[1])
            batch = with_columns(as_batch(only_columns(part, promise.columns)), extra, rows)
            for bins, wanted, offset in ((of_class, judged, 0), (of_group, link.group >= 0, self.plan.classes)):
                kept = np.flatnonzero(wanted[rows])
                for number, own in divided(batch.take(pa.array(kept)), bins[rows][kept].astype(np.int64)):
                    yield Message(number + offset, "rows", packed(own))


def send_suspects(
    release: Rows, truth: Rows, attributes: Sequence[Attribute], positions: Ints, promise: ReleasedColumns, bins: int
) -> Iterator[Message]:
    """Send texts that must not be released, and identifiers, to where equal ones meet."""
    found: list[tuple[Hashes, Ints | None]] = [(of_texts(truth.text(promise.person)), None)]
    for name in release.columns:
        if name not in promise.columns:
            found.append((of_texts(release.text(name)), positions))
    for attribute in attributes:
        strange = attribute.faults.get("unknown-label")
        if strange is not None and strange.any():
            found.append((of_texts(release.text(attribute.name))[strange], positions[strange]))
    for hashes, rows in found:
        of = hashes % np.uint64(bins)
        for number in np.unique(of[hashes > 0]).tolist():
            own = (of == number) & (hashes > 0)
            if rows is None:
                yield Message(int(number), "identifiers", pickle.dumps(np.unique(hashes[own])))
            else:
                yield Message(int(number), "suspects", pickle.dumps((hashes[own], rows[own])))


def only_columns(part: Any, names: Sequence[str]) -> Any:
    """Some columns of a part."""
    return {name: column for name, column in part[0].items() if name in names}, part[1]


def with_columns(batch: pa.RecordBatch, extra: Mapping[str, Any], rows: slice) -> pa.RecordBatch:
    """A batch with further columns, of which it gets some rows."""
    own = {name: column.slice(rows.start, rows.stop - rows.start) for name, column in extra.items()}
    return pa.RecordBatch.from_arrays([*batch.columns, *own.values()], schema=pa.schema(
        [*batch.schema, *(pa.field(name, column.type) for name, column in own.items())]
    ))  # fmt: skip


def class_hashes(attributes: Sequence[Attribute]) -> Hashes:
    """A hash of the published quasi-identifiers of every row."""
    found = []
    for attribute in attributes:
        if isinstance(attribute, Labels):
            texts = np.array([*map(of_text, attribute.texts), 0], np.uint64)
            found.append(texts[attribute.code])
        else:
            assert isinstance(attribute, Spans)
            there = attribute.code >= 0
            found += [of_floats(np.where(there, end, np.nan)) for end in (attribute.low, attribute.high)]
    return mixed(found)
