"""The doctor of live policies: connections, promise, sample, and times compared with the broker's clock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import InputError
from shoal.pipeline.doctor.doctor import examine
from shoal.pipeline.doctor.remarks import Remark
from shoal.pipeline.live import wiring
from shoal.pipeline.live.parts import Finding
from shoal.policy import parse_policy
from tests.avro.registry_server import serving
from tests.pipeline.live.memory import MemorySystem
from tests.policy.test_live import live_table
from tests.policy.test_policy import changed

START = 1_700_000_000
SECOND = 1_000_000_000


def log(*, delay: int = 1, scale: int = 1) -> list[tuple[Any, ...]]:
    """Sixty people at two sites, each message `delay` seconds on its way; the last one is a tombstone."""
    found: list[tuple[Any, ...]] = []
    for at in range(120):
        value = {"user": f"person-{at % 60}", "ts": (START + at) * scale, "site": f"s{at % 2}", "shop": "east"}
        found.append((json.dumps(value).encode(), None, (START + at + delay) * SECOND, None))
    return [*found, (None, None, (START + 120) * SECOND, None)]


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> MemorySystem:
    made = MemorySystem(log())
    monkeypatch.setattr(wiring, "system", lambda kind: made)
    monkeypatch.setattr("shoal.pipeline.doctor.live.system", lambda kind: made)
    return made


def remarks(folder: Path, *changes: tuple[str, Any], kind: str = "kafka") -> list[Remark]:
    table = live_table(kind)
    for path, value in changes:
        table = changed(table, path, value)
    found = examine(parse_policy(table, folder=folder))
    assert "person-" not in str(found)
    return found


def sentences(found: list[Remark], topic: str) -> str:
    return "\n".join(f"{one.level}: {one.sentence}" for one in found if one.topic == topic)


def test_everything_is_fine(memory: MemorySystem, tmp_path: Path) -> None:
    found = remarks(tmp_path)
    assert not [one for one in found if one.level == "wrong"]
    assert MemorySystem.PROMISE in sentences(found, "promise")
    assert "good: the broker in memory answers" in sentences(found, "source")
    assert "look: types are not declared" in sentences(found, "source")
    assert "good: the topic published may be written" in sentences(found, "sink")
    assert "good: all 121 rows were read" in sentences(found, "sample")
    assert "look: 1 rows cannot be read and will go to the dead letters; the first: a message without a value" in (
        sentences(found, "sample")
    )
    assert "messages reach the broker within 1s of their time; lag is long enough" in sentences(found, "time")
    assert "would be released" in sentences(found, "outcome")
    assert memory.topics == {}  # nothing was written
    assert not list(tmp_path.iterdir())


def test_declared_types_are_not_remarked(memory: MemorySystem, tmp_path: Path) -> None:
    assert "declared" not in sentences(remarks(tmp_path, ("source/types", {"user": "string"})), "source")


def test_a_lag_that_is_too_small(memory: MemorySystem, tmp_path: Path) -> None:
    memory.log = log(delay=90)
    found = sentences(remarks(tmp_path), "time")
    assert (
        "look: 99.9% of the messages reach the broker within 90s of their time, 100.0% later than lag allows" in found
    )
    assert 'set lag = "90s"' in found
    assert "lag is long enough" in sentences(remarks(tmp_path, ("source/lag", "2min")), "time")
    assert "lag is long enough" in sentences(remarks(tmp_path, ("anonymize/lateness", "2min")), "time")


def test_times_ahead_of_the_clock(memory: MemorySystem, tmp_path: Path) -> None:
    memory.log = log(delay=-7200)
    assert "look: column 'ts': times are up to 2h ahead of the broker's clock" in sentences(remarks(tmp_path), "time")


def test_a_wrong_unit(memory: MemorySystem, tmp_path: Path) -> None:
    memory.log = log(scale=1000)
    assert 'set time_unit = "ms" in [stream]' in sentences(remarks(tmp_path), "time")
    assert "lag is long enough" in sentences(remarks(tmp_path, ("stream/time_unit", "ms")), "time")


def test_an_empty_topic(memory: MemorySystem, tmp_path: Path) -> None:
    memory.log = []
    assert "look: there are no messages yet" in sentences(remarks(tmp_path), "sample")


def test_a_system_that_does_not_answer_is_one_sentence(memory: MemorySystem, tmp_path: Path) -> None:
    memory.findings = [Finding("wrong", "the broker in memory does not answer; start it")]
    memory.failure = AssertionError("no sample is tried")
    found = remarks(tmp_path)
    assert [one.sentence for one in found if one.level == "wrong"] == ["the broker in memory does not answer; start it"]


def test_a_sample_that_breaks_off(memory: MemorySystem, tmp_path: Path) -> None:
    memory.failure = InputError("the topic in memory: was deleted")
    assert "wrong: the topic in memory: was deleted" in sentences(remarks(tmp_path), "source")


def test_messages_of_mqtt_are_not_taken_away(memory: MemorySystem, tmp_path: Path) -> None:
    memory.failure = AssertionError("no sample is tried")
    found = remarks(tmp_path, kind="mqtt")
    assert "look: messages can be received only once, so no sample was taken" in sentences(found, "source")
    assert "look: [source] kind: MQTT delivers every message at least once" in sentences(found, "policy")


def test_a_secret_that_is_missing(memory: MemorySystem, tmp_path: Path) -> None:
    found = remarks(tmp_path, ("sink/secrets", {"sasl.password": "env:SHOAL_NOT_SET"}))
    assert 'wrong: [sink.secrets] "sasl.password": the environment variable SHOAL_NOT_SET is not set; set it' in (
        sentences(found, "connection")
    )


def test_a_schema_registry_is_asked(memory: MemorySystem, tmp_path: Path) -> None:
    with serving() as server:
        avro = {"format": "avro", "registry": server.url}
        found = remarks(tmp_path, ("sink", {"kind": "kafka", "topic": "published", **avro}))
        assert f"good: the schema registry {server.url} answers" in sentences(found, "sink")
        server.credentials = "ann:hunter2"
        found = remarks(tmp_path, ("sink", {"kind": "kafka", "topic": "published", **avro}))
        assert "it asks for credentials" in sentences(found, "sink")


def test_files_to_messages(memory: MemorySystem, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(b"".join(value + b"\n" for value, *_ in log() if value))
    found = remarks(tmp_path, ("source", {"kind": "jsonl", "path": "in.jsonl"}), ("sink/brokers", "b:1"))
    assert "may be written" in sentences(found, "sink")
    assert "all 120 rows were read" in sentences(found, "sample")
    assert not [one for one in found if one.level == "wrong"]
