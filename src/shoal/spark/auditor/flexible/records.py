"""Released rows meet their entries of the trace, then their records: each is checked, and sent on to its groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.auditor.counting import is_someone, shared_codes
from shoal.auditor.findings import Finding, Notes
from shoal.auditor.flexible.density import row_k
from shoal.auditor.flexible.groups import check_in_force, check_root
from shoal.auditor.flexible.trace import Trace, read_trace
from shoal.auditor.flexible.values import finest_cells
from shoal.auditor.reading.columns import TEXT, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.released_columns import mentioned_people
from shoal.auditor.rows.attributes import Attribute, Labels, Spans
from shoal.auditor.rows.rules import NumberRule
from shoal.auditor.trace import VERDICTS
from shoal.auditor.tuples.clusters import check_cover, check_values
from shoal.auditor.tuples.filled import FilledCells, count_filled
from shoal.auditor.tuples.truth import check_unchanged, names_someone, read_records
from shoal.spark.auditor.carried_columns import send_values
from shoal.spark.auditor.engine import Message, result
from shoal.spark.auditor.flexible.facts import DETAILS, Plan
from shoal.spark.auditor.hashing import Hashes, mixed, of_floats, of_text
from shoal.spark.auditor.join_trace import (
    EntryNumbers,
    joined_column,
    linked_batches,
    released_rows,
    send_others,
    send_positions,
    send_ranges,
    truth_rows,
    whole,
)
from shoal.spark.auditor.packing import as_batch, divided, packed, unpacked
from shoal.spark.auditor.shares import Share
from shoal.spark.auditor.tuples.records import class_hashes, only_columns, send_suspects, with_columns
from shoal.spark.auditor.tuples.sending import Persons


@dataclass(frozen=True, slots=True)
class SendReleased:
    """Sends released rows, and entries of the trace that have one, to the bin of their position."""

    plan: Plan

    def __call__(self, share: Share) -> Iterator[Message]:
        plan = self.plan
        yield from send_positions(share, plan.facts, plan.trace, plan.positions, plan.entries)


@dataclass(frozen=True, slots=True)
class SendRecords:
    """Sends records, and entries of the trace that have no released row, to the bin of the record."""

    plan: Plan

    def __call__(self, share: Share) -> Iterator[Message]:
        plan = self.plan
        if share.role == "trace":
            yield from send_others(*plan.entries(share), plan.records)
            return
        truth, first = plan.truth(share), plan.facts.first(share)
        persons = truth.text(plan.promise.person)
        found = mentioned_people(persons, plan.promise.columns, plan.facts.hidden)
        yield result(Persons(frozenset(map(of_text, found))))
        yield from send_ranges(whole(truth), first, plan.records.size, "truth")


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found about the records of a bin."""

    findings: list[Finding]
    verdicts: Counter[str]
    records_by_k: Counter[int]
    delays: Counter[int]
    loss: dict[str, tuple[float, int, int]]
    """By column: the sum over all rows, rows with a value, and all rows."""
    lossy: dict[str, float]
    """By column: the sum over rows with a value."""
    filled: FilledCells


