"""The table of goals takes its figures from the results, and says why a goal is missed."""

from __future__ import annotations

import json

import pytest
from benchmarks.__main__ import LONG, SUITE

from benchmarks import goals
from tests.docs.pages import ROOT


@pytest.mark.parametrize(
    ("text", "found"),
    [("1.25", 1.25), ("8.05 million", 8_050_000), ("67,300", 67_300), ("+9%", 9), ("−17%", -17), ("22 of 23", 22)],
)
def test_the_number_of_a_cell(text, found):
    assert goals.number(text) == pytest.approx(found)


def test_a_cell_is_found_by_the_words_of_its_row(tmp_path, monkeypatch):
    monkeypatch.setattr(goals, "RESULTS", tmp_path)
    block = {"columns": ["k", "method", "loss"], "rows": [["5", "ours", "0.1"], ["50", "ours", "0.4"]]}
    (tmp_path / "some.json").write_text(json.dumps({"blocks": {"loss": block}}))
    assert goals.cell("some", "loss", "loss", "ours", "50") == "0.4"
    for column, words in (("loss", ("theirs",)), ("gain", ("ours",))):
        with pytest.raises(LookupError, match=r"some\.json"):
            goals.cell("some", "loss", column, *words)


def test_better_and_worse_results_change_the_verdict(tmp_path, monkeypatch):
    monkeypatch.setattr(goals, "RESULTS", tmp_path)
    (goal,) = (one for one in goals.GOALS if one.what == "loss on Adult, k = 50, deadline 2000")
    for loss, verdict in (("0.395", "met"), ("0.396", "**missed**")):
        block = {"columns": ["k", "m = 0"], "rows": [["50", f"{loss} / 0.608, −33%"]]}
        (tmp_path / "tuples_loss.json").write_text(json.dumps({"blocks": {"adult": block}}))
        row = goal.row()
        assert row[3] == loss
        assert row[5].startswith(verdict)


@pytest.mark.parametrize("goal", goals.GOALS, ids=lambda goal: goal.what[:40])
def test_every_goal_has_its_figures_its_command_and_if_missed_its_reason(goal):
    row = goal.row()
    assert all(row)
    assert goal.missed or "missed" not in row[5]
    *_, named = goal.command.split()
    if goal.command.startswith("python -m benchmarks."):
        assert named.removeprefix("benchmarks.") in {*SUITE, *LONG}
    elif goal.command.startswith("python -m pytest"):
        assert (ROOT / named).is_file()
