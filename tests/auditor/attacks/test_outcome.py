"""Rates, their intervals, and how a report reads."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shoal.auditor.attacks.outcome import Attack, AttackReport, Question, Rate


@pytest.mark.parametrize("n", [20, 100, 1000])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.5])
def test_intervals_cover_the_truth_about_95_times_in_100(n, share):
    drawn = np.random.default_rng(5).binomial(n, share, size=2000)
    rates = [Rate.counted(float(hits), n) for hits in drawn]
    assert 0.91 < np.mean([rate.low <= share <= rate.high for rate in rates]) < 0.99


def test_ends_of_the_interval_solve_wilsons_equation():
    rate = Rate.counted(7, 40)
    for end in (rate.low, rate.high):
        assert abs(rate.value - end) == pytest.approx(1.959964 * math.sqrt(end * (1 - end) / 40), rel=1e-5)


def test_extreme_rates_stay_within_0_and_1():
    assert Rate.counted(0, 10).low == 0
    assert 0.2 < Rate.counted(0, 10).high < 0.3
    assert Rate.counted(10, 10).high == 1
    assert Rate.of([]) is None


def test_a_gain_must_exceed_both_baselines():
    attack = Attack("one", Question.LINKING, "wants", "knows", Rate.counted(90, 100), guess=0.1)
    assert attack.gains
    same = Attack("one", Question.LINKING, "wants", "knows", Rate.counted(90, 100), guess=0.1, control=0.88)
    assert not same.gains
    assert attack.not_applicable("why").why_not == "why"


def test_a_report_names_what_does_not_apply():
    applies = Attack("one", Question.LINKING, "wants", "knows", Rate.counted(9, 100), guess=0.1, raw=1.0)
    report = AttackReport(
        "fads", (applies, Attack("two", Question.INFERENCE, "", "").not_applicable("no range")), {"n": 3, "risk": 1 / 3}
    )
    assert report.text().startswith("attacks on a release of fads: n 3; risk 0.3333\n")
    assert "two  does not apply: no range" in report.text()
    assert report.of(Question.LINKING) == (applies,)
    assert "control of" not in report.text()


def test_a_reason_that_several_attacks_share_is_given_once():
    tried = Attack("one", Question.LINKING, "wants", "knows", Rate.counted(9, 100))
    others = [Attack(name, asks, "", "").not_applicable("no trace")
              for name, asks in (("two", Question.LINKING), ("three", Question.INFERENCE))]  # fmt: skip
    single = Attack("four", Question.LINKING, "", "").not_applicable("no range")
    report = AttackReport("fads", (tried, *others, single), {})
    lines = report.text().splitlines()
    assert [line for line in lines if "does not apply" in line] == [
        "  four   does not apply: no range",
        "does not apply: no trace",
    ]
    assert lines[lines.index("does not apply: no trace") + 1] == "  two; three"
    assert "inference" not in lines, "no attack of this question is listed under it"
    assert [attack["why_not"] for attack in report.to_dict()["attacks"]] == ["", "no trace", "no trace", "no range"]


@pytest.mark.parametrize(("control_is", "named"), [("people who are not in the data", False), ("by their mode", True)])
def test_a_control_of_another_kind_is_named(control_is, named):
    attack = Attack("one", Question.LINKING, "wants", "knows", Rate.counted(9, 100), control=0.1, control_is=control_is)
    assert ("control of one: by their mode" in AttackReport("fads", (attack,), {}).text()) is named


def test_an_attack_that_was_not_tried_is_not_found():
    report = AttackReport("fads", (), {})
    with pytest.raises(KeyError):
        report["three"]
