"""Audit a tuple stream: do k people share every published vector, and is every row true and in time?

Released rows are read into a relation, entries of the trace are put next to the records they decide, and these next to
the rows. Then rows are divided: by class, by cluster, by person, and along the trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from shoal.auditor.checks import Found, all_found, check, look, merged
from shoal.auditor.engine import Place, Table
from shoal.auditor.evidence import audit_release
from shoal.auditor.findings import AuditReport, Finding, Notes
from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import Bools
from shoal.auditor.relation import Relation, Shape
from shoal.auditor.rows.checks import OF_RECORD, OF_RELEASE, count_filled, identifier_in_column, note_filled
from shoal.auditor.rows.classes import (
    OF_CLASS,
    count_nulls,
    exposed_people,
    keys_of,
    look_at_shares,
    measure_classes,
    note_nulls,
    note_shares,
    with_classes,
)
from shoal.auditor.rows.entries import has_columns
from shoal.auditor.rows.identifiers import have_identifiers, look_for_identifiers
from shoal.auditor.rows.membership import look_at_membership
from shoal.auditor.rows.quasi import Quasi, RangeColumn
from shoal.auditor.rows.reading import RowReader, quasi_identifiers, require_columns, true
from shoal.auditor.rows.spelling import look_at_spelling
from shoal.auditor.rows.texts import kept, matched, only_columns
from shoal.auditor.rows.unchanged import look_at_unchanged
from shoal.auditor.sorting import distinct
from shoal.auditor.trace import SUPPRESSED
from shoal.auditor.tuples.diversity.audit import Rows, look_at_values
from shoal.auditor.tuples.diversity.references import columns_of_formation
from shoal.auditor.tuples.groups import look_at_clusters
from shoal.auditor.tuples.history import Times, look_at_history, note_history
from shoal.auditor.tuples.loss import Losses, sum_losses
from shoal.auditor.tuples.ordered import Ordered, pass_along
from shoal.auditor.tuples.promise import TuplePromise, read_tuple_promise
from shoal.auditor.tuples.trace import look_at_entries, read_decisions


def audit_tuples(place: Place, policy: Policy) -> AuditReport:
    """Check the promise of a policy for a tuple stream."""
    promise = read_tuple_promise(policy)
    return audit_release(place, policy, promise, lambda notes: _Audit(place, policy, promise, notes).run())


@check(
    "below-k",
    "A class of the release has fewer than k different people.",
    advice="Whoever knows one of them finds the row: do not publish this release, and report how it was made.",
    families=("tuples",),
    by="class",
)
def below_k(rows: Relation, promise: TuplePromise) -> Bools:
    """Mark the rows of classes with fewer than k people."""
    found: Bools = rows["judged"] & (rows["people"] < promise.k)
    return found


@check(
    "root-row",
    "A suppressed row was published with more than the root.",
    advice="A suppressed row counts for nobody's crowd, so it must show nothing: do not publish this release.",
    families=("tuples",),
    by="none",
    needs=("trace",),
)
def root_row(rows: Relation, quasi: Sequence[Quasi]) -> Bools:
    """Mark suppressed rows that show something."""
    found: Bools = rows["is_root"] & ~_at_root(quasi, rows)
    return found


def _at_root(quasi: Sequence[Quasi], rows: Relation) -> Bools:
    found: Bools = np.logical_and.reduce([one.at_root(rows) for one in quasi])
    return found


class _Audit:
    """One audit; tables and their shapes go from step to step."""

    def __init__(self, place: Place, policy: Policy, promise: TuplePromise, notes: Notes) -> None:
        self.place, self.policy, self.promise, self.notes = place, policy, promise, notes
        self.has_truth = place.has("truth")
        time = promise.time if promise.is_timed else None
        require_columns(place, promise.person, *promise.columns, *((time,) if time is not None else ()))
        self.has_trace = has_columns(place, ("row", "verdict", "group"), notes)
        quasi = quasi_identifiers(place, promise.quasi)
        self.reader = RowReader(promise, quasi, time, promise.generalized)

    def run(self) -> None:
        """Check everything that can be checked."""
        place, reader = self.place, self.reader
        self._add(look_at_spelling(place, reader))
        # Tables are attributes so that they can be forgotten: others have all of them that is still needed.
        self.released = place.read("release", reader.released, reader.released_shape)
        self.records = place.read("truth", reader.records, reader.record_shape) if self.has_truth else None
        found = self._looked(self.released, ("row",), partial(look, checks=OF_RELEASE))
        self.has_strange_labels = any(finding.code == "unknown-label" for finding in found)
        self.notes.metrics["released_rows"] = place.outline("release").rows
        if self.has_trace:
            self._with_trace()
        else:
            self._without_trace()

    def _add(self, findings: Iterable[Finding]) -> None:
        self.notes.findings += merged(findings)

    def _looked(self, table: Table, by: tuple[str, ...], work: Callable[[Relation], list[Finding]]) -> list[Finding]:
        """What checks find in all parts of a table."""
        found = merged(finding for part in self.place.divide(table, by, work) for finding in part)
        self.notes.findings += found
        return found

    def _found(self, table: Table, by: tuple[str, ...], work: Callable[[Relation], Found]) -> Found:
        """What is found in all parts of a table."""
        found = all_found(self.place.divide(table, by, work))
        self.notes.findings += found.findings
        return found

    # ---- without the trace

    def _without_trace(self) -> None:
        rows, shape = self._unlinked(are_people=self._are_people())
        if self.promise.shows_suppressed:
            self.notes.skip("Rows at the root were assumed to be suppressed and not counted in classes: no trace.")
        self._say_without_trace()
        rows, shape = self._classes(rows, shape)
        look_at_values(self.place, self.promise, Rows(rows, shape, self._texts_of_records()), self.notes)

    def _are_people(self) -> bool:
        """Whether the truth has no person twice: then rows are people."""
        if self.has_truth and all(self.place.divide(self.records, ("person",), _have_one_record)):
            return True
        why = "the person of a row is only in the trace." if self.has_truth else "no truth."
        self.notes.skip(f"People were counted as rows, of which there are at least as many: {why}")
        return False

    def _say_without_trace(self) -> None:
        skip = self.notes.skip
        if not self.has_truth:
            skip("Whether rows are true, and whether identifiers leaked, was not checked: no truth.")
        skip("Whether every record was decided once, in time, and by clusters of k people was not checked: no trace.")
        skip("Whether published values cover the records' values was not checked: no trace.")
        skip("Cells that show something although their record has nothing there were not counted: no trace.")
        skip("Carriers of each attribute, and over what history k holds, were not counted: no trace.")
        if self.promise.diversity.needs_reference:
            skip("t was not checked: its references are in the trace.")
        self._say_without_values("no trace")

    def _say_without_values(self, why: str) -> None:
        if self.promise.generalized:
            names = ", ".join(map(repr, self.promise.generalized))
            self.notes.skip(f"Diversity of {names}, published generalized, was not checked: {why}.")

    def _unlinked(self, *, are_people: bool) -> tuple[Table, Shape]:
        """Compare rows with the truth although it is not known which record each is of; return them as rows."""
        added: Shape = {"is_assumed_root": bool, "is_root": bool, "judged": bool}
        shape: Shape = {**self.reader.released_shape, **added, **({"person": int} if are_people else {})}
        work = partial(_with_assumptions, self.reader.quasi, self.promise.shows_suppressed, are_people)
        rows = self.place.each(self.released, work, shape)
        if self.has_truth:
            exact = self.promise.rule_of_nulls == "exact"
            self._add(look_at_membership(self.place, rows, self.records, self.reader, with_nulls=exact))
            self._identifiers(in_unchanged=True)
        return rows, shape

    def _identifiers(self, *, in_unchanged: bool) -> bool:
        """Look for identifiers, if persons have any."""
        there = have_identifiers(self.place, self.promise.person)
        if there:
            strange = self.has_strange_labels
            given = self.place, self.reader, self.notes
            self._add(look_for_identifiers(*given, in_unchanged=in_unchanged, in_labels=strange))
        return there

    # ---- with the trace

    def _with_trace(self) -> None:
        place, promise, notes = self.place, self.promise, self.notes
        records = self.reader.record_shape
        decisions, shape, is_linked = read_decisions(place, promise, self.records, records, notes)
        self._add(look_at_entries(place, decisions, promise, has_truth=self.has_truth))
        ordered = pass_along(place, decisions, promise, has_truth=self.has_truth)
        self._add(ordered.findings)
        for sentence in ordered.not_checked:
            notes.skip(sentence)
        notes.metrics |= ordered.metrics
        if not self.has_truth:
            self._say_without_truth()
        texts = self._texts_of_records()
        if not is_linked:
            rows, own = self._unlinked(are_people=False)
            rows, own = self._classes(rows, own)
            look_at_values(place, promise, Rows(rows, own, texts, is_checked=False), notes)
            self._say_without_values("the trace does not fit the release")
            return
        rows, own = self._linked(decisions, shape, ordered)
        self.released = self.records = formed = None
        if promise.diversity.needs_reference:
            formed, _ = self._only(decisions, shape, columns_of_formation(promise))
        del decisions
        self._rows(rows)
        rows, own = self._classes(*self._without_records(rows, own))
        self._clusters(rows)
        if self.has_truth:
            self._history(rows, ordered)
        if not self.has_truth:
            self._say_without_values("no truth")
        look_at_values(place, promise, Rows(rows, own, texts, ordered, formed), notes)

    def _texts_of_records(self) -> Table | None:
        """The sensitive values of records."""
        if not self.has_truth:
            return None
        names = map(true, (*self.promise.sensitive, *self.promise.generalized))
        return self._only(self.records, self.reader.record_shape, ("record", *names))[0]

    def _without_records(self, rows: Table, shape: Shape) -> tuple[Table, Shape]:
        """Rows without what only checks next to their records look at."""
        done = {"faults", "entry", "record", "verdict", "delay", "k", "reason", "says_reused", "reused", "time"}
        done |= {"exists", "is_first", "counted", "is_there", *map(true, self.reader.unchanged)}
        done |= {one.value for one in self.reader.quasi if isinstance(one, RangeColumn)}
        return self._only(rows, shape, [name for name in shape if name not in done])

    def _only(self, table: Table, shape: Shape, names: Iterable[str]) -> tuple[Table, Shape]:
        """Some columns of a table, if it has them."""
        own: Shape = {name: shape[name] for name in names if name in shape}
        return self.place.each(table, partial(only_columns, tuple(own)), own), own

    def _say_without_truth(self) -> None:
        self.notes.skip("People were counted as rows, of which there are at least as many: no truth.")
        self.notes.skip("Whether rows are true, and whether identifiers leaked, was not checked: no truth.")
        self.notes.skip("Cells that show something although their record has nothing there were not counted: no truth.")
        self.notes.skip("Carriers of each attribute, and over what history k holds, were not counted: no truth.")

    def _linked(self, decisions: Table, shape: Shape, ordered: Ordered) -> tuple[Table, Shape]:
        """Put released rows next to what the trace and the truth say of each."""
        entries = self.place.each(decisions, _with_rows, shape)
        added: Shape = {"is_root": bool, "is_there": bool, "judged": bool, "decided": int, "decided_by": int}
        own: Shape = {**self.reader.released_shape, **shape, **added}
        return self.place.both(self.released, entries, ("row",), partial(_link, ordered), own), own

    def _rows(self, rows: Table) -> None:
        """Check row by row."""
        quasi, promise, notes = self.reader.quasi, self.promise, self.notes
        self._looked(rows, ("row",), lambda part: root_row(part, quasi))
        losses = sum(self.place.divide(rows, ("row",), partial(sum_losses, quasi)), Losses())
        losses.note(notes, notes.metrics["verdicts"]["suppressed"])
        if not self.has_truth:
            return
        checks = (*OF_RECORD, identifier_in_column) if self._identifiers(in_unchanged=False) else OF_RECORD
        self._looked(rows, ("row",), lambda part: look(part, checks, quasi, promise))
        filled = self._found(rows, ("row",), lambda part: count_filled(part, quasi, promise))
        names = (*(one.name for one in quasi), *promise.sensitive, *promise.carry)
        note_filled(filled, names, notes, is_asked=promise.asks_for_filled)

    def _clusters(self, rows: Table) -> None:
        has_carriers = "carriers" in self.place.outline("trace").columns
        if self.has_truth and not has_carriers:
            self.notes.skip("The trace's own count of carriers was not checked: it has no column carriers.")
        found = self._found(rows, ("group",), partial(look_at_clusters, self.reader.quasi, self.promise, has_carriers))
        grouped, reused = found.sums.get("grouped", 0), found.sums.get("reused", 0)
        self.notes.metrics["clusters"] = found.sums.get("clusters", 0)
        self.notes.metrics["reused_share"] = reused / grouped if grouped else None

    def _history(self, rows: Table, ordered: Ordered) -> None:
        known = ordered.times
        times = Times(known is not None, known is not None and known.is_clear, ordered.has_events)
        shape: Shape = {
            "row": int, "class": int, "people": int, "judged": bool, "person": str, "group": int, "formed": bool,
            "event": int, "decided": int, "decided_by": int,
        }  # fmt: skip
        small = self.place.each(rows, partial(only_columns, tuple(shape)), shape)
        found = self._found(small, ("class",), partial(look_at_history, self.promise, times))
        note_history(found, times, self.promise, self.notes)

    # ---- classes

    def _classes(self, rows: Table, shape: Shape) -> tuple[Table, Shape]:
        """Check every class of rows, and how many people it has."""
        place, promise, notes, quasi = self.place, self.promise, self.notes, self.reader.quasi
        shape = {**shape, **OF_CLASS}
        rows = place.regroup(rows, keys_of(quasi), partial(with_classes, quasi), shape)
        found = self._found(rows, ("class",), partial(_of_classes, quasi, promise))
        judged, readable = found.sums.get("judged", 0), found.sums.get("readable", 0)
        below = found.sums.get("below", 0)
        notes.metrics["root_rows"] = found.sums.get("root", 0)
        notes.metrics["classes"] = found.sums.get("classes", 0)
        notes.metrics["smallest_k"] = found.least.get("people")
        notes.metrics["rows_below_k_share"] = below / judged if judged else None
        notes.metrics["unique_rows"] = found.sums.get("unique", 0)
        notes.metrics["counted_in_classes"] = "people" if "person" in shape else "rows (at least as many as people)"
        if "person" in shape:
            note_shares(found, notes)
            people = self._found(rows, ("person",), lambda part: exposed_people(part, promise.k)).sums
            released, exposed = people.get("released people", 0), people.get("exposed people", 0)
            notes.metrics["released_people"] = released
            notes.metrics["people_below_k_share"] = exposed / released if released else None
            readable = people.get("people", 0)
        elif promise.max_share is not None:
            notes.skip("The shares of a class (max_share) were not checked: persons are not known.")
        note_nulls(found, notes)
        look_at_unchanged(place, rows, self.policy, promise, readable, notes)
        return rows, shape


def _have_one_record(records: Relation) -> bool:
    person = records.codes("person")[records["usable"]]
    return len(distinct(person)) == len(person)


def _with_assumptions(
    quasi: Sequence[Quasi],
    shows_suppressed: bool,  # noqa: FBT001 - the rows come last
    are_people: bool,  # noqa: FBT001
    rows: Relation,
) -> Relation:
    """Rows without a trace: those that show nothing may be suppressed ones; every row may be a person."""
    is_root = _at_root(quasi, rows) if shows_suppressed else np.zeros(len(rows), np.bool_)
    person = {"person": rows["row"]} if are_people else {}
    return rows.having(is_assumed_root=is_root, is_root=is_root, judged=~is_root & ~rows["broken"], **person)


def _with_rows(entries: Relation) -> Relation:
    return kept(entries, entries["row"] >= 0)


def _link(ordered: Ordered, released: Relation, entries: Relation) -> Relation:
    rows = matched(released, entries, "row")
    is_root = rows["verdict"] == SUPPRESSED
    nothing = np.zeros(len(rows), np.int64)
    times, event = ordered.times, rows["event"]
    decided, by = (nothing, nothing) if times is None else (times.shown(rows["entry"]), times.decided_by[rows["entry"]])
    if ordered.events is not None:
        event = ordered.events[rows["entry"]]
    return rows.having(
        is_root=is_root, is_there=rows["exists"], judged=~is_root & ~rows["broken"], event=event, decided=decided,
        decided_by=by,
    )  # fmt: skip


def _of_classes(quasi: Sequence[Quasi], promise: TuplePromise, rows: Relation) -> Found:
    counts = {"root": int(rows["is_root"].sum()), "readable": int((~rows["broken"]).sum())}
    found = Found(below_k(rows, promise), counts)
    found.add(measure_classes(rows, promise.k))
    found.add(count_nulls(rows, quasi))
    if "person" in rows:
        found.add(look_at_shares(rows, promise.max_share))
    return found
