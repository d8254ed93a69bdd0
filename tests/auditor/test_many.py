from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pytest

from shoal.auditor import audit
from tests.auditor.z.naive import policy

ROWS = 100_000


def stream():
    """Make a stream whose every row is released: not a correct one, but the most work for the auditor."""
    draw = np.random.default_rng(7)
    people = np.array([hashlib.sha256(f"a key {number}".encode()).hexdigest()[:32] for number in range(20_000)])
    moments = np.sort(draw.integers(0, 10 * 3600 * 10**9, ROWS))
    sites = np.array([f"host{number % 50}.site{number}.example" for number in range(5_000)])
    chosen = sites[np.minimum(draw.zipf(1.3, ROWS), 5_000) - 1]
    user = draw.integers(0, 20_000, ROWS)
    columns = {
        "ts": pa.array(moments, pa.timestamp("ns")),
        "user": pa.array(np.char.add("p", user.astype(str))),
    }
    truth = pa.table({**columns, "site": pa.array(chosen)})
    release = truth.set_column(1, "user", pa.array(people[user]))
    trace = pa.table({"row": np.arange(ROWS), "verdict": ["released"] * ROWS, "z": np.full(ROWS, 5)})
    return release, truth, trace


@pytest.mark.parametrize("has_trace", [True, False])
@pytest.mark.parametrize("how", [{}, {"on_private": "generalize", "hierarchy": {"kind": "suffix", "separator": "."}}])
def test_many_rows(how, has_trace):
    release, truth, trace = stream()
    report = audit(release, truth, trace if has_trace else None, policy(z=5, **how))
    assert "below-z" in {found.code for found in report.violations}
