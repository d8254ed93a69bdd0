"""A run that is killed at any step and started again ends as if it had never been killed."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pytest

from tests.faults.scene import ALARMED, KILLED, SINKS, STATE, Forker, Scene, Sink
from tests.reference.effort import IS_EXHAUSTIVE, kill_points, some_by_default

# Two sinks are killed at many steps, the others at a spread, so that the default run stays short; 1 tries all.
STRIDE = int(os.environ.get("SHOAL_FAULT_STRIDE", "12" if IS_EXHAUSTIVE else "60"))
BY_PATH = {sink.path: sink for sink in SINKS}
CSV, PARQUET = BY_PATH["out.csv"], BY_PATH["out.parquet"]
SINK_OF_EACH_CLASS = some_by_default(SINKS, [CSV, PARQUET, BY_PATH["out/"]])


def edges(steps: list[str]) -> list[int]:
    """Steps to die at, from 1: the first and the last of equal ones in a row."""
    return [
        number
        for number, step in enumerate(steps, 1)
        if steps[number - 2 : number - 1] != [step] or steps[number : number + 1] != [step]
    ]


def points(steps: list[str], *, stride: int, first: int = 0) -> Sequence[int]:
    """Every `stride`th of the edges."""
    among = edges(steps)
    return kill_points(among, default=among[first % stride :: stride])


def kill_at(scene: Scene, steps: list[str], at: int, how: str) -> None:
    """Start from nothing, die at a step, start again to the end; after the first checkpoint it resumes."""
    scene.forget()
    assert scene.run(at=at, how=how)["code"] == KILLED, "the run ended before the step"
    on_record = steps.index("replace checkpoint-00000000") + 2  # the folder's fsync comes after the rename
    assert scene.run_to_the_end()["resumed"] == (at > on_record) or at == on_record


@pytest.mark.parametrize(
    ("lateness", "how"),
    [
        (0, "before"),
        (3, "power"),
        pytest.param(3, "before", marks=pytest.mark.exhaustive),
        pytest.param(0, "power", marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.parametrize("sink", SINKS, ids=lambda sink: sink.path)
def test_killed_at_a_step(forker: Forker, tmp_path: Path, sink: Sink, lateness: int, how: str) -> None:
    scene = Scene.set(forker, tmp_path, sink, lateness=lateness)
    expected, steps = scene.never_killed()
    assert expected["released"] > 0
    thorough = {(CSV, 3, "power"): max(1, STRIDE // 4), (PARQUET, 0, "before"): 1 if IS_EXHAUSTIVE else 12}
    first = SINKS.index(sink) + lateness + 2 * (how == "power")
    for at in points(steps, stride=min(STRIDE, thorough.get((sink, lateness, how), STRIDE)), first=first):
        kill_at(scene, steps, at, how)
        assert scene.result() == expected, f"killed {how} step {at}: {steps[at - 1]}"


@pytest.mark.parametrize("sink", [CSV, PARQUET], ids=lambda sink: sink.path)
def test_torn_writes(forker: Forker, tmp_path: Path, sink: Sink) -> None:
    scene = Scene.set(forker, tmp_path, sink, lateness=3)
    expected, steps = scene.never_killed()
    writes = [at for at in edges(steps) if steps[at - 1].startswith("write")]
    for at in kill_points(writes, default=writes[:: 2 if IS_EXHAUSTIVE else 8]):
        kill_at(scene, steps, at, "torn")
        assert scene.result() == expected, f"torn at step {at}: {steps[at - 1]}"


@pytest.mark.parametrize("sink", SINK_OF_EACH_CLASS, ids=lambda sink: sink.path)
def test_a_generated_key_is_kept_or_never_used(forker: Forker, tmp_path: Path, sink: Sink) -> None:
    """Without a key of the user's the trace is not sealed, so that it is put together from parts."""
    scene = Scene.set(forker, tmp_path, sink, lateness=3, is_key_given=False)
    scene.forget()
    steps = scene.run()["steps"]
    is_whole_start = sink is CSV
    begin = list(range(1, steps.index("fsync state") + 3)) if is_whole_start else []
    assert not begin or "replace key" in steps[: len(begin)]
    for at in [*begin, *points(steps, stride=5 * STRIDE, first=SINKS.index(sink))]:
        scene.forget()
        assert scene.run(at=at, how=("before", "power")[at % 2])["code"] == KILLED
        scene.run_to_the_end()
        result = scene.result()
        assert result == scene.never_killed()[0], f"killed at step {at}: {steps[at - 1]}"


