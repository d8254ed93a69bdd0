"""`shoal init` on a topic: messages are looked at, and the policy runs on the same topic."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from shoal.pipeline.live import wiring
from tests.e2e.scene import Ended, shoal
from tests.inspection.stories import admissions, baskets, visits
from tests.pipeline.live.memory import MemorySystem

SECOND = 1_000_000_000
START = 1_772_000_000


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "key").write_text("0" * 64)
    (tmp_path / "key").chmod(0o600)
    monkeypatch.setenv("SHOAL_KEY_FILE", str(tmp_path / "key"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> MemorySystem:
    made = MemorySystem([])
    monkeypatch.setattr(wiring, "system", lambda kind: made)
    monkeypatch.setattr("shoal.pipeline.doctor.live.system", lambda kind: made)
    return made


def messages(table: pa.Table, *, key: str | None = None) -> list[tuple[Any, ...]]:
    """Messages with the rows of a table; `key` is the column that only the keys of the messages have."""
    found = []
    for at, row in enumerate(table.to_pylist()):
        own = str(row.pop(key)).encode() if key is not None else None
        found.append((json.dumps(row).encode(), own, (START + at) * SECOND, [("tenant", b"t1")]))
    return found


def init(*words: str, address: str = "kafka://b:1/topic") -> Ended:
    return shoal("init", address, "--yes", *words)


def policy() -> dict[str, Any]:
    return tomllib.loads(Path("policy.toml").read_text())


def ran(memory: MemorySystem) -> list[dict[str, Any]]:
    """Rows that the policy as it was written publishes."""
    text = Path("policy.toml").read_text().replace("[source]\n", '[source]\nuntil = "end"\n')
    Path("policy.toml").write_text(text)
    ended = shoal("run", "policy.toml", "--quiet", "--json")
    assert ended.code == 0, ended.err
    assert ended.summary["dead"] == 0
    return [json.loads(value) for _, value in memory.topics["topic-released"]]


def test_events(memory: MemorySystem) -> None:
    memory.log = messages(visits())
    memory.log[7] = (b"{broken", None, 0, None)
    memory.log[8] = (None, None, 0, None)
    written = init()
    assert written.code == 0, written.out.decode() + written.err
    found = policy()
    assert found["stream"] == {"person": "user", "time": "ts", "carry": ["device"], "time_unit": "s"}
    types = {"user": "string", "ts": "int64", "site": "string", "device": "string"}
    assert found["source"] == {"kind": "kafka", "brokers": "b:1", "topics": ["topic"], "types": types}
    assert found["sink"] == {"kind": "kafka", "topic": "topic-released"}
    assert found["checkpoint"]["every"] == "10s"
    assert "all 2,998 rows" in written.out.decode()
    assert "serve policy.toml" in written.out.decode()
    del memory.log[7:9]
    assert len(ran(memory)) > 900


def test_tuples_wait_for_a_time_and_keys_say_who(memory: MemorySystem) -> None:
    """No column has times or people: the broker's times and the keys do."""
    table = admissions().select(["patient", "age", "sex", "diagnosis"])
    memory.log = messages(table, key="patient")
    written = init("--person", "key", "--k", "4")
    assert written.code == 0, written.out.decode() + written.err
    found = policy()
    assert found["stream"]["person"] == "key"
    assert found["stream"]["time"] == "arrived"
    assert found["source"]["key_column"] == "key"
    assert found["source"]["timestamp_column"] == "arrived"
    assert found["anonymize"]["deadline"] == "30min"  # 625 messages take 625 s
    assert "refused, so add what may come" in written.out.decode()
    rows = ran(memory)
    assert len(rows) > 2000
    assert {"key", "arrived"}.isdisjoint(rows[0])


def test_times_as_text(memory: MemorySystem) -> None:
    memory.log = messages(admissions())
    assert init("--person", "patient").code == 0
    assert policy()["stream"]["time"] == "admitted"
    assert "admitted" not in policy()["source"]["types"]
    assert len(ran(memory)) > 2000


def test_a_key_that_repeats_a_column_is_left_out(memory: MemorySystem) -> None:
    rows = visits().to_pylist()
    memory.log = [(json.dumps(row).encode(), row["user"].encode(), START * SECOND, None) for row in rows]
    assert init().code == 0
    assert "key_column" not in policy()["source"]


