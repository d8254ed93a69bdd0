"""Connections to Kafka that stall, or are cut in the middle of a message: nothing is lost, nothing is doubled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.brokers.forker import ENDED, Forker
from tests.brokers.kafka_scene import Scene, Stage
from tests.brokers.kafka_server import Kafka
from tests.brokers.proxy import Direction, Proxy
from tests.brokers.servers import free_port


class ProxiedKafka(Kafka):
    """A broker that clients reach through a proxy; it does not talk to itself that way."""

    def prepare(self) -> None:
        self.proxy = Proxy(self.port)
        self._inner = f"127.0.0.1:{free_port()}"
        super().prepare()

    def listeners(self) -> dict[str, str]:
        return {"PLAINTEXT": self.address, "INNER": self._inner}

    def advertised(self) -> dict[str, str]:
        return {"PLAINTEXT": f"127.0.0.1:{self.proxy.port}", "INNER": self._inner}

    def more_settings(self) -> dict[str, Any]:
        return {
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,INNER:PLAINTEXT",
            "inter.broker.listener.name": "INNER",
        }


@pytest.fixture(scope="module")
def stage(kafka_forker: Forker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    missing = Kafka.missing()
    if missing:
        pytest.skip(missing)
    with ProxiedKafka() as kafka, kafka.proxy:
        yield Stage(kafka, kafka_forker, tmp_path_factory.mktemp("network"), "z")


def proxy_of(stage: Stage) -> Proxy:
    assert isinstance(stage.kafka, ProxiedKafka)
    return stage.kafka.proxy


def paused(stage: Stage, step: str) -> tuple[Scene, int]:
    """A run that waits in the middle."""
    scene = stage.scene()
    return scene, scene.run(stop_at=stage.middle(step))["stopped"]


def finish(stage: Stage, scene: Scene, run: int) -> None:
    assert stage.forker.ask(wait=run) in ENDED, scene.errors
    assert scene.result() == stage.expected


STEPS = ["after send", "before flush", "before send_offsets_to_transaction", "before commit_transaction"]


@pytest.mark.parametrize("step", STEPS)
def test_the_answer_is_lost(stage: Stage, step: str) -> None:
    """The broker has what was sent, the client does not know it, and sends it again on another connection."""
    proxy = proxy_of(stage)
    scene, run = paused(stage, step)
    proxy.stall("down")
    stage.forker.ask(wake=run, is_left_alone=True)
    proxy.wait_until_held()
    proxy.cut()
    proxy.resume()
    finish(stage, scene, run)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("direction", ["up", "down"])
def test_nothing_passes_for_a_moment(stage: Stage, step: str, direction: Direction) -> None:
    proxy = proxy_of(stage)
    scene, run = paused(stage, step)
    proxy.stall(direction)
    stage.forker.ask(wake=run, is_left_alone=True)
    proxy.wait_until_held()
    proxy.resume()
    finish(stage, scene, run)


@pytest.mark.parametrize("step", ["after send", "before send_offsets_to_transaction"])
def test_connections_go_silent(stage: Stage, step: str) -> None:
    """Without being closed: the run does not wait for the time-outs of its client, one after the other."""
    scene, run = paused(stage, step)
    proxy_of(stage).silence()
    stage.forker.ask(wake=run, is_left_alone=True)
    finish(stage, scene, run)


@pytest.mark.parametrize("count", [3, 40, 700])
@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_connection_is_cut_in_the_middle_of_a_message(stage: Stage, direction: Direction, count: int) -> None:
    proxy = proxy_of(stage)
    scene, run = paused(stage, "after send")
    proxy.cut_after(count, direction)
    stage.forker.ask(wake=run, is_left_alone=True)
    finish(stage, scene, run)
