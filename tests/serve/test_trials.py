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


TIMED = TUPLES.replace('person = "user"', 'person = "user"\ntime = "ts"').replace(
    "deadline = 60", 'deadline = "5s"\nreuse = "5s"'
)


def timed_people(rows: int) -> str:
    """Ten rows a second."""
    head, *lines = people(rows).splitlines()
    return "\n".join([f"ts,{head}", *(f"{at // 10},{line}" for at, line in enumerate(lines))]) + "\n"


@pytest.mark.parametrize(("policy", "longer", "unit", "covers"),
                         [(TIMED, 100_000, "seconds", 59), (TUPLES, 600, "arrivals", 600)])  # fmt: skip
def test_a_deadline_longer_than_the_sample_ends_with_it(
    tmp_path: Path, policy: str, longer: int, unit: str, covers: float
) -> None:
    """Otherwise every row would be pending, and nothing could be compared."""
    run = Run(tmp_path, policy, timed_people(600) if policy is TIMED else people(600))
    found = run_trial(run.policy, run.recent, {"deadline": longer})
    assert (found["covers"], found["unit"]) == (covers, unit)
    for side in (found["now"], found["then"]):
        assert side["published"] + side["suppressed"] == pytest.approx(1, abs=1e-3)
        assert side["smallest_class"] >= 4
    assert found["then"]["loss"] < found["now"]["loss"], "all rows could choose among all others"


def test_a_sample_grows_with_the_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.serve.trials._ROWS", 200)
    monkeypatch.setattr("shoal.serve.trials._MOST_ROWS", 1_000)
    run = Run(tmp_path, TIMED, timed_people(2_000))
    for deadline, rows in ((6, 200), (12, 400), (30, 1_000), (300, 1_000)):
        found = run_trial(run.policy, run.recent, {"deadline": deadline})
        assert found["rows"] == rows
        assert ("covers" in found) == (deadline == 300)


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
