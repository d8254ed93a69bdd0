"""Every kind of broken promise, planted in an otherwise correct release, must be found."""

from __future__ import annotations

import hashlib
import json

import pyarrow as pa
import pytest

from shoal.auditor import Severity, audit
from tests.auditor.cases import Case, decide
from tests.auditor.z.naive import HOUR, policy, pseudonym, records, table, trace_table


@pytest.fixture
def case():
    return Case()


@pytest.fixture(params=[True, False], ids=["with-trace", "without-trace"])
def traced(request):
    return request.param


def test_the_unspoilt_case_is_acquitted(case, traced):
    report = case.audit(trace=traced)
    assert report.ok
    assert report.findings == ()


def test_one_row_below_z(case, traced):
    rare = next(number for number, row in enumerate(case.truth) if row["site"] == "rare.example")
    place = sum(entry["verdict"] == "released" for entry in case.trace[:rare])
    alias = pseudonym("person 3", 195, HOUR)
    case.release.insert(place, {"ts": 195, "user": alias, "site": "rare.example", "country": "land 1"})
    case.trace[rare]["verdict"] = "released"
    assert case.codes(trace=traced) == {"below-z": (place,)}


@pytest.mark.parametrize(("nanoseconds_more", "convicted"), [(0, False), (1, True)])
def test_the_window_is_closed(nanoseconds_more, convicted):
    start, later = 1_000_000_000, 1_000_000_000 + HOUR * 1_000_000_000 + nanoseconds_more
    kind = pa.timestamp("ns")
    truth = pa.table({"ts": pa.array([start, later], kind), "user": ["u", "v"], "site": ["s", "s"]})
    release = pa.table({"ts": pa.array([later], kind), "user": ["0" * 32], "site": ["s"]})
    trace = trace_table([{"row": 0, "verdict": "suppressed"}, {"row": 1, "verdict": "released"}])
    for given in (trace, None):
        report = audit(release, truth, given, policy(z=2))
        assert [found.code for found in report.violations] == (["below-z"] if convicted else [])


def test_a_person_seen_twice_counts_once():
    for report in decide([(0, "u", "s"), (1, "u", "s")], {1: "s"}):
        assert [found.code for found in report.violations] == ["below-z"]


def test_people_of_another_value_do_not_count():
    for report in decide([(0, "u", "other"), (1, "v", "s")], {1: "s"}):
        assert [found.code for found in report.violations] == ["below-z"]


def test_later_rows_do_not_count():
    for report in decide([(0, "u", "s"), (1, "v", "s")], {0: "s", 1: "s"}):
        assert [(found.code, found.rows) for found in report.violations] == [("below-z", (0,))]


def test_a_later_row_of_the_same_time_counts_only_where_the_order_is_unknown():
    exact, bound = decide([(0, "u", "s"), (0, "v", "s")], {0: "s", 1: "s"})
    assert [(found.code, found.rows) for found in exact.violations] == [("below-z", (0,))]
    assert bound.ok
    assert any("order of equal times" in sentence for sentence in bound.not_checked)


def test_dead_rows_do_not_count():
    truth = table(records([(10, "u", "s"), (5, "v", "s"), (10, "w", "s")]))
    release = table([{"ts": 10, "user": "0" * 32, "site": "s"}])
    verdicts = [("suppressed", None), ("dead", "late"), ("released", None)]
    trace = trace_table([{"row": n, "verdict": v, "reason": r} for n, (v, r) in enumerate(verdicts)])
    assert audit(release, truth, trace, policy(z=2)).ok
    assert [found.code for found in audit(release, truth, trace, policy(z=3)).violations] == ["below-z"]
    assert audit(release, truth, None, policy(z=3)).ok


def test_a_duplicated_row(case, traced):
    case.release.append(dict(case.release[-1]))
    found = case.codes(trace=traced)
    assert found["more-often-than-truth"] == (len(case.release) - 1,)
    assert ("release-count" in found) == traced


def test_a_row_released_twice_with_a_trace_that_admits_it(case):
    case.release.append(dict(case.release[-1]))
    case.trace.append(dict(case.trace[-1]))
    assert "decided-twice" in case.codes()


def test_an_invented_row(case, traced):
    case.release.append({"ts": 1, "user": "f" * 32, "site": "a.example", "country": "land 7"})
    assert case.codes(trace=traced)["not-in-truth"] == (len(case.release) - 1,)


def test_a_changed_time(case):
    case.release[2]["ts"] += 1
    assert case.codes() == {"wrong-time": (2,)}
    assert case.codes(trace=False) == {"not-in-truth": (2,)}


def test_a_changed_value(case):
    case.release[2]["site"] = "rare.example"
    assert case.codes() == {"wrong-value": (2,)}
    assert case.codes(trace=False) == {"not-in-truth": (2,)}


