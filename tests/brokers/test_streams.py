"""Redis, NATS and RabbitMQ: a run that is killed again and again publishes what an undisturbed one publishes."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.brokers.servers import Nats, RabbitMq, Redis, Server
from tests.brokers.stream_scene import ALARMED, KILLED, Stage, StreamForker, System
from tests.brokers.systems import NatsStreams, RabbitStreams, RedisStreams

SYSTEMS = {"redis": (Redis, RedisStreams), "nats": (Nats, NatsStreams), "rabbitmq": (RabbitMq, RabbitStreams)}


@pytest.fixture(scope="module", params=SYSTEMS)
def system(request: pytest.FixtureRequest) -> Iterator[System]:
    """A running broker; skips if it is not on this machine."""
    server, streams = SYSTEMS[request.param]
    missing = server.missing()
    if missing:
        pytest.skip(missing)
    running: Server
    with server() as running:
        yield streams(running)


@pytest.fixture(scope="module")
def stage(system: System, stream_forker: StreamForker, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """What an undisturbed run publishes."""
    return Stage(system, stream_forker, tmp_path_factory.mktemp("stage"))


def test_killed_at_set_points(stage: Stage) -> None:
    """One run for every kind of step, killed there twice: early and late."""
    kinds = sorted(set(stage.steps))
    for kind in kinds:
        places = [at for at, step in enumerate(stage.steps, 1) if step == kind]
        scene = stage.scene()
        for at in (places[len(places) // 3], places[0]):
            assert scene.run(kill_at=at) == {"code": KILLED}
        scene.finish()
        assert scene.result() == stage.expected, f"killed at {kind}"
    assert len(kinds) >= 8  # two kills each


def test_killed_at_random_points(stage: Stage) -> None:
    draw = random.Random(3)
    scene = stage.scene()
    ends = [scene.run(kill_at=draw.randrange(4, len(stage.steps) // 2))["code"] for _ in range(8)]
    ends += [scene.run(seconds=draw.uniform(0.02, 0.4))["code"] for _ in range(6)]
    scene.finish()
    assert ends.count(KILLED) >= 3
    assert set(ends) <= {KILLED, ALARMED, 0}
    assert scene.result() == stage.expected


def test_the_server_is_killed_and_started_again(stage: Stage) -> None:
    """While the run waits in the middle of writing, and in the middle of reading."""
    scene = stage.scene()
    for kind in ("write", "poll"):
        places = [at for at, step in enumerate(stage.steps, 1) if step.endswith(f".{kind}")]
        answer = scene.run(stop_at=places[len(places) // 2])
        stage.system.server.kill()
        stage.system.server.start()
        assert stage.forker.ask(wake=answer["stopped"]) == {"code": 0}, scene.errors
        assert scene.result() == stage.expected
        scene = stage.scene()


def test_patience_ends(stage: Stage) -> None:
    """A server that does not come back ends the run with a sentence; the next run goes on."""
    scene = stage.scene()
    policy = scene.folder / "policy.toml"
    text = policy.read_text()
    policy.write_text(text.replace("kind =", 'give_up = "1s"\nkind ='))
    polls = [at for at, step in enumerate(stage.steps, 1) if step == "before LiveSource.poll"]
    answer = scene.run(stop_at=polls[3])
    stage.system.server.kill()
    try:
        assert stage.forker.ask(wake=answer["stopped"]) == {"code": 1}
    finally:
        stage.system.server.start()
    assert "unreachable for too long" in scene.errors
    assert "Traceback" not in scene.errors
    policy.write_text(text)  # how a system is reached may change
    scene.finish()
    assert scene.result() == stage.expected
