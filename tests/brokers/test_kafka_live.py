"""A run that does not end: time passes on a silent topic, idle partitions are left out, and a signal stops it."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.brokers.forker import KILLED, Forker
from tests.brokers.kafka_scene import POLICY, Scene
from tests.brokers.kafka_server import Kafka

LONG_WAIT = 300
_PAUSE = Event()  # never set


class LiveScene(Scene):
    """A policy without an end, with short times."""

    def _policy(self) -> str:
        text = super()._policy().replace('until = "end"', 'lag = "500ms"\nidle_partition = "1s"')
        text = text.replace("every = 100", 'every = "300ms"').replace('deadline = "20s"', 'deadline = "2s"')
        return text.replace("z = 3", "z = 1").replace('lateness = "4s"', "")

    def start(self) -> int:
        """Start a run and leave it alone; its process."""
        child: int = self.run(stop_at=["before poll", 1])["stopped"]
        self.forker.ask(wake=child, is_left_alone=True)
        return child

    def end(self, child: int, how: signal.Signals) -> int:
        """Send a signal; the exit code."""
        os.kill(child, how)
        code: int = self.forker.ask(wait=child)["code"]
        return code

    def wait_for(self, is_there: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
        """Read the output until it has what is expected; everything in it."""
        given_up = time.monotonic() + LONG_WAIT
        while True:
            found = [json.loads(value or b"{}") for part in self.result()["rows"] for _, value in part]
            if is_there(found):
                return found
            assert time.monotonic() < given_up, self.errors
            _PAUSE.wait(0.2)


@pytest.fixture
def scene(request: pytest.FixtureRequest, kafka: Kafka, kafka_forker: Forker, tmp_path: Path) -> LiveScene:
    source = f"live-{os.getpid()}-{request.node.name.partition('[')[0]}"
    kafka.make_topic(source, 2)
    return LiveScene(kafka, kafka_forker, tmp_path / "run", request.param, source)


def record(user: str, **others: Any) -> bytes:
    return json.dumps({"ts": int(time.time()), "user": user, "note": "n", **others}).encode()


@pytest.mark.parametrize("scene", ["least-loss"], indirect=True)
def test_deadlines_end_on_a_silent_topic(scene: LiveScene) -> None:
    """Killed while records are pending: the next run publishes them when their time has come."""
    people = [record(f"u{number}", age=30, school="master") for number in range(4)]
    scene.kafka.produce(scene.source, [people[:2], people[2:]])
    child = scene.start()
    assert scene.end(child, signal.SIGKILL) == KILLED
    child = scene.start()
    assert len(scene.wait_for(lambda found: len(found) >= 4)) == 4
    assert scene.end(child, signal.SIGTERM) == 0, scene.errors
    assert "stopping after a last checkpoint" in scene.errors


@pytest.mark.parametrize("scene", ["z"], indirect=True)
def test_an_idle_partition_does_not_hold_the_others_back(scene: LiveScene) -> None:
    """Only one partition has records; later the other one comes back, also across a kill."""

    def sites(found: list[dict[str, Any]]) -> list[str]:
        return sorted(one["site"] for one in found)

    scene.kafka.produce(scene.source, [[record("u1", site="first")], []])
    child = scene.start()
    assert sites(scene.wait_for(bool)) == ["first"]
    scene.kafka.produce(scene.source, [[], [record("u2", site="second")]])
    scene.wait_for(lambda found: "second" in sites(found))
    assert scene.end(child, signal.SIGKILL) == KILLED
    scene.kafka.produce(scene.source, [[record("u3", site="third")], []])
    child = scene.start()
    assert sites(scene.wait_for(lambda found: "third" in sites(found))) == ["first", "second", "third"]
    assert scene.end(child, signal.SIGTERM) == 0, scene.errors


@pytest.mark.parametrize("scene", ["z"], indirect=True)
def test_new_partitions_are_read_by_the_next_run(scene: LiveScene) -> None:
    policy = scene.folder / POLICY
    policy.write_text(policy.read_text().replace('lag = "500ms"', 'lag = "500ms"\nstart = "latest"'))
    child = scene.start()
    scene.kafka.produce(scene.source, [[record("u1", site="old")], []])
    scene.wait_for(bool)
    assert scene.end(child, signal.SIGTERM) == 0
    scene.kafka.add_partitions(scene.source, 3)
    scene.kafka.produce(scene.source, [[], [], [record("u2", site="new")]])
    child = scene.start()
    scene.wait_for(lambda found: len(found) > 1)
    assert scene.end(child, signal.SIGTERM) == 0
    found = [json.loads(value or b"{}")["site"] for part in scene.result()["rows"] for _, value in part]
    assert sorted(found) == ["new", "old"]


@pytest.mark.parametrize("scene", ["z"], indirect=True)
def test_topics_that_are_not_there_are_named(scene: LiveScene) -> None:
    policy = scene.folder / POLICY
    text = policy.read_text()
    policy.write_text(text.replace(scene.source, "no-such-topic"))
    assert scene.run() == {"code": 1}
    assert "there is no topic no-such-topic; create it" in scene.errors
    policy.write_text(text.replace(f'topic = "{scene.out}"', 'topic = "nowhere"'))
    assert scene.run() == {"code": 1}
    assert "there is no such topic" in scene.errors
    assert "Traceback" not in scene.errors
