"""Merge what checks found on parts of a release."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from shoal.auditor.findings import ROWS_NAMED, Finding, Notes, Severity


def merged(parts: Iterable[Finding]) -> list[Finding]:
    """Add up findings of the same kind; of their rows, name the first ones."""
    found: dict[tuple[Severity, str, str], Finding] = {}
    for finding in parts:
        key = (finding.severity, finding.code, finding.sentence)
        before = found.get(key)
        rows = finding.rows if before is None else (*before.rows, *finding.rows)
        count = finding.count + (0 if before is None else before.count)
        found[key] = replace(finding, count=count, rows=tuple(sorted(rows)[:ROWS_NAMED]))
    return list(found.values())


def add_all(notes: Notes, findings: Iterable[Finding], skipped: Iterable[str] = ()) -> None:
    """Add merged findings to a report."""
    notes.findings += merged(findings)
    for sentence in skipped:
        notes.skip(sentence)
