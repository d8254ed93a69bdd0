"""A run on tuples that is killed and started again publishes every row once, under the same generalization."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.faults.scene import ALARMED, KILLED, SINKS, Forker, Sink
from tests.faults.test_kills import STRIDE, kill_at, points
from tests.faults.tuple_scene import METHODS, TupleScene

CSV, PARQUET = (next(sink for sink in SINKS if sink.path == path) for path in ("out.csv", "out.parquet"))
CASES = pytest.mark.parametrize(
    ("method", "sink"),
    [("fads", CSV), ("least-loss", PARQUET)],
    ids=list(METHODS),
)


def never_killed(scene: TupleScene) -> tuple[dict[str, object], list[str]]:
    """What must come out, with rows of every fate in it."""
    expected, steps = scene.never_killed()
    assert expected["dead"] == (4 if scene.is_timed else 3)
    assert expected["suppressed"] > 0
    assert expected["released"] > 25
    assert expected["metrics"]["reused"] > 0
    assert sorted(entry["row"] for entry in expected["trace"]) == list(range(60))
    assert sum(step.startswith("replace checkpoint") for step in steps) > 5
    return expected, steps


@CASES
@pytest.mark.parametrize("how", ["before", "power"])
def test_killed_at_a_step(tuple_forker: Forker, tmp_path: Path, method: str, sink: Sink, how: str) -> None:
    scene = TupleScene.of(tuple_forker, tmp_path, sink, method)
    expected, steps = never_killed(scene)
    for at in points(steps, stride=2 * STRIDE, first=STRIDE * (how == "power")):
        kill_at(scene, steps, at, how)
        assert scene.result() == expected, f"killed {how} step {at}: {steps[at - 1]}"


@CASES
def test_killed_at_random_again_and_again(tuple_forker: Forker, tmp_path: Path, method: str, sink: Sink) -> None:
    scene = TupleScene.of(tuple_forker, tmp_path, sink, method)
    expected, steps = never_killed(scene)
    draw = random.Random(method)
    for _ in range(3):
        scene.forget()
        ends = []
        while len(ends) < 5 and 0 not in ends:
            at, how = draw.randrange(30, len(steps) // 3), draw.choice(["before", "after", "power"])
            ends.append(scene.run(at=at, how=how)["code"])
        assert ends[0] == KILLED
        scene.run_to_the_end()
        assert scene.result() == expected, f"ended by {ends}"


@CASES
def test_killed_at_any_time(tuple_forker: Forker, tmp_path: Path, method: str, sink: Sink) -> None:
    scene = TupleScene.of(tuple_forker, tmp_path, sink, method)
    expected, _ = never_killed(scene)
    draw = random.Random(method)
    for _ in range(3):
        scene.forget()
        for _ in range(3):
            assert scene.run(seconds=draw.uniform(0.005, 0.2))["code"] in (ALARMED, 0)
        scene.run_to_the_end()
        assert scene.result() == expected
