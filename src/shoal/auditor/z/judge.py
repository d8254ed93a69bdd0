"""Judge z-anonymity: was every released value shown by z people within the window?"""

from __future__ import annotations

from typing import Final

import numpy as np

from shoal.auditor.aligned import Facts, read_facts, spelt_codes
from shoal.auditor.columns_check import check_columns, trace_with
from shoal.auditor.counting import crowds, dense, lone_links, pair_codes, surplus
from shoal.auditor.findings import AuditReport, Notes
from shoal.auditor.inputs import Evidence
from shoal.auditor.layout import check_layout
from shoal.auditor.promise import Attribute, ZPromise, read_z_promise
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.spelling import check_spelling
from shoal.auditor.unchanged import Published, check_identifying
from shoal.auditor.z.combined_sets import check_sets
from shoal.auditor.z.exposure import describe_epochs
from shoal.auditor.z.pseudonyms import check_linked_pseudonyms, check_other_columns, check_pseudonyms
from shoal.auditor.z.target import check_following, measure_aim
from shoal.auditor.z.trace import Ledger, read_ledger

METHOD: Final = "z-anonymity"
_WHOLE_PATH: Final = np.iinfo(np.int64).max - 1
_BELOW_Z: Final = "A value was released that fewer than z people had shown within the window."
_RESIDUAL: Final = (
    "A generalized value was released that fewer than z people stand behind, "
    "not counting those already released below it."
)


def audit_z(evidence: Evidence) -> AuditReport:
    """Recount what a z-anonymity policy promised."""
    promise, notes = read_z_promise(evidence.policy), Notes()
    with notes.guarded():
        _judge(evidence, promise, notes)
    return notes.report(METHOD)


def _judge(evidence: Evidence, promise: ZPromise, notes: Notes) -> None:
    if check_columns(promise.columns, evidence.release, notes):
        check_layout(evidence.odd_rows, notes)
        facts = read_facts(promise, evidence.release, evidence.truth)
        _check_spelling(evidence, facts, promise, notes)
        _check_alone(facts, promise, notes)
        counted, link = facts.usable, None
        if evidence.truth is None:
            _say_without_truth(evidence, notes)
        else:
            check_other_columns(promise, evidence.release, evidence.truth, notes)
            counted, link = _check_against_truth(evidence, facts, promise, notes)
        _check_carried(evidence, facts, promise, link, notes)
        _measure(facts, promise, counted, notes)
        if promise.aim is not None:
            measure_aim(facts, promise, promise.aim, notes)


def _check_spelling(evidence: Evidence, facts: Facts, promise: ZPromise, notes: Notes) -> None:
    """Check that equal values are written alike; the truth can excuse another spelling, so it is needed."""
    truth = evidence.truth
    if truth is None:
        return
    unchanged = {promise.time: np.where(facts.shown_readable, dense(facts.shown_time), -1)}
    unchanged |= {name: values.shown for name, values in facts.values.items()}
    unchanged |= {name: spelt_codes(name, truth, evidence.release)[2] for name in promise.carry}
    check_spelling(evidence.release, truth, {}, unchanged, notes)


def _check_alone(facts: Facts, promise: ZPromise, notes: Notes) -> None:
    """Check what the release shows by itself."""
    notes.violation("unreadable-row", "A released row cannot be read or has no time.", rows=~facts.shown_readable)
    check_pseudonyms(facts, promise, notes)
    if promise.k is not None:
        check_sets(facts, promise, promise.k, notes)
    empty = np.logical_and.reduce([values.shown < 0 for values in facts.values.values()])
    if all(attribute.on_private != "blank" for attribute in promise.attributes):
        notes.violation(
            "empty-row",
            "A row was released although all its values are private.",
            rows=empty & facts.shown_readable,
        )


def _say_without_truth(evidence: Evidence, notes: Notes) -> None:
    notes.skip("Whether z people stand behind every value, and whether rows are true, was not checked: no truth.")
    notes.skip("Whether identifiers of persons leaked was not checked beyond the form of pseudonyms: no truth.")
    if evidence.trace is not None:
        notes.skip("The trace was not checked: it needs the truth.")


def _check_carried(evidence: Evidence, facts: Facts, promise: ZPromise, link: Ints | None, notes: Notes) -> None:
    """Measure how identifying carried columns are; without the truth a pseudonym counts as a person."""
    is_linked = link is not None and bool((link >= 0).all())
    person = facts.person[link] if is_linked and len(facts.person) else facts.shown_person
    of_class = dense(*(values.shown for values in facts.values.values()))
    published = Published(evidence.release, facts.shown_readable, person, of_class)
    z = min(attribute.z for attribute in promise.attributes)
    check_identifying(evidence.policy, promise.carry, (), published, ("z", z), notes)


