"""What if: recent records under other settings, next to those in force."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shoal.errors import PolicyError
from shoal.serve.trials import check_trial, run_trial
from tests.serve.measured.test_measured import people, visits
from tests.serve.scene import TUPLES, Run, Z


def test_the_settings_in_force_decide_as_the_run_did(tmp_path: Path) -> None:
    run = Run(tmp_path, Z, visits())
    found = run_trial(run.policy, run.recent, {"z": 1})
    assert found["rows"] == run.summary.rows_in
    assert found["now"]["published"] == pytest.approx(run.summary.released / run.summary.rows_in, abs=1e-4)
    assert found["now"]["smallest_class"] == 3
    assert (found["then"]["published"], found["then"]["suppressed"]) == (1.0, 0.0)


def test_a_larger_k_loses_more(tmp_path: Path) -> None:
    run = Run(tmp_path, TUPLES, people())
    found = run_trial(run.policy, run.recent, {"k": 8, "deadline": 120})
    assert found["settings"] == {"k": 8, "deadline": 120}
    now, then = found["now"], found["then"]
    assert then["loss"] > now["loss"]
    assert then["delay"] > now["delay"]
    assert (now["smallest_class"], then["smallest_class"]) == (4, 8)
    assert sum(then[name] for name in ("published", "suppressed", "pending")) == pytest.approx(1, abs=1e-3)


def test_a_trial_changes_nothing_of_the_run(tmp_path: Path) -> None:
    run = Run(tmp_path, Z, visits(300))
    before = [(step.number, step.batch, step.release.rows) for step in run.recent.steps()]
    run_trial(run.policy, run.recent, {"z": 9})
    assert [(step.number, step.batch, step.release.rows) for step in run.recent.steps()] == before


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"z": 0}, "z: must be from 1 to 50"),
        ({"z": "3"}, "z: must be a number"),
        ({"z": 1.5}, "z: must be a whole number"),
        ({"z": True}, "z: must be a number"),
        ({"window": 5}, "only these settings can be tried: z"),
        ({}, "name a setting to try: z"),
        ([3], "name a setting to try: z"),
    ],
)
def test_settings_that_cannot_be_tried(given: Any, sentence: str, tmp_path: Path) -> None:
    run = Run(tmp_path, Z, visits(20))
    with pytest.raises(PolicyError, match=sentence):
        check_trial(run.policy, given)
