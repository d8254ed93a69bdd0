"""Tasks that Spark runs twice at the same time: every record is decided and published once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import shoal
from shoal.pipeline import Pipeline
from shoal.policy import load_policy
from tests.spark.flexible.test_shards import promise, records
from tests.spark.processes import cluster, start_twice
from tests.spark.scene import EVENTS, TUPLES, Stage, events, people

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]
LATE = {**EVENTS, "lateness": "40s"}


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with cluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found


def run_twice(stage: Stage, policy: Path, master: str) -> set[str]:
    """Run a policy; the kinds of tasks of which two attempts did their work."""
    with start_twice(policy, stage.key, master) as run:
        code, errors = run.end()
    assert code == 0, errors
    done = {path.name for path in (stage.folder / "attempts").iterdir()}
    tasks = {name.rpartition("-")[0] for name in done}
    assert all({f"{task}-0", f"{task}-1"} <= done for task in tasks), done
    return {task.rpartition("-")[0] for task in tasks}


@pytest.mark.parametrize("is_stream", [False, True], ids=["batch", "stream"])
def test_events_are_published_as_on_one_machine(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, master: str, is_stream: bool
) -> None:
    monkeypatch.setenv("SHOAL_KEY_FILE", str(stage.key))
    stage.write(events(1500), files=3)
    Pipeline(load_policy(stage.policy(LATE, "here", time=True))).run()
    policy = stage.policy(LATE, "there", time=True)
    if is_stream:
        policy.write_text(policy.read_text() + '\n[checkpoint]\npath = "state"\n')
    assert run_twice(stage, policy, master) == {"JudgeShards", "WriteRanges", "SealTrace"}
    assert stage.rows("there").to_pylist() == stage.rows("here").to_pylist()
    assert stage.letters("there") == stage.letters("here")
    by_row = [("row", "ascending")]
    assert stage.trace("there").sort_by(by_row).to_pylist() == stage.trace("here").sort_by(by_row).to_pylist()


@pytest.mark.parametrize("family", ["tuples", "flexible"])
def test_rows_of_shards_are_published_once_and_anonymous_on_the_union(stage: Stage, master: str, family: str) -> None:
    rows = people(1500) if family == "tuples" else records()
    stage.write(rows, files=3)
    policy = stage.policy(TUPLES if family == "tuples" else promise(stage.folder), "there")
    assert run_twice(stage, policy, master) == {"DecideShards", "WriteParts", "SealTrace"}
    trace = stage.trace("there")
    decided = trace["row"].to_pylist()
    assert len(set(decided)) == len(decided)
    assert len(decided) == len(rows) if family == "tuples" else len(decided) > 0.97 * len(rows)
    assert len(stage.rows("there")) == trace["verdict"].to_pylist().count("released")
    report = shoal.audit(stage.rows("there"), str(stage.folder / "in"), trace, str(policy))
    assert report.ok, report
