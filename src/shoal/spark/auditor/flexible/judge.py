"""Audit flexible k on Spark: rows meet their records, then the other rows of their groups; the driver adds up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from shoal.auditor.findings import AuditReport, Finding, Notes
from shoal.auditor.flexible.calibration import check_claims, read_claims
from shoal.auditor.flexible.promise import FlexiblePromise, read_flexible_promise
from shoal.auditor.policy import Policy
from shoal.auditor.released_columns import METADATA_SENTENCE
from shoal.auditor.tuples.filled import FilledCells
from shoal.spark.auditor.carried_columns import ColumnPart, note_columns
from shoal.spark.auditor.engine import Engine, Step
from shoal.spark.auditor.facts import NO_ROWS
from shoal.spark.auditor.flexible.facts import Facts, Plan, ReadFacts, ReadTrace, TraceFacts
from shoal.spark.auditor.flexible.first_window import (
    Arrivals,
    Calibrate,
    Calibrated,
    CountArrivals,
    SendFirst,
    SendUsable,
    Timing,
    first_shares,
)
from shoal.spark.auditor.flexible.groups import JudgeGroups, OfGroups, OfOthers
from shoal.spark.auditor.flexible.records import Checked, CheckRecords, SendRecords, SendReleased
from shoal.spark.auditor.hashing import bins_for
from shoal.spark.auditor.join_trace import PairRows, TruthBins
from shoal.spark.auditor.merge_findings import add_all
from shoal.spark.auditor.people import People
from shoal.spark.auditor.shares import Files, files_of
from shoal.spark.auditor.stream_checks import by_type, check_release, has_columns, is_as_long, require_truth
from shoal.spark.auditor.tuples.classes import count_once, with_share
from shoal.spark.auditor.tuples.sending import Persons

_TRACE: Final = ("row", "verdict", "group")
NOT_ON_SPARK: Final = (
    "Whether every value is spelled in one way was not checked: not on Spark.",
    "Candidates for an attacker with true values were not counted: not on Spark.",
)


def audit_flexible(
    engine: Engine, policy: Policy, release: Any, truth: Any, trace: Any, max_memory: int | None
) -> AuditReport:
    """Check the promise of a policy for flexible k-anonymity; the truth and the trace must be given."""
    promise, notes = read_flexible_promise(policy), Notes()
    files = files_of(policy, "flexible k", release, truth, trace, max_memory)
    with notes.guarded():
        _Judge(engine, policy, promise, files, notes).judge()
    return notes.report(promise.method)


class _Judge:
    def __init__(self, engine: Engine, policy: Policy, promise: FlexiblePromise, files: Files, notes: Notes) -> None:
        self._engine, self._policy, self._promise, self._files, self._notes = engine, policy, promise, files, notes

    def judge(self) -> None:
        """Check everything that can be checked on Spark."""
        promise, notes, files, facts = self._promise, self._notes, self._files, Facts()
        for part in self._engine.run([*files.release, *files.truth], ReadFacts(self._policy, promise)):
            facts.merge(part)
        notes.counts_rows = promise.person == "row" and not facts.has_row_column
        require_truth(facts, (promise.person, *promise.columns), promise.person)
        if not check_release(facts, promise.columns, notes):
            return
        records, released = facts.count("truth"), facts.count("release")
        notes.metrics["released_rows"] = released
        trace = TraceFacts()
        for part in self._engine.run(files.trace, ReadTrace(records)):
            trace.merge(part)
        if not has_columns(trace, _TRACE, notes):
            return
        if not is_as_long(trace, released, "groups", notes):
            return
        bins = bins_for(max(records, released), self._engine.tasks)
        truth_bins = TruthBins(records, bins)
        timing = self._timing(facts, trace, truth_bins)
        found = self._calibrated(facts, trace, truth_bins, timing)
        notes.metrics.update(found.metrics)
        claims = read_claims(trace.all_claims)
        check_claims(claims, found.promise, found.calibration, notes)
        if not claims and not {"k", "k_s"} <= trace.columns:
            notes.skip("The k and K_s of the run were not compared: the trace does not record them.")
        plan = Plan(
            self._policy, found.promise, facts, trace, truth_bins, max(-(-released // bins), 1), bins,
            has_identifiers=promise.person != "row" or facts.has_row_column,
            is_strange=facts.has_strange(promise.columns),
            calibration=found.calibration, usable_before=timing.before, seen=timing.seen(promise.window),
        )  # fmt: skip
        self._report(plan, self._engine.run(*self._steps(plan)))

    def _timing(self, facts: Facts, trace: TraceFacts, bins: TruthBins) -> Timing:
        """Count the usable records before each bin and before the first release."""
        items = [*self._files.truth, *(self._files.trace if "delay" in trace.columns else [])]
        send = SendUsable(self._policy, self._promise, facts, trace, bins)
        found: list[Arrivals] = self._engine.run(items, send, Step(bins.count, CountArrivals(bins)))
        return Timing.of(found, bins.count, trace)

    def _calibrated(self, facts: Facts, trace: TraceFacts, bins: TruthBins, timing: Timing) -> Calibrated:
        """Find sparse columns, K_s and measured density in the first records."""
        promise, notes, came = self._promise, self._notes, timing.came
        if promise.needs_calibration or promise.measured:
            what = "K_s was" if not promise.measured else "K_s and the people per cell were"
            silent = int("delay" not in trace.columns)
            notes.unchecked(f"{what} computed from too many records: the trace has no column delay.", count=silent)
        count = promise.window if came is None else min(promise.window, max(came, 0))
        work = Calibrate(promise, facts, tuple(trace.all_claims), came)
        shares = first_shares(self._files.truth, facts, timing, bins.size, count) if count else []
        send = SendFirst(self._policy, promise, facts, count)
        found: list[Calibrated] = self._engine.run(shares, send, Step(1, work)) if shares else []
        return found[0] if found else work.calibrated(NO_ROWS)

    def _steps(self, plan: Plan) -> tuple[Any, ...]:
        files, bins = self._files, plan.bins
        return (
            [*files.release, *files.trace], SendReleased(plan),
            Step(bins, PairRows(plan.records)),
            Step(bins, CheckRecords(plan), [*files.truth, *files.trace], SendRecords(plan)),
            Step(4 * bins, JudgeGroups(plan)),
            Step(bins, count_once),
        )  # fmt: skip

    def _report(self, plan: Plan, found: Sequence[Any]) -> None:
        promise, notes, of = plan.promise, self._notes, by_type(found)
        checked, groups, persons = of.get(Checked, []), of.get(OfGroups, []), of.get(Persons, [])
        mentioned = frozenset[int]().union(*(part.mentioned for part in persons))
        if plan.has_identifiers:
            notes.violation("raw-identifier", METADATA_SENTENCE, count=len(mentioned))
        largest = max((part.largest for part in groups), default=0.0)
        parts = [finding for part in (*checked, *of.get(OfOthers, [])) for finding in part.findings]
        parts += [with_share(finding, largest, can_cap=False) for part in groups for finding in part.findings]
        add_all(notes, [*parts, *of.get(Finding, [])], NOT_ON_SPARK)
        people = of.get(People, [])
        _measure_records(plan, checked, notes)
        _measure_groups(groups, people, largest, notes)
        everyone = sum(part.all for part in people)
        columns = of.get(ColumnPart, [])
        note_columns(columns, self._policy, promise, ("k", promise.k), everyone, notes, promise.sensitive)


def _measure_records(plan: Plan, checked: Sequence[Checked], notes: Notes) -> None:
    metrics, names = notes.metrics, ("in", "released", "dead", "pending")
    verdicts, delays, needed = Counter[str](), Counter[int](), Counter[int]()
    for part in checked:
        verdicts.update(part.verdicts)
        delays.update(part.delays)
        needed.update(part.records_by_k)
    metrics["verdicts"] = {name: verdicts[name] for name in names}
    sum((part.filled for part in checked), FilledCells()).note(notes, is_asked=False)
    if plan.promise.measured:
        metrics["records_by_k"] = {str(k): needed[k] for k in sorted(needed)}
    if delays:
        metrics["delay"] = {"median": _median(delays), "longest": max(delays)}
    rows = sum(next(iter(part.loss.values()))[2] for part in checked)
    if not rows:
        return
    weights = {rule.name: rule.weight for rule in plan.promise.quasi}
    sums = {name: sum(part.loss[name][0] for part in checked) for name in weights}
    shown = {name: sum(part.loss[name][1] for part in checked) for name in weights}
    lossy = {name: sum(part.lossy[name] for part in checked) for name in weights}
    total = sum(weights[name] * sums[name] for name in weights)
    metrics["loss"] = {"all": total / rows / sum(weights.values())}
    metrics["loss_by_column"] = {name: lossy[name] / shown[name] if shown[name] else None for name in weights}


def _measure_groups(groups: Sequence[OfGroups], people: Sequence[People], largest: float, notes: Notes) -> None:
    metrics, rows = notes.metrics, sum(part.rows for part in groups)
    normal, every = Counter[int](), Counter[int]()
    for part in groups:
        normal.update(part.normal)
        every.update(part.every)
    below = [sum(part.below[at] for part in groups) for at in range(2)]
    metrics["counted_in_classes"] = "people"
    metrics["smallest_k"] = min(normal, default=None)
    metrics["rows_below_k_share"] = below[0] / rows if rows else None
    metrics["normal_groups"], metrics["groups"] = _sizes(normal, below[0], rows), _sizes(every, below[1], rows)
    released, exposed = (sum(getattr(part, name) for part in people) for name in ("all", "exposed"))
    metrics["released_people"] = released
    metrics["people_below_k_share"] = exposed / released if released else None
    metrics["largest_share_of_one_person"] = largest if every else None
    classes, owned = (sum(part.owned[at] for part in groups) for at in range(2))
    metrics["classes_mostly_of_one_person"] = {"classes": classes, "rows": owned}


def _sizes(groups: Counter[int], below: int, rows: int) -> dict[str, Any]:
    return {
        "count": groups.total(), "smallest": min(groups, default=None),
        "median": _median(groups) if groups else None, "rows_below_share": below / rows if rows else None,
    }  # fmt: skip


def _median(counts: Counter[int]) -> float:
    values = np.array(sorted(counts))
    ends = np.cumsum([counts[value] for value in values.tolist()])
    low, high = (int(values[np.searchsorted(ends, place, side="right")]) for place in _middles(int(ends[-1])))
    return (low + high) / 2


def _middles(count: int) -> tuple[int, int]:
    return (count - 1) // 2, count // 2
