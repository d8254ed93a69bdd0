"""Refused values that a hierarchy lists in another case or with other spaces, counted over a whole run."""

from __future__ import annotations

import pyarrow as pa

from shoal.decode.base import Decoded
from shoal.hierarchies import Hierarchy
from shoal.methods.release import Refusal
from shoal.pipeline.checks.near_labels import NearRefused

TREES = {
    "work": Hierarchy.from_dict({"kind": "closed", "labels": ["any", "Private", "Public"], "parents": [-1, 0, 0]}),
    "school": Hierarchy.from_dict({"kind": "closed", "labels": ["all", "Bachelors", "Masters"], "parents": [-1, 0, 0]}),
}


def explain(reason):
    return Refusal(reason.partition(":")[2] or None, "")


def dead(*entries):
    rows, reasons = zip(*entries, strict=True)
    return pa.record_batch({"row": pa.array(rows, pa.int64()), "reason": pa.array(reasons)})


def batch(work, school):
    return Decoded(pa.record_batch({"work": pa.array(work), "school": pa.array(school)}), (), {})


def test_only_refused_values_of_the_batch_count():
    near = NearRefused(TREES, {})
    refused = dead((9, "unknown:work"), (11, "unknown:work"), (12, "outside:school"), (14, "unknown:work"))
    near.count(refused, batch(["PRIVATE", " private", "public"], ["x", "x", "masters"]), 10, explain)
    assert near.found == {"work": {"Private": 1}}
    assert len(list(near.warnings())) == 1


def test_a_resumed_run_keeps_the_counts_of_columns_it_does_not_meet_again():
    first = NearRefused(TREES, {})
    first.count(dead((0, "unknown:work")), batch(["private"], ["Masters"]), 0, explain)
    resumed = NearRefused(TREES, first.found)
    resumed.count(dead((1, "unknown:school")), batch(["Private"], ["MASTERS"]), 1, explain)
    assert resumed.found == {"work": {"Private": 1}, "school": {"Masters": 1}}
    assert [sentence.split(":")[0] for sentence in resumed.warnings()] == ["column 'work'", "column 'school'"]
    resumed.count(dead((2, "unknown:work")), batch(["private"], ["Masters"]), 2, explain)
    assert resumed.found["work"] == {"Private": 2}
