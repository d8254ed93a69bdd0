"""A trace that is wrong in itself, and what the order of decisions means."""

from __future__ import annotations

import pyarrow as pa
import pytest

from shoal.auditor import audit
from shoal.errors import PolicyError
from tests.auditor.cases import NAMES, Case, decide
from tests.auditor.z.naive import HOUR, policy, records, table, trace_table


@pytest.fixture
def case():
    return Case()


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

    def test_pending_rows_are_accepted(self, case):
        del case.trace[-2:], case.release[-2:]
        report = case.audit()
        assert report.ok
        # with lateness 0 nothing can be held: the trace is of a part of the input, which is worth a look
        assert [(found.code, found.count) for found in report.findings] == [("trace-ends-early", 2), ("pending", 2)]
        assert report.metrics["verdicts"]["undecided"] == 2

    def test_a_late_record_counted_under_a_sorted_trace(self):
        truth = table(records([(0, "u", "s"), (10, "v", "s"), (5, "w", "s")]))
        trace = trace_table([{"row": row, "verdict": "suppressed"} for row in (0, 2, 1)])
        nothing = table([{"ts": 0, "user": "0" * 32, "site": "s"}]).slice(0, 0)
        for lateness, codes in (("0s", ["late-accepted"]), ("4s", ["late-accepted"]), ("5s", [])):
            report = audit(nothing, truth, trace, policy(z=4, lateness=lateness))
            assert [found.code for found in report.violations] == codes

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

    def test_a_record_late_after_a_pending_one_is_rightly_refused(self):
        rows = [(0, "u", "s"), (900, "v", "s"), (100, "w", "s")]
        trace = trace_table([{"row": 0, "verdict": "suppressed"}, {"row": 2, "verdict": "dead", "reason": "late"}])
        report = audit(table([]), table(records(rows)), trace, policy(z=5, lateness=600))
        assert [(found.code, found.count) for found in report.findings] == [("pending", 1)]

    def test_a_trace_without_columns_proves_nothing(self, case):
        given = table(case.release, case.columns), table(case.truth, NAMES)
        report = audit(*given, pa.table({"a": [1]}), case.promised)
        assert [found.code for found in report.violations] == ["unchecked-promise"]
        assert "no column row, verdict" in report.violations[0].sentence

    def test_a_trace_without_truth_is_reported_as_unused(self, case):
        report = audit(table(case.release, case.columns), None, trace_table(case.trace), case.promised)
        assert report.ok
        assert any("trace was not checked" in sentence for sentence in report.not_checked)


