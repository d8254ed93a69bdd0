"""Executors and the driver are killed; the release is the same, or there is none."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

import shoal
from shoal.observe.observer import Observer
from shoal.pipeline import Pipeline
from shoal.policy import load_policy
from shoal.spark.run import SparkRun
from tests.spark.flexible.test_shards import promise, records
from tests.spark.processes import EXECUTOR, start
from tests.spark.scene import EVENTS, TUPLES, Stage, events, people

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]


def test_a_release_survives_the_death_of_an_executor_and_of_the_driver(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both die while rows are being written."""
    stage.write(events(3000), files=3)
    monkeypatch.setenv("SHOAL_KEY_FILE", str(stage.key))
    Pipeline(load_policy(stage.policy(EVENTS, "here", time=True))).run()
    policy = stage.policy(EVENTS, "there", time=True)
    with start(policy, stage.key, master="local[2]") as run:
        run.wait_for_file(stage.folder, "there/.attempt-*/*")
        run.kill_all()
    assert not list((stage.folder / "there").glob("part-*"))
    with start(policy, stage.key) as run:
        run.wait_for_file(stage.folder, "there/.attempt-*/*")
        os.kill(run.wait_for(EXECUTOR), signal.SIGKILL)
        code, errors = run.end()
    assert code == 0, errors
    assert stage.rows("there").to_pylist() == stage.rows("here").to_pylist()
    assert stage.letters("there") == stage.letters("here")
    assert stage.trace("there").to_pylist() == stage.trace("here").to_pylist()


@pytest.mark.parametrize("family", ["tuples", "flexible"])
def test_rows_of_shards_are_published_once_although_everything_and_an_executor_were_killed(
    session: Any, stage: Stage, family: str
) -> None:
    """Both die while rows are being written; the cluster then publishes what two tasks in one process publish."""
    rows = people(1500) if family == "tuples" else records()
    few_shards = {**TUPLES, "deadline": 60}
    anonymize = few_shards if family == "tuples" else promise(stage.folder)
    stage.write(rows, files=3)
    expected = SparkRun(load_policy(stage.policy(anonymize, "here")), Observer(), master="local[2]").execute()
    policy = stage.policy(anonymize, "there")
    with start(policy, stage.key, master="local[2]") as run:
        run.wait_for_file(stage.folder, "there/.attempt-*/*")
        run.kill_all()
    assert not list((stage.folder / "there").glob("part-*"))
    with start(policy, stage.key) as run:
        run.wait_for_file(stage.folder, "there/.attempt-*/part-*")
        os.kill(run.wait_for(EXECUTOR), signal.SIGKILL)
        code, errors = run.end()
    assert code == 0, errors
    trace = stage.trace("there")
    assert len(set(trace["row"].to_pylist())) == len(trace) == len(rows) - expected.pending
    report = shoal.audit(stage.rows("there"), str(stage.folder / "in"), trace, str(policy))
    assert report.ok, report
    assert stage.rows("there").to_pylist() == stage.rows("here").to_pylist()
    assert trace.to_pylist() == stage.trace("here").to_pylist()
    assert stage.letters("there") == stage.letters("here")


def test_without_a_key_nothing_starts(stage: Stage) -> None:
    stage.write(events(10), files=1)
    with start(stage.policy(EVENTS, "there", time=True), None) as run:
        code, errors = run.end()
    assert code == 1
    assert errors.startswith("shoal: SHOAL_KEY_FILE is not set; on Spark every executor needs the same key")
    assert len(errors.splitlines()) == 1
