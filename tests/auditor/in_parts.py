"""Audits of files in parts, as Spark runs them, but in this process; and whether two reports are the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shoal.auditor.audit import FAMILIES, Family, family_of, inputs_of
from shoal.auditor.findings import AuditReport
from shoal.auditor.policy import read_policy
from shoal.auditor.reading.outline import Outline
from shoal.auditor.task_files import RowsOf, files_of
from tests.auditor.divided import Divided


def audit_in_parts(
    release: Any, truth: Any = None, trace: Any = None, policy: Any = None, *, buckets: int = 3
) -> AuditReport:
    """Audit every file by itself, and rows in buckets."""
    written = read_policy(policy)
    family = FAMILIES[family_of(written)]
    assert isinstance(family, Family)
    inputs, formats = inputs_of(written, release, truth, trace), family.formats(written)
    stream = written.section("stream")
    read = {}
    for role, what in inputs.items():
        files = files_of(what, role, formats[role], family.reader(written, role))
        outlines = [file.outline(written) for file in files]
        whole = sum(outlines, Outline()).as_read(role, stream)
        firsts = [sum(one.rows for one in outlines[:at]) for at in range(len(files))]
        rows_of = RowsOf(firsts, whole, stream)
        read[role] = [
            replace(rows_of(number, file), odd_rows=outlines[number].odd_rows) for number, file in enumerate(files)
        ]
    return family.report(Divided(read, buckets), written, inputs)


def same_report(here: AuditReport, there: AuditReport) -> None:
    """Both found the same; only the order may differ."""
    assert _found(there) == _found(here)
    assert set(here.metrics) == set(there.metrics)
    for name, value in there.metrics.items():
        assert _is_near(value, here.metrics[name]), (name, value, here.metrics[name])


def _found(report: AuditReport) -> list[tuple[Any, ...]]:
    return sorted((found.severity, found.code, found.count, found.sentence, found.rows) for found in report.findings)


def _is_near(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_is_near(value, other[key]) for key, value in one.items())
    return bool(one == (pytest.approx(other, rel=1e-12) if isinstance(other, float) else other))
