"""Labels higher up: the residual rule."""

from __future__ import annotations

import pytest

from shoal.auditor import Severity
from shoal.errors import PolicyError
from tests.auditor.cases import decide
from tests.auditor.z.naive import HOUR, policy

TREE = {"*": {"news": ["a.example", "rare.example"], "shops": ["b.example"]}}


def climbing(z, **rules):
    return policy(z=z, on_private="generalize", hierarchy={"kind": "nested", "tree": TREE}, **rules)


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

    def test_people_whose_own_value_passes_now_count_by_the_loose_rule_only(self):
        """19 suppressed on a.example, the twentieth released: a row called news cannot be a.example."""
        rows = [*((0, f"person {n}", "a.example") for n in range(20)), (1, "loner", "rare.example")]
        shown = {19: "a.example", 20: "news"}
        exact, _ = decide(rows, shown, promised=climbing(20))
        assert [(found.code, found.rows) for found in exact.findings] == [("below-z", (1,))]
        exact, _ = decide(rows, shown, promised=climbing(20, residual="loose"))
        assert exact.findings == ()

    def test_an_unknown_residual_rule_is_reported(self):
        with pytest.raises(PolicyError, match="residual is one of strict, loose"):
            decide([(0, "u", "a.example")], {}, promised=climbing(20, residual="lax"))

    def test_suppressed_people_count_for_the_label(self):
        rows = [(0, f"person {n}", "a.example") for n in range(19)] + [(1, "loner", "rare.example")]
        exact, bound = decide(rows, {19: "news"}, promised=climbing(20))
        assert exact.findings == bound.findings == ()

    def test_a_label_too_high_is_a_warning(self):
        rows = [(0, f"person {n}", "a.example") for n in range(19)] + [(1, "loner", "rare.example")]
        exact, _ = decide(rows, {19: "*"}, promised=climbing(20, residual="loose"))
        assert [(found.code, found.severity) for found in exact.findings] == [("too-general", Severity.WARNING)]

    def test_nobody_counts_for_a_label_above_one_that_passes_by_the_strict_rule(self):
        rows = [(0, f"person {n}", "a.example") for n in range(19)] + [(1, "loner", "rare.example")]
        exact, _ = decide(rows, {19: "*"}, promised=climbing(20))
        assert {found.code for found in exact.findings} == {"below-z", "too-general"}

    def test_a_label_that_is_not_an_ancestor(self):
        exact, bound = decide([(0, "u", "a.example")], {0: "shops"}, promised=climbing(20))
        assert {found.code for found in exact.violations} == {"wrong-label"}
        assert {found.code for found in bound.violations} == {"not-in-truth"}

    def test_an_unknown_label(self):
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