def _check_against_truth(evidence: Evidence, facts: Facts, promise: ZPromise, notes: Notes) -> tuple[Bools, Ints]:
    """Recount; return which truth rows counted, and the truth row of every released row (-1: not known)."""
    trace = trace_with(("row", "verdict"), evidence.trace, notes)
    if trace is None:
        _say_without_trace(promise, notes)
        link = _check_membership(facts, promise, notes)
        counted = facts.usable
        _check_bounds(facts, promise, counted, notes)
    else:
        ledger = read_ledger(trace, facts, promise, notes)
        counted = np.zeros(len(facts.time), np.bool_)
        counted[ledger.accepted] = True
        link = _check_with_ledger(facts, promise, ledger, counted, notes)
        _measure_people(facts, counted, ledger, notes)
    check_linked_pseudonyms(facts, promise, link, notes)
    return counted, link


def _check_with_ledger(facts: Facts, promise: ZPromise, ledger: Ledger, counted: Bools, notes: Notes) -> Ints:
    if ledger.link is None:
        notes.skip("Values were not followed row by row: trace and release do not have the same number of rows.")
        _check_bounds(facts, promise, counted, notes)
        return _check_membership(facts, promise, notes)
    if promise.aim is not None:
        check_following(facts, promise, ledger, notes)
    _check_unchanged(facts, ledger.link, notes)
    for attribute in promise.attributes:
        _check_exactly(facts, attribute, ledger, notes)
    return ledger.link


def _say_without_trace(promise: ZPromise, notes: Notes) -> None:
    notes.skip(
        "People were counted over all usable records up to the released time; "
        "records refused as late and the order of equal times are only in the trace."
    )
    notes.skip("Whether one person has two pseudonyms, or two share one, was checked only where a row is unique.")
    if promise.aim is not None:
        notes.skip("Which z was in force in which epoch, and whether people stand behind values for it: no trace.")
    notes.skip("Whether more was held back than needed, and whether every record was decided once: no trace.")
    notes.skip("How many people have no released row: no trace.")
    if any(attribute.climbs for attribute in promise.attributes):
        notes.skip("The residual rule (people already released below a label do not count for it): no trace.")
    if len(promise.attributes) > 1:
        notes.skip("Which values belong together in one row: no trace.")


def _check_unchanged(facts: Facts, link: Ints, notes: Notes) -> None:
    """Check the parts of a row that must leave as they came."""
    known = link >= 0
    notes.violation("not-in-truth", "A released row has no row in the truth.", rows=~known)
    row = np.where(known, link, 0)
    if len(facts.time):
        other_time = known & (facts.time[row] != facts.shown_time)
        notes.violation("wrong-time", "A released row has another time than its record.", rows=other_time)
        other = known & (facts.carry[row] != facts.shown_carry)
        notes.violation("wrong-carry", "A released row carries other values than its record.", rows=other)


def _check_exactly(facts: Facts, attribute: Attribute, ledger: Ledger, notes: Notes) -> None:
    """Judge every decision by the records decided before it and by what had been released of them.

    A record counts for the labels of its path up to the one released, for all of them when suppressed:
    what was released at a strict descendant of a label does not count for the label.
    """
    values, rows = facts.values[attribute.name], ledger.accepted
    known = values.truth[rows]
    published = np.where(ledger.shown_at >= 0, _pick(values.shown, ledger.shown_at), -1)
    level = values.paths.level(known, published)
    wrong = (published >= 0) & (level < 0)
    if ledger.passed is not None:  # what z let pass may have been taken out later, to let no combination stand alone
        wrong |= (published >= 0) & (level != ledger.passed[attribute.name])
        level = ledger.passed[attribute.name]
    _check_labels(wrong, attribute, facts, ledger, notes)
    owner, step, label = values.paths.expand(known, np.where(level >= 0, level, _WHOLE_PATH))
    # Nothing counts across a fresh start of the stream: labels of each start are labels of their own.
    label += ledger.start[owner] * (int(label.max(initial=0)) + 1)
    crowd = crowds(label, facts.person[rows][owner], facts.time[rows][owner], attribute.window_ns, ties_together=False)
    z = _z_to_hold(attribute, ledger, notes)
    final, enough = step == level[owner], crowd >= z[owner]
    is_out = published >= 0
    failed = owner[final & ~enough]
    _note_below(_marked(ledger.shown_at[failed[is_out[failed]]], facts), attribute, notes)
    unfounded = len(failed) - int(is_out[failed].sum()) + int((level >= values.paths.length(known)).sum())
    notes.violation("trace-level", "The trace says that z let a value pass that it did not.", count=unfounded)
    _check_held_back(np.unique(owner[~final & enough]), level, notes)
    _note_smallest(crowd[final & is_out[owner]], attribute, notes)


def _pick(values: Ints, places: Ints) -> Ints:
    return values[places] if len(values) else np.full(len(places), -1, np.int64)


def _marked(rows: Ints, facts: Facts) -> Bools:
    marked = np.zeros(len(facts.shown_time), np.bool_)
    marked[rows] = True
    return marked


def _note_below(rows: Bools, attribute: Attribute, notes: Notes) -> None:
    notes.violation("below-z", _RESIDUAL if attribute.climbs else _BELOW_Z, rows=rows)


