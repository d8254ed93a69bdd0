"""A user's workload: counts worked out by hand, against a plain count, from files, and what is refused."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from shoal.auditor.report.evidence_report import report_evidence
from shoal.auditor.utility.workload import read_workload
from shoal.errors import InputError, PolicyError
from tests.auditor.attacks import test_sets
from tests.auditor.attacks.scenes import POLICY, as_it_is, people, ranges, traced


def errors(release, truth, *counts, **more):
    found = report_evidence(release, truth, POLICY, workload={"count": list(counts)}, **more).content["utility"]
    return {one["name"]: one for one in found}


def test_raw_rows_count_right():
    truth = people()
    rows = truth.to_pylist()
    ages = sorted(row["age"] for row in rows)
    asked = {
        "age": {"from": ages[40], "to": ages[120]},
        "zone": [rows[0]["zone"], rows[1]["zone"]],
        "ill": rows[0]["ill"],
    }
    found = errors(
        as_it_is(truth), truth, {"name": "some", "where": asked}, {"group_by": ["zone", "ill"]},
        {"where": {"age": ages[3]}, "group_by": "ill"}, trace=traced(range(200)),
    )  # fmt: skip
    assert [found[name]["value"] for name in ("count: some", "count: count 2", "count: count 3")] == pytest.approx(
        [0] * 3
    )
    met = [
        row for row in rows
        if ages[40] <= row["age"] <= ages[120] and row["zone"] in asked["zone"] and row["ill"] == asked["ill"]
    ]  # fmt: skip
    assert found["count: some"]["what"].startswith(f"Relative error: {len(met)} records")


def small(zone=("n1", "n2", "s1", "s2")):
    truth = pa.table(
        {
            "id": list("abcd"),
            "age": [1, 2, 3, 10],
            "height": [5.0] * 4,
            "zone": list(zone),
            "ill": ["flu", "flu", "cold", "flu"],
        }
    )
    release = pa.table(
        {
            "age": ranges([1] * 4, [10] * 4),
            "height": ranges([5.0] * 4, [5.0] * 4),
            "zone": ["north", "north", "south", "south"],
            "ill": ["flu", "flu", "cold", "flu"],
        }
    )
    return release, truth


def test_ranges_and_labels_count_evenly():
    release, truth = small()
    found = errors(
        release, truth, {"name": "young", "where": {"age": {"to": 3}}}, {"name": "n1", "where": {"zone": "n1"}},
        {"name": "ill", "where": {"ill": "flu", "age": {"from": 10}}}, {"name": "zones", "group_by": ["zone"]},
    )  # fmt: skip
    assert found["count: young"]["value"] == pytest.approx(abs(4 * 3 / 10 - 3) / 3)  # 3 of 10 whole numbers
    assert found["count: ill"]["value"] == pytest.approx(abs(3 / 10 - 1))
    assert found["count: n1"]["value"] == pytest.approx(0)  # two rows of north, two values under it
    assert found["count: zones"]["value"] == pytest.approx(0)
    assert found["workload"]["value"] == pytest.approx((0 + 0.6) / 2)


def test_from_files(tmp_path):
    counts = [{"where": {"zone": "n1"}}]
    (tmp_path / "w.json").write_text(json.dumps({"count": counts}))
    (tmp_path / "w.toml").write_text('[[count]]\nwhere = { zone = "n1" }\n')
    assert (
        read_workload(tmp_path / "w.json")
        == read_workload(str(tmp_path / "w.toml"))
        == read_workload({"count": counts})
    )
    release, truth = small()
    content = report_evidence(release, truth, POLICY, workload=tmp_path / "w.toml").content
    assert "workload" in content["repeat"]["sha256"]
    (tmp_path / "w.json").write_text("{")
    with pytest.raises(PolicyError, match="not JSON"):
        read_workload(tmp_path / "w.json")
    with pytest.raises(InputError, match="cannot be read"):
        read_workload(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("count", "words"),
    [
        ({}, "needs where or group_by"),
        ({"were": {}}, "may have group_by, name, where only"),
        ({"where": {"age": {"form": 3}}}, "from, to or both"),
        ({"where": {"age": {"from": 3, "to": 2}}}, "ends before it begins"),
        ({"where": {"age": [1, 2]}}, "has numbers"),
        ({"where": {"age": {"from": "old"}}}, "are numbers"),
        ({"where": {"zone": {"from": 1}}}, "has no numbers"),
        ({"where": {"zone": []}}, "empty"),
        ({"where": {"town": "x"}}, "no column town; choose from age, height, zone, ill"),
        ({"group_by": ["age"]}, "count ranges of them with where"),
        ({"group_by": ["zone", "zone"]}, "named twice"),
        ({"group_by": ["zone"], "where": {"zone": "n1"}}, "named twice"),
    ],
)  # fmt: skip
def test_what_is_refused(count, words):
    with pytest.raises(PolicyError, match=words) as caught:
        errors(*small(), count)
    assert str(caught.value).startswith("workload, count 1")


def test_other_shapes_and_methods():
    with pytest.raises(PolicyError, match="list of counts"):
        read_workload({"counts": []})
    with pytest.raises(PolicyError, match="1 to 200"):
        read_workload({"count": []})
    truth = [{"a0"}] * 4
    with pytest.raises(PolicyError, match="have none to count by"):
        report_evidence(truth, truth, test_sets.POLICY, workload={"count": [{"where": {"a": 1}}]})
