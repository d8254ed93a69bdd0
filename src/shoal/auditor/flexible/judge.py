"""Audit flexible k-anonymity: are labels true, is nothing dropped, do enough people share every row?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal.auditor.evidence import Evidence, audit_rows, read_evidence
from shoal.auditor.findings import AuditReport, Notes
from shoal.auditor.flexible.calibration import Calibration, Records, calibrate, check_claims, read_claims
from shoal.auditor.flexible.candidates import count_candidates
from shoal.auditor.flexible.density import measure_classes, row_k, with_measured_density
from shoal.auditor.flexible.groups import (
    Groups,
    check_groups,
    check_in_force,
    check_pending,
    check_root,
    measure_groups,
    measure_loss,
    read_groups,
)
from shoal.auditor.flexible.promise import FlexiblePromise, read_flexible_promise
from shoal.auditor.flexible.trace import Trace, read_trace
from shoal.auditor.flexible.values import read_flexible_attribute
from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import Ints
from shoal.auditor.rows.attributes import Attribute
from shoal.auditor.tuples.classes import check_shares
from shoal.auditor.tuples.clusters import check_cover, check_one_vector
from shoal.auditor.tuples.filled import count_filled
from shoal.auditor.tuples.row_judge import RowJudge
from shoal.auditor.tuples.truth import check_identifiers, check_membership, check_unchanged


def audit_flexible(policy: Policy, release: Any, truth: Any, trace: Any) -> AuditReport:
    """Check the promise of a policy for flexible k-anonymity."""
    return audit_rows(read_evidence(policy, release, truth, trace), read_flexible_promise, _judge)


def _judge(evidence: Evidence, promise: FlexiblePromise, notes: Notes) -> None:
    _Judge(evidence, promise, notes).judge()


class _Judge(RowJudge):
    """One audit of flexible k-anonymity."""

    def __init__(self, evidence: Evidence, promise: FlexiblePromise, notes: Notes) -> None:
        super().__init__(evidence, promise, notes, read_flexible_attribute)
        self.promise = promise

    def judge(self) -> None:
        """Check everything that can be checked."""
        promise, notes = self.promise, self.notes
        notes.metrics["released_rows"] = len(self.release)
        self.check_release()
        if not promise.root:
            check_root(self.attributes, notes)
        claims = [] if self.trace is None else read_claims(self.trace.claims)
        usable = self.records.usable if self.has_truth else None
        trace = None if self.trace is None else read_trace(self.trace, usable, len(self.release), notes)
        came = None if trace is None else trace.before_first
        records = None
        if usable is not None:
            promise = with_measured_density(promise, self.attributes, self.records.person, usable, came)
            k = row_k(promise, self.attributes, np.arange(len(self.truth)))
            records = Records(self.records.person, usable, k)
            measure_classes(promise, k, usable, notes)
            self.promise = promise
        if self.trace is not None and records is not None and (promise.needs_calibration or promise.measured):
            silent = int("delay" not in self.trace.columns)
            what = "K_s was" if not promise.measured else "K_s and the people per cell were"
            notes.unchecked(f"{what} computed from too many records: the trace has no column delay.", count=silent)
        calibration = calibrate(promise, self.attributes, records, claims, notes, came)
        check_claims(claims, promise, calibration, notes)
        if trace is not None and not claims and (trace.k is None or trace.k_s is None):
            notes.skip("The k and K_s of the run were not compared: the trace does not record them.")
        if trace is not None and records is not None:
            check_pending(promise, self.attributes, trace, records, notes)
        row = trace.row if trace is not None and trace.is_linked and self.has_truth else None
        if trace is not None and trace.is_linked:
            check_one_vector(self.attributes, trace.group, notes)
        self._judge_rows(row)
        self._judge_people(row, trace, calibration)
        measure_loss(self.attributes, ~self.release.broken, notes)

    def _judge_rows(self, row: Ints | None) -> None:
        """Check row by row against the truth."""
        if not self.has_truth:
            self.notes.skip("Whether rows are true, and whether identifiers leaked, was not checked: no truth.")
            return
        given = self.promise, self.release, self.truth
        check_identifiers(self.promise, self.attributes, self.release, self.truth, row, self.notes)
        if row is None:
            self.notes.skip(
                "Whether published values cover the true ones was not checked: rows cannot be linked to records."
            )
            check_membership(*given, self.records.usable, self.notes)
            return
        check_cover(self.attributes, row, np.append(self.records.usable, False)[row], self.notes, missing="exact")
        unchanged = check_unchanged(*given, row, self.notes)
        count_filled(self.attributes, row, unchanged).note(self.notes, is_asked=False)

    def _judge_people(self, row: Ints | None, trace: Trace | None, calibration: Calibration) -> None:
        """Check how many people share every row."""
        if row is None:
            self._say_rows(is_traced=trace is not None)
            row, person = np.full(len(self.release), -1, np.int64), None
        else:
            person = np.append(self.records.person, -1)[row]
        k = row_k(self.promise, self.attributes, row)
        if trace is not None and trace.is_linked:
            check_in_force(trace, k, calibration, self.notes)
        judged = ~self.release.broken
        known = [attribute for attribute in self.attributes if attribute.name not in calibration.sparse]
        normal = read_groups(known, judged, person, k)
        # A group needs the largest k of its rows, and all its labels need the K_s of that.
        every = read_groups(self.attributes, judged, person, normal.needed_by_row())
        every = Groups(every.classes, calibration.k_s(every.needed))
        check_groups(normal, every, self.notes)
        measure_groups(normal, every, person, self.notes)
        check_shares(every.classes, person, None, self.notes, can_cap=False)
        self.check_identifying(judged, person, every.classes.of_row)
        if person is not None:
            metrics = self.notes.metrics
            metrics["candidates_knowing_all"] = self._candidates(self.attributes, every, row, person)
            metrics["candidates_knowing_normal"] = self._candidates(known, normal, row, person)

    def _candidates(self, known: Sequence[Attribute], groups: Groups, row: Ints, person: Ints) -> dict[str, Any] | None:
        """Describe how many people a row may belong to, for an attacker who knows the true values of some columns."""
        found = count_candidates(known, row, person, groups.classes.judged)
        if found is None:
            self.notes.skip(
                "Candidates for an attacker with true values were not counted: too many overlapping ranges."
            )
            return None
        return found.describe(groups.needed_by_row(), person)

    def _say_rows(self, *, is_traced: bool) -> None:
        skip = self.notes.skip
        lacking = "no truth" if not self.has_truth else "rows cannot be linked to records" if is_traced else "no trace"
        skip(f"People were counted as rows, of which there are at least as many: {lacking}.")
        skip(f"Candidates for an attacker with true values were not counted: {lacking}.")
        if self.promise.density or self.promise.measured:
            skip(f"The k of density classes was not checked, only the lowest of all: {lacking}.")
        if not is_traced:
            skip("Whether every record was released, refused or is pending, exactly once, was not checked: no trace.")
