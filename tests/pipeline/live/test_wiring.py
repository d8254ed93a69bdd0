"""A policy of messages from end to end: decoder, method, encoder, dead letters next to the rows."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pytest

from shoal.crypto.keys import secret_from_environment
from shoal.crypto.sealing import unseal
from shoal.errors import CheckpointError, PolicyError, RunError
from shoal.observe.observer import Observer
from shoal.pipeline.live import wiring
from shoal.pipeline.run import StreamRun
from shoal.policy import parse_policy
from tests.avro.registry_server import serving
from tests.decode.test_avro_records import written
from tests.pipeline.live.memory import MemorySystem
from tests.policy.test_live import live_table
from tests.policy.test_policy import changed

SECOND = 1_000_000_000


def log() -> list[tuple[Any, ...]]:
    """Twelve people at three sites; some messages cannot be used."""
    found: list[tuple[Any, ...]] = []
    for at in range(36):
        value = {"user": f"u{at % 12}", "ts": 1_700_000_000 + at, "site": f"s{at % 3}", "shop": "east"}
        found.append((json.dumps(value).encode(), f"k{at % 3}".encode(), at * SECOND, [("tenant", b"t1")]))
    found[4] = (None, b"k", 0, None)
    found[9] = (b'{"user": "secret-person", "ts": 1}{"user": "x"}', b"k", 0, None)
    found[20] = (b'{"user": "secret-person", "ts": true, "site": "s0"}', b"k", 0, None)
    found[30] = (b'{"user": "secret-person", "ts": 1600000000, "site": "s0", "shop": "west"}', b"k", 0, None)
    return found


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> MemorySystem:
    made = MemorySystem(log())
    monkeypatch.setattr(wiring, "system", lambda kind: made)
    return made


def run(folder: Path, *changes: tuple[str, Any]) -> Any:
    table = changed(live_table(), "stream/carry", ["shop"])
    for path, value in changes:
        table = changed(table, path, value)
    return StreamRun(parse_policy(table, folder=folder), Observer()).execute()


def letters(memory: MemorySystem, name: str = "published-dead-letters") -> list[dict[str, Any]]:
    return [json.loads(value) for _, value in memory.topics[name]]


def test_rows_and_letters_go_to_topics(memory: MemorySystem, tmp_path: Path) -> None:
    summary = run(tmp_path, ("sink/key", "site"))
    rows = memory.topics["published"]
    assert summary.released == len(rows) > 10
    for key, value in rows:
        row = json.loads(value)
        assert set(row) == {"ts", "user", "site", "shop"}
        assert key == row["site"].encode()
        assert not row["user"].startswith("u")
    found = letters(memory)
    assert [(one["offset"], one["column"]) for one in found] == [(4, None), (9, None), (20, "ts"), (30, "ts")]
    assert "tombstone" in found[0]["reason"]
    assert "not valid JSON" in found[1]["reason"]
    assert "secret-person" not in str(found)
    assert summary.dead_letters == "published-dead-letters"
    assert not list(tmp_path.glob("*.jsonl"))


def test_a_second_run_publishes_nothing_twice(memory: MemorySystem, tmp_path: Path) -> None:
    end = ("source/until", "end")
    run(tmp_path, end)
    before = {name: list(messages) for name, messages in memory.topics.items()}
    assert run(tmp_path, end).finished_before
    assert memory.topics == before
    assert memory.left == [36, 36], "also by the second, because the first might have been killed before"
    with pytest.raises(CheckpointError, match='this run has ended by until = "end"; to continue behind it on Kafka'):
        run(tmp_path)
    assert memory.topics == before


def test_kept_records_are_sealed_or_refused(
    memory: MemorySystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = ("dead_letters", {"keep_rows": True, "name": "refused"})
    monkeypatch.delenv("SHOAL_KEY_FILE", raising=False)
    with pytest.raises(PolicyError, match="records are sent to refused only sealed"):
        run(tmp_path, keep)
    (tmp_path / "key").write_text("0" * 64)
    (tmp_path / "key").chmod(0o600)
    monkeypatch.setenv("SHOAL_KEY_FILE", str(tmp_path / "key"))
    run(tmp_path / "other", keep)
    late = letters(memory, "refused")[-1]
    assert "secret-person" not in str(late)
    secret = secret_from_environment()
    assert secret is not None
    opened = json.loads(unseal(secret, base64.b64decode(late["sealed"]), purpose="dead letter"))
    assert opened["user"] == "secret-person"


def test_letters_may_go_to_a_file_next_to_topics(memory: MemorySystem, tmp_path: Path) -> None:
    run(tmp_path, ("dead_letters", {"path": "refused.jsonl"}))
    assert len((tmp_path / "refused.jsonl").read_text().splitlines()) == 4
    assert list(memory.topics) == ["published"]


def test_messages_to_a_file(memory: MemorySystem, tmp_path: Path) -> None:
    run(tmp_path, ("sink", {"kind": "jsonl", "path": "out.jsonl"}))
    rows = (tmp_path / "out.jsonl").read_text().splitlines()
    assert len(rows) > 10
    assert len((tmp_path / "out.jsonl.dead.jsonl").read_text().splitlines()) == 4


def test_files_to_messages(memory: MemorySystem, tmp_path: Path) -> None:
    lines = [json.loads(value) for value, *_ in log() if value and b"secret" not in value]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    sink = {"kind": "kafka", "topic": "published", "brokers": "b:1"}
    run(tmp_path, ("source", {"kind": "jsonl", "path": "in.jsonl"}), ("sink", sink))
    from_file = memory.topics.pop("published")
    assert len(from_file) > 10
    (parts,) = memory.seen
    assert parts.address == "b:1"
    assert parts.source is None


def test_keys_headers_and_times_as_columns(memory: MemorySystem, tmp_path: Path) -> None:
    source = {"key_column": "device", "timestamp_column": "arrived", "headers": {"tenant": "tenant"}}
    table = live_table()["source"] | source
    run(
        tmp_path,
        ("source", table),
        ("stream/carry", ["device", "tenant", "arrived"]),
        ("stream/carry_identifying", True),
    )
    row = json.loads(memory.topics["published"][-1][1])
    assert row["device"] in ("k0", "k1", "k2")
    assert row["tenant"] == "t1"
    assert row["arrived"].startswith("1970-01-01T00:00:")


def test_avro_gives_the_rows_of_json(memory: MemorySystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("0" * 64)
    (tmp_path / "key").chmod(0o600)
    monkeypatch.setenv("SHOAL_KEY_FILE", str(tmp_path / "key"))
    fields = [{"name": "ts", "type": "long"}, *({"name": name, "type": "string"} for name in ("user", "site", "shop"))]
    schema = {"type": "record", "name": "visit", "fields": fields}
    usable = [message for message in log() if message[0] and b"secret" not in message[0]]
    memory.log = usable
    run(tmp_path / "json")
    expected = [json.loads(value) for _, value in memory.topics.pop("published")]
    with serving() as server:
        before = b"\x00" + server.add(schema).to_bytes(4, "big")
        memory.log = [(written(json.loads(value), schema, before), *others) for value, *others in usable]
        memory.log.insert(7, (usable[0][0], *usable[0][1:]))  # not Avro
        avro = {"format": "avro", "registry": server.url}
        sink = {"kind": "kafka", "topic": "published", **avro}
        run(tmp_path / "avro", ("source", live_table()["source"] | avro), ("sink", sink))
        (number,) = server.subjects["published-value"]
        published = fastavro.parse_schema(json.loads(server.schemas[number - 1]["schema"]))
    rows = [
        fastavro.schemaless_reader(io.BytesIO(value[5:]), published, None) for _, value in memory.topics["published"]
    ]
    assert rows == expected
    assert [one["offset"] for one in letters(memory)] == [7]


def test_parts_have_settings_with_secrets_and_do_not_show_them(
    memory: MemorySystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SINK_PASSWORD", "hunter2")
    run(tmp_path, ("sink/secrets", {"sasl.password": "env:SINK_PASSWORD"}), ("sink/client", {"linger.ms": 5}))
    source, sink = memory.seen
    assert source.settings == {}
    assert source.folder == tmp_path / "state"
    assert sink.settings == {"linger.ms": 5, "sasl.password": "hunter2"}
    assert sink.address == "localhost:9092"
    assert sink.source is source.section
    assert "hunter2" not in repr(sink)
    assert "hunter2" not in "".join(path.read_bytes().decode("latin1") for path in (tmp_path / "state").iterdir())


def test_a_system_without_a_module() -> None:
    with pytest.raises(RunError, match="this version cannot connect to it"):
        wiring.system("carrier-pigeon")
