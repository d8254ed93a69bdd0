"""Correct releases of tuple streams are acquitted, with everything on the table checked."""

from __future__ import annotations

import pytest

from tests.auditor.tuples.naive import SECOND, Run, records

MINUTE = 60 * SECOND
WAYS = [
    {},
    {"missing": "hidden"},
    {"missing": "own"},
    {"missing": "own", "groups": True},
    {"missing": "own", "root": True, "k": 4, "deadline": 5},
    {"missing": "own", "l": 2, "deadline": 20, "reuse": 20},
    {"missing": "own", "t": 0.5, "reference": 40, "deadline": 20},
    {"missing": "own", "is_timed": True, "deadline": 2 * MINUTE, "reuse": MINUTE},
    {"min_carriers": 1},
    {"min_carriers": 3},
    {"groups": True},
    {"root": True, "k": 4, "deadline": 5},
    {"root": True, "groups": True, "k": 5, "deadline": 6},
    {"grid": 7},
    {"l": 2},
    {"l": 3, "root": True, "deadline": 8},
    {"t": 0.5, "reference": 40},
    {"t": 0.35, "reference": 5},
    {"t": 0.5, "declared": {"cough": 0.25, "fever": 0.25, "gout": 0.25, "none": 0.25}},
    {"is_timed": True, "deadline": 2 * MINUTE, "reuse": MINUTE},
    {"is_timed": True, "deadline": 2 * MINUTE, "reuse": MINUTE, "t": 0.5},
    {"k": 1},
]


@pytest.mark.parametrize("how", WAYS, ids=lambda how: ",".join(how) or "plain")
@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_found(how, seed):
    truth = records(150, seed=seed, people=40 + 300 * (seed % 2), missing=0.25 * (seed // 2))
    run = Run(truth, **how)
    report = run.audit()
    assert report.findings == (), report.text()
    assert report.not_checked == ()
    assert report.metrics["smallest_k"] >= how.get("k", 3)
    for truth_given, trace_given in ((False, True), (True, False), (False, False)):
        partly = run.audit(truth=truth_given, trace=trace_given)
        assert partly.findings == (), partly.text()
        assert partly.not_checked


def test_paper_mode_without_missing_values_is_k_anonymous():
    assert Run(records(150, people=60), missing="paper").audit().ok


def test_dead_records_are_no_arrivals():
    truth = records(120, missing=0.1)
    for place, (name, value) in {3: ("id", None), 5: ("id", ""), 20: ("age", 101), 21: ("tree", "oak")}.items():
        truth[place][name] = value
    run = Run(truth, t=0.6, reference=30)
    assert [entry["row"] for entry in run.trace if entry["verdict"] == "dead"] == [3, 5, 20, 21]
    report = run.audit()
    assert report.findings == (), report.text()
    assert report.metrics["verdicts"]["dead"] == 4


def test_times_that_go_back_do_not_move_the_clock():
    truth = records(120)
    for row in truth[10:110:7]:
        row["ts"] -= 35
    report = Run(truth, is_timed=True, deadline=2 * MINUTE, reuse=MINUTE).audit()
    assert report.findings == (), report.text()


def test_a_stream_that_is_not_flushed():
    run = Run(records(120))
    last = max(entry["row"] for entry in run.trace if entry["delay"] == 12)
    flushed = [place for place, entry in enumerate(run.trace) if entry["row"] + entry["delay"] == 119]
    run.trace = [entry for place, entry in enumerate(run.trace) if place not in flushed]
    run.release = run.release[: len(run.trace)]
    report = run.audit()
    assert last > 100
    assert [found.code for found in report.findings] == ["pending"]
    assert report.ok


def test_nothing_at_all():
    run = Run([])
    for given in ({}, {"truth": False}, {"trace": False}, {"truth": False, "trace": False}):
        report = run.audit(**given)
        assert report.findings == ()
        assert report.metrics["smallest_k"] is None


def test_everything_is_suppressed():
    run = Run(records(4), k=5, deadline=2, root=True)
    report = run.audit()
    assert {found.code for found in report.findings} == {"identifying-carry", "identifying-sensitive"}  # 4 people
    assert report.ok
    assert report.metrics["root_rows"] == 4
    assert report.metrics["classes"] == 0
    assert report.metrics["loss"] == {"all": 1.0, "own": 1.0}


def test_what_the_report_measures():
    truth = [
        {"id": who, "age": age, "tree": tree, "ill": ill, "shop": "s", "ts": 0}
        for who, age, tree, ill in (
            ("a", 10, "ash", "gout"), ("b", 30, "ash", "gout"), ("a", 20, "birch", "none"), ("c", None, "elm", "gout"),
        )
    ]  # fmt: skip
    run = Run(truth, k=2, deadline=2, reuse=2)
    metrics = run.audit().metrics
    assert metrics["released_people"] == 3
    assert metrics["released_rows"] == 4
    assert metrics["largest_share_of_one_person"] == 0.5
    assert metrics["verdicts"] == {"in": 4, "released": 4, "suppressed": 0, "dead": 0, "undecided": 0}
    assert "smallest k: 2" in run.audit().text()
