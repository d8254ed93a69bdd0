"""Redis, NATS and RabbitMQ: a run that is killed again and again publishes what an undisturbed one publishes."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import InputError, OutputError
from shoal.sources.reader import Needs
from tests.brokers.forker import ALARMED, END_CODES, ENDED, KILLED, Forker
from tests.brokers.servers import Nats, RabbitMq, Redis, Server
from tests.brokers.stream_scene import Scene, Stage, System, values
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
def stage(system: System, stream_forker: Forker, tmp_path_factory: pytest.TempPathFactory) -> Stage:
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
    assert set(ends) <= {KILLED, ALARMED, *END_CODES}
    assert scene.result() == stage.expected


def test_the_server_is_killed_and_started_again(stage: Stage) -> None:
    """While the run waits in the middle of writing, and in the middle of reading."""
    scene = stage.scene()
    for kind in ("write", "poll"):
        places = [at for at, step in enumerate(stage.steps, 1) if step.endswith(f".{kind}")]
        answer = scene.run(stop_at=places[len(places) // 2])
        stage.system.server.kill()
        stage.system.server.start()
        assert stage.forker.ask(wake=answer["stopped"]) in ENDED, scene.errors
        assert scene.result() == stage.expected
        scene = stage.scene()


def test_patience_ends(stage: Stage) -> None:
    """A server that does not come back ends the run with a sentence; the next run goes on."""
    scene = stage.scene()
    policy = scene.folder / "policy.toml"
    text = policy.read_text()
    policy.write_text(text.replace("kind =", 'give_up = "4s"\nkind ='))
    polls = [at for at, step in enumerate(stage.steps, 1) if step == "before LiveSource.poll"]
    answer = scene.run(stop_at=polls[3])
    stage.system.server.kill()
    try:
        assert stage.forker.ask(wake=answer["stopped"]) == {"code": 1}
    finally:
        stage.system.server.start()
    assert "unreachable for longer than give_up" in scene.errors
    assert "Traceback" not in scene.errors
    policy.write_text(text)  # how a system is reached may change
    scene.finish()
    assert scene.result() == stage.expected


def test_another_writer_is_noticed(system: Any) -> None:
    """Somebody else appends to the output: nothing more is published."""
    writer = system.writer("shared")
    with closing(writer):
        assert writer.open(None)[1] == 0
        writer.write(0, [b"{}", b"{}"], None)
        writer.flush()
        system.intrude("shared")

        def go_on() -> None:
            writer.write(2, [b"{}", b"{}"], None)
            writer.flush()

        with pytest.raises(OutputError, match="another process writes here too"):
            go_on()


def test_repeats_are_left_out_by_the_server(system: Any) -> None:
    """The answer to a batch was lost: it is written again, by the same and by another process."""
    with closing(system.writer("repeated")) as writer:
        writer.open(None)
        writer.write(0, [b"0", b"1"], None)
        writer._tried, writer._tried_to = 0, 2  # as if the answer had not come
        writer.write(0, [b"0", b"1"], None)
    with closing(system.writer("repeated")) as writer:
        _, held = writer.open(0 if not isinstance(system, RedisStreams) else "0-0")
        assert held == 2
        writer.write(2, [b"2"], [b"key"])
        writer.flush()
    assert [value for _, value in system.content("repeated")] == [b"0", b"1", b"2"]


def test_keys_come_back(system: Any) -> None:
    with closing(system.writer("keyed")) as writer:
        writer.open(None)
        writer.write(0, [b"{}", b"{}"], [b"a", None])
        writer.flush()
    with closing(system.reader("keyed")) as reader:
        reader.open([None], Needs(keys=True, headers=True, times=True))
        (fetched,) = reader.fetch([0], 5.0)
    assert fetched.messages.values == [b"{}", b"{}"]
    found = [dict(one or ()).get("key") for one in fetched.messages.headers]
    assert [one.encode() if isinstance(one, str) else one for one in found] == [b"a", None]
    assert all(
        abs(one / 1e9 - time.time()) < 3_600 or isinstance(system, RedisStreams) for one in fetched.messages.times
    )


def test_removed_messages_are_noticed(system: Any) -> None:
    if isinstance(system, RabbitStreams):
        pytest.skip("RabbitMQ removes whole segments of 500 MB only")
    system.produce("trimmed", [b"{}"] * 5)
    with closing(system.reader("trimmed")) as reader:
        reader.open([None], Needs())
        (fetched,) = reader.fetch([0], 5.0)
    place = fetched.ids[2]
    system.remove("trimmed")
    with closing(system.reader("trimmed")) as reader, pytest.raises(InputError, match="removed"):
        reader.open([place.decode() if isinstance(place, bytes) else int(place)], Needs())


def test_the_doctor_connects(stage: Stage) -> None:
    scene = stage.scene()
    folder = str(scene.folder)
    key = {"SHOAL_KEY_FILE": str(scene.folder / "key.txt")}
    stage.forker.ask(folder=folder, env=key, words=["doctor", "policy.toml"])
    said = (scene.folder / "stdout.txt").read_text()
    assert "exactly once" in said
    assert "can be read" in said
    assert "created by the first run" in said


def test_several_streams_are_merged_in_event_time(system: Any, stream_forker: Forker, tmp_path: Path) -> None:
    """In any pieces, and killed in between."""
    if isinstance(system, NatsStreams):
        pytest.skip("a policy names one stream of NATS")
    parts = [values()[at::3] for at in range(3)]
    names = [f"part-{at}" for at in range(3)]
    for name, part in zip(names, parts, strict=True):
        system.produce(name, part)
    several = '", "'.join(names)
    scenes = [Scene(system, stream_forker, tmp_path / f"run-{at}", several) for at in range(3)]
    assert scenes[0].run(batch=1_000) in ENDED, scenes[0].errors
    assert scenes[1].run(batch=7) in ENDED, scenes[1].errors
    for at in (20, 25, 30):
        assert scenes[2].run(kill_at=at) == {"code": KILLED}
    scenes[2].finish()
    results = [scene.result() for scene in scenes]
    assert len(results[0]["{}"]) > 225
    assert results[0] == results[1] == results[2]
