"""Audit flexible k-anonymity: are labels true, is nothing dropped, do enough people share every row?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np

from shoal.auditor.checks import Check, Found, all_found, look, merged
from shoal.auditor.engine import Place, Table
from shoal.auditor.evidence import audit_release
from shoal.auditor.findings import AuditReport, Notes
from shoal.auditor.flexible.calibration import Calibration, Claims, FirstRecords, calibrate
from shoal.auditor.flexible.candidates import note_candidates
from shoal.auditor.flexible.checks import (
    OF_CLAIMS,
    checks_of_entries,
    group_differs,
    k_lowered,
    k_s_lowered,
    root_label,
    whole_domain,
)
from shoal.auditor.flexible.crowds import (
    CROWDS,
    count_people,
    counted,
    look_at_crowds,
    median,
    note_crowds,
    with_crowds,
)
from shoal.auditor.flexible.density import needed_k, with_measured_density
from shoal.auditor.flexible.linked import Linked, RowChecks, link, note_losses
from shoal.auditor.flexible.promise import FlexiblePromise, read_flexible_promise
from shoal.auditor.flexible.quasi import quasi_identifiers
from shoal.auditor.flexible.trace import (
    ARRIVAL,
    DECISION,
    ENTRY,
    Arrivals,
    alone,
    count_arrivals,
    decided,
    details,
    finest_shape,
    last_of,
    look_at_decisions,
    look_at_pending,
    pending,
    undecided,
)
from shoal.auditor.policy import Policy
from shoal.auditor.relation import Relation, Shape
from shoal.auditor.rows.checks import OF_RECORD, identifier_in_column, note_filled
from shoal.auditor.rows.classes import keys_of
from shoal.auditor.rows.entries import has_columns, read_entries
from shoal.auditor.rows.identifiers import have_identifiers, look_for_identifiers
from shoal.auditor.rows.membership import look_at_membership
from shoal.auditor.rows.quasi import Quasi
from shoal.auditor.rows.reading import RowReader, require_columns
from shoal.auditor.rows.spelling import look_at_spelling
from shoal.auditor.rows.texts import only_columns
from shoal.auditor.rows.unchanged import look_at_unchanged

_TRACE: Final = ("row", "verdict", "group")
_ORDER: Final = ("record", "entry")


def audit_flexible(place: Place, policy: Policy) -> AuditReport:
    """Check the promise of a policy for flexible k-anonymity."""
    promise = read_flexible_promise(policy)
    return audit_release(place, policy, promise, lambda notes: _Audit(place, policy, promise, notes).run())


class _Audit:
    """One audit."""

    def __init__(self, place: Place, policy: Policy, promise: FlexiblePromise, notes: Notes) -> None:
        require_columns(place, promise.person, *promise.columns)
        self.place, self.policy, self.promise, self.notes = place, policy, promise, notes
        self.quasi = quasi_identifiers(place, promise.quasi)
        self.reader = RowReader(promise, self.quasi)
        self.released = place.read("release", self.reader.released, self.reader.released_shape)
        self.records: Table = None
        if place.has("truth"):
            self.records = place.read("truth", self.reader.records, self.reader.record_shape)
        is_traced = has_columns(place, _TRACE, notes)
        self.entries = read_entries(place, details, ENTRY, notes) if is_traced else None
        self.trace_columns = place.outline("trace").columns if is_traced else ()
        self.have_identifiers = self.records is not None and have_identifiers(place, promise.person)

    def run(self) -> None:
        """Check everything that can be checked."""
        place, notes = self.place, self.notes
        notes.metrics["released_rows"] = place.outline("release").rows
        notes.findings += look_at_spelling(place, self.reader)
        claims = Claims.read(place.outline("trace").claims if self.entries is not None else ())
        calibration = self._look_at_trace(claims)
        notes.findings += look(Relation(), OF_CLAIMS, claims, self.promise, calibration)
        rows = link(place, self.reader, self.promise, self.entries, self.released, self.records)
        self._say_what_is_missing(rows, claims)
        self._look_at_rows(rows, calibration)
        self._look_for_people(is_linked=rows.have_records)

    # ---- the trace, and what was fixed before the first release

    def _look_at_trace(self, claims: Claims) -> Calibration:
        """Check the trace next to the records."""
        place, records, entries = self.place, self.records, self.entries
        if records is None:
            if entries is not None:
                self._look_at_decisions(place.regroup(entries.table, ("record",), alone, DECISION))
            return calibrate(self.promise, None, claims, self.notes)
        if entries is None:
            return self._calibrated(place.each(records, undecided, DECISION), claims, is_timed=False)
        decisions = place.both(entries.table, records, ("record",), decided, DECISION)
        strangers = self._look_at_decisions(decisions)
        is_timed = "delay" in self.trace_columns
        if self.promise.needs_calibration or self.promise.measured:
            what = "K_s was" if not self.promise.measured else "K_s and the people per cell were"
            sentence = f"{what} computed from too many records: the trace has no column delay."
            self.notes.unchecked(sentence, count=int(not is_timed))
        return self._calibrated(decisions, claims, is_timed=is_timed and not strangers)

    def _look_at_decisions(self, decisions: Table) -> int:
        """Check and count all entries; return how many released rows have no record."""
        has_truth, metrics = self.records is not None, self.notes.metrics
        checks = checks_of_entries(self.trace_columns, has_truth=has_truth)
        parts = self.place.divide(decisions, ("record",), partial(look_at_decisions, checks))
        found, delays = all_found(part.found for part in parts), sum((part.delays for part in parts), Counter[int]())
        count = Counter(found.sums)
        self.notes.findings += found.findings
        metrics["verdicts"] = {"released": count["released"], "dead": count["dead"]}
        if has_truth:
            metrics["verdicts"] |= {"in": self.place.outline("truth").rows, "pending": count["pending"]}
            sentence = "Why records were refused was not checked: the trace gives no reason."
            self.notes.unchecked(sentence, count=count["without reason"])
        if delays:
            metrics["delay"] = {"median": median(delays), "longest": max(delays)}
        return count["strangers"]

    def _calibrated(self, decisions: Table, claims: Claims, *, is_timed: bool) -> Calibration:
        """Compute K_s and the people of places from the first records, then look at pending ones."""
        place, promise = self.place, self.promise
        order = place.each(decisions, partial(only_columns, tuple(ARRIVAL)), ARRIVAL)
        arrivals: Arrivals = place.along(order, _ORDER, count_arrivals)
        came = arrivals.before_first if is_timed else None
        count = promise.window if came is None else min(promise.window, max(came, 0))
        wanted = min(count, arrivals.usable), arrivals.seen(promise.window)
        last, last_seen = place.along(order, _ORDER, partial(last_of, wanted))
        shape: Shape = {"person": str, **{one.value: one.true[one.value] for one in self.quasi}}
        first = place.gather(place.each(self.records, partial(_first, shape, last), shape))
        person = first.codes("person")
        self.promise = promise = with_measured_density(promise, self.quasi, first, person)
        k = needed_k(promise, self.quasi, first, np.ones(len(first), np.bool_))
        values = {one.name: first.codes(one.value) for one in self.quasi}
        self._look_at_records(last_seen)
        return calibrate(promise, FirstRecords(person, k, values), claims, self.notes)

    def _look_at_records(self, last: int) -> None:
        """Count how many people records need, and look at those that are pending."""
        place, given = self.place, (self.quasi, self.promise)
        if self.promise.measured:
            counts = sum(place.divide(self.records, ("record",), partial(_count_k, *given)), Counter[int]())
            self.notes.metrics["records_by_k"] = {str(k): counts[k] for k in sorted(counts)}
        if self.entries is not None:
            finest = finest_shape(self.quasi)
            shape: Shape = {"person": str, "own_k": int, **finest}
            left = place.both(self.records, self.entries.table, ("record",), partial(pending, *given, last), shape)
            found = place.divide(left, tuple(finest), partial(look_at_pending, tuple(finest)))
            self.notes.findings += merged(finding for part in found for finding in part)

    # ---- released rows

    def _say_what_is_missing(self, rows: Linked, claims: Claims) -> None:
        """Say what cannot be checked without the truth or the trace."""
        skip = self.notes.skip
        if self.entries is None:
            skip("Whether every record was released, refused or is pending, exactly once, was not checked: no trace.")
        elif not claims.are_there and not {"k", "k_s"} <= set(self.trace_columns):
            skip("The k and K_s of the run were not compared: the trace does not record them.")
        if rows.have_records:
            return
        lacking = "rows cannot be linked to records" if self.entries is not None else "no trace"
        if self.records is None:
            lacking = "no truth"
            skip("Whether rows are true, and whether identifiers leaked, was not checked: no truth.")
        else:
            skip("Whether published values cover the true ones was not checked: rows cannot be linked to records.")
        skip(f"People were counted as rows, of which there are at least as many: {lacking}.")
        skip(f"Candidates for an attacker with true values were not counted: {lacking}.")
        if self.promise.density or self.promise.measured:
            skip(f"The k of density classes was not checked, only the lowest of all: {lacking}.")

    def _look_for_people(self, *, is_linked: bool) -> None:
        """Look for identifiers; if nothing links rows to records, compare their unchanged values."""
        place, reader, notes = self.place, self.reader, self.notes
        if self.have_identifiers:
            strange = any(found.code == "unknown-label" for found in notes.findings)
            given = {"in_unchanged": not is_linked, "in_labels": strange}
            notes.findings += merged(look_for_identifiers(place, reader, notes, **given))
        if self.records is not None and not is_linked:
            shape: Shape = {**reader.released_shape, "is_assumed_root": bool}
            released = place.each(self.released, _never_root, shape)
            notes.findings += merged(look_at_membership(place, released, self.records, reader, with_nulls=False))

    def _look_at_rows(self, rows: Linked, calibration: Calibration) -> None:
        """Check rows one by one, and how many people share each."""
        place, notes, promise, quasi = self.place, self.notes, self.promise, self.quasi
        normal = tuple(one for one in quasi if one.name not in calibration.sparse)
        shape: Shape = {**rows.shape, **CROWDS}
        crowds = place.regroup(rows.table, keys_of(normal), partial(with_crowds, normal, quasi, calibration), shape)
        parts = place.divide(crowds, keys_of(normal), look_at_crowds)
        by_row = place.divide(crowds, ("row",), RowChecks(quasi, promise, calibration, *self._checks_of(rows)))
        found = all_found([*(part.found for part in parts), *(part.found for part in by_row)])
        if rows.have_entries:
            found.add(all_found(place.divide(crowds, ("group",), _look_at_groups)))
        if rows.have_records:
            found.add(all_found(place.divide(crowds, ("person",), count_people)))
            names = (*(one.name for one in quasi), *self.reader.unchanged)
            note_filled(found, names, notes, is_asked=False)
        notes.findings += found.findings
        note_crowds(parts, found, notes, are_people=rows.have_records)
        note_losses(by_row, found, quasi, notes)
        people = found.sums.get("judged people" if rows.have_records else "judged", 0)
        look_at_unchanged(place, crowds, self.policy, promise, people, notes)
        if rows.have_records:
            note_candidates(place, crowds, quasi, normal, notes)

    def _checks_of(self, rows: Linked) -> tuple[tuple[Check, ...], ...]:
        """What is checked of rows: of their values, of what was in force, next to their records."""
        of_values = () if self.promise.root else (root_label, whole_domain)
        recorded = {"k": k_lowered, "k_s": k_s_lowered}
        in_force = tuple(one for name, one in recorded.items() if rows.have_entries and name in self.trace_columns)
        of_record = (*OF_RECORD, *((identifier_in_column,) if self.have_identifiers else ()))
        return of_values, in_force, of_record if rows.have_records else ()


def _first(shape: Shape, last: int, records: Relation) -> Relation:
    return records.take(records["usable"] & (records["record"] <= last)).only(*shape)


def _count_k(quasi: Sequence[Quasi], promise: FlexiblePromise, records: Relation) -> Counter[int]:
    return counted(needed_k(promise, quasi, records, np.ones(len(records), np.bool_))[records["usable"]])


def _never_root(rows: Relation) -> Relation:
    return rows.having(is_assumed_root=np.zeros(len(rows), np.bool_))


def _look_at_groups(rows: Relation) -> Found:
    return Found(look(rows, (group_differs,)))
