"""Utility: raw data lose nothing, a suppressed release loses what it must, and figures worked out by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest

from shoal import attack
from shoal.auditor.report.evidence_report import report_evidence
from tests.auditor.attacks import test_sets
from tests.auditor.attacks.scenes import POLICY, as_it_is, at_the_root, people, ranges, traced
from tests.auditor.attacks.z import scenes as stream_scenes


def measures(*args, **more):
    return {one["name"]: one for one in report_evidence(*args, **more).content["utility"]}


def test_raw_rows_lose_nothing():
    truth = people()
    found = measures(as_it_is(truth), truth, POLICY, trace=traced(range(200)), control=people(seed=2))
    assert found["released"]["value"] == 1
    assert found["counts"]["value"] == pytest.approx(0)
    assert found["marginals"]["value"] == pytest.approx(0)
    assert found["correlations"]["value"] == pytest.approx(0)
    assert found["prediction of ill"]["value"] == pytest.approx(found["prediction of ill"]["ideal"], abs=0.05)


def test_suppressed_rows_keep_only_uniform_guesses():
    truth = people()
    found = measures(at_the_root(truth), truth, POLICY, trace=traced(range(200)))
    assert found["counts"]["value"] > 0.05
    assert found["marginals"]["value"] > 0.05
    half = measures(at_the_root(truth).slice(0, 100), truth, POLICY, trace=traced(range(100)))
    assert half["released"]["value"] == 0.5


def test_heavy_hitters_and_windows():
    truth = stream_scenes.stream(lambda person, epoch, event: f"s{event}", people=10)
    shown = stream_scenes.pseudonymous(truth)
    kept = shown.filter(pa.array([site != "s0" for site in shown.column("site").to_pylist()]))
    found = measures(kept, truth, stream_scenes.POLICY)
    assert found["released"]["value"] == 0.75
    assert found["heavy hitters"]["value"] == 0.75
    assert found["counts of heavy hitters"]["value"] == 0.25  # one of four values is gone
    assert found["counts by window"]["value"] == 0.25


def test_support_of_pairs():
    truth = [{"a0", "b0"}] * 8 + [{"a1", "b1"}] * 4
    exact = measures(truth, truth, test_sets.POLICY)
    assert exact["items with their names"]["value"] == 1
    assert exact["support of frequent pairs"]["value"] == pytest.approx(0)
    labels = measures(test_sets.under(truth, lambda item: item[0]), truth, test_sets.POLICY)
    assert labels["items with their names"]["value"] == 0
    # Of 12 records with label a, 8 have a0, and so with b: 12 · 2/3 · 2/3 instead of 8, 12 · 1/3 · 1/3 instead of 4.
    assert labels["support of frequent pairs"]["value"] == pytest.approx((abs(16 / 3 - 8) / 8 + abs(4 / 3 - 4) / 4) / 2)


def test_an_end_that_two_people_have_is_nobodys():
    truth = pa.table(
        {"id": list("abcd"), "age": [1, 1, 9, 9], "height": [5, 5, 5, 5], "zone": ["n1"] * 4, "ill": ["flu"] * 4}
    )
    release = pa.table(
        {"age": ranges([1] * 4, [9] * 4), "height": ranges([5] * 4, [5] * 4), "zone": ["n1"] * 4, "ill": ["flu"] * 4}
    )
    assert attack(release, truth, POLICY, trace=traced(range(4)))["range end"].success.value == 0


def test_a_range_of_whole_numbers_includes_its_last_one():
    truth = pa.table(
        {"id": [f"p{row}" for row in range(40)], "age": [1, 2] * 20, "height": [5] * 40, "zone": ["n1"] * 40,
         "ill": ["flu"] * 40}
    )  # fmt: skip
    release = pa.table(
        {
            "age": ranges([1] * 40, [2] * 40),
            "height": ranges([5] * 40, [5] * 40),
            "zone": ["n1"] * 40,
            "ill": ["flu"] * 40,
        }
    )
    age = report_evidence(release, truth, POLICY, trace=traced(range(40))).content["columns"][0]
    assert age["before"] == pytest.approx([0.5, 0.5])
    assert age["after"] == pytest.approx([0.5, 0.5])
