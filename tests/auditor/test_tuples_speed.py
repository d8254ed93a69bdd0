from __future__ import annotations

import time

from benchmarks.audit_tuples import make_release, policy

from shoal.auditor import audit


def test_many_rows_in_many_classes(capsys):
    release, truth, trace = make_release(300_000, 125_000)
    start = time.perf_counter()
    report = audit(release, truth, trace, policy())
    spent = time.perf_counter() - start
    with capsys.disabled():
        print(f"\naudit of 300000 rows in 125000 classes: {spent:.1f} s", end="")  # noqa: T201
    assert report.findings == ()
    assert report.metrics["classes"] == 125_000
    assert report.metrics["shortest_history"] == {"rows": 2, "arrivals": 1.0}
    assert spent < 30  # a few seconds; machines that are busy get more
