"""The flexible method on streams: what a batch of the same records publishes, through crashes at every step."""

from __future__ import annotations

import os
from typing import Any

import pytest

import shoal
from shoal.errors import CheckpointError
from shoal.observe.observer import Observer
from shoal.policy import load_policy
from shoal.spark.run import SparkRun
from shoal.spark.streams.state import Commit, StateFolder
from tests.spark.flexible.test_shards import ROWS, WINDOW, promise, records
from tests.spark.scene import Stage
from tests.spark.streams.crashes import STEPS, Crash, Crashes
from tests.spark.streams.test_dataframes import Crash as StoppedDriver
from tests.spark.streams.test_file_streams import Growing
from tests.spark.streams.test_tuple_streams import streamed

SHARDS = 5


def test_files_are_published_as_in_one_batch_through_crashes_at_every_step(
    session: Any, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first micro-batch waits, the second calibrates: it is stopped at every step, and so is the end."""
    stage.write(records(), files=8)
    growing = Growing(stage, promise(stage.folder), time=False, shards=SHARDS)
    crashes = Crashes(monkeypatch, STEPS)
    growing.grow()
    first = growing.run(once=True)
    assert first.rows_in < WINDOW
    assert (first.released, first.pending) == (0, first.rows_in - first.dead)
    for step in STEPS:
        growing.grow()
        crashes.arm(step)
        with pytest.raises(Crash):
            growing.run(once=True)
    text = growing.there.read_text()
    growing.there.write_text(text.replace('"k" = 4', '"k" = 5'))
    with pytest.raises(CheckpointError, match="is of another method, other settings"):
        growing.run(once=True)
    growing.there.write_text(text)
    for _ in range(2):
        growing.grow()
        growing.run(once=True)
    assert growing.is_complete
    for step in ("decided, not committed", "committed, not shown"):
        crashes.arm(step)
        with pytest.raises(Crash):
            growing.run()
    there = growing.run()
    here = SparkRun(load_policy(growing.here), Observer(), master="local[2]", shards=SHARDS).execute()
    assert stage.rows("there").to_pylist() == stage.rows("here").to_pylist()
    assert stage.trace("there").to_pylist() == stage.trace("here").to_pylist()
    assert stage.letters("there") == stage.letters("here")
    assert (there.rows_in, there.released, there.dead, there.pending) == (ROWS, here.released, here.dead, here.pending)
    assert there.dead_by_reason == here.dead_by_reason
    assert there.metrics == pytest.approx(here.metrics)
    assert there.guarantee == here.guarantee
    assert there.metrics["shards"] == SHARDS
    used = {group % 2**40 for group in stage.trace("there")["group"].drop_null().to_pylist()}
    assert SHARDS in used, "the last shard publishes some of what was pending in the others"
    assert not there.stopped
    report = shoal.audit(
        stage.rows("there"), str(stage.folder / "in"), stage.trace("there"), str(stage.folder / "there.toml")
    )
    assert report.ok, report
    again = growing.run()
    assert again.finished_before
    assert again.guarantee == here.guarantee


def test_micro_batches_of_a_dataframe_are_identical_through_crashes(
    session: Any, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver stops while records wait, when they calibrate, and when they are published."""
    stage.write(records(), files=5, kind="parquet")
    for number, path in enumerate(sorted((stage.folder / "in").iterdir())):
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    policy = stage.policy(promise(stage.folder), "there", kind="parquet")
    expected = streamed(session, stage, policy, "one")
    write, crashes = StateFolder.write, {0, 1, 4}

    def crashing(self: StateFolder, commit: Commit) -> None:
        if commit.batch in crashes:
            crashes.remove(commit.batch)
            raise StoppedDriver
        write(self, commit)

    monkeypatch.setattr(StateFolder, "write", crashing)
    assert streamed(session, stage, policy, "two", crashes=3) == expected
    waiting, *later = map(len, expected)
    assert waiting == 0
    assert sum(later) > 0
