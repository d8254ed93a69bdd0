"""Violations of every kind, planted in a correct flexible release, are found."""

from __future__ import annotations

from copy import deepcopy

import pytest

from shoal.auditor import audit
from tests.auditor.flexible.naive import DENSITY, DEVICES, RELEASE, TRACE, TRUTH, Run, records, table

ALL = ("device", "place", "hour")


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    found = Run(tmp_path_factory.mktemp("honest"), records(400, seed=2, missing=0.05), p_sparse=0.5)
    assert found.audit().ok
    return found


@pytest.fixture
def run(honest):
    return deepcopy(honest)


def a_row(run, *, label=None, device=None, place=None):
    """The number of a released row that shows all attributes."""
    for at, row in enumerate(run.release):
        true = run.record_of(at)
        fits = (label or row["device"], device or true["device"], place or row["place"])
        if fits == (row["device"], true["device"], row["place"]) and None not in [row[name] for name in ALL]:
            return at
    raise AssertionError("no such row")


def alike(run, row):
    return [at for at in range(len(run.release)) if run.vector(at) == run.vector(row)]


# ---- F0: labels


def test_one_label_that_does_not_subsume(run):
    row = a_row(run, device="G 1")
    run.release[row]["device"] = "Apple"
    assert run.codes()["not-covered"] == (row,)
    assert "not-covered" not in run.codes(trace=False)


@pytest.mark.parametrize(
    ("name", "value"),
    [("place", "village"), ("place", "land"), ("hour", {"lo": 60, "hi": 64}), ("device", "Georgia (produced in)")],
)
def test_a_group_whose_label_does_not_subsume(run, name, value):
    row = a_row(run, place="a") if name == "place" else a_row(run, device="G 1")
    rows = [at for at in alike(run, row) if name != "hour" or run.record_of(at)["hour"] < 60]
    for at in rows:
        run.release[at][name] = value
    assert set(rows[:10]) <= set(run.codes()["not-covered"])


def test_labels_by_any_property_subsume(run):
    """Every label above a value passes F0, whatever the property."""
    row = a_row(run, device="G 1")
    for label in DEVICES["G 1"]:
        run.release[row]["device"] = label
        assert "not-covered" not in run.codes(), label
        assert "unknown-label" not in run.codes(), label


@pytest.mark.parametrize("label", ["*", "Nokia", "Georgia (has OS)", "G eins"])
def test_an_unknown_label(run, label):
    row = a_row(run)
    run.release[row]["device"] = label
    assert run.codes()["unknown-label"] == (row,)
    assert "unknown-label" in run.codes(truth=False, trace=False)


@pytest.mark.parametrize(("name", "label"), [("device", "any device"), ("place", "*")])
def test_a_root_label(run, name, label):
    for row in alike(run, a_row(run)):
        run.release[row][name] = label
    assert "root-label" in run.codes()
    assert "root-label" in run.codes(truth=False, trace=False)
    run.promised["anonymize"]["root"] = True
    assert "root-label" not in run.codes()


def test_a_whole_domain(run):
    for row in alike(run, a_row(run)):
        run.release[row]["hour"] = {"lo": 0, "hi": 64}
    assert "whole-domain" in run.codes()
    assert "not-a-cell" not in run.codes()
    run.promised["anonymize"]["root"] = True
    assert "whole-domain" not in run.codes()


def test_a_null_instead_of_a_label(run):
    row = a_row(run)
    run.release[row]["device"] = None
    assert run.codes()["wrong-nulls"] == (row,)


def test_a_label_instead_of_a_null(run):
    row = next(at for at, shown in enumerate(run.release) if shown["device"] is None)
    run.release[row]["device"] = "Asia"
    assert run.codes()["wrong-nulls"] == (row,)
    report = run.audit()
    assert [found.count for found in report.warnings if found.code == "filled-cells"] == [1]
    assert report.metrics["filled_cells"] == {"cells": 1, "at_root": 0, "columns": {"device": 1}}