@pytest.mark.parametrize("sink", SINK_OF_EACH_CLASS, ids=lambda sink: sink.path)
def test_killed_again_and_again(forker: Forker, tmp_path: Path, sink: Sink) -> None:
    scene = Scene.set(forker, tmp_path, sink, lateness=3)
    expected = scene.never_killed()[0]
    draw = random.Random(sink.path)
    scene.forget()
    ends = [scene.run(at=at, how=draw.choice(["before", "after", "power"]))["code"] for at in (50, 70, 30, 60, 20, 75)]
    assert ends[:3] == [KILLED] * 3
    scene.run_to_the_end()
    assert scene.result() == expected, f"ended by {ends}"


@pytest.mark.parametrize("sink", [CSV, PARQUET], ids=lambda sink: sink.path)
def test_killed_at_any_time(forker: Forker, tmp_path: Path, sink: Sink) -> None:
    scene = Scene.set(forker, tmp_path, sink, lateness=3)
    expected = scene.never_killed()[0]
    draw = random.Random(7)
    for _ in range(8 if IS_EXHAUSTIVE else 3):
        scene.forget()
        for _ in range(3):
            assert scene.run(seconds=draw.uniform(0.005, 0.1))["code"] in (ALARMED, 0)
        scene.run_to_the_end()
        assert scene.result() == expected


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "arrow", "csv.gz"])
def test_positions_of_every_format(forker: Forker, tmp_path: Path, kind: str) -> None:
    """A killed run resumes in the middle of a file of any format."""
    scene = Scene.set(forker, tmp_path, CSV, lateness=3)
    scene.feed(kind)
    expected, steps = scene.never_killed()
    for at in points(steps, stride=2 * STRIDE, first=3):
        kill_at(scene, steps, at, "before")
        assert scene.result() == expected, f"killed at step {at}: {steps[at - 1]}"


def test_kept_rows_do_not_depend_on_where_a_run_was_killed(forker: Forker, tmp_path: Path) -> None:
    scene = Scene.set(forker, tmp_path, CSV, lateness=3, is_key_given=False, keep_rows=True)
    letters = scene.never_killed()[0]["letters"]
    assert b'"record"' in letters
    for at in count(1, 15 if IS_EXHAUSTIVE else 40):
        scene.forget(keep_key=True)
        if scene.run(at=at, how="before")["code"] == 0:
            break
        scene.run_to_the_end()
        assert scene.result()["letters"] == letters, f"killed at step {at}"


def test_where_batches_end_makes_no_difference(forker: Forker, tmp_path: Path) -> None:
    """After a crash they end elsewhere. The first row waits, and is refused with it or with a later batch."""
    scene = Scene.set(forker, tmp_path, CSV, lateness=3, is_key_given=False, keep_rows=True)
    expected = scene.never_killed()[0]
    for block_bytes in (1, 16, 100, 1 << 20):
        scene.forget(keep_key=True)
        assert scene.run(block_bytes=block_bytes)["code"] == 0
        assert scene.result() == expected, f"blocks of {block_bytes}"


def test_checkpoints_make_no_difference(forker: Forker, tmp_path: Path) -> None:
    scene = Scene.set(forker, tmp_path, CSV, lateness=3)
    expected = scene.never_killed()[0]
    scene.forget()
    text = (tmp_path / "policy.toml").read_text()
    (tmp_path / "policy.toml").write_text(text[: text.index("[checkpoint]")])
    key = {"SHOAL_KEY_FILE": str(tmp_path / "key.txt")}
    assert forker.run(tmp_path, "run", "policy.toml", "--json", env=key)["code"] == 0
    expected["names"].remove(Path(STATE).parts[0])
    assert scene.result() == expected
