"""Violations of every kind, planted in a correct release of a tuple stream, are found."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from shoal.auditor import audit
from tests.auditor.tuples.naive import RELEASE, SECOND, TRACE, TRUTH, Run, policy, records, table

MINUTE = 60 * SECOND


@pytest.fixture
def run():
    return Run(records(120, people=50, missing=0.2))


def a_row(run, *, reused=False, shows=("age", "tree")):
    """The number of a released row that shows some attributes."""
    for place, row in enumerate(run.release):
        entry = run.trace[run.entry_of(place)]
        if bool(entry.get("reused")) == reused and all(row[name] is not None for name in shows):
            return place
    raise AssertionError("no such row")


def group_of(run, row):
    return run.trace[run.entry_of(row)]["group"]


# ---- who can be distinguished


def test_a_row_published_unlike_its_cluster(run):
    row = a_row(run)
    run.release[row]["age"] = {"lo": 0, "hi": 100}
    found = run.codes()
    assert set(found) == {"below-k", "group-differs"}
    assert row in found["below-k"]
    assert "below-k" in run.codes(trace=False)
    assert "below-k" in run.codes(truth=False, trace=False)


def test_a_missing_value_that_distinguishes_a_row(run):
    row = a_row(run)
    run.release[row]["tree"] = None
    found = run.codes()
    assert {"below-k", "group-differs"} <= set(found)
    assert row in found["below-k"]


def test_the_papers_mode_is_convicted():
    run = Run(records(150, people=60, missing=0.3), missing="paper")
    run.promised["anonymize"]["method"] = "k-varp"
    report = run.audit()
    assert {found.code for found in report.violations} == {"below-k", "below-k-in-history"}
    assert report.metrics["rows_below_k_share"] > 0.3
    assert report.metrics["shortest_history"] == {"rows": None, "arrivals": None}


def test_people_are_counted_not_rows():
    truth = [{"id": "a", "age": 5, "tree": "ash", "ill": "gout", "shop": "s", "ts": 0} for _ in range(3)]
    release = [{"age": {"lo": 5, "hi": 5}, "tree": "ash", "ill": "gout", "shop": "s"}] * 3
    trace = [
        {"row": row, "verdict": "released", "group": 0, "delay": 2 - row, "k": 3, "reused": False, "carriers": [1, 1]}
        for row in range(3)
    ]
    given = table(release, RELEASE), table(truth, TRUTH)
    report = audit(*given, table(trace, TRACE), policy(min_carriers=1))
    assert {found.code for found in report.violations} == {"below-k", "group-below-k"}
    assert report.metrics["smallest_k"] == 1
    assert report.metrics["largest_share_of_one_person"] == 1.0
    assert report.metrics["people_below_k_share"] == 1.0
    assert audit(*given, None, policy()).ok  # whose rows they are is only in the trace
    truth[1]["id"], truth[2]["id"] = "b", "c"
    assert audit(table(release, RELEASE), table(truth, TRUTH), None, policy()).ok


@pytest.mark.parametrize("name", [None, ""])
def test_nobody_is_no_one_of_k_people(name):
    people = ["a", "b", name]
    truth = [{"id": one, "age": 5, "tree": "ash", "ill": "gout", "shop": "s", "ts": 0} for one in people]
    release = [{"age": {"lo": 5, "hi": 5}, "tree": "ash", "ill": "gout", "shop": "s"}] * 3
    entry = {"verdict": "released", "group": 0, "k": 3, "reused": False, "carriers": [2, 2]}
    trace = [{**entry, "row": row, "delay": 2 - row} for row in range(3)]
    report = audit(table(release, RELEASE), table(truth, TRUTH), table(trace, TRACE), policy(min_carriers=1))
    assert {found.code for found in report.violations} == {"unusable-accepted", "below-k", "group-below-k"}
    assert report.metrics["clusters"] == 1


def test_a_lower_k_than_promised(run):
    run.promised["anonymize"]["k"] = 4
    found = run.codes()
    assert {"below-k", "group-below-k", "k-lowered"} <= set(found)
    assert "below-k" in run.codes(truth=False, trace=False)


def test_a_cluster_in_two_parts(run):
    group = group_of(run, a_row(run))
    entries = [entry for entry in run.trace if entry.get("group") == group]
    entries[0]["group"] = 10_000
    found = run.codes()
    assert "group-below-k" in found
    assert "wrong-carriers" in found


def test_rows_that_had_to_be_published_in_groups(run):
    run.promised["anonymize"]["groups"] = True
    assert {"reused-in-groups", "below-k-in-history"} <= set(run.codes())


def test_history_is_longer_than_reuse_allows():
    """Two clusters of the same vector, half of each: k only over both, and they left far apart."""
    names = "abcdefgh"
    truth = [{"id": name, "age": 5, "tree": "ash", "ill": "gout", "shop": "s", "ts": 0} for name in names]
    order = [0, 1, 2, 3, 4, 5, 6, 7]
    release = [{"age": {"lo": 5, "hi": 5}, "tree": "ash", "ill": "gout", "shop": "s"}] * 8
    trace = [
        {"row": row, "verdict": "released", "group": row // 2, "delay": 1 - row % 2, "k": 4, "reused": False,
         "carriers": [2, 2]}
        for row in order
    ]  # fmt: skip
    given = table(release, RELEASE), table(truth, TRUTH), table(trace, TRACE)
    report = audit(*given, policy(k=4, reuse=1))
    found = {finding.code: finding.rows for finding in report.violations}
    assert found["below-k-in-history"] == (1, 3, 5, 7)
    assert "below-k" not in found
    assert report.metrics["shortest_history"] == {"rows": None, "arrivals": None}  # the first two left as two
    later = audit(*given, policy(k=2, reuse=1, min_carriers=1))
    assert later.metrics["shortest_history"] == {"rows": 2, "arrivals": 0.0}


# ---- truth


@pytest.mark.parametrize(
    ("name", "value"), [("age", {"lo": 0, "hi": 1}), ("age", {"lo": 99, "hi": 100}), ("tree", "ash")]
)
def test_a_value_that_does_not_cover(run, name, value):
    other = next(place for place, row in enumerate(run.release) if row["tree"] in {"south", "cedar", "date", "elm"})
    row = other if name == "tree" else a_row(run)
    for place in run.rows_of_group(group_of(run, row)):
        run.release[place][name] = value
    assert "not-covered" in run.codes()
    assert "not-covered" not in run.codes(trace=False)


@pytest.mark.parametrize(("name", "code"), [("ill", "wrong-sensitive"), ("shop", "wrong-carry")])
def test_a_changed_value(run, name, code):
    run.release[4][name] = "invented"
    assert run.codes() == {code: (4,)}
    assert run.codes(trace=False)["not-in-truth"] == (4,)
    run.release[4][name] = None
    assert run.codes() == {code: (4,)}


def test_a_row_more_often_than_in_the_truth():
    truth = records(60)
    for place, row in enumerate(truth):
        row["shop"] = f"shop {place}"
    run = Run(truth)
    assert run.audit(trace=False).ok
    run.release.append(dict(run.release[-1]))
    assert run.codes(trace=False) == {"more-often-than-truth": (len(run.release) - 1,)}
    assert set(run.codes()) == {"release-count", "more-often-than-truth"}


def test_an_unknown_label(run):
    row = a_row(run)
    for place in run.rows_of_group(group_of(run, row)):
        run.release[place]["tree"] = "oak"
    assert {"unknown-label", "not-covered"} <= set(run.codes())
    assert "unknown-label" in run.codes(truth=False, trace=False)


@pytest.mark.parametrize(
    ("low", "high", "code"), [(-5, 100, "out-of-domain"), (0, 105, "out-of-domain"), (60, 40, "bad-range")]
)
def test_a_wrong_range(run, low, high, code):
    for place in run.rows_of_group(group_of(run, a_row(run))):
        run.release[place]["age"] = {"lo": low, "hi": high}
    assert code in run.codes()
    assert code in run.codes(truth=False, trace=False)


@pytest.mark.parametrize("value", [{"lo": 5, "hi": None}, {"lo": None, "hi": 5}, {"lo": None, "hi": None}])
def test_half_a_range(run, value):
    for place in run.rows_of_group(group_of(run, a_row(run))):
        run.release[place]["age"] = value
    assert "unreadable-value" in run.codes()


def test_a_range_off_the_grid():
    run = Run(grid=10)
    run.promised["anonymize"]["quasi"]["age"]["grid"] = 7
    assert set(run.codes()) == {"off-grid"}
    assert set(run.codes(truth=False, trace=False)) == {"off-grid"}


def test_clamped_values_are_covered_by_the_end_of_the_domain():
    truth = records(120)
    for row in truth:
        row["age"] = min(row["age"], 95)
    run = Run(truth, policy(numeric={"high": 95, "outside": "clamp"}))
    for row in truth:
        row["age"] = 300 if row["age"] == 95 else row["age"]
    assert run.audit().ok
    run.promised["anonymize"]["quasi"]["age"]["outside"] = "refuse"
    assert {"unusable-accepted"} <= set(run.codes())


# ---- columns


def test_an_extra_column(run):
    for row in run.release:
        row["hour"] = 7
    assert run.codes() == {"extra-column": ()}


def test_persons_in_the_output(run):
    for place, row in enumerate(run.release):
        row["id"] = run.truth[run.trace[run.entry_of(place)]["row"]]["id"]
    assert set(run.codes()) == {"extra-column", "raw-identifier"}
    assert set(run.codes(trace=False)) == {"extra-column", "raw-identifier"}
    assert set(run.codes(truth=False)) == {"extra-column"}


def test_a_person_in_place_of_a_label(run):
    row = a_row(run)
    run.release[row]["tree"] = run.truth[0]["id"]
    assert run.codes()["raw-identifier"] == (row,)


def test_a_carried_column_that_names_the_person(run):
    for place, row in enumerate(run.release):
        owner = run.truth[run.trace[run.entry_of(place)]["row"]]
        row["shop"] = owner["shop"] = owner["id"]
    report = run.audit()
    assert report.ok
    assert [found.code for found in report.warnings] == ["identifier-in-column", "identifying-carry"]
    assert [found.code for found in run.audit(trace=False).warnings] == ["identifier-in-column"]


def test_a_missing_column(run):
    shown = table(run.release, RELEASE).drop_columns(["ill"])
    report = audit(shown, policy=run.promised)
    assert [found.code for found in report.violations] == ["missing-column"]
    assert report.not_checked


# ---- decisions


def test_a_record_decided_twice(run):
    run.trace.append(dict(run.trace[-1]))
    run.release.append(dict(run.release[-1]))
    assert "decided-twice" in run.codes()
    assert "decided-twice" in run.codes(truth=False)


def test_a_record_without_a_decision(run):
    row = a_row(run)
    del run.trace[run.entry_of(row)]
    del run.release[row]
    assert "lost" in run.codes()
    assert "lost" in run.codes(truth=False)


def test_a_record_lost_at_the_flush(run):
    row = max(range(len(run.release)), key=lambda place: run.trace[run.entry_of(place)]["row"])
    assert run.trace[run.entry_of(row)]["row"] == 119
    del run.trace[run.entry_of(row)]
    del run.release[row]
    assert "lost" in run.codes()
    assert "lost" in run.codes(truth=False)  # the flush names it as the last that had arrived
    for entry in run.trace:
        del entry["event"]
    assert "lost" in run.codes()
    assert "lost" not in run.codes(truth=False)  # only the truth shows that it was there


def test_a_trace_that_does_not_fit_the_release(run):
    del run.release[3]
    found = run.audit()
    assert "release-count" in {finding.code for finding in found.violations}
    assert any("one by one" in sentence for sentence in found.not_checked)


def test_a_record_that_does_not_exist(run):
    run.trace[4]["row"] = 10_000
    assert "trace-row" in run.codes()
    run.trace[4]["row"] = 2**50
    assert "trace-row" in run.codes(truth=False)


def test_an_unknown_verdict(run):
    run.trace[4]["verdict"] = "lost"
    assert "trace-verdict" in run.codes()


def test_a_released_row_without_a_cluster(run):
    run.trace[run.entry_of(3)]["group"] = None
    assert "trace-group" in run.codes()


def test_a_record_that_had_to_be_dead(run):
    row = a_row(run)
    run.truth[run.trace[run.entry_of(row)]["row"]]["age"] = 101
    assert run.codes()["unusable-accepted"] == (row,)


def test_a_record_that_need_not_be_dead():
    truth = records(120)
    truth[7]["age"] = 101
    run = Run(truth)
    truth[7]["age"] = 99
    assert [found.code for found in run.audit().warnings] == ["dead-without-cause"]


# ---- time


def test_late_by_the_trace(run):
    row = next(place for place in range(30, 90) if run.trace[run.entry_of(place)]["delay"] == 12)
    run.trace[run.entry_of(row)]["delay"] = 13
    found = run.codes()
    assert found["late"] == (row,)
    assert "late" in run.codes(truth=False)


def test_late_by_the_order_of_rows(run):
    """A row is moved behind rows that arrived long after it; its delay stays as it was."""
    row = a_row(run, reused=True)
    entry = run.trace.pop(run.entry_of(row))
    run.trace.append(entry)
    run.release.append(run.release.pop(row))
    found = run.codes()
    assert found["late"] == (len(run.release) - 1,)
    assert found["decision-order"] == (len(run.release) - 1,)
    for entry in run.trace:
        del entry["event"]
    assert "trace-delay" in run.codes()


def test_missing_delays(run):
    for entry in run.trace:
        entry["delay"] = None
    assert "trace-delay" in run.codes()
    trace = table(run.trace, TRACE).drop_columns(["delay"])
    report = audit(table(run.release, RELEASE), table(run.truth, TRUTH), trace, run.promised)
    assert [found.code for found in report.violations] == ["unchecked-promise"]
    assert "delay" in report.violations[0].sentence


def test_a_delay_longer_than_the_stream(run):
    run.trace[-1]["delay"] = 12
    assert "trace-delay" in run.codes()


def test_fads_varied_may_be_late(run):
    row = next(place for place in range(30, 90) if run.trace[run.entry_of(place)]["delay"] == 12)
    run.promised["anonymize"]["method"] = "fads-varied"
    run.promised["anonymize"]["deadline"] = 11
    report = run.audit()
    assert report.ok, report.text()
    assert "late" in {found.code for found in report.findings}
    assert report.metrics["delay"]["late"] > 0
    assert row


def test_late_by_event_time():
    run = Run(is_timed=True, deadline=2 * MINUTE, reuse=MINUTE)
    run.trace[5]["delay"] = 2 * MINUTE + 1
    found = run.audit()
    assert {finding.code for finding in found.violations} == {"split-cluster", "late", "trace-delay"}
    assert "clock-unclear" in {finding.code for finding in found.warnings}


def test_an_order_that_event_times_do_not_explain():
    run = Run(is_timed=True, deadline=2 * MINUTE, reuse=MINUTE)
    run.trace.append(run.trace.pop(0))
    run.release.append(run.release.pop(0))
    assert "late-by-event-time" in {finding.code for finding in run.audit().warnings}


def test_reuse_after_its_age(run):
    run.promised["anonymize"]["reuse"] = 2
    found = run.codes()
    assert {"stale-reuse", "below-k-in-history"} == set(found)
    assert "stale-reuse" in run.codes(truth=False)
    run.promised["anonymize"]["reuse"] = 6
    assert run.audit().ok


def test_reuse_of_a_cluster_that_does_not_exist_yet(run):
    run.trace[run.entry_of(a_row(run, reused=True))]["group"] = max(entry.get("group") or 0 for entry in run.trace)
    assert "reuse-before-formation" in run.codes()
    assert "reuse-before-formation" in run.codes(truth=False)
    run.trace[run.entry_of(a_row(run, reused=True))]["group"] = 99_999
    assert "reuse-before-formation" in run.codes()


# ---- missing values


def test_too_few_carriers():
    run = Run(records(150, people=60, missing=0.4), min_carriers=1)
    run.promised["anonymize"]["min_carriers"] = 3
    assert set(run.codes()) == {"few-carriers"}
    del run.promised["anonymize"]["min_carriers"]  # half of k, rounded up
    assert set(run.codes()) == {"few-carriers"}


def test_more_hidden_than_needed():
    run = Run(records(150, people=60, missing=0.4), min_carriers=3)
    run.promised["anonymize"]["min_carriers"] = 1
    report = run.audit()
    assert report.ok
    assert [found.code for found in report.warnings] == ["hidden-without-need"]


@pytest.mark.parametrize("reused", [True, False])
def test_carriers_written_down_wrongly(run, reused):
    row = a_row(run, reused=reused)
    entry = run.trace[run.entry_of(row)]
    entry["carriers"] = [entry["carriers"][0], 17]
    assert run.codes() == {"wrong-carriers": (row,)}
    entry["carriers"] = None
    assert run.codes() == {"wrong-carriers": (row,)}
    entry["carriers"] = [3]
    assert run.codes() == {"wrong-carriers": (row,)}


def test_a_value_not_common_to_all():
    run = Run(records(150, people=60, missing=0.3), min_carriers=1)
    del run.promised["anonymize"]["min_carriers"]
    run.promised["anonymize"]["missing"] = "hidden"
    assert set(run.codes()) == {"wrong-nulls"}


def test_nulls_that_are_not_the_rows_own():
    run = Run(records(150, people=60, missing=0.3), min_carriers=1)
    del run.promised["anonymize"]["min_carriers"]
    run.promised["anonymize"]["missing"] = "paper"
    assert set(run.codes()) == {"wrong-nulls"}
    run.promised["anonymize"]["method"] = "iot-anonymization"  # it fills in what is missing
    assert set(run.codes()) == set()


# ---- suppressed rows


def test_a_suppressed_row_that_shows_something():
    run = Run(records(60, people=6, missing=0.2), k=4, deadline=5, root=True)
    row = next(at for at in range(len(run.release)) if run.trace[run.entry_of(at)]["verdict"] == "suppressed")
    whole = run.release[row]["age"]
    run.release[row]["age"] = {"lo": 0, "hi": 99}
    assert run.codes()["root-row"] == (row,)
    run.release[row]["age"] = None
    assert run.codes()["root-row"] == (row,)
    run.release[row]["age"] = whole
    run.release[row]["tree"] = "south"
    assert run.codes()["root-row"] == (row,)


def test_suppressed_rows_are_no_class():
    run = Run(records(60, people=6, missing=0.2), k=4, deadline=5, root=True)
    report = run.audit()
    assert report.ok
    assert 0 < report.metrics["root_rows"] < 60
    run.promised["anonymize"]["suppressed"] = "drop"
    assert {"release-count"} <= set(run.codes())


# ---- sensitive values


@pytest.mark.parametrize(
    ("rules", "code"), [({"l": 2}, "below-l"), ({"entropy_l": 2.5}, "below-entropy-l"), ({"t": 0.2}, "above-t")]
)
def test_too_little_diversity(run, rules, code):
    declared = {"ill": {"cough": 1, "fever": 1, "gout": 1, "none": 1}}
    run.promised["anonymize"] |= {**rules, **({"reference": declared} if "t" in rules else {})}
    assert set(run.codes()) == {code}
    assert set(run.codes(truth=False, trace=False)) == {code}


def test_a_class_that_a_reused_row_makes_uneven():
    """Three different values at formation, then three rows of one value reuse the cluster; three more repair it."""
    ills = ["cough", "fever", "gout", "gout", "gout", "gout", "cough", "cough", "cough", "fever", "fever", "fever"]
    truth = [{"id": f"p{at}", "age": 5, "tree": "ash", "ill": ill, "shop": "s", "ts": 0} for at, ill in enumerate(ills)]
    release = [{"age": {"lo": 5, "hi": 5}, "tree": "ash", "ill": ill, "shop": "s"} for ill in ills]
    trace = [
        {"row": at, "verdict": "released", "group": 0, "delay": max(2 - at, 0), "k": 3, "reused": at > 2,
         "carriers": [3, 3]}
        for at in range(len(ills))
    ]  # fmt: skip
    given = table(release, RELEASE), table(truth, TRUTH)
    even = {"ill": {"cough": 1, "fever": 1, "gout": 1}}
    for rules, code in (({"entropy_l": 2.6}, "below-entropy-l"), ({"t": 0.2, "reference": even}, "above-t")):
        promised = policy(reuse=100, **rules)
        assert {found.code for found in audit(*given, table(trace, TRACE), promised).violations} == {code}
        assert audit(*given, None, promised).ok  # in the end the class is even


def test_t_against_what_the_trace_recorded():
    run = Run(records(150, people=60), t=0.5, reference=40)
    assert run.audit().ok
    run.promised["anonymize"]["t"] = 0.3
    assert set(run.codes()) == {"above-t"}
    assert any("t was not checked" in sentence for sentence in run.audit(trace=False).not_checked)


def spoil_count(said):
    said[0]["count"] += 1


def spoil_value(said):
    said[0]["value"] = "plague"


def spoil_all(said):
    said.clear()


@pytest.mark.parametrize("spoil", [spoil_count, spoil_value, spoil_all])
def test_a_forged_reference(spoil):
    run = Run(records(150, people=60), t=0.9, reference=40)
    spoil(next(entry for entry in run.trace[50:] if entry.get("reference"))["reference"])
    assert set(run.codes()) == {"wrong-reference"}


def test_a_forged_reference_with_event_time():
    run = Run(records(150, people=60), t=0.9, is_timed=True, deadline=2 * MINUTE, reuse=MINUTE)
    assert run.audit().findings == ()
    spoil_value(next(entry for entry in run.trace[50:] if entry.get("reference"))["reference"])
    assert set(run.codes()) == {"wrong-reference"}


def test_a_reference_of_other_arrivals():
    run = Run(records(150, people=60), t=0.9, reference=40)
    run.promised["anonymize"]["reference"] = 30
    assert set(run.codes()) == {"wrong-reference"}


def test_no_reference_at_all():
    run = Run(records(150, people=60), t=0.9, reference=40)
    trace = table(run.trace, TRACE).drop_columns(["reference"])
    report = audit(table(run.release, RELEASE), table(run.truth, TRUTH), trace, run.promised)
    assert [found.code for found in report.violations] == ["unchecked-promise"]
    assert "t was not checked" in report.violations[0].sentence


def test_a_reference_of_nulls():
    run = Run(records(150, people=60), t=0.9, reference=40)
    trace = table(run.trace, TRACE)
    given = table(run.release, RELEASE), table(run.truth, TRUTH)
    place = trace.schema.get_field_index("reference")
    for kind in (pa.null(), TRACE.field("reference").type, pa.string(), pa.list_(pa.string())):
        nulls = pa.nulls(len(trace), kind)
        report = audit(*given, trace.set_column(place, "reference", nulls), run.promised)
        assert {found.code for found in report.violations} == {"wrong-reference"}


def test_diversity_where_there_are_very_many_values(monkeypatch):
    run = Run(records(150, people=60), l=2, t=0.6, reference=40)
    monkeypatch.setattr("shoal.auditor.tuples.diversity.diversity._ENTRIES_AT_ONCE", 60)
    assert run.audit().findings == run.audit().not_checked == ()
    run.promised["anonymize"]["t"] = 0.3
    assert set(run.codes()) == {"above-t"}
    run.promised["anonymize"]["t"] = 0.6
    monkeypatch.setattr("shoal.auditor.tuples.diversity.diversity._MOST_ENTRIES", 10)
    report = run.audit()
    assert report.ok
    assert any("only at the end" in sentence for sentence in report.not_checked)


# ---- a trace that says little


@pytest.mark.parametrize("name", ["reused", "reason"])
def test_a_column_the_trace_lacks(name):
    truth = records(120, people=50, missing=0.2)
    truth[20]["age"] = 101
    run = Run(truth, groups=True)
    assert run.audit().ok
    trace = table(run.trace, TRACE).drop_columns([name])
    report = audit(table(run.release, RELEASE), table(run.truth, TRUTH), trace, run.promised)
    assert [found.code for found in report.violations] == ["unchecked-promise"]


def test_carriers_are_counted_without_the_trace():
    run = Run(records(120, people=50, missing=0.2), groups=True)
    trace = table(run.trace, TRACE).drop_columns(["carriers"])
    report = audit(table(run.release, RELEASE), table(run.truth, TRUTH), trace, run.promised)
    assert report.ok, report.text()
    assert any("no column carriers" in sentence for sentence in report.not_checked)


def test_a_trace_as_json_lines(run, tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in run.trace))
    assert audit(table(run.release, RELEASE), table(run.truth, TRUTH), path, run.promised).findings == ()


# ---- no value of a person


def test_no_value_in_any_message(run):
    for row in run.truth:
        row["id"] = f"secret-{row['id']}"
    for place, row in enumerate(run.release):
        row["id"] = run.truth[run.trace[run.entry_of(place)]["row"]]["id"]
        row["tree"] = row["id"]
        row["ill"] = "secret-ill"
    shown = run.audit().text() + run.audit(trace=False).text()
    assert "promise broken: " in shown
    assert "secret" not in shown


def test_the_order_of_columns_does_not_matter(run):
    shown = table(run.release, RELEASE).select(["shop", "ill", "tree", "age"])
    given = table(run.truth, TRUTH), table(run.trace, TRACE)
    assert audit(shown, *given, run.promised).ok