@pytest.mark.parametrize(("lo", "hi"), [(1, 5), (4, 12), (0, 12), (8, 24), (0, 5), (-8, 0), (16, 8)])
def test_a_range_that_is_no_cell(run, lo, hi):
    row = a_row(run)
    run.release[row]["hour"] = {"lo": lo, "hi": hi}
    assert {"not-a-cell", "bad-range"} & set(run.codes(truth=False, trace=False))


@pytest.mark.parametrize(("lo", "hi"), [(0, 4), (4, 8), (8, 16), (32, 64), (48, 64), (8, 15)])
def test_a_range_that_is_a_cell(run, lo, hi):
    run.release[a_row(run)]["hour"] = {"lo": lo, "hi": hi}
    assert "not-a-cell" not in run.codes(truth=False, trace=False)


# ---- F0: rows


def test_swapped_rows(run):
    one, other = 0, len(run.release) - 1
    run.release[one], run.release[other] = run.release[other], run.release[one]
    assert {"not-covered", "wrong-carry"} <= set(run.codes())


def test_swapped_rows_of_one_group(run):
    one, *others = alike(run, a_row(run))
    other = next(row for row in others if run.release[row]["mbps"] != run.release[one]["mbps"])
    run.release[one], run.release[other] = run.release[other], run.release[one]
    assert run.codes()["wrong-carry"] == (one, other)


@pytest.mark.parametrize(("name", "value", "code"), [("mbps", -1.0, "wrong-carry"), ("net", "3g", "wrong-sensitive")])
def test_a_changed_value(run, name, value, code):
    run.release[5][name] = value
    assert run.codes() == {code: (5,)}
    assert "not-in-truth" in run.codes(trace=False)


def test_a_row_in_the_trace_but_not_in_the_release(run):
    del run.release[7]
    assert run.audit().metrics["verdicts"]["released"] == len(run.release) + 1
    assert "release-count" in run.codes()


def test_a_row_in_the_release_but_not_in_the_trace(run):
    run.trace.remove(run.entries()[7])
    assert "release-count" in run.codes()
    assert "release-count" in run.codes(truth=False)


def test_a_row_dropped_from_both_is_pending(run):
    row = max(range(len(run.release)), key=lambda at: len(alike(run, at)))
    before = run.audit().metrics["verdicts"]["pending"]
    run.trace.remove(run.entries()[row])
    del run.release[row]
    report = run.audit()
    assert report.metrics["verdicts"]["pending"] == before + 1


def test_a_crowd_that_was_kept_pending(run):
    row = max(range(len(run.release)), key=lambda at: len(alike(run, at)))
    crowd = {**run.record_of(row)}
    for number in range(run.k):
        run.truth.append({**crowd, "maid": f"new {number}"})
    assert [found.code for found in run.audit().warnings] == []  # the last round had not come yet
    run.trace.append({**run.entries()[row], "row": len(run.truth), "delay": 1})  # a flush: a later record is published
    run.release.append({**run.release[row]})
    run.truth.append({**crowd, "maid": "last"})
    assert [(found.code, found.count) for found in run.audit().warnings] == [("held-back", run.k)]
    run.trace[-1]["delay"] = 0  # it joined a group as it came
    assert run.audit().warnings == ()
    run.promised["anonymize"]["window"] = 1
    warned = run.audit().warnings
    assert [(found.code, found.count) for found in warned] == [("held-back", run.k)]
    run.truth[-2]["maid"] = "new 0"
    assert run.audit().warnings == ()


def test_a_row_published_twice_differently(run):
    row = a_row(run)
    run.release[row]["mbps"] = run.record_of(row)["mbps"] = -1.0  # no other record has it
    run.release.append({**run.release[row], "device": "Asia"})
    run.trace.append({**run.entries()[row], "group": 10_000})
    assert "decided-twice" in run.codes()
    assert "decided-twice" in run.codes(truth=False)
    assert "more-often-than-truth" in run.codes(trace=False)


