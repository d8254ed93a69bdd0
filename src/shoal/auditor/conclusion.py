"""What every audit ends with, of any family: what is about the policy and the release as a whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from shoal.auditor.findings import AuditReport
from shoal.auditor.people_in_rows import NOT_CHECKED, what_to_count, with_people_in_rows
from shoal.auditor.policy import Policy
from shoal.auditor.verdict import gap_of


def concluded(
    report: AuditReport, policy: Policy, release: Any, truth: Any, trace: Any, *, is_here: bool = True
) -> AuditReport:
    """Add whether the policy promises anything, and, in this process, which columns look like uncounted people."""
    report = replace(report, gap=gap_of(policy, has_truth=truth is not None))
    if is_here:
        return with_people_in_rows(report, policy, release, truth, trace)
    gaps = (f"{NOT_CHECKED}: not done on Spark.",) if what_to_count(report, policy) else ()
    return replace(report, not_checked=(*report.not_checked, *gaps))
