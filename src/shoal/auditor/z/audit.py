"""Audit z-anonymity: was every released value shown by z people within the window?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from shoal.auditor.checks import Found, all_found, find, look, merged
from shoal.auditor.engine import Place, Table
from shoal.auditor.evidence import audit_release
from shoal.auditor.findings import AuditReport, Notes
from shoal.auditor.policy import Policy
from shoal.auditor.rows.entries import has_columns
from shoal.auditor.rows.reading import require_columns
from shoal.auditor.rows.spelling import Meaning, look_at_unchanged_spelling, moments_of, values_of
from shoal.auditor.rows.texts import kept, texts_of
from shoal.auditor.trace import VERDICTS
from shoal.auditor.z import crowds, epochs, evidence, membership, order, people, records, withheld
from shoal.auditor.z.evidence import LINK
from shoal.auditor.z.order import Clock
from shoal.auditor.z.promise import ZPromise, read_z_promise

_NO_LEVELS: Final = (
    "Values that passed z and were removed later cannot be distinguished from values suppressed by z: "
    "the trace has no column level, the level at which values passed."
)


def audit_z(place: Place, policy: Policy) -> AuditReport:
    """Check the promise of a policy for z-anonymity."""
    promise = read_z_promise(policy)
    return audit_release(place, policy, promise, lambda notes: _Audit(place, policy, promise, notes).run())


@dataclass(slots=True)
class _Audit:
    """The steps of an audit."""

    place: Place
    policy: Policy
    promise: ZPromise
    notes: Notes
    has_trace: bool = False

    def run(self) -> None:
        """Read everything, link released rows to their records, and look at values, rows, people and epochs."""
        place, promise, notes = self.place, self.promise, self.notes
        released = evidence.read_released(place, promise)
        counts = people.Counts()
        if place.has("truth"):
            require_columns(place, *promise.columns)
            notes.findings += look_at_unchanged_spelling(place, _meanings(promise))
            known = evidence.read_records(place, promise)
            rows, counted = self._against_truth(released, known)
            counts = people.measure(place, counted, notes, has_trace=self.has_trace)
            rows = people.check_identifiers(place, promise, known, rows, notes)
        else:
            _say_without_truth(place, notes)
            rows = place.each(released, evidence.without_record, place.shape(released) | LINK)
        people.check_pseudonyms(place, promise, rows, notes)
        people.check_carried(place, self.policy, promise, rows, notes)
        epochs.check_epochs(place, promise, rows, counts, notes)

    def _against_truth(self, released: Table, known: Table) -> tuple[Table, Table]:
        """Check released rows with their records; return both, the records with what decided them."""
        place, promise, notes = self.place, self.promise, self.notes
        self.has_trace = has_columns(place, ("row", "verdict"), notes)
        if not self.has_trace:
            _say_without_trace(promise, notes)
            return self._check_bounds(released, known, known), known
        entries, apart = evidence.read_entries(place, promise)
        notes.findings += records.release_count(apart)
        decided = evidence.decide(place, entries, released, known)
        clock = self._check_records(decided, is_linked=not apart)
        accepted = place.each(decided, lambda rows: kept(rows, rows["accepted"]), place.shape(decided))
        if apart:
            notes.skip("Rows were not checked one by one: trace and release do not have the same number of rows.")
            return self._check_bounds(released, known, accepted), decided
        self._check_values(accepted, clock)
        columns = place.shape(released) | LINK
        return place.each(decided, lambda rows: kept(rows.only(*columns), rows["row"] >= 0), columns), decided

    def _check_records(self, decided: Table, *, is_linked: bool) -> Clock:
        """Check the verdict of every record, the clock of the stream, and the order of decisions."""
        place, promise, notes = self.place, self.promise, self.notes
        arrivals = place.each(decided, order.arrivals, order.ARRIVAL)
        clock = place.along(arrivals, ("record",), partial(order.follow, promise))
        decisions = place.each(decided, order.decisions, order.DECISION)
        misplaced = place.along(decisions, ("entry",), partial(order.count_misplaced, promise, clock))
        notes.findings += order.decision_order(misplaced)
        if promise.k is not None or not misplaced:
            notes.findings += order.late_accepted(clock.late)
        closed = -1
        if promise.k is not None:
            closed = max(place.divide(decided, ("record",), partial(records.last_closed, promise, clock)), default=-1)
        checks = (*records.ALL, *(records.OF_ROWS if is_linked else ()))
        check = partial(records.check_each, checks, promise, clock, closed)
        found = all_found(place.divide(decided, ("record",), check))
        notes.findings += merged([*found.findings, *records.refused_in_time(clock.in_time)])
        counts = dict.fromkeys((*VERDICTS, "undecided"), 0) | found.sums
        notes.metrics["verdicts"] = {"in": place.outline("truth").rows, **counts}
        return clock

    def _check_values(self, accepted: Table, clock: Clock) -> None:
        """Count the people behind every value, and check what is promised of whole epochs."""
        place, promise, target, notes = self.place, self.promise, self.promise.target, self.notes
        has_levels = promise.k is not None and bool(evidence.level_columns(place, promise))
        if promise.k is not None and not has_levels:
            notes.unchecked(_NO_LEVELS)
        smallest = notes.metrics["smallest_crowd"] = {}
        for attribute in promise.attributes:
            by = () if attribute.generalizes else (f"true {attribute.name}",)
            shape = place.shape(accepted) | crowds.COUNTED | {f"held {attribute.name}": bool}
            accepted = place.regroup(accepted, by, partial(crowds.counted, attribute, clock, has_levels), shape)
            check = partial(crowds.check_counted, attribute, is_final=target is None)
            smallest[attribute.name] = find(place, accepted, by, check, notes).least.get("crowd")
        if has_levels:
            find(place, accepted, ("epoch",), partial(epochs.suppressed_at_once, promise, clock), notes)
        if target is not None:
            checks = epochs.z_missing, epochs.z_within_epoch
            find(place, accepted, ("epoch",), lambda rows: Found(look(rows, checks, promise, clock)), notes)
            low = place.divide(accepted, ("epoch",), partial(epochs.low_z, promise, target, clock))
            notes.findings += epochs.z_too_early(promise, target, low)
            check = partial(withheld.check_withheld, promise, target, clock)
            found = find(place, accepted, ("epoch",), check, notes)
            notes.metrics["withheld"] = found.sums.get("withheld", 0)

    def _check_bounds(self, released: Table, known: Table, counted: Table) -> Table:
        """Check released rows as far as their time and carried values tell which records they are."""
        place, promise, notes = self.place, self.promise, self.notes
        at = place.each(known, lambda rows: rows.having(at=rows["time"]), place.shape(known) | {"at": int})
        shape = place.shape(released) | LINK | {"absent": bool, "extra": bool}
        rows = place.both(at, released, ("at",), partial(membership.linked, promise), shape)
        checks = membership.not_in_truth, membership.more_often
        find(place, rows, ("row",), lambda rows: Found(look(rows, checks)), notes)
        smallest = notes.metrics["smallest_crowd"] = {}
        for attribute in promise.attributes:
            shown = f"released {attribute.name}"
            values = place.each(counted, partial(crowds.shown_by, attribute), {"time": int, "person": str, shown: str})
            by = () if attribute.generalizes else (shown,)
            bounded = place.both(values, rows, by, partial(crowds.bounded, attribute), shape | {"crowd": int})
            found = find(place, bounded, ("row",), partial(crowds.check_bounded, attribute), notes)
            smallest[attribute.name] = found.least.get("crowd")
        return rows


def _meanings(promise: ZPromise) -> dict[str, Meaning]:
    """What spellings of released columns are of one value."""
    meanings: dict[str, Meaning] = {promise.time: moments_of}
    meanings |= {attribute.name: texts_of for attribute in promise.attributes}
    return meanings | dict.fromkeys(promise.carry, values_of)


# ---- what is not checked


def _say_without_truth(place: Place, notes: Notes) -> None:
    notes.skip("Whether z people showed every value, and whether rows are true, was not checked: no truth.")
    notes.skip("Whether identifiers leaked was not checked beyond the form of pseudonyms: no truth.")
    if place.has("trace"):
        notes.skip("The trace was not checked: it needs the truth.")


def _say_without_trace(promise: ZPromise, notes: Notes) -> None:
    notes.skip(
        "People were counted over all usable records up to the released time: "
        "refusals of late records and the order of equal times are only in the trace."
    )
    notes.skip("Whether one person has two pseudonyms, or two share one, was checked only for unique rows.")
    if promise.target is not None:
        notes.skip(
            "Which z was in force in which epoch, and whether values had as many people, was not checked: no trace."
        )
    notes.skip("Whether too much was suppressed, and whether every record was decided once, was not checked: no trace.")
    notes.skip("How many people have no released row was not counted: no trace.")
    if any(attribute.generalizes for attribute in promise.attributes):
        notes.skip("The residual rule (people released below a label do not count for it) was not checked: no trace.")
    if len(promise.attributes) > 1:
        notes.skip("Which values belong to one row was not checked: no trace.")