def test_a_suppressed_record(run):
    left = set(range(len(run.truth))) - {entry["row"] for entry in run.trace}
    run.trace.append({"row": min(left), "verdict": "suppressed"})
    assert run.codes() == {"suppressed": ()}


@pytest.mark.parametrize("reason", ["unknown:device", "null-person", None])
def test_a_record_dropped_under_a_pretext(run, reason):
    left = set(range(len(run.truth))) - {entry["row"] for entry in run.trace}
    run.trace.append({"row": min(left), "verdict": "dead", "reason": reason})
    assert set(run.codes()) - {"unchecked-promise"} == {"dead-without-cause"}
    run.trace[-1]["reason"] = "unreadable"  # by the decoder, which the auditor cannot ask
    report = run.audit()
    assert report.ok
    assert [found.code for found in report.warnings] == ["dead-without-cause"]


def test_a_record_that_had_to_be_refused(run):
    run.truth[run.entries()[3]["row"]]["maid"] = None
    assert "unusable-accepted" in run.codes()


def test_a_record_that_cannot_be_used_and_got_lost(run):
    run.truth.append({**run.truth[0], "hour": 70})
    assert run.codes() == {"lost": ()}


# ---- F1 and F2


def test_one_person_fewer_behind_the_normal_columns(run):
    names = ("place", "hour")
    rows = run.smallest_group(names)
    people = sorted({run.record_of(at)["maid"] for at in rows})
    assert len(people) == run.k
    for at in rows:
        if run.record_of(at)["maid"] == people[0]:
            run.record_of(at)["maid"] = people[1]
    assert set(run.codes()["below-k"]) <= set(rows)
    assert "below-k" not in run.codes(trace=False)  # enough rows: whose they are is in the trace
    metrics = run.audit().metrics
    assert metrics["normal_groups"]["smallest"] == metrics["smallest_k"] == run.k - 1
    assert metrics["rows_below_k_share"] > 0


def test_one_person_fewer_behind_all_columns(run):
    rows = run.smallest_group()
    people = sorted({run.record_of(at)["maid"] for at in rows})
    assert len(people) == run.k_s
    for at in rows:
        if run.record_of(at)["maid"] == people[0]:
            run.record_of(at)["maid"] = people[1]
    found = run.codes()
    assert set(found["below-k-s"]) == set(rows[:10])


def test_one_row_alone(run):
    row = a_row(run, label="G 1")
    for label in sorted(DEVICES["G 1"]):
        run.release[row]["device"] = label
        if alike(run, row) == [row]:
            break
    assert alike(run, row) == [row]
    assert row in run.codes()["below-k-s"]
    assert row in run.codes(truth=False, trace=False)["below-k-s"]
    assert "group-differs" in run.codes()


def test_a_density_class_that_was_ignored(tmp_path):
    run = Run(tmp_path, records(400, seed=2), p_sparse=0.5)
    run.promised["anonymize"]["density"] = {"place": {"village": 30}}
    found = run.codes()
    assert {"below-k", "below-k-s", "k-lowered", "k-s-lowered"} <= set(found)
    assert all(run.record_of(at)["place"] in "de" for at in found["k-lowered"])


def test_people_per_cell_that_were_ignored(tmp_path):
    """The village has fewer people in the first window than the rest; a run that asked k of everyone is convicted."""
    stream = [one for one in records(500, seed=2) if one["place"] in "abc" or int(one["maid"][1:]) < 20]
    run = Run(tmp_path, stream, p_sparse=0.5, window=200)
    assert run.audit().ok
    classes = [{"fewer_than": 25, "k": 19}]
    run.promised["anonymize"]["density_from_data"] = {"place": {"level": 1, "classes": classes}}
    found = run.audit()
    codes = {one.code: one.rows for one in found.violations}
    assert {"below-k", "k-lowered", "k-s-lowered"} <= set(codes)
    assert all(run.record_of(at)["place"] in "de" for at in codes["k-lowered"])
    assert set(found.metrics["records_by_k"]) == {"4", "19"}
    lenient = [{"fewer_than": 10, "k": 19}]
    run.promised["anonymize"]["density_from_data"]["place"]["classes"] = lenient
    assert run.audit().ok


