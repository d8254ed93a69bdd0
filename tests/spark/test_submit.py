"""`spark-submit` runs the command: its master and its settings count."""

from __future__ import annotations

import json

import pytest

from shoal.pipeline import Pipeline
from shoal.policy import load_policy
from tests.spark.processes import submit
from tests.spark.scene import EVENTS, Stage, events

JOB = """from shoal.cli.app import main
main()
"""
GIVEN = {"spark.sql.shuffle.partitions": "3", "spark.driver.host": "127.0.0.1", "spark.app.name": "visits"}


@pytest.mark.spark
def test_a_policy_runs_under_spark_submit(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOAL_KEY_FILE", str(stage.key))
    stage.write(events(600), files=2)
    Pipeline(load_policy(stage.policy(EVENTS, "here", time=True))).run()
    policy, job, log = stage.policy(EVENTS, "there", time=True), stage.folder / "job.py", stage.folder / "log"
    job.write_text(JOB)
    log.mkdir()
    logged = {
        "spark.eventLog.enabled": "true", "spark.eventLog.dir": str(log), "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }  # fmt: skip
    words = ("run", str(policy), "--quiet", "--engine", "spark")
    with submit(job, stage.key, *words, settings={**GIVEN, **logged}) as run:
        code, errors = run.end()
    assert code == 0, errors
    assert stage.rows("there").to_pylist() == stage.rows("here").to_pylist()
    assert stage.trace("there").to_pylist() == stage.trace("here").to_pylist()
    (path,) = log.iterdir()
    told = [json.loads(line) for line in path.read_text().splitlines()]
    (used,) = (one["Spark Properties"] for one in told if one["Event"] == "SparkListenerEnvironmentUpdate")
    assert {name: used[name] for name in GIVEN} == GIVEN
    assert used["spark.master"] == "local[2]"
    assert used["spark.sql.adaptive.enabled"] == "false"  # what nobody has set is shoal's choice
