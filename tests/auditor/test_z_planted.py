"""Every kind of broken promise, planted in an otherwise correct release, must be found."""

from __future__ import annotations

import copy
import json

import pyarrow as pa
import pytest

from shoal.auditor import Severity, audit
from tests.auditor.naive import HOUR, Publisher, policy, pseudonym, records, table, trace_table

NAMES = ("ts", "user", "site", "country")


def stream():
    """Ten people visit a site each ten seconds, twice (two epochs), and one visits a rare site."""
    rows = [(10 * turn, f"person {turn % 10}", "a.example", f"land {turn % 2}") for turn in range(20)]
    rows += [(195, "person 3", "rare.example", "land 1")]
    rows += [(HOUR + 10 * turn, f"person {turn % 10}", "a.example", "land 0") for turn in range(20)]
    return records(rows, NAMES)


class Case:
    """A correct run that tests may spoil."""

    def __init__(self):
        self.truth = stream()
        self.promised = policy(z=5, carry=["country"])
        publisher = Publisher(z=5, window_s=HOUR, carry=("country",)).run(self.truth)
        self.release, self.trace = copy.deepcopy(publisher.released), copy.deepcopy(publisher.trace)
        self.columns = publisher.columns

    def audit(self, *, trace=True):
        shown, decisions = table(self.release, self.columns), trace_table(self.trace)
        return audit(shown, table(self.truth, NAMES), decisions if trace else None, self.promised)

    def codes(self, *, trace=True):
        return {found.code: found.rows for found in self.audit(trace=trace).violations}


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


def decide(rows, shown, *, z=2, promised=None, columns=("ts", "user", "site")):
    """Audit a hand-made run: `shown` maps row numbers to the value released."""
    truth = records(rows)
    release = [
        {"ts": truth[row]["ts"], "user": pseudonym(truth[row]["user"], truth[row]["ts"], HOUR), "site": value}
        for row, value in shown.items()
    ]
    verdicts = ["released" if row in shown else "suppressed" for row in range(len(rows))]
    trace = trace_table([{"row": row, "verdict": verdict} for row, verdict in enumerate(verdicts)])
    return [
        audit(table(release, columns), table(truth), trace, promised or policy(z=z)),
        audit(table(release, columns), table(truth), None, promised or policy(z=z)),
    ]


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


def test_more_held_back_than_needed_is_a_warning(case):
    released = [entry for entry in case.trace if entry["verdict"] == "released"]
    released[7]["verdict"] = "suppressed"
    del case.release[7]
    report = case.audit()
    assert report.ok
    assert [(found.code, found.count) for found in report.warnings] == [("held-back", 1)]


