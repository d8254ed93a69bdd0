from __future__ import annotations

from benchmarks.audit_tuples import make_release, policy

from shoal.auditor import audit


def test_many_rows_in_many_classes():
    release, truth, trace = make_release(300_000, 125_000)
    report = audit(release, truth, trace, policy())
    assert report.findings == ()
    assert report.metrics["classes"] == 125_000
    assert report.metrics["shortest_history"] == {"rows": 2, "arrivals": 1.0}
