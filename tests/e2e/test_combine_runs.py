"""Runs that keep rows pending for an epoch, from files to files: audited, forged and convicted, stopped and resumed."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from shoal.pipeline import Pipeline
from tests.auditor.z.test_combine import stream
from tests.e2e.scene import Ended, Scene, encode, shoal
from tests.e2e.test_tuple_runs import Stop, StopAfter


@pytest.fixture
def stage(scene: Scene, key: Path) -> Scene:
    """A policy that watches combinations, and 240 visits."""
    scene.write("in.csv", encode("csv", stream()))
    scene.sections["anonymize"] |= {"window": "1min", "combine": "k", "k": 2}
    scene.sections["trace"] = {"path": "trace.parquet"}
    return scene


def audited(stage: Scene, truth: str = "in.csv") -> Ended:
    given = ("--truth", truth, "--trace", "trace.parquet", "--policy", stage.policy)
    return shoal("audit", "out.csv", *given, "--json")


def test_a_run_is_audited_and_a_spoilt_one_convicted(stage: Scene) -> None:
    ended = stage.run("--json", "--quiet")
    assert ended.code == 0, ended.err
    summary = ended.summary
    assert summary["released"] + summary["suppressed"] == summary["rows_in"] == 240
    judged = audited(stage)
    assert judged.code == 0, judged.out
    assert judged.summary["findings"] == []
    with (stage.folder / "out.csv").open() as file:
        rows = list(csv.reader(file))
    place = rows[0].index("site")
    first = next(row for row in rows[1:] if row[place] == "a.shop")
    others = [row for row in rows if row[1] != first[1]]
    # one person shows something else than the others of their set
    spoilt = others + [[*row[:place], "b.shop", *row[place + 1 :]] for row in rows if row[1] == first[1]]
    stage.write("out.csv", "\n".join(",".join(row) for row in spoilt) + "\n")
    judged = audited(stage)
    assert judged.code == 1
    assert "set-below-k" in {found["code"] for found in judged.summary["findings"]}


def test_the_doctor_has_nothing_against_it(stage: Scene) -> None:
    stage.write_policy()
    assert shoal("doctor", stage.policy).code == 0


def test_combine_without_k_is_refused(stage: Scene) -> None:
    del stage.sections["anonymize"]["k"]
    ended = stage.run()
    assert ended.code == 2
    assert "[anonymize] k: is missing" in ended.err


def test_a_run_stopped_within_an_epoch_resumes(stage: Scene) -> None:
    files = [f"in{number}.csv" for number in range(8)]
    for number, name in enumerate(files):
        stage.write(name, encode("csv", stream()[30 * number : 30 * number + 30]))
    stage.sections["source"]["path"] = files
    assert stage.run("--quiet").code == 0
    whole = stage.released()
    stage.sections["checkpoint"] = {"path": "state", "every": 1}
    stage.write_policy()
    with pytest.raises(Stop):
        Pipeline.from_policy(stage.policy).run(StopAfter(5))
    ended = stage.run("--json")
    assert ended.summary["resumed"]
    assert stage.released().equals(whole)
    assert audited(stage).summary["findings"] == []
