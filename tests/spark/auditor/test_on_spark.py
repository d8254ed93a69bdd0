"""Audits on Spark itself: the same reports as on one machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import shoal
import shoal.spark
from shoal.cli.app import app
from shoal.observe.observer import Observer
from shoal.policy import load_policy
from shoal.spark.run import SparkRun
from tests.auditor.sets.test_in_parts import another_set, certified, make_sets
from tests.spark.auditor.releases import Evidence, make_evidence
from tests.spark.auditor.test_class_sizes import write_people
from tests.spark.auditor.test_flexible import made, same, write
from tests.spark.auditor.test_flexible import too_few_people as few_people
from tests.spark.auditor.test_tables import write_table
from tests.spark.auditor.test_tuples import BROKEN, leaked_identifier, one_too_few, same_report
from tests.spark.auditor.test_z import publish, same_findings, too_few_people
from tests.spark.auditor.test_z_epochs import a_row_too_many, a_set_of_one, combined, targeted
from tests.spark.auditor.test_z_epochs import same as same_as_here
from tests.spark.scene import TUPLES, Stage, people
from tests.spark.sets.test_set_runs import COUNTED, visits
from tests.spark.sets.test_set_runs import policy as set_policy
from tests.spark.test_runs import both


@pytest.mark.parametrize("broken", [one_too_few, leaked_identifier], ids=lambda one: one.__name__)
def test_broken_releases_are_convicted(session: Any, tmp_path: Path, broken: Any) -> None:
    evidence = make_evidence()
    broken(evidence)
    paths = evidence.write(tmp_path, files=4)
    report = shoal.spark.audit(**paths)
    assert BROKEN[broken] <= {found.code for found in report.violations}
    same_report(shoal.audit(**paths), report)


def test_events(session: Any, tmp_path: Path) -> None:
    evidence = publish(300)
    too_few_people(evidence)
    paths = evidence.write(tmp_path)
    report = shoal.spark.audit(**paths)
    assert [found.code for found in report.violations] == ["below-z"]
    same_findings(shoal.audit(**paths), report)


def test_events_of_epochs(session: Any, tmp_path: Path) -> None:
    runs = {"combine": combined("high"), "target": targeted("table")}
    a_set_of_one(runs["combine"])
    a_row_too_many(runs["target"])
    codes = {}
    for name, run in runs.items():
        paths = Evidence(run.release, run.truth, run.trace, run.policy()).write(tmp_path / name)
        report = shoal.spark.audit(**paths)
        codes[name] = {found.code for found in report.violations}
        same_as_here(shoal.audit(**paths), report)
    assert codes == {"combine": {"set-below-k"}, "target": {"stands-out"}}


def test_sets(session: Any, tmp_path: Path) -> None:
    evidence = make_sets()
    certified(evidence)
    another_set(evidence)
    paths = evidence.write(tmp_path)
    report = shoal.spark.audit(**paths)
    assert {"not-the-image", "certificate-differs"} <= {found.code for found in report.violations}
    same_report(shoal.audit(**paths), report)


def test_flexible_k(session: Any, tmp_path: Path) -> None:
    run = made(tmp_path, 4, sparse="auto", window=60)
    few_people(run)
    paths = write(run, tmp_path)
    report = shoal.spark.audit(**paths)
    assert "below-k" in {found.code for found in report.violations}
    same(shoal.audit(**paths), report)


def test_sets_that_spark_published(session: Any, stage: Stage) -> None:
    stage.write(visits(), files=3)
    path = set_policy(stage, COUNTED, "there")
    SparkRun(load_policy(path), Observer(), master="local[2]").execute()
    names = ("there.parquet", "in", "there.trace.parquet")
    report = shoal.spark.audit(*(str(stage.folder / name) for name in names), str(path))
    assert report.ok, report.text()
    trace = stage.trace("there")
    same_report(shoal.audit(*(str(stage.folder / name) for name in names[:2]), trace, str(path)), report)
    damaged = pq.read_table(stage.folder / names[0]).slice(1)
    pq.write_table(damaged, stage.folder / names[0])
    report = shoal.spark.audit(*(str(stage.folder / name) for name in names), str(path))
    assert {"undecided", "certificate-differs"} <= {found.code for found in report.violations}


def test_a_run_on_spark_with_its_sealed_trace(session: Any, stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    stage.write(people(2000), files=3)
    both(stage, TUPLES, time=False)
    here = shoal.audit(
        stage.rows("there"), str(stage.folder / "in"), stage.trace("there"), str(stage.folder / "there.toml")
    )
    there = shoal.spark.audit(
        str(stage.folder / "there"), str(stage.folder / "in"), str(stage.folder / "there.trace.parquet"),
        str(stage.folder / "there.toml"),
    )  # fmt: skip
    assert there.ok, there.text()
    same_report(here, there)


def test_a_table_from_the_command_line(session: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = write_table(tmp_path / "table")
    options = ["--quasi", "age", "town", "--sensitive", "ill", "--person", "who", "--k", "4", "--l", "2", "--json"]
    codes = []
    for more in ([], ["--engine", "spark", "--master", "local[2]"]):
        codes.append(app(["audit", place, *options, *more], result_action="return_value"))
    here, there = (json.loads(text) for text in _documents(capsys.readouterr().out))
    assert codes == [1, 1]
    assert there == here


def test_an_attack_from_the_command_line(session: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = write_people(tmp_path)
    options = [
        "--truth",
        paths["truth"],
        "--knows",
        "zip",
        "sex",
        "--engine",
        "spark",
        "--master",
        "local[2]",
        "--json",
    ]
    assert app(["attack", paths["release"], *options], result_action="return_value") == 0
    there = json.loads(capsys.readouterr().out)
    here = shoal.attack(paths["release"], paths["truth"], knows=["zip", "sex"], targets=1000)["prosecutor"].success
    assert here is not None
    assert there["attacks"][0]["success"]["rate"] == pytest.approx(here.value)


def _documents(text: str) -> list[str]:
    first, second = text.split("}\n{")
    return [first + "}", "{" + second]