class TestTrace:
    def test_a_row_decided_twice(self, case):
        case.trace.append({"row": 0, "verdict": "suppressed"})
        assert set(case.codes()) == {"decided-twice"}

    def test_a_row_that_does_not_exist(self, case):
        case.trace.append({"row": len(case.truth), "verdict": "dead", "reason": "late"})
        assert set(case.codes()) == {"trace-row"}

    def test_an_unknown_verdict(self, case):
        case.trace[0]["verdict"] = "maybe"
        assert "trace-verdict" in case.codes()

    def test_a_lost_row(self, case):
        del case.trace[0]
        assert "lost" in case.codes()

    def test_a_lost_row_that_could_not_be_used(self, case):
        case.truth.insert(0, {"ts": None, "user": "person 1", "site": "a.example", "country": "land 0"})
        for entry in case.trace:
            entry["row"] += 1
        assert set(case.codes()) == {"lost"}

    def test_rows_still_held_are_no_violation(self, case):
        del case.trace[-2:], case.release[-2:]
        report = case.audit()
        assert report.ok
        assert [(found.code, found.count) for found in report.findings] == [("held", 2)]
        assert report.metrics["verdicts"]["undecided"] == 2

    def test_a_wrong_order(self, case):
        case.trace[0], case.trace[1] = case.trace[1], case.trace[0]
        assert "decision-order" in case.codes()

    def test_in_a_wrong_order_people_are_counted_by_time(self):
        truth = table(records([(0, "u", "s"), (10, "v", "s"), (5, "w", "s")]))
        release = table([{"ts": 10, "user": "0" * 32, "site": "s"}])
        trace = trace_table([{"row": 0, "verdict": "suppressed"}, {"row": 1, "verdict": "released"}])
        late = trace_table([{"row": 2, "verdict": "suppressed"}])
        for z, codes in ((3, ["decision-order"]), (4, ["decision-order", "below-z"])):
            report = audit(release, truth, [trace, late], policy(z=z))
            assert [found.code for found in report.violations] == codes

    def test_a_lower_z(self, case):
        case.trace[0]["z"] = 4
        assert set(case.codes()) == {"z-lowered"}

    def test_a_higher_z_is_judged_as_such(self, case):
        for entry in case.trace:
            entry["z"] = 6
        assert "below-z" in case.codes()

    def test_an_accepted_row_without_a_person(self, case):
        case.truth[0]["user"] = None
        assert "unusable-accepted" in case.codes()

    @pytest.mark.parametrize("reason", ["late", "null-person"])
    def test_a_death_without_cause_is_a_warning(self, case, reason):
        case.trace[0] |= {"verdict": "dead", "reason": reason}
        assert [found.code for found in case.audit().warnings] == ["dead-without-cause"]

    @pytest.mark.parametrize(("time", "codes"), [(300, ["dead-without-cause"]), (299, [])])
    def test_a_record_is_late_when_older_than_the_newest_by_more_than_lateness(self, time, codes):
        truth = table(records([(900, "v", "s"), (time, "w", "s")]))
        entries = [{"row": 0, "verdict": "suppressed"}, {"row": 1, "verdict": "dead", "reason": "late"}]
        report = audit(table([]), truth, trace_table(entries), policy(z=5, lateness=600))
        assert [found.code for found in report.findings] == codes

    def test_a_record_late_after_one_still_held_died_rightly(self):
        rows = [(0, "u", "s"), (900, "v", "s"), (100, "w", "s")]
        trace = trace_table(
            [{"row": 0, "verdict": "suppressed"}, {"row": 2, "verdict": "dead", "reason": "late"}]
        )
        report = audit(table([]), table(records(rows)), trace, policy(z=5, lateness=600))
        assert [(found.code, found.count) for found in report.findings] == [("held", 1)]

    def test_a_trace_without_columns_is_an_error(self, case):
        with pytest.raises(ValueError, match="trace: no column row, verdict"):
            audit(
                table(case.release, case.columns),
                table(case.truth, NAMES),
                pa.table({"a": [1]}),
                case.promised,
            )

    def test_a_trace_without_truth_is_said_not_to_be_used(self, case):
        report = audit(table(case.release, case.columns), None, trace_table(case.trace), case.promised)
        assert report.ok
        assert any("trace was not checked" in sentence for sentence in report.not_checked)


TREE = {"*": {"news": ["a.example", "rare.example"], "shops": ["b.example"]}}


def climbing(z):
    return policy(z=z, on_private="generalize", hierarchy={"kind": "nested", "tree": TREE})


