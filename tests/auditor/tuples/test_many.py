from __future__ import annotations

from benchmarks.audit_tuples import make_release, policy

from shoal.auditor import audit


def test_many_rows_in_many_classes():
    release, truth, trace = make_release(60_000, 25_000)
    report = audit(release, truth, trace, policy())
    assert report.findings == ()
    assert report.metrics["classes"] == 25_000
    assert report.metrics["shortest_history"] == {"rows": 2, "arrivals": 1.0}
