"""A run on Kafka that is killed and started again publishes what an undisturbed run publishes, byte for byte."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.brokers.forker import ALARMED, END_CODES, ENDED, KILLED, Forker
from tests.brokers.kafka_scene import Stage
from tests.brokers.kafka_server import Kafka
from tests.reference.effort import IS_EXHAUSTIVE, kill_points

PROTOCOL = {
    "init_transactions", "begin_transaction", "send", "flush", "write", "send_offsets_to_transaction",
    "commit_transaction", "prune", "poll",
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def count_kills(kafka_forker: Forker) -> Iterator[None]:
    """Report how many runs were killed (visible with pytest -s)."""
    before = kafka_forker.kills
    yield
    sys.stdout.write(f"\n{kafka_forker.kills - before} runs were killed\n")


@pytest.fixture(scope="module", params=["z", "least-loss", "flexible"])
def stage(
    request: pytest.FixtureRequest, kafka: Kafka, kafka_forker: Forker, tmp_path_factory: pytest.TempPathFactory
) -> Stage:
    folder: Path = tmp_path_factory.mktemp(request.param)
    return Stage(kafka, kafka_forker, folder, request.param)


def points(stage: Stage) -> Sequence[tuple[str, int]]:
    """Each kind of step, in the middle of the run or at its end in turns; with SHOAL_TESTS=all, both; ci draws some."""
    assert {step.split()[1] for step in stage.steps} == PROTOCOL
    both = [sorted({stage.middle(step), (step, count)}) for step, count in sorted(stage.steps.items())]
    every = [point for points in both for point in points]
    in_turns = [points[at // 2 % 2 - 1] for at, points in enumerate(both)]
    return kill_points(every, default=every if IS_EXHAUSTIVE else in_turns)


def test_killed_at_every_kind_of_step(stage: Stage) -> None:
    kills = 0
    for point in points(stage):
        scene = stage.scene()
        end = scene.run(kill_at=point)["code"]
        kills += end == KILLED
        assert end in (KILLED, *END_CODES)  # another run may take fewer steps
        scene.finish()
        assert scene.result() == stage.expected, f"killed at {point}"
    assert kills > len(points(stage)) / 2


def test_killed_at_random_steps_again_and_again(stage: Stage) -> None:
    draw = random.Random(stage.method)
    for _ in range(12 if IS_EXHAUSTIVE else 2):
        scene = stage.scene()
        kills = []
        for _ in range(6):
            step = draw.choice(sorted(stage.steps))
            kills.append((step, draw.randint(1, max(1, stage.steps[step] // 2))))
            if scene.run(kill_at=kills[-1]) in ENDED:
                break
        scene.finish()
        assert scene.result() == stage.expected, f"killed at {kills}"


def test_killed_at_any_time(stage: Stage) -> None:
    draw = random.Random(stage.method)
    for _ in range(12 if IS_EXHAUSTIVE else 2):
        scene = stage.scene()
        ends = [scene.run(seconds=draw.uniform(0.02, 0.8))["code"] for _ in range(5)]
        assert set(ends) <= {ALARMED, *END_CODES}
        scene.finish()
        assert scene.result() == stage.expected, f"ended by {ends}"
