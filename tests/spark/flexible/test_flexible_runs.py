"""The flexible method on Spark: audited on the union, next to a run on one machine."""

from __future__ import annotations

from typing import Any

import shoal
import shoal.spark
from shoal.observe.observer import Observer
from shoal.pipeline import Pipeline
from shoal.policy import load_policy
from shoal.spark.run import SparkRun
from tests.auditor.in_parts import same_report
from tests.spark.flexible.test_shards import ROWS, method, promise, records
from tests.spark.scene import Stage


def test_a_run_is_anonymous_on_the_union(session: Any, stage: Stage) -> None:
    stage.write(records(), files=3)
    anonymize = promise(stage.folder)
    here = Pipeline(load_policy(stage.policy(anonymize, "here"))).run()
    run = SparkRun(load_policy(stage.policy(anonymize, "there")), Observer(), master="local[2]")
    there = run.execute()
    assert (there.rows_in, there.dead, there.dead_by_reason) == (here.rows_in, here.dead, here.dead_by_reason)
    assert there.guarantee == here.guarantee
    assert there.released + there.dead + there.pending == ROWS
    assert there.pending <= here.pending + 0.01 * ROWS
    assert there.metrics["shards"] > 1
    assert there.metrics["k_s"] == here.metrics["k_s"]
    assert there.metrics["loss"] <= 1.25 * here.metrics["loss"]
    assert stage.letters("there") == stage.letters("here")
    report = shoal.audit(
        stage.rows("there"), str(stage.folder / "in"), stage.trace("there"), str(stage.folder / "there.toml")
    )
    assert report.ok, report
    assert not {finding.code for finding in report.findings} - {"pending"}, report
    same_report(report, shoal.spark.audit(
        str(stage.folder / "there"), str(stage.folder / "in"), str(stage.folder / "there.trace.parquet"),
        str(stage.folder / "there.toml"),
    ))  # fmt: skip


def test_dataframes_of_any_number_of_partitions(session: Any) -> None:
    rows = [{"number": number, **record} for number, record in enumerate(records())]
    found = []
    for partitions in (1, 3, 16):
        frame = session.createDataFrame(rows, "number long, id string, place string, speed double, model string")
        frame = frame.repartition(partitions)
        found.append(shoal.spark.anonymize(frame, method(), order="number", shards=3).toArrow().to_pylist())
    assert found[0] == found[1] == found[2]
    assert 0.9 * ROWS < len(found[0]) < ROWS
