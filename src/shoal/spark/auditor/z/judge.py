"""Audit z-anonymity on Spark: was every released value shown by z people within the window?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from shoal.auditor.findings import AuditReport, Notes
from shoal.auditor.layout import check_layout
from shoal.auditor.policy import Policy
from shoal.auditor.reading.rows import Rows
from shoal.auditor.released_columns import METADATA_SENTENCE, check_columns
from shoal.auditor.trace import VERDICTS
from shoal.auditor.z.promise import ZPromise, read_z_promise
from shoal.errors import InputError, PolicyError
from shoal.spark.auditor.engine import Engine, Step
from shoal.spark.auditor.facts import EntryFacts, FileFacts
from shoal.spark.auditor.hashing import bins_for
from shoal.spark.auditor.linking import PairRows, TruthBins
from shoal.spark.auditor.merging import add_all
from shoal.spark.auditor.shares import Files, files_of
from shoal.spark.auditor.tables import People, count_people
from shoal.spark.auditor.unchanged import ColumnPart, note_columns
from shoal.spark.auditor.z.facts import FIRST, FindRestarts, ReadFacts, ReadTrace, Restarts
from shoal.spark.auditor.z.records import Checked, CheckEvents, Mentioned, Plan, SendRecords, SendReleased
from shoal.spark.auditor.z.values import JudgeValues, OfPseudonyms, OfValues

_TRACE: Final = ("row", "verdict", "reason")
NOT_ON_SPARK: Final = (
    "Whether every value is spelled in one way was not checked: not on Spark.",
    "Whether carried columns contain identifiers was not checked: not on Spark.",
    "Whether late records were refused, and others refused for a reason that applies, was not checked: not on Spark.",
    "Whether records of different values were decided in the order of time was not checked: not on Spark.",
    "Whether pseudonyms are random, or identifiers in another form, was not checked: not on Spark.",
    "How many people share a set of values in each epoch was not measured: not on Spark.",
)


def audit_z(
    engine: Engine, policy: Policy, release: Any, truth: Any, trace: Any, max_memory: int | None
) -> AuditReport:
    """Check the promise of a policy for z-anonymity; the truth and the trace must be given."""
    promise, notes = read_z_promise(policy), Notes()
    if promise.k is not None or promise.target is not None:
        raise PolicyError("combine, target: not audited on Spark; use shoal audit without --engine spark")
    files = files_of(policy, "events", release, truth, trace, max_memory)
    with notes.guarded():
        _judge(engine, policy, promise, files, notes)
    return notes.report(promise.method)


def _judge(engine: Engine, policy: Policy, promise: ZPromise, files: Files, notes: Notes) -> None:
    facts = FileFacts()
    for part in engine.run([*files.release, *files.truth], ReadFacts(policy)):
        facts.add(part)
    missing = [name for name in promise.columns if name not in facts.columns.get("truth", [])]
    if [name for name in missing if not (name == "row" == promise.person)] and facts.count("truth"):
        raise InputError(f"truth: no column {', '.join(missing)}; check the policy and the file")
    names = {name: pa.nulls(0) for name in facts.columns.get("release", [])}
    shown = Rows(((names, np.zeros(0, np.bool_)),), "release", (), facts.hidden)
    if not check_columns(promise.columns, shown, notes):
        return
    check_layout(facts.odd_rows, notes)
    trace, restarts = _read_trace(engine, policy, promise, files, facts)
    missing = [name for name in _TRACE if name not in trace.columns]
    if missing:
        notes.unchecked(f"The trace proves nothing: it has no column {', '.join(missing)}.")
        return
    add_all(notes, trace.findings)
    records, released = facts.count("truth"), facts.count("release")
    apart = abs(sum(trace.shown.values()) - released)
    notes.violation("release-count", "The release and the trace do not have the same number of rows.", count=apart)
    if apart:
        notes.skip("Rows, values and records were not checked: trace and release differ in length.")
        return
    if not restarts.is_confirmed and records > FIRST:
        notes.skip(f"Restarts of the stream after its first {FIRST} records were not looked for: not on Spark.")
    bins = bins_for(max(records, released), engine.tasks)
    positions = max(-(-released // bins), 1)
    plan = Plan(policy, promise, facts, trace, TruthBins(records, bins), positions, bins, restarts.rows)
    found = engine.run(
        [*files.release, *files.trace], SendReleased(plan),
        Step(bins, PairRows(plan.records)),
        Step(bins, CheckEvents(plan), [*files.truth, *files.trace], SendRecords(plan, facts.hidden)),
        Step(4 * bins, JudgeValues(plan)),
        Step(bins, count_people),
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
    of: dict[type, list[Any]] = {}
    for part in found:
        of.setdefault(type(part), []).append(part)
    checked, values, pseudonyms = (of.get(kind, []) for kind in (Checked, OfValues, OfPseudonyms))
    mentioned = frozenset[int]().union(*(part.people for part in of.get(Mentioned, [])))
    notes.violation("raw-identifier", METADATA_SENTENCE, count=len(mentioned))
    add_all(notes, [one for part in (*checked, *values, *pseudonyms) for one in part.findings], NOT_ON_SPARK)
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
    z = min(attribute.z for attribute in plan.promise.attributes)
    note_columns(of.get(ColumnPart, []), plan.policy, plan.promise, ("z", z), shown, notes)
