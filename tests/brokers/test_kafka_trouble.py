"""Zombies, brokers that go away, full disks and damaged checkpoints: nothing is lost, nothing is doubled."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.brokers.forker import ENDED, KILLED, Forker
from tests.brokers.kafka_scene import STATE, Scene, Stage
from tests.brokers.kafka_server import SESSION_SECONDS, Kafka


@pytest.fixture(scope="module", params=["z", "least-loss"])
def stage(
    request: pytest.FixtureRequest, kafka: Kafka, kafka_forker: Forker, tmp_path_factory: pytest.TempPathFactory
) -> Stage:
    folder: Path = tmp_path_factory.mktemp(request.param)
    return Stage(kafka, kafka_forker, folder, request.param)


@pytest.mark.parametrize("step", ["after send", "after write", "before commit_transaction"])
def test_a_zombie_is_shut_out(stage: Stage, step: str) -> None:
    """A frozen process wakes up after another one, on another machine, has taken over and finished."""
    scene = stage.scene()
    zombie = scene.run("zombie.txt", stop_at=stage.middle(step))["stopped"]
    (scene.folder / STATE / "lock").unlink()  # locks of files do not reach another machine
    scene.finish()
    woken = stage.forker.ask(wake=zombie, is_left_alone=False)
    assert woken == {"code": 1}
    errors = (scene.folder / "zombie.txt").read_text()
    assert "has taken over" in errors
    assert "Traceback" not in errors
    assert scene.result() == stage.expected


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_broker_restarts(stage: Stage, how: str) -> None:
    scene = stage.scene()
    run = scene.run(stop_at=stage.middle("after send"))["stopped"]
    getattr(stage.kafka, how)()
    stage.forker.ask(wake=run, is_left_alone=True)
    stage.kafka.start()
    assert stage.forker.ask(wait=run) in ENDED, scene.errors
    assert scene.result() == stage.expected


def cut_off(stage: Stage, seconds: float) -> Scene:
    """Let brokers not answer for a while in the middle of a run.

    Longer than their session, they leave themselves out of the first list of brokers that they send afterwards.
    """
    scene = stage.scene()
    run = scene.run(stop_at=stage.middle("after send"))["stopped"]
    stage.kafka.freeze()
    try:
        stage.forker.ask(wake=run, is_left_alone=True)
        Event().wait(seconds)
    finally:
        stage.kafka.thaw()
    assert stage.forker.ask(wait=run) in ENDED, scene.errors
    return scene


def test_brokers_are_unreachable_for_a_moment(stage: Stage) -> None:
    assert cut_off(stage, SESSION_SECONDS + 1).result() == stage.expected


@pytest.mark.slow
def test_brokers_are_unreachable_for_half_a_minute(stage: Stage) -> None:
    assert cut_off(stage, 30).result() == stage.expected


def test_a_full_disk(stage: Stage) -> None:
    """A checkpoint that cannot be written ends the run with a sentence; with room it continues."""
    for at in (30, 55):
        scene = stage.scene()
        assert scene.run(disk_full_at=at) == {"code": 1}
        assert "left on the disk" in scene.errors
        assert "Traceback" not in scene.errors
        scene.finish()
        assert scene.result() == stage.expected


def published(scene: Scene) -> list[str]:
    """The checkpoints that the marker in Kafka names."""
    consumer = Consumer({"bootstrap.servers": scene.kafka.address, "group.id": f"shoal-{scene.out}"})
    found = consumer.committed([TopicPartition(scene.out, 0)], timeout=300)[0]
    consumer.close()
    names: list[str] = json.loads(found.metadata)["checkpoints"]
    return names


@pytest.mark.parametrize("step", ["before send_offsets_to_transaction", "after commit_transaction", "after send"])
def test_the_newest_checkpoint_is_damaged(stage: Stage, step: str) -> None:
    scene = stage.scene()
    assert scene.run(kill_at=stage.middle(step)) == {"code": KILLED}
    newest = scene.folder / STATE / published(scene)[0]
    newest.write_bytes(newest.read_bytes()[:-7] + b"damaged")
    scene.finish()
    assert "damaged" in scene.errors
    assert scene.result() == stage.expected


def test_a_newer_checkpoint_that_was_not_published_does_not_count(stage: Stage) -> None:
    scene = stage.scene()
    assert scene.run(kill_at=stage.middle("after write")) == {"code": KILLED}
    names = sorted(path.name for path in (scene.folder / STATE).glob("checkpoint-*"))
    assert names[-1] not in published(scene)
    scene.finish()
    assert scene.result() == stage.expected
