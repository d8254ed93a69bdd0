"""Shuffles and stored blocks are lost in the middle of a run; they are computed again, and the release is the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from shoal.observe.observer import Observer
from shoal.policy import load_policy
from shoal.spark.outcome import Decisions, WriteTrace
from shoal.spark.run import SparkRun
from shoal.spark.sets.people import SparkPeople
from tests.spark.flexible.test_shards import promise, records
from tests.spark.scene import EVENTS, TUPLES, Stage, events, people
from tests.spark.sets.test_set_runs import COUNTED, visits
from tests.spark.sets.test_set_runs import policy as set_policy

STEPS: dict[str, list[tuple[Any, str]]] = {
    "z": [(WriteTrace, "__call__")],
    "tuples": [(Decisions, "counts"), (WriteTrace, "__call__")],
    "flexible": [(Decisions, "counts"), (WriteTrace, "__call__")],
    "sets": [(SparkPeople, "decide"), (SparkPeople, "show")],
}
"""By family: the steps before which everything that executors store is lost."""


def written(stage: Stage, family: str) -> Path:
    """Write the input files of a family; return its policy."""
    rows = {"z": lambda: events(1200), "tuples": lambda: people(1200), "flexible": records, "sets": visits}
    stage.write(rows[family](), files=3)
    if family == "sets":
        return set_policy(stage, COUNTED, "out")
    promised = {"z": {**EVENTS, "lateness": "40s"}, "tuples": TUPLES, "flexible": promise(stage.folder)}
    return stage.policy(promised[family], "out", time=family == "z")


def published(stage: Stage, policy: Path) -> Any:
    """Run a policy on Spark; everything that it wrote, by file."""
    SparkRun(load_policy(policy), Observer(), master="local[2]", shards=3).execute()
    parts = (
        [stage.folder / "out.parquet"] if (stage.folder / "out.parquet").exists() else (stage.folder / "out").iterdir()
    )
    rows = {path.name: pq.read_table(path).to_pylist() for path in parts if path.exists()}
    return rows, stage.trace("out").to_pylist(), stage.letters("out")


@pytest.mark.parametrize("family", STEPS)
def test_what_is_lost_is_computed_again(
    session: Any, stage: Stage, monkeypatch: pytest.MonkeyPatch, family: str
) -> None:
    policy = written(stage, family)
    expected = published(stage, policy)
    context, local = session.sparkContext, Path(session.conf.get("spark.local.dir"))
    lost: dict[str, tuple[int, int]] = {}

    def losing(name: str, call: Any) -> Any:
        def lose_and_call(*args: Any, **options: Any) -> Any:
            stored = list(context._jsc.getPersistentRDDs().values())
            for blocks in stored:
                blocks.unpersist(True)
            shuffles = list(local.glob("**/shuffle_*"))
            for path in shuffles:
                path.unlink()
            lost[name] = len(stored), len(shuffles)
            return call(*args, **options)

        return lose_and_call

    for kind, name in STEPS[family]:
        monkeypatch.setattr(kind, name, losing(name, getattr(kind, name)))
    assert published(stage, policy) == expected
    assert lost.keys() == {name for _, name in STEPS[family]}
    blocks, shuffles = zip(*lost.values(), strict=True)
    assert any(blocks), lost
    assert all(shuffles), lost
