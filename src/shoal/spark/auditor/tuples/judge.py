"""Audit a tuple stream on Spark: rows meet their records, classes and clusters in tasks; the driver adds up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from shoal.auditor.findings import AuditReport, Finding, Notes
from shoal.auditor.policy import Policy
from shoal.auditor.released_columns import METADATA_SENTENCE
from shoal.auditor.trace import DEAD, RELEASED, SUPPRESSED
from shoal.auditor.tuples.clusters import Losses
from shoal.auditor.tuples.deadlines import WrittenDelays
from shoal.auditor.tuples.events import FirstRows
from shoal.auditor.tuples.filled import FilledCells
from shoal.auditor.tuples.promise import TuplePromise, read_tuple_promise
from shoal.spark.auditor.carried_columns import ColumnPart, note_columns
from shoal.spark.auditor.engine import Engine, Step
from shoal.spark.auditor.hashing import bins_for
from shoal.spark.auditor.join_trace import PairRows, TruthBins
from shoal.spark.auditor.merge_findings import add_all
from shoal.spark.auditor.people import People
from shoal.spark.auditor.shares import Files, files_of
from shoal.spark.auditor.stream_checks import by_type, check_release, has_columns, is_as_long, require_truth
from shoal.spark.auditor.tuples.classes import JudgeClasses, OfClasses, OfClusters, count_once, with_share
from shoal.spark.auditor.tuples.facts import Facts, ReadFacts, ReadTrace, TraceFacts, merged_facts
from shoal.spark.auditor.tuples.records import Checked, CheckRecords
from shoal.spark.auditor.tuples.sending import Persons, Plan, SendRecords, SendReleased

_TRACE: Final = ("row", "verdict", "group", "delay", "reused", "reason")
_EVENT: Final = "event"
"""With deadlines as durations, a trace that was written on Spark does not have this column."""
_NO_EVENTS: Final = (
    "Which rows were published together, whether clusters existed when reused, and l and t each time one grew, "
    "were not checked: the trace has no column event."
)
NOT_ON_SPARK: Final = (
    "Whether every value is spelled in one way was not checked: not on Spark.",
    "Whether delays of the trace agree with the order of its decisions was not checked: not on Spark.",
)


def audit_tuples(
    engine: Engine, policy: Policy, release: Any, truth: Any, trace: Any, max_memory: int | None
) -> AuditReport:
    """Check the promise of a policy for a tuple stream; the truth and the trace must be given."""
    promise, notes = read_tuple_promise(policy), Notes()
    files = files_of(policy, "tuples", release, truth, trace, max_memory)
    with notes.guarded():
        _Judge(engine, policy, promise, files, notes).judge()
    return notes.report(promise.method)


class _Judge:
    def __init__(self, engine: Engine, policy: Policy, promise: TuplePromise, files: Files, notes: Notes) -> None:
        self._engine, self._policy, self._promise, self._files, self._notes = engine, policy, promise, files, notes

    def judge(self) -> None:
        """Check everything that can be checked on Spark."""
        promise, notes, files = self._promise, self._notes, self._files
        facts = merged_facts(self._engine.run([*files.release, *files.truth], ReadFacts(self._policy, promise)))
        time = (promise.time,) if promise.is_timed and promise.time is not None else ()
        notes.counts_rows = promise.person == "row" and not facts.has_row_column
        require_truth(facts, (promise.person, *promise.columns, *time), promise.person)
        if not check_release(facts, promise.columns, notes):
            return
        records, released = facts.count("truth"), facts.count("release")
        bins = bins_for(max(records, released), self._engine.tasks)
        trace = TraceFacts()
        truth_bins = TruthBins(records, bins)
        for part in self._engine.run(files.trace, ReadTrace(promise, records, truth_bins)):
            trace.merge(part)
        if not has_columns(trace, _TRACE if promise.is_timed else (*_TRACE, _EVENT), notes):
            return
        add_all(notes, trace.findings)
        if not is_as_long(trace, released, "classes", notes):
            return
        plan = Plan(
            self._policy, promise, facts.spans, truth_bins, max(-(-released // bins), 1), bins,
            has_identifiers=promise.person != "row" or facts.has_row_column,
            is_strange=facts.has_strange(promise.columns), has_events=_EVENT in trace.columns,
        )  # fmt: skip
        self._report(facts, trace, self._engine.run(*self._steps(plan, facts, trace)))

    def _steps(self, plan: Plan, facts: Facts, trace: TraceFacts) -> tuple[Any, ...]:
        files, bins = self._files, plan.classes
        dead_before = (0, *np.cumsum(trace.dead).tolist())
        newest = trace.last - int(trace.dead.sum())
        return (
            [*files.release, *files.trace], SendReleased(plan, facts, trace),
            Step(bins, PairRows(plan.records)),
            Step(
                bins, CheckRecords(plan, tuple(dead_before), newest), [*files.truth, *files.trace],
                SendRecords(plan, facts, trace, facts.hidden),
            ),
            Step(3 * bins, JudgeClasses(plan, facts.sensitive)),
            Step(bins, count_once),
        )  # fmt: skip

    def _report(self, facts: Facts, trace: TraceFacts, found: Sequence[Any]) -> None:
        promise, notes, of = self._promise, self._notes, by_type(found)
        persons, checked = of.get(Persons, []), of.get(Checked, [])
        mentioned = frozenset[int]().union(*(part.mentioned for part in persons))
        if promise.person != "row" or facts.has_row_column:
            notes.violation("raw-identifier", METADATA_SENTENCE, count=len(mentioned))
        classes, clusters = of.get(OfClasses, []), of.get(OfClusters, [])
        largest = max((part.metrics.get("largest_share_of_one_person") or 0.0 for part in classes), default=0.0)
        parts = [finding for part in (*checked, *clusters) for finding in part.findings]
        parts += [with_share(finding, largest) for part in classes for finding in part.findings]
        add_all(notes, [*parts, *of.get(Finding, [])], NOT_ON_SPARK)
        if promise.is_timed:
            notes.skip("The age of reused clusters, the history of k and lost records were not checked: not on Spark.")
        if _EVENT not in trace.columns:
            notes.skip(_NO_EVENTS)
        if promise.diversity.needs_reference:
            notes.skip("t was not checked in clusters: its references are in the trace, which is not read on Spark.")
        if "carriers" not in trace.columns:
            notes.skip("The trace's own count of carriers was not checked: it has no column carriers.")
        self._measure(facts, trace, checked)
        _measure_classes(classes, of.get(People, []), largest, notes)
        _measure_clusters(clusters, notes)
        people = sum(part.all for part in of.get(People, []))
        parts_of = of.get(ColumnPart, [])
        note_columns(parts_of, self._policy, promise, ("k", promise.k), people, notes, promise.sensitive)

    def _measure(self, facts: Facts, trace: TraceFacts, checked: Sequence[Checked]) -> None:
        notes, metrics = self._notes, self._notes.metrics
        sum((part.delays for part in checked), WrittenDelays()).note(self._promise, notes)
        undecided = sum(part.undecided for part in checked)
        verdicts = {"released": RELEASED, "suppressed": SUPPRESSED, "dead": DEAD}
        counts = {name: int(trace.verdicts[number]) for name, number in verdicts.items()}
        metrics["verdicts"] = {"in": facts.count("truth"), **counts, "undecided": undecided}
        metrics["released_rows"] = facts.count("release")
        metrics["root_rows"] = sum(part.root_rows for part in checked)
        known = any(part.known for part in checked)
        sum((part.losses for part in checked), Losses()).note(notes, has_records=known)
        filled = sum((part.filled for part in checked), FilledCells())
        filled.note(notes, is_asked=self._promise.asks_for_filled)
        if undecided and not self._promise.is_timed:
            notes.skip("Whether records were pending at a flush was not checked: not on Spark.")


def _measure_classes(classes: Sequence[OfClasses], people: Sequence[People], largest: float, notes: Notes) -> None:
    metrics, rows = notes.metrics, sum(part.rows for part in classes)
    metrics["classes"] = sum(part.classes for part in classes)
    metrics["smallest_k"] = min((part.smallest for part in classes if part.smallest is not None), default=None)
    metrics["counted_in_classes"] = "people"
    metrics["rows_below_k_share"] = sum(part.below for part in classes) / rows if rows else None
    metrics["unique_rows"] = sum(part.unique for part in classes)
    everyone, exposed = sum(part.all for part in people), sum(part.exposed for part in people)
    metrics["released_people"] = everyone
    metrics["people_below_k_share"] = exposed / everyone if everyone else None
    metrics["largest_share_of_one_person"] = largest if classes else None
    owned = Counter[str]()
    for part in classes:
        owned.update(part.metrics["classes_mostly_of_one_person"])
    metrics["classes_mostly_of_one_person"] = {"classes": owned["classes"], "rows": owned["rows"]}
    nulls = sum((part.nulls for part in classes), Counter[int]())
    if rows:
        share = (rows - nulls[0]) / rows
        metrics["nulls"] = {"patterns": len(nulls), "share": share, "rarest": min(nulls.values())}
    metrics.update(_worst([part.metrics for part in classes]))
    histories = [part.metrics["shortest_history"] for part in classes if "shortest_history" in part.metrics]
    if histories:
        metrics["shortest_history"] = {name: _longest([one[name] for one in histories]) for name in histories[0]}


def _measure_clusters(clusters: Sequence[OfClusters], notes: Notes) -> None:
    grouped = sum(part.grouped for part in clusters)
    notes.metrics["clusters"] = sum(part.clusters for part in clusters)
    notes.metrics["reused_share"] = sum(part.reused for part in clusters) / grouped if grouped else None
    sum((part.first_rows for part in clusters), FirstRows({}, 0)).note(notes)
    worst = _worst([part.worst for part in clusters])
    if worst:
        notes.metrics["worst_cluster"] = {
            f"{name} {column}": value for name, columns in worst.items() for column, value in columns.items()
        }


def _worst(parts: Sequence[Any]) -> dict[str, dict[str, float]]:
    """The smallest l and entropy l, and the largest t, of every sensitive column."""
    found: dict[str, dict[str, float]] = {}
    for name, pick in (("l", min), ("entropy_l", min), ("t", max)):
        for part in parts:
            for column, value in part.get(name, {}).items():
                own = found.setdefault(name, {})
                own[column] = pick(own.get(column, value), value)
    return found


def _longest(lengths: Sequence[float | None]) -> float | None:
    """The longest history; None if one of them never ends."""
    known = [length for length in lengths if length is not None]
    return max(known) if len(known) == len(lengths) else None