class TestFreshStart:
    """A first record with a clock far ahead: the second person restarts the stream."""

    FAR = 100 * HOUR

    def test_it_does_not_count_as_a_wrong_order(self):
        exact, _ = decide([(self.FAR, "u", "s"), (self.FAR, "u", "s"), (0, "v", "s")], {})
        assert exact.findings == ()

    def test_nothing_before_it_counts(self):
        exact, bound = decide([(self.FAR, "u", "s"), (0, "v", "t"), (self.FAR, "w", "s")], {2: "s"})
        assert [(found.code, found.rows) for found in exact.findings] == [("below-z", (0,))]
        assert bound.ok

    AHEAD = ((0, "u", "s"), (100, "u", "s"), (-1, "v", "s"), (-1, "v", "s"))
    LATENESS = 10

    def audited(self, rows, entries, **rules):
        trace = trace_table([dict(zip(("row", "verdict", "reason"), entry, strict=False)) for entry in entries])
        report = audit(table([]), table(records(rows)), trace, policy(z=9, max_gap=100, **rules))
        return [found.code for found in report.findings]

    def test_records_refused_at_it_moved_the_clock(self):
        entries = [(0, "suppressed"), (1, "dead", "ahead"), (2, "suppressed"), (3, "suppressed")]
        assert self.audited(self.AHEAD, entries, lateness=self.LATENESS) == []

    def test_a_record_before_it_cannot_be_pending(self):
        entries = [(0, "suppressed"), (2, "suppressed"), (3, "suppressed")]
        assert self.audited(self.AHEAD, entries, lateness=self.LATENESS) == ["lost"]
        assert self.audited(self.AHEAD, entries[:1], lateness=self.LATENESS) == ["pending"], "it was not read yet"

    def test_records_after_it_may_wait_behind_a_time_that_was_wrong(self):
        entries = [(0, "suppressed"), (1, "suppressed")]  # flushed before the others came
        assert self.audited(self.AHEAD, entries, lateness=self.LATENESS) == ["pending"]

    def test_it_happens_again_before_the_second_clock_is_confirmed(self):
        rows = [*self.AHEAD[:3], (-102, "w", "s"), (-102, "u", "s")]
        entries = [(0, "suppressed"), (1, "dead", "ahead"), (2, "dead", "ahead"), (3, "suppressed"), (4, "suppressed")]
        assert self.audited(rows, entries, lateness=self.LATENESS) == []

    @pytest.mark.parametrize(
        ("between", "verdict"),
        [
            ((101, "u", "s"), ("dead", "unknown-value")),  # did not reach the clock
            ((201, "u", "s"), ("dead", "ahead")),  # further ahead than max_gap: did not move the clock
            ((201, "v", "s"), ("dead", "ahead")),  # as little as another person's
        ],
    )
    def test_what_moves_no_clock_brings_it_no_nearer(self, between, verdict):
        rows = [(5, "u", "s"), (100, "u", "s"), between, (0, "v", "s")]
        entries = [(0, "suppressed"), (2, *verdict), (1, "dead", "ahead"), (3, "suppressed")]
        assert self.audited(rows, entries, lateness=0) == ["decision-order"]

    @pytest.mark.parametrize(
        ("between", "verdict"),
        [
            ((50, "w", "s"), ("dead", "late")),  # late, and yet a second person near the clock
            ((201, "w", "s"), ("suppressed",)),  # accepted, so a claim was confirmed
        ],
    )
    def test_a_confirmed_clock_does_not_start_over(self, between, verdict):
        rows = [*self.AHEAD[:2], between, *self.AHEAD[2:]]
        entries = [(0, "suppressed"), (1, "suppressed"), (2, *verdict), (3, "suppressed"), (4, "suppressed")]
        assert self.audited(rows, entries, lateness=0) == ["decision-order"]

    def test_time_that_passes_without_a_record_confirms_the_clock(self):
        rows = [*self.AHEAD[:3], (-1, "w", "s")]
        entries = [(0, "suppressed"), (1, "suppressed"), (2, "dead", "late"), (3, "suppressed")]
        assert self.audited(rows, entries, lateness=0) == ["decision-order"]

    def test_what_came_before_it_is_decided_before_it(self):
        rows = [(1000, "u", "s"), (0, "v", "s"), (1, "w", "s")]
        assert self.audited(rows, [(1, "suppressed"), (0, "suppressed"), (2, "suppressed")]) == ["decision-order"]

    def test_lateness_longer_than_max_gap_delays_it(self):
        rows = [(101, "v", "s"), (0, "u", "s")]
        entries = [(0, "suppressed"), (1, "suppressed")]  # in the order of arrival, as if the stream had restarted
        assert self.audited(rows, entries, lateness=100) == []
        assert self.audited(rows, entries, lateness=101) == ["decision-order"]

    def test_records_late_after_it(self):
        rows = [(1000, "u", "s"), (0, "v", "s"), (20, "w", "s"), (5, "u", "s")]
        entries = [(0, "suppressed"), (1, "suppressed"), (3, "suppressed"), (2, "suppressed")]
        assert self.audited(rows, entries, lateness=14) == ["late-accepted"]
        assert self.audited(rows, entries, lateness=15) == []

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


@pytest.mark.parametrize(
    ("target", "more", "words"),
    [
        (3, {}, "must be a table with k and p"),
        ({"k": 2, "p": 0.9}, {"z": 4}, "goes without z and combine"),
        ({"k": 1, "p": 0.9}, {}, "k: must be a whole number from 2"),
        ({"k": 2, "p": 0.9, "floor": 0}, {}, "floor: must be"),
        ({"k": 2, "p": 2}, {}, "p: must be a share"),
    ],
)
def test_invalid_targets(case, target, more, words):
    rules = {name: value for name, value in policy(z=2)["anonymize"].items() if name != "z"}
    written = {**policy(z=2), "anonymize": {**rules, "target": target, **more}}
    with pytest.raises(PolicyError, match=words):
        audit(table(case.release), policy=written)