class TestFreshStart:
    """A first record with a clock far ahead: the second person starts the stream anew."""

    FAR = 100 * HOUR

    def test_it_is_no_wrong_order(self):
        exact, _ = decide([(self.FAR, "u", "s"), (self.FAR, "u", "s"), (0, "v", "s")], {})
        assert exact.findings == ()

    def test_nothing_before_it_counts(self):
        exact, bound = decide([(self.FAR, "u", "s"), (0, "v", "t"), (self.FAR, "w", "s")], {2: "s"})
        assert [(found.code, found.rows) for found in exact.findings] == [("below-z", (0,))]
        assert bound.ok

    @pytest.mark.parametrize(
        "rows",
        [
            [(FAR, "u", "s"), (0, "u", "s")],  # the same person
            [(FAR, "u", "s"), (FAR, "w", "s"), (0, "v", "s")],  # two persons agreed
            [(24 * HOUR, "u", "s"), (0, "v", "s")],  # no further ahead than max_gap
            [(FAR, "u", "s"), (0, "v", "s"), (0, "w", "s"), (-FAR, "u", "s")],
        ],
    )
    def test_otherwise_it_is(self, rows):
        exact, _ = decide(rows, {}, z=9)
        assert [found.code for found in exact.findings] == ["decision-order"]


class TestGeneralize:
    def two_children(self):
        """20 people visit a.example, 19 of them again an hour later; then one visits its rare sibling."""
        rows = [(0, f"person {n}", "a.example") for n in range(20)]
        rows += [(HOUR, f"person {n}", "a.example") for n in range(19)]
        return [*rows, (HOUR + 1, "loner", "rare.example")], dict.fromkeys(range(19, 39), "a.example")

    def test_people_released_below_a_label_do_not_count_for_it(self):
        """20 people in the window under news, but the one row called news would be the rare one."""
        rows, shown = self.two_children()
        exact, bound = decide(rows, shown | {39: "news"}, promised=climbing(20))
        assert [(found.code, found.rows) for found in exact.findings] == [("below-z", (20,))]
        assert any("residual" in sentence for sentence in bound.not_checked)

    def test_keeping_the_rare_row_back_is_right(self):
        rows, shown = self.two_children()
        exact, bound = decide(rows, shown, promised=climbing(20))
        assert exact.findings == bound.findings == ()

    def test_suppressed_people_count_for_the_label(self):
        rows = [(0, f"person {n}", "a.example") for n in range(19)] + [(1, "loner", "rare.example")]
        exact, bound = decide(rows, {19: "news"}, promised=climbing(20))
        assert exact.findings == bound.findings == ()

    def test_a_label_too_high_is_a_warning(self):
        rows = [(0, f"person {n}", "a.example") for n in range(19)] + [(1, "loner", "rare.example")]
        exact, _ = decide(rows, {19: "*"}, promised=climbing(20))
        assert [(found.code, found.severity) for found in exact.findings] == [
            ("too-general", Severity.WARNING)
        ]

    def test_a_label_that_is_no_ancestor(self):
        exact, bound = decide([(0, "u", "a.example")], {0: "shops"}, promised=climbing(20))
        assert {found.code for found in exact.violations} == {"wrong-label"}
        assert {found.code for found in bound.violations} == {"not-in-truth"}

    def test_a_label_nobody_knows(self):
        for report in decide([(0, "u", "a.example")], {0: "elsewhere"}, promised=climbing(20)):
            assert {found.code for found in report.violations} <= {"wrong-label", "not-in-truth"}
            assert not report.ok

    def test_more_rows_than_records_below_a_label(self):
        rows = [(0, "u", "a.example"), (0, "v", "b.example")]
        _, bound = decide(rows, {0: "a.example", 1: "news"}, promised=climbing(1))
        assert "more-often-than-truth" in {found.code for found in bound.violations}

    def test_too_few_people_in_all(self):
        for report in decide([(0, "u", "a.example")], {0: "news"}, promised=climbing(20)):
            assert {found.code for found in report.violations} == {"below-z"}


def test_a_report_holds_no_value_and_becomes_json(case):
    case.release[4]["user"] = "person 8"
    case.release[5]["site"] = "invented.example"
    report = case.audit()
    text = report.text() + json.dumps(report.to_dict())
    assert not any(word in text for word in ("person 8", "a.example", "invented.example", "land 1"))
    assert all(found.severity is Severity.VIOLATION for found in report.violations)