def test_further_keys_of_the_source(memory: MemorySystem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "hunter2")
    memory.log = messages(visits())
    words = (
        "group=mine",
        "client.security.protocol=SASL_SSL",
        "secrets.sasl.password=env:PASSWORD",
        "headers.shop=tenant",
    )
    written = init("--source", *words, "--carry", "shop", "device")
    assert written.code == 0, written.err
    found = policy()
    assert found["source"]["group"] == "mine"
    assert found["source"]["headers"] == {"shop": "tenant"}
    assert found["sink"]["client"] == found["source"]["client"] == {"security.protocol": "SASL_SSL"}
    assert found["sink"]["secrets"] == {"sasl.password": "env:PASSWORD"}
    assert memory.seen[0].settings == {"security.protocol": "SASL_SSL", "sasl.password": "hunter2"}
    assert "hunter2" not in Path("policy.toml").read_text() + written.out.decode()
    assert ran(memory)[0]["shop"] == "t1"


@pytest.mark.parametrize(
    ("address", "source"),
    [
        ("redis://h:6379/s", {"kind": "redis", "url": "redis://h:6379/0", "streams": ["s"]}),
        ("redis://h:6379/3/s", {"kind": "redis", "url": "redis://h:6379/3", "streams": ["s"]}),
        ("nats://h:4222/s", {"kind": "nats", "url": "nats://h:4222", "stream": "s"}),
        ("rabbitmq://h:5552/s", {"kind": "rabbitmq", "brokers": "h:5552", "streams": ["s"]}),
        ("kafka://g:1,h:2/s", {"kind": "kafka", "brokers": "g:1,h:2", "topics": ["s"]}),
    ],
)
def test_addresses(memory: MemorySystem, address: str, source: dict[str, Any]) -> None:
    memory.log = messages(visits(500))
    written = init("--drop", "device", address=address)
    assert written.code == 0, written.out.decode() + written.err
    found = policy()
    assert {name: found["source"][name] for name in source} == source
    assert found["sink"][{"kafka": "topic"}.get(source["kind"], "stream")] == "s-released"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["kafka://b:1"], "no host"),
        (["kafka://b:1/"], "no topic or stream"),
        (["kafak://b:1/t"], "did you mean kafka?"),
        (["mqtt://b:1/t"], "received only once"),
        (["kafka://user:pw@b:1/t"], "[source] brokers: has a user or a password in it"),
        (["kafka://b:1/t", "--source", "topcs=[1]"], "[source] topcs: unknown key"),
        (["kafka://b:1/t", "--source", "group"], "write KEY=VALUE"),
        (["kafka://b:1/t", "--items", "site"], "read files only"),
        (["visits.csv", "--source", "group=a"], "is for live systems"),
    ],
)
def test_what_is_wrong_is_named(memory: MemorySystem, words: list[str], sentence: str) -> None:
    memory.log = messages(visits(50))
    ended = shoal("init", *words, "--yes")
    assert ended.code == 2
    assert sentence in ended.err
    assert "user:pw" not in ended.err
    assert not Path("policy.toml").exists()


@pytest.mark.parametrize("log", [[], [(b"{broken secret", None, 0, None)]])
def test_a_topic_without_usable_messages(memory: MemorySystem, log: list[tuple[Any, ...]]) -> None:
    memory.log = log
    ended = init()
    assert ended.code == 1
    assert "messages can be read" in ended.err
    assert "secret" not in ended.err


def test_sets_are_not_proposed_for_a_topic(memory: MemorySystem) -> None:
    memory.log = messages(baskets(200))
    assert "read files only" not in init().err


def test_offsets_are_left_alone(memory: MemorySystem, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is acknowledged: `keep` and `leave` tell the broker where a run is."""
    told: list[str] = []
    monkeypatch.setattr("tests.pipeline.live.memory.MemorySource.keep", lambda self, position: told.append("keep"))
    monkeypatch.setattr("tests.pipeline.live.memory.MemorySource.leave", lambda self, position: told.append("leave"))
    memory.log = messages(visits(500))
    assert init().code == 0
    assert told == []