def test_people_per_cell_are_counted_up_to_the_first_release_only(tmp_path):
    """A flush ended the first window before the crowd came: the classes are those of the few records until then."""
    stream = records(300, seed=2)
    run = Run(tmp_path, stream, p_sparse=0.5, window=300)
    run.promised["anonymize"]["density_from_data"] = {"place": {"classes": [{"fewer_than": 15, "k": 12}]}}
    assert run.audit().ok
    for entry in run.entries():
        entry["delay"] = 30
    assert "k-lowered" in run.codes()


def test_the_nearest_class_wins(tmp_path):
    """The centre asks for 3 although the city, further above, asks for 5."""
    run = Run(tmp_path, records(400, seed=2), p_sparse=0.5, density=DENSITY)
    assert run.audit().ok
    run.promised["anonymize"]["density"] = {"place": {**DENSITY, "a": 40}}
    assert "below-k" in run.codes()


def test_a_lower_k_than_promised(run):
    run.promised["anonymize"]["k"] = 5
    assert {"below-k", "k-lowered"} <= set(run.codes())
    assert "below-k" in run.codes(truth=False, trace=False)


# ---- what the trace says of itself


def test_a_lowered_k_in_the_trace(run):
    run.entries()[4]["k"] = run.k - 1
    assert run.codes() == {"k-lowered": (4,)}


def test_a_lowered_k_s_in_the_trace(run):
    run.entries()[4]["k_s"] = run.k_s - 1
    assert run.codes() == {"k-s-lowered": (4,)}


def test_a_lowered_k_s_in_the_claims(run):
    run.claims["k_s"] -= 1
    assert set(run.codes()) == {"k-s-lowered"}
    run.claims["k_s"] += 2  # it may rise
    assert run.audit().ok


def test_a_share_that_is_not_the_truths(tmp_path):
    run = Run(tmp_path, records(300, seed=1), window=300, k=8)
    assert run.audit().ok
    rare = Run(tmp_path, records(300, seed=1), window=40, k=8)
    assert rare.k_s < run.k_s
    rare.promised["anonymize"]["window"] = 300
    assert {"below-k-s", "k-s-lowered"} <= set(rare.codes())


def test_too_much_is_called_sparse(run):
    run.claims["sparse"] = ["device", "place"]
    assert run.codes() == {"sparse-differs": ()}


def test_rows_that_swapped_their_records(run):
    one, other = run.entries()[0], run.entries()[-1]
    one["row"], other["row"] = other["row"], one["row"]
    assert {"wrong-carry", "not-covered"} <= set(run.codes())


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"row": 10_000}, "trace-row"),
        ({"row": -1}, "trace-row"),
        ({"verdict": "maybe"}, "trace-verdict"),
        ({"verdict": "dead"}, "release-count"),
        ({"group": None}, "trace-group"),
        ({"delay": -5}, "trace-delay"),
    ],
)
def test_a_doctored_trace(run, change, code):
    run.entries()[4].update(change)
    assert code in run.codes()


def test_rows_of_one_group_published_in_different_ways(run):
    entries = run.entries()
    entries[-1]["group"] = entries[0]["group"]
    assert "group-differs" in run.codes()
    assert "group-differs" in run.codes(truth=False)


# ---- columns


def test_a_column_too_many(run):
    given = table(run.release, RELEASE), table(run.truth, TRUTH), table(run.trace, TRACE)
    people = [run.record_of(at)["maid"] for at in range(len(run.release))]
    report = audit(given[0].append_column("who", [people]), *given[1:], run.promised)
    assert {found.code for found in report.violations} == {"extra-column", "raw-identifier"}


def test_a_column_too_few(run):
    report = audit(table(run.release, RELEASE).drop_columns(["hour"]), None, None, run.promised)
    assert [found.code for found in report.violations] == ["missing-column"]
