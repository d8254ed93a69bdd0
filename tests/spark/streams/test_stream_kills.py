"""Streams whose driver, executors or shuffles are lost in the middle of a micro-batch publish the same."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal.observe.observer import Observer
from shoal.pipeline import Pipeline
from shoal.policy import load_policy
from shoal.spark.outcome import Decisions
from shoal.spark.streams.run import SparkStream
from shoal.spark.tuples import cuts
from tests.spark.flexible.test_shards import promise, records
from tests.spark.processes import EXECUTOR, start
from tests.spark.scene import EVENTS, TUPLES, Stage, events, people

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]
LOCAL = "local[2]"


def with_checkpoint(policy: Path, state: str = "state") -> Path:
    policy.write_text(policy.read_text() + f'\n[checkpoint]\npath = "{state}"\nevery = "1s"\n')
    return policy


def test_a_stream_of_events_survives_kills_at_several_steps_and_a_signal(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver and everything it started die twice, an executor once; the last run is asked to stop, and finished."""
    monkeypatch.setenv("SHOAL_KEY_FILE", str(stage.key))
    stage.write(events(1200), files=3)
    late = {**EVENTS, "lateness": "40s"}
    Pipeline(load_policy(stage.policy(late, "here", time=True))).run()
    policy, state, out = with_checkpoint(stage.policy(late, "there", time=True)), stage.folder / "state", "there"
    last = stage.folder / "in" / "part-2.csv"
    waiting = Path(shutil.move(last, stage.folder / "last"))
    for folder, pattern in ((state, "plan-*.json"), (stage.folder / out, ".attempt-*/part-*")):
        with start(policy, stage.key, "--follow", master=LOCAL) as run:
            run.wait_for_file(folder, pattern)
            run.kill_all()
        assert not list((stage.folder / out).glob("part-*")), "nothing appears before the commit"
    with start(policy, stage.key, "--follow") as run:
        run.wait_for_file(state, "shard-*")
        os.kill(run.wait_for(EXECUTOR), signal.SIGKILL)
        run.wait_for_file(stage.folder / out, "part-000000000-*")
        shutil.move(waiting, last)
        run.wait_for_file(stage.folder / out, "part-000000001-*")
        run.ask_to_stop()
        code, errors = run.end()
    assert code == 0, errors
    assert "stopping after a last checkpoint" in errors
    with start(policy, stage.key, master=LOCAL) as run:
        code, errors = run.end()
    assert code == 0, errors
    assert stage.rows("there").to_pylist() == stage.rows("here").to_pylist()
    assert stage.letters("there") == stage.letters("here")
    by_row = [("row", "ascending")]
    assert stage.trace("there").sort_by(by_row).to_pylist() == stage.trace("here").sort_by(by_row).to_pylist()


@pytest.mark.parametrize("family", ["tuples", "flexible"])
def test_a_stream_of_rows_survives_kills_of_everything_and_of_an_executor(
    session: Any, stage: Stage, family: str
) -> None:
    """All of it dies once after a shard has stored its state, an executor before the same micro-batch is committed."""
    rows = people(4000) if family == "tuples" else records()
    anonymize = TUPLES if family == "tuples" else promise(stage.folder)
    stage.write(rows, files=2)
    SparkStream(
        load_policy(with_checkpoint(stage.policy(anonymize, "here"), "here-state")), Observer(), master=LOCAL
    ).execute()
    policy, state = with_checkpoint(stage.policy(anonymize, "there")), stage.folder / "state"
    with start(policy, stage.key, master=LOCAL) as run:
        run.wait_for_file(state, "shard-*")
        run.kill_all()
    old = set(state.glob("shard-*"))
    with start(policy, stage.key) as run:
        run.wait_for_file(state, "shard-*", besides=old)
        os.kill(run.wait_for(EXECUTOR), signal.SIGKILL)
        code, errors = run.end()
    assert code == 0, errors
    assert stage.rows("there").to_pylist() == stage.rows("here").to_pylist()
    assert stage.letters("there") == stage.letters("here")
    trace = stage.trace("there")
    assert trace.to_pylist() == stage.trace("here").to_pylist()
    decided = trace["row"].to_pylist()
    assert len(set(decided)) == len(decided)
    assert len(decided) == len(rows) if family == "tuples" else len(decided) > 0.97 * len(rows)
    report = shoal.audit(stage.rows("there"), str(stage.folder / "in"), trace, str(policy))
    assert report.ok, report


def test_lost_shuffles_and_lost_blocks_are_computed_again_with_the_same_result(
    session: Any, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the shards are decided, what executors store is lost; the shards are decided again by the same attempt."""
    monkeypatch.setattr(cuts, "LEARNING_ROWS", 400)
    monkeypatch.setattr(cuts, "ROWS_OF_A_SHARD", 0.3)  # small shards: rows are left at the end
    stage.write(people(900), files=2)
    local = Path(session.conf.get("spark.local.dir"))
    count, lost = Decisions.counts, []

    def losing(self: Decisions) -> dict[str, int]:
        found = count(self)
        for frame in self.stored:
            frame.unpersist(blocking=True)
        for path in list(local.glob("**/shuffle_*")):
            lost.append(path.name)
            path.unlink()
        return found

    def run(name: str) -> Any:
        policy = stage.policy({**TUPLES, "deadline": 60}, name)
        policy.write_text(policy.read_text() + f'\n[checkpoint]\npath = "{name}-state"\n')
        SparkStream(load_policy(policy), Observer(), master="local[2]", shards=12).execute()
        return stage.rows(name).to_pylist(), stage.trace(name).to_pylist(), stage.letters(name)

    expected = run("one")
    monkeypatch.setattr(Decisions, "counts", losing)
    assert run("two") == expected
    assert lost
    groups = [line["group"] for line in expected[1] if line["group"] is not None]
    assert {group % 2**40 for group in groups} == {*range(13)}, "the last shard publishes some of what is left"
    report = shoal.audit(
        stage.rows("two"), str(stage.folder / "in"), stage.trace("two"), str(stage.folder / "two.toml")
    )
    assert report.ok, report
