"""Audit z-anonymity on Spark: was every released value shown by z people within the window?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from shoal.auditor.findings import AuditReport, Notes
from shoal.auditor.policy import Policy
from shoal.auditor.released_columns import METADATA_SENTENCE
from shoal.auditor.trace import VERDICTS
from shoal.auditor.z.combined import SharedSets, level_columns
from shoal.auditor.z.promise import ZPromise, read_z_promise
from shoal.auditor.z.target import note_target
from shoal.spark.auditor.carried_columns import ColumnPart, note_columns
from shoal.spark.auditor.engine import Engine, Step
from shoal.spark.auditor.facts import EntryFacts, FileFacts
from shoal.spark.auditor.hashing import bins_for
from shoal.spark.auditor.join_trace import PairRows, TruthBins
from shoal.spark.auditor.merge_findings import add_all
from shoal.spark.auditor.people import People
from shoal.spark.auditor.shares import Files, files_of
from shoal.spark.auditor.stream_checks import by_type, check_release, has_columns, is_as_long, require_truth
from shoal.spark.auditor.z.dedupe import JudgeLast, OfRows
from shoal.spark.auditor.z.epochs import OfEpochs, epoch_findings
from shoal.spark.auditor.z.facts import FIRST, FindRestarts, ReadFacts, ReadTrace, Restarts
from shoal.spark.auditor.z.order import OfOrder, order_findings
from shoal.spark.auditor.z.plan import Plan
from shoal.spark.auditor.z.records import Checked, CheckEvents, Mentioned, SendRecords, SendReleased
from shoal.spark.auditor.z.values import JudgeValues, OfPseudonyms, OfValues
from shoal.spark.auditor.z.withheld import OfWithheld

_TRACE: Final = ("row", "verdict", "reason")
NOT_ON_SPARK: Final = (
    "Whether every value is spelled in one way was not checked: not on Spark.",
    "Whether pseudonyms are random, or identifiers in another form, was not checked: not on Spark.",
    "How many people share a set of values in each epoch was not measured: not on Spark.",
)


def audit_z(
    engine: Engine, policy: Policy, release: Any, truth: Any, trace: Any, max_memory: int | None
) -> AuditReport:
    """Check the promise of a policy for z-anonymity; the truth and the trace must be given."""
    promise, notes = read_z_promise(policy), Notes()
    files = files_of(policy, "events", release, truth, trace, max_memory)
    with notes.guarded():
        _judge(engine, policy, promise, files, notes)
    return notes.report(promise.method)


def _judge(engine: Engine, policy: Policy, promise: ZPromise, files: Files, notes: Notes) -> None:
    facts = FileFacts()
    for part in engine.run([*files.release, *files.truth], ReadFacts(policy)):
        facts.add(part)
    notes.counts_rows = promise.person == "row" and not facts.has_row_column
    require_truth(facts, promise.columns, promise.person)
    if not check_release(facts, promise.columns, notes):
        return
    trace, restarts = _read_trace(engine, policy, promise, files, facts)
    if not has_columns(trace, _TRACE, notes):
        return
    add_all(notes, trace.findings)
    records, released = facts.count("truth"), facts.count("release")
    if not is_as_long(trace, released, "values", notes):
        return
    if not restarts.is_confirmed and records > FIRST:
        notes.skip(f"Restarts of the stream after its first {FIRST} records were not looked for: not on Spark.")
    bins = bins_for(max(records, released), engine.tasks)
    positions = max(-(-released // bins), 1)
    levels = None if promise.k is None else level_columns(trace.known, promise, notes)
    plan = Plan(policy, promise, facts, trace, TruthBins(records, bins), positions, bins, restarts.rows, levels)
    found = engine.run(
        [*files.release, *files.trace], SendReleased(plan),
        Step(bins, PairRows(plan.records)),
        Step(bins, CheckEvents(plan), [*files.truth, *files.trace], SendRecords(plan, facts.hidden)),
        Step(plan.all_bins, JudgeValues(plan)),
        Step(bins, JudgeLast(plan)),
    )  # fmt: skip
    _report(plan, found, notes)


def _read_trace(
    engine: Engine, policy: Policy, promise: ZPromise, files: Files, facts: FileFacts
) -> tuple[EntryFacts, Restarts]:
    trace, restarts = EntryFacts(), Restarts(np.zeros(0, np.int64), is_confirmed=True)
    first = [share for share in files.truth if facts.first(share) < FIRST]
    for part in engine.run([*files.trace, *first], ReadTrace(policy, facts), Step(1, FindRestarts(promise))):
        if isinstance(part, Restarts):
            restarts = part
        else:
            trace.add(part)
    return trace, restarts


def _report(plan: Plan, found: Sequence[Any], notes: Notes) -> None:
    of = by_type(found)
    checked, values, pseudonyms = (of.get(kind, []) for kind in (Checked, OfValues, OfPseudonyms))
    rows, epochs, withheld = (of.get(kind, []) for kind in (OfRows, OfEpochs, OfWithheld))
    mentioned = frozenset[int]().union(*(part.people for part in of.get(Mentioned, [])))
    notes.violation("raw-identifier", METADATA_SENTENCE, count=len(mentioned))
    findings = [one for part in (*checked, *values, *pseudonyms, *rows, *withheld) for one in part.findings]
    findings += order_findings(of.get(OfOrder, []), plan.promise) + epoch_findings(epochs, plan.promise)
    add_all(notes, findings, NOT_ON_SPARK)
    metrics, facts, trace = notes.metrics, plan.facts, plan.trace
    counts = {name: int(trace.verdicts[number]) for number, name in enumerate(VERDICTS)}
    undecided = sum(part.undecided for part in checked)
    metrics["verdicts"] = {"in": facts.count("truth"), **counts, "undecided": undecided}
    metrics["smallest_crowd"] = {
        attribute.name: min(
            (part.smallest[attribute.name] for part in values if part.smallest.get(attribute.name) is not None),
            default=None,
        )
        for attribute in plan.promise.attributes
    }
    people, shown = (sum(getattr(part, name) for part in of.get(People, [])) for name in ("all", "exposed"))
    metrics["released_people"] = shown
    metrics["people_never_released_share"] = 1 - shown / people if people else None
    metrics["released_rows"] = facts.count("release")
    metrics["pseudonyms"] = sum(part.count for part in pseudonyms)
    metrics["rows"] = facts.count("truth")
    metrics["usable_rows"] = sum(part.usable for part in checked)
    metrics["people"] = people
    _report_epochs(plan.promise, epochs, withheld, notes)
    z = min(attribute.z for attribute in plan.promise.attributes)
    named = metrics["pseudonyms"] if trace.unlinked else shown
    note_columns(of.get(ColumnPart, []), plan.policy, plan.promise, ("z", z), named, notes)


def _report_epochs(promise: ZPromise, epochs: Sequence[OfEpochs], withheld: Sequence[OfWithheld], notes: Notes) -> None:
    if promise.k is not None:
        sets = SharedSets()
        for part in epochs:
            sets.add(part.sets)
        sets.note(notes)
    if promise.target is not None:
        notes.metrics["withheld"] = sum(part.count for part in withheld)
        shown, met = sum(part.shown for part in epochs), sum(part.met for part in epochs)
        note_target(promise.target, shown, met, notes)
