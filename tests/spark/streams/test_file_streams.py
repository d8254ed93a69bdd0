"""`shoal run --engine spark` on files that keep coming: as one run on one machine, through crashes at every step."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal.errors import CheckpointError, OutputError
from shoal.observe.observer import Observer
from shoal.pipeline import Pipeline
from shoal.policy import load_policy
from shoal.spark.streams.run import SparkStream
from shoal.spark.tuples import cuts
from tests.spark.scene import EVENTS, TUPLES, Stage, events, people
from tests.spark.streams.crashes import STEPS, Crash, Crashes

LATE = {**EVENTS, "lateness": "40s"}
TWO = {"method": "z-anonymity", "attribute": {"site": {}, "app": {}}, "lateness": "40s"}
COMBINE = {**TWO, "window": "4min", "rotation": "2min", "z": 2, "combine": "k", "k": 3}
TARGET = {**TWO, "window": "8min", "rotation": "4min", "target": {"k": 2, "p": 0.3, "start": 3}}


class Growing:
    """A folder to which files are added, and the policy of a stream that reads it."""

    def __init__(self, stage: Stage, anonymize: dict[str, Any], *, time: bool, shards: int = 3) -> None:
        self.stage, self._shards = stage, shards
        self._coming = sorted((stage.folder / "in").iterdir())
        (stage.folder / "later").mkdir()
        self._coming = [Path(shutil.move(path, stage.folder / "later" / path.name)) for path in self._coming]
        self.here = stage.policy(anonymize, "here", time=time)
        self.there = stage.policy(anonymize, "there", time=time)
        self.there.write_text(self.there.read_text() + '\n[checkpoint]\npath = "state"\n')

    @property
    def is_complete(self) -> bool:
        return not self._coming

    def grow(self) -> None:
        """Add the next file."""
        path = self._coming.pop(0)
        shutil.move(path, self.stage.folder / "in" / path.name)

    def run(self, **options: Any) -> Any:
        """A run on Spark."""
        stream = SparkStream(load_policy(self.there), Observer(), master="local[2]", shards=self._shards, **options)
        return stream.execute()


@pytest.mark.parametrize("anonymize", [LATE, COMBINE, TARGET], ids=["z", "combine", "target"])
def test_events_are_published_as_in_one_run_through_crashes_at_every_step(
    session: Any, stage: Stage, monkeypatch: pytest.MonkeyPatch, anonymize: dict[str, Any]
) -> None:
    stage.write(events(900), files=2 + len(STEPS))
    growing, crashes = Growing(stage, anonymize, time=True), Crashes(monkeypatch, STEPS)
    growing.grow()
    assert growing.run(once=True).stopped
    for step in STEPS:
        growing.grow()
        crashes.arm(step)
        with pytest.raises(Crash):
            growing.run(once=True)
        plan = json.loads((stage.folder / "state" / "plan-000000001.json").read_text())
        assert [Path(name).name for name in plan["files"]] == ["part-1.csv"], "others have come, but were not planned"
    growing.grow()
    assert growing.is_complete
    there = growing.run()
    here = Pipeline(load_policy(growing.here)).run()
    assert stage.rows("there").to_pylist() == stage.rows("here").to_pylist()
    assert stage.letters("there") == stage.letters("here")
    assert stage.trace("there").to_pylist() == stage.trace("here").to_pylist()
    assert there.metrics == here.metrics
    assert (there.rows_in, there.released, there.suppressed, there.dead) == (
        900,
        here.released,
        here.suppressed,
        here.dead,
    )
    assert there.dead_by_reason == {name: count for name, count in here.dead_by_reason.items() if count}
    assert there.released > 100
    assert not there.stopped
    assert not list((stage.folder / "there").glob(".attempt-*"))
    assert growing.run().finished_before
    state = stage.folder / "state"
    shutil.move(state, stage.folder / "old")
    with pytest.raises(OutputError, match="was not written by this stream"):
        growing.run(once=True)


def test_a_number_of_records_bounds_every_micro_batch(session: Any, stage: Stage) -> None:
    stage.write(events(400), files=4)
    growing = Growing(stage, LATE, time=True)
    for _ in range(4):
        growing.grow()
    growing.there.write_text(growing.there.read_text() + "every = 60\n")
    there, here = growing.run(), Pipeline(load_policy(growing.here)).run()
    assert stage.rows("there").to_pylist() == stage.rows("here").to_pylist()
    assert (there.rows_in, there.files, there.released) == (400, 4, here.released)
    batches = {path.name.split("-")[1] for path in (stage.folder / "there").glob("part-*")}
    assert len(batches) > 2, "files have about a hundred records each, by their size"


def test_tuples_are_anonymous_on_the_union_and_everything_is_decided_at_the_end(
    session: Any, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuts, "LEARNING_ROWS", 800)
    stage.write(people(2000), files=4)
    growing = Growing(stage, {**TUPLES, "deadline": 300}, time=False)
    growing.grow()
    first = growing.run(once=True)
    assert first.pending > 0
    growing.grow()
    growing.run(once=True)
    text = growing.there.read_text()
    growing.there.write_text(text.replace('"k" = 5', '"k" = 6'))
    with pytest.raises(CheckpointError, match="is of another method, other settings"):
        growing.run(once=True)
    growing.there.write_text(text)
    growing.grow()
    growing.grow()
    there, here = growing.run(), Pipeline(load_policy(growing.here)).run()
    assert there.pending == 0
    assert there.rows_in == there.released + there.suppressed + there.dead == 2000
    assert there.metrics["shards"] > 1
    assert there.metrics["loss"] <= 1.4 * here.metrics["loss"]
    assert stage.letters("there") == stage.letters("here")
    report = shoal.audit(
        stage.rows("there"), str(stage.folder / "in"), stage.trace("there"), str(stage.folder / "there.toml")
    )
    assert report.ok, report
    growing.there.write_text(text.replace('"k" = 5', '"k" = 6'))
    with pytest.raises(CheckpointError, match="is of another method, other settings"):  # not: was finished before
        growing.run()
