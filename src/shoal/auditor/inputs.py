"""What lies on the auditor's table."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.auditor.promise import Policy
from shoal.auditor.reading.tables import Rows


@dataclass(frozen=True, slots=True)
class Evidence:
    """The policy and the release; the truth and the trace where they are at hand."""

    policy: Policy
    release: Rows
    truth: Rows | None
    trace: Rows | None
    odd_rows: int = 0
    """Rows of the release's text files that are written otherwise than the others."""