def _check_labels(wrong: Bools, attribute: Attribute, facts: Facts, ledger: Ledger, notes: Notes) -> None:
    rows = _marked(ledger.shown_at[wrong], facts)
    if attribute.climbs:
        notes.violation("wrong-label", "A released label does not stand above the record's value.", rows=rows)
    else:
        notes.violation("wrong-value", "A released value is not the record's value.", rows=rows)


def _z_to_hold(attribute: Attribute, ledger: Ledger, notes: Notes) -> Ints:
    written = ledger.z[attribute.name]
    lower = (written >= 0) & (written < attribute.z)
    notes.violation("z-lowered", "The trace says a lower z was in force than promised.", count=int(lower.sum()))
    return np.maximum(written, attribute.z)


def _check_held_back(rows: Ints, level: Ints, notes: Notes) -> None:
    climbed = level[rows] >= 0
    notes.warning("too-general", "A more specific label could have been released.", count=int(climbed.sum()))
    notes.warning("held-back", "A value was held back although z people had shown it.", count=int((~climbed).sum()))


def _note_smallest(crowd: Ints, attribute: Attribute, notes: Notes) -> None:
    smallest = notes.metrics.setdefault("smallest_crowd", {})
    smallest[attribute.name] = int(crowd.min()) if len(crowd) else None


def _check_bounds(facts: Facts, promise: ZPromise, counted: Bools, notes: Notes) -> None:
    """Judge by the most people who could stand behind a value: all records up to its time."""
    rows = np.flatnonzero(counted)
    rows = rows[np.argsort(facts.time[rows], kind="stable")]
    for attribute in promise.attributes:
        values = facts.values[attribute.name]
        owner, _, label = values.paths.expand(values.truth[rows])
        time = facts.time[rows][owner]
        crowd = crowds(label, facts.person[rows][owner], time, attribute.window_ns, ties_together=True)
        shown = np.flatnonzero((values.shown >= 0) & facts.shown_readable)
        known, asked = pair_codes((label, time), (values.shown[shown], facts.shown_time[shown]))
        behind = np.zeros(int(max(known.max(initial=0), asked.max(initial=0))) + 1, np.int64)
        behind[known] = crowd
        found = behind[asked]
        # A value that is nowhere in the truth at that time is not below z but invented: told apart elsewhere.
        _note_below(_marked(shown[(found > 0) & (found < attribute.z)], facts), attribute, notes)
        _note_smallest(found[found > 0], attribute, notes)


def _check_membership(facts: Facts, promise: ZPromise, notes: Notes) -> Ints:
    """Check that rows are in the truth, and no more often; link those that can be only one record.

    A label may stand for any value below it. Labels nest, so enough records exist for all rows exactly when,
    for every label, no more rows are released at or below it than records lie below it.
    """
    usable, readable = np.flatnonzero(facts.usable), np.flatnonzero(facts.shown_readable)
    keys, shown_keys = facts.keys()
    keys, shown_keys = keys[usable], shown_keys[readable]
    absent, extra = surplus(keys, shown_keys)
    link = lone_links(keys, shown_keys)
    for attribute in promise.attributes:
        values = facts.values[attribute.name]
        shown = values.shown[readable]
        owner, _, label = values.paths.expand(values.truth[usable])
        shown_owner, _, shown_label = values.paths.expand(shown)
        pair = pair_codes((keys[owner], label), (shown_keys[shown_owner], shown_label))
        for marks, found in zip((absent, extra), surplus(*pair), strict=True):
            marks[shown_owner[found]] = True
        absent |= (shown >= 0) & (values.paths.length(shown) == 0)
    notes.violation("not-in-truth", "A released row is not in the truth.", rows=_marked(readable[absent], facts))
    repeated = _marked(readable[extra & ~absent], facts)
    notes.violation("more-often-than-truth", "A row was released more often than it is in the truth.", rows=repeated)
    linked = np.full(len(facts.shown_time), -1, np.int64)
    linked[readable] = np.where(link >= 0, usable[link], -1) if len(usable) else -1
    return linked


def _measure(facts: Facts, promise: ZPromise, counted: Bools, notes: Notes) -> None:
    notes.metrics["released_rows"] = len(facts.shown_time)
    notes.metrics["pseudonyms"] = len(np.unique(facts.shown_person[facts.shown_person >= 0]))
    if len(facts.time):
        notes.metrics["rows"] = len(facts.time)
        notes.metrics["usable_rows"] = int(facts.usable.sum())
        notes.metrics["people"] = len(np.unique(facts.person[counted]))
    notes.metrics["epochs"] = describe_epochs(facts, promise, counted)


def _measure_people(facts: Facts, counted: Bools, ledger: Ledger, notes: Notes) -> None:
    people = len(np.unique(facts.person[counted]))
    shown = len(np.unique(facts.person[ledger.accepted[ledger.shown_at >= 0]]))
    notes.metrics["released_people"] = shown
    notes.metrics["people_never_released_share"] = 1 - shown / people if people else None