@dataclass(frozen=True, slots=True)
class CheckRecords:
    """Checks the records of a bin and their released rows; sends the rows on to their groups."""

    plan: Plan

    def __call__(self, number: int, kinds: dict[str, list[bytes]]) -> Iterator[Message]:
        plan, promise = self.plan, self.plan.promise
        truth, linked = truth_rows(kinds.get("truth", ())), linked_batches(kinds)
        release = released_rows(linked)
        entries = [*linked, *(unpacked(data) for data in kinds.get("others", ()))]
        rows, positions = _trace_rows(entries, number * plan.records.size, plan)
        notes = Notes(numbers=positions)
        attributes = plan.attributes(release, truth)
        records = read_records(promise.person, None, truth, attributes)
        trace = read_trace(rows, records.usable, len(release), notes)
        check_values(attributes, release.broken, notes)
        if not promise.root:
            check_root(attributes, notes)
        check_cover(attributes, trace.row, np.append(records.usable, False)[trace.row], notes, missing="exact")
        unchanged = check_unchanged(promise, release, truth, trace.row, notes)
        self._check_names(release, truth, trace.row, notes)
        k = row_k(promise, attributes, trace.row)
        check_in_force(trace, k, plan.calibration, notes)
        needed = row_k(promise, attributes, np.arange(len(truth)))
        yield result(
            Checked(
                notes.findings, Counter(notes.metrics["verdicts"]), Counter(needed[records.usable].tolist()),
                _delays(rows), *_losses(attributes, ~release.broken),
                count_filled(attributes, trace.row, unchanged),
            )
        )  # fmt: skip
        yield from self._pending(number, truth, attributes, records.usable, trace, needed)
        yield from self._on(release, truth, attributes, trace, k, positions)

    def _check_names(self, release: Rows, truth: Rows, row: Ints, notes: Notes) -> None:
        promise = self.plan.promise
        named = np.zeros(len(release), np.bool_)
        if self.plan.has_identifiers:
            persons = truth.text(promise.person)
            for name in (*promise.sensitive, *promise.carry):
                named |= names_someone(persons, release.text(name), row)
        notes.warning("identifier-in-column", "A row carries the identifier of its person.", rows=named)

    def _pending(
        self, number: int, truth: Rows, attributes: Sequence[Attribute], usable: Any, trace: Trace, needed: Ints
    ) -> Iterator[Message]:
        """Send pending records that were there in a round of grouping to the bins of their values."""
        plan, pending = self.plan, usable.copy()
        pending[trace.decided] = False
        arrived = plan.usable_before[number] + np.cumsum(usable) - 1
        rows = np.flatnonzero(pending & (arrived < plan.seen))
        if not len(rows):
            return
        alike, person = _finest(attributes, plan)[rows], _of_persons(truth.text(plan.promise.person))[rows]
        batch = pa.record_batch({"alike": alike, "person": person, "k": needed[rows]})
        for own, part in divided(batch, (alike % np.uint64(plan.bins)).astype(np.int64)):
            yield Message(3 * plan.bins + own, "pending", packed(part))

    def _on(
        self, release: Rows, truth: Rows, attributes: Sequence[Attribute], trace: Trace, k: Ints, positions: Ints
    ) -> Iterator[Message]:
        """Send rows to the bins of their classes, of their groups and of their unchanged values."""
        plan, promise = self.plan, self.plan.promise
        if plan.is_strange and plan.has_identifiers:
            yield from send_suspects(release, truth, attributes, positions, promise, plan.bins)
        if not len(release):
            return
        texts, (code,) = shared_codes(truth.text(promise.person))
        person = np.append(np.where(is_someone(code, texts), code, -1), -1)[trace.row]
        numbers = {"position": positions, "group": trace.group, "k": k}
        extra = {f"\0{name}": pa.array(np.asarray(values, np.int64)) for name, values in numbers.items()}
        extra["\1person"] = pa.array([*texts, None], TEXT).take(pa.array(np.where(person >= 0, person, len(texts))))
        normal = [attribute for attribute in attributes if attribute.name not in plan.calibration.sparse]
        known = np.flatnonzero((person >= 0) & ~release.broken)
        of_person = np.array([*map(of_text, texts), 0], np.uint64)[person]
        yield from send_values(
            release, promise.carry, promise.sensitive, known, of_person[known], class_hashes(attributes)[known],
            positions[known], range(2 * plan.bins, 3 * plan.bins),
        )  # fmt: skip
        of_class = class_hashes(normal) % np.uint64(plan.bins)
        of_group = mixed([trace.group.astype(np.uint64)]) % np.uint64(plan.bins)
        every, at = np.ones(len(release), np.bool_), 0
        for part in release.parts:
            rows = slice(at, at + len(part[1]))
            at += len(part[1])
            batch = with_columns(as_batch(only_columns(part, promise.columns)), extra, rows)
            for bins, wanted, offset in ((of_class, every, 0), (of_group, trace.group >= 0, plan.bins)):
                kept = np.flatnonzero(wanted[rows])
                for number, own in divided(batch.take(pa.array(kept)), bins[rows][kept].astype(np.int64)):
                    yield Message(number + offset, "rows", packed(own))


def _trace_rows(batches: Sequence[pa.RecordBatch], first: int, plan: Plan) -> tuple[Rows, Ints]:
    """The entries of a bin as a trace, in its order; records are counted from the first of the bin."""
    details = [name for name in DETAILS if name in plan.trace.columns]
    found = EntryNumbers.of(batches, ("entry", "row", "verdict", "position", *details), first)
    numbers = found.numbers
    texts = pa.array([*VERDICTS, None], TEXT).take(pa.array(numbers["verdict"] % (len(VERDICTS) + 1)))
    columns = {
        "row": pa.array(found.row), "verdict": texts,
        "reason": joined_column(batches, "\1reason", TEXT).take(found.order),
        **{name: pa.array(numbers[name]) for name in details},
    }  # fmt: skip
    shown = numbers["position"][numbers["position"] >= 0]
    return Rows(((columns, np.zeros(len(found.row), np.bool_)),), "trace"), shown


def _delays(trace: Rows) -> Counter[int]:
    if "delay" not in trace.columns:
        return Counter()
    is_shown = np.array([text == VERDICTS[0] for text in trace.text("verdict").to_pylist()], np.bool_)
    delay = trace.numbers("delay")[is_shown]
    return Counter(delay[delay >= 0].tolist())


def _losses(attributes: Sequence[Attribute], judged: Any) -> tuple[dict[str, tuple[float, int, int]], dict[str, float]]:
    every, shown = {}, {}
    for attribute in attributes:
        there = judged & (attribute.code >= 0)
        every[attribute.name] = float(attribute.loss[judged].sum()), int(there.sum()), int(judged.sum())
        shown[attribute.name] = float(attribute.loss[there].sum())
    return every, shown


def _finest(attributes: Sequence[Attribute], plan: Plan) -> Hashes:
    """A hash of the true values, as far as the finest labels distinguish them."""
    found = []
    for attribute, rule in zip(attributes, plan.promise.quasi, strict=True):
        if isinstance(attribute, Labels):
            found.append(np.array([*map(of_text, attribute.texts), 0], np.uint64)[attribute.true_code])
        else:
            assert isinstance(attribute, Spans)
            assert isinstance(rule, NumberRule)
            found.append(of_floats(finest_cells(attribute, rule)))
    return mixed(found)


def _of_persons(column: Any) -> Hashes:
    texts, (code,) = shared_codes(column)
    return np.array([*map(of_text, texts), 0], np.uint64)[code]
