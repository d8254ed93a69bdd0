"""Audit z-anonymity: was every released value shown by z people within the window?"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.auditor.counting import dense, spelt_codes
from shoal.auditor.evidence import Evidence, audit_rows, read_evidence
from shoal.auditor.findings import AuditReport, Notes
from shoal.auditor.identifying_columns import Published, check_identifying
from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.spelling import check_spelling
from shoal.auditor.trace import trace_with
from shoal.auditor.z.aligned import Aligned, align
from shoal.auditor.z.combined import check_sets
from shoal.auditor.z.crowds import check_bounds, check_exactly, check_membership, note_held_back
from shoal.auditor.z.exposure import describe_epochs
from shoal.auditor.z.promise import ZPromise, read_z_promise
from shoal.auditor.z.pseudonyms import check_linked_pseudonyms, check_other_columns, check_pseudonyms
from shoal.auditor.z.target import check_following, measure_target
from shoal.auditor.z.trace import Decisions, read_decisions
from shoal.auditor.z.withheld import check_withheld


def audit_z(policy: Policy, release: Any, truth: Any, trace: Any) -> AuditReport:
    """Check the promise of a policy for z-anonymity."""
    return audit_rows(read_evidence(policy, release, truth, trace), read_z_promise, _judge)


def _judge(evidence: Evidence, promise: ZPromise, notes: Notes) -> None:
    aligned = align(promise, evidence.release, evidence.truth)
    _check_spelling(evidence, aligned, promise, notes)
    _check_alone(aligned, promise, notes)
    counted, link = aligned.usable, None
    if evidence.truth is None:
        _say_without_truth(evidence, notes)
    else:
        check_other_columns(promise, evidence.release, evidence.truth, notes)
        counted, link = _check_against_truth(evidence, aligned, promise, notes)
    _check_carried(evidence, aligned, promise, link, notes)
    _measure(aligned, promise, counted, notes)
    if promise.target is not None:
        measure_target(aligned, promise, promise.target, notes)


def _check_spelling(evidence: Evidence, aligned: Aligned, promise: ZPromise, notes: Notes) -> None:
    """Check that equal values are spelled alike; needs the truth, whose spellings are allowed."""
    truth = evidence.truth
    if truth is None:
        return
    unchanged = {promise.time: np.where(aligned.shown_readable, dense(aligned.shown_time), -1)}
    unchanged |= {name: values.shown for name, values in aligned.values.items()}
    unchanged |= {name: spelt_codes(name, truth, evidence.release)[2] for name in promise.carry}
    check_spelling(evidence.release, truth, {}, unchanged, notes)


def _check_alone(aligned: Aligned, promise: ZPromise, notes: Notes) -> None:
    """Check what the release alone shows."""
    notes.violation("unreadable-row", "A released row cannot be read or has no time.", rows=~aligned.shown_readable)
    check_pseudonyms(aligned, promise, notes)
    if promise.k is not None:
        check_sets(aligned, promise, promise.k, notes).note(notes)
    empty = np.logical_and.reduce([values.shown < 0 for values in aligned.values.values()])
    if all(attribute.on_private != "blank" for attribute in promise.attributes):
        notes.violation(
            "empty-row", "A row was released although all its values are private.", rows=empty & aligned.shown_readable
        )


def _say_without_truth(evidence: Evidence, notes: Notes) -> None:
    notes.skip("Whether z people showed every value, and whether rows are true, was not checked: no truth.")
    notes.skip("Whether identifiers leaked was not checked beyond the form of pseudonyms: no truth.")
    if evidence.trace is not None:
        notes.skip("The trace was not checked: it needs the truth.")


def _check_carried(evidence: Evidence, aligned: Aligned, promise: ZPromise, link: Ints | None, notes: Notes) -> None:
    """Measure how identifying carried columns are; without the truth a pseudonym counts as a person."""
    is_linked = link is not None and bool((link >= 0).all())
    person = aligned.person[link] if is_linked and len(aligned.person) else aligned.shown_person
    of_class = dense(*(values.shown for values in aligned.values.values()))
    published = Published(evidence.release, aligned.shown_readable, person, of_class)
    z = min(attribute.z for attribute in promise.attributes)
    check_identifying(evidence.policy, promise.carry, (), published, ("z", z), notes)


def _check_against_truth(evidence: Evidence, aligned: Aligned, promise: ZPromise, notes: Notes) -> tuple[Bools, Ints]:
    """Return which truth rows counted, and the truth row of every released row (-1: not known)."""
    trace = trace_with(("row", "verdict"), evidence.trace, notes)
    if trace is None:
        _say_without_trace(promise, notes)
        link = check_membership(aligned, promise, notes)
        counted = aligned.usable
        check_bounds(aligned, promise, counted, notes)
    else:
        decisions = read_decisions(trace, aligned, promise, notes)
        counted = np.zeros(len(aligned.time), np.bool_)
        counted[decisions.accepted] = True
        link = _check_with_decisions(aligned, promise, decisions, counted, notes)
        _measure_people(aligned, counted, decisions, notes)
    check_linked_pseudonyms(aligned, promise, link, notes)
    return counted, link


def _check_with_decisions(
    aligned: Aligned, promise: ZPromise, decisions: Decisions, counted: Bools, notes: Notes
) -> Ints:
    if decisions.link is None:
        check_bounds(aligned, promise, counted, notes)
        return check_membership(aligned, promise, notes)
    if promise.target is not None:
        check_following(aligned, promise, decisions, notes)
    check_unchanged(aligned, decisions.link, notes)
    held = [check_exactly(aligned, attribute, decisions, notes) for attribute in promise.attributes]
    if promise.target is None:
        for rows in held:
            note_held_back(len(rows), notes)
    else:
        check_withheld(aligned, promise, promise.target, decisions, held, notes)
    return decisions.link


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


def check_unchanged(aligned: Aligned, link: Ints, notes: Notes) -> None:
    """Check the parts of a row that must be released unchanged."""
    known = link >= 0
    notes.violation("not-in-truth", "A released row has no row in the truth.", rows=~known)
    row = np.where(known, link, 0)
    if len(aligned.time):
        other_time = known & (aligned.time[row] != aligned.shown_time)
        notes.violation("wrong-time", "A released row has another time than its record.", rows=other_time)
        other = known & (aligned.carry[row] != aligned.shown_carry)
        notes.violation("wrong-carry", "A released row carries other values than its record.", rows=other)


def _measure(aligned: Aligned, promise: ZPromise, counted: Bools, notes: Notes) -> None:
    notes.metrics["released_rows"] = len(aligned.shown_time)
    notes.metrics["pseudonyms"] = len(np.unique(aligned.shown_person[aligned.shown_person >= 0]))
    if len(aligned.time):
        notes.metrics["rows"] = len(aligned.time)
        notes.metrics["usable_rows"] = int(aligned.usable.sum())
        notes.metrics["people"] = len(np.unique(aligned.person[counted]))
    notes.metrics["epochs"] = describe_epochs(aligned, promise, counted)


def _measure_people(aligned: Aligned, counted: Bools, decisions: Decisions, notes: Notes) -> None:
    people = len(np.unique(aligned.person[counted]))
    shown = len(np.unique(aligned.person[decisions.accepted[decisions.shown_at >= 0]]))
    notes.metrics["released_people"] = shown
    notes.metrics["people_never_released_share"] = 1 - shown / people if people else None