def test_a_changed_carried_value(case):
    case.release[2]["country"] = "land 9"
    assert case.codes() == {"wrong-carry": (2,)}
    assert case.codes(trace=False) == {"not-in-truth": (2,)}


def test_a_raw_identifier(case, traced):
    case.release[4]["user"] = "person 8"
    assert case.codes(trace=traced)["raw-identifier"] == (4,)


def test_a_pseudonym_of_the_wrong_form(case, traced):
    case.release[4]["user"] = case.release[4]["user"].upper()
    case.release[5]["user"] = None
    assert case.codes(trace=traced)["bad-pseudonym"] == (4, 5)


def test_an_extra_column(case, traced):
    for row in case.release:
        row["device"] = "d"
    case.columns = (*case.columns, "device")
    report = case.audit(trace=traced)
    assert [found.code for found in report.violations] == ["extra-column"]
    assert "device" in report.violations[0].sentence


def test_a_missing_column(case, traced):
    case.columns = ("ts", "user", "site")
    assert set(case.codes(trace=traced)) == {"missing-column"}


def test_without_a_header_no_value_is_repeated(tmp_path):
    path = tmp_path / "release.csv"
    path.write_text("12,ada lovelace,secret.example\n")
    report = audit(path, policy=policy())
    assert {found.code for found in report.violations} == {"extra-column", "missing-column"}
    assert "ada" not in report.text()
    assert "secret" not in report.text()


def test_an_identifier_in_a_carried_column_is_a_warning(case, traced):
    for row in (case.truth[9], next(row for row in case.release if row["ts"] == 90)):
        row["country"] = "person 1"
    report = case.audit(trace=traced)
    assert report.ok
    assert [found.code for found in report.warnings] == ["identifier-in-column"]


def test_a_pseudonym_across_two_epochs(case, traced):
    kept = case.release[-1]["user"]
    later = next(row for row in reversed(case.truth) if row is case.truth[-1])["user"]
    for row in case.release:
        if row["ts"] < HOUR and pseudonym(later, row["ts"], HOUR) == row["user"]:
            row["user"] = kept
    assert set(case.codes(trace=traced)) == {"pseudonym-across-epochs"}


def test_a_longer_rotation_makes_longer_epochs(case, traced):
    case.promised["anonymize"]["rotation"] = "1d"
    found = case.codes(trace=traced)
    assert set(found) == {"pseudonym-split"}


def test_two_persons_sharing_a_pseudonym(case, traced):
    case.release[0]["user"] = case.release[1]["user"]
    assert "pseudonym-shared" in case.codes(trace=traced)


def test_one_person_with_two_pseudonyms(case, traced):
    case.release[0]["user"] = "a" * 32
    assert "pseudonym-split" in case.codes(trace=traced)


def test_a_row_without_any_value(case, traced):
    case.release[2]["site"] = None
    found = case.audit(trace=traced)
    assert [finding.code for finding in found.violations] == ["empty-row"]
    assert [finding.code for finding in found.warnings] == (["held-back"] if traced else [])


def test_a_row_without_a_time(case, traced):
    case.release[2]["ts"] = None
    assert "unreadable-row" in case.codes(trace=traced)


def test_needless_suppression_is_a_warning(case):
    released = [entry for entry in case.trace if entry["verdict"] == "released"]
    released[7]["verdict"] = "suppressed"
    del case.release[7]
    report = case.audit()
    assert report.ok
    assert [(found.code, found.count) for found in report.warnings if found.code != "identifying-carry"] == [
        ("held-back", 1)
    ]


def test_a_report_holds_no_value_and_becomes_json(case):
    case.release[4]["user"] = "person 8"
    case.release[5]["site"] = "invented.example"
    report = case.audit()
    text = report.text() + json.dumps(report.to_dict())
    assert not any(word in text for word in ("person 8", "a.example", "invented.example", "land 1"))
    assert all(found.severity is Severity.VIOLATION for found in report.violations)


@pytest.mark.parametrize(
    "disguise",
    [
        lambda person: person.replace("-", "").lower(),
        lambda person: person.encode().hex()[:32],
        lambda person: hashlib.md5(person.encode()).hexdigest(),
        lambda person: hashlib.sha256(person.encode()).hexdigest()[:32],
    ],
)
def test_an_identifier_in_disguise(disguise):
    people = [f"0000000{n}-AAAA-4BBB-8CCC-DDDDEEEEFFF{n}" for n in range(3)]
    truth = table(records([(n, person, "s") for n, person in enumerate(people)]))
    released = [{"ts": 2, "user": disguise(people[2]), "site": "s"}]
    trace = trace_table([{"row": n, "verdict": "released" if n == 2 else "suppressed"} for n in range(3)])
    report = audit(table(released), truth, trace, policy(z=3))
    assert [found.code for found in report.violations] == ["disguised-identifier"]
