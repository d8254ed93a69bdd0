"""The driver and all its processes are killed, then an executor that holds sets; the release is the same."""

from __future__ import annotations

import os
import signal

import pytest

from shoal.pipeline import Pipeline
from shoal.policy import load_policy
from tests.spark.processes import EXECUTOR, start
from tests.spark.scene import Stage
from tests.spark.sets.test_set_runs import COUNTED, policy, visits

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]


def test_a_release_of_sets_survives_the_death_of_an_executor_and_of_the_driver(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both die when a task that holds a part has connected to the driver: the search begins, or has begun."""
    stage.write(visits(), files=3)
    monkeypatch.setenv("SHOAL_KEY_FILE", str(stage.key))
    Pipeline(load_policy(policy(stage, COUNTED, "here"))).run()
    there = policy(stage, COUNTED, "there")
    with start(there, stage.key, master="local[2]") as run:
        run.wait_for_connection()
        run.kill_all()
    assert {path.name for path in stage.folder.glob("there.parquet*")} <= {"there.parquet.partial"}
    with start(there, stage.key) as run:
        run.wait_for_connection()
        os.kill(run.wait_for(EXECUTOR), signal.SIGKILL)
        code, errors = run.end()
    assert code == 0, errors
    for ending in (".parquet", ".parquet.certificate.json", ".parquet.blocks.json"):
        assert (stage.folder / f"there{ending}").read_bytes() == (stage.folder / f"here{ending}").read_bytes(), ending
