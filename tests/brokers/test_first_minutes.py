"""`shoal init` and `shoal serve` on real brokers: a policy from what is in a topic, and the page of its run."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.brokers.kafka_server import Kafka
from tests.brokers.servers import Nats, RabbitMq, Redis, Server
from tests.brokers.systems import NatsStreams, RabbitStreams, RedisStreams
from tests.e2e.scene import Ended, shoal
from tests.inspection.stories import visits
from tests.serve.test_server import Served, first_state

STREAMS = {"redis": (Redis, RedisStreams), "nats": (Nats, NatsStreams), "rabbitmq": (RabbitMq, RabbitStreams)}
ROWS = [json.dumps(row).encode() for row in visits(900).to_pylist()]

# Clients leave connections open; they are closed when they are collected.
pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "key").write_text("a key of more than sixteen bytes")
    (tmp_path / "key").chmod(0o600)
    monkeypatch.setenv("SHOAL_KEY_FILE", str(tmp_path / "key"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def init(address: str, *words: str) -> Ended:
    return shoal("init", address, "--yes", "--force", "--z", "5", *words)


def test_kafka_from_a_topic_to_the_page(kafka: Kafka, folder: Path) -> None:
    kafka.make_topic("first", 3)
    kafka.produce("first", [[{"value": value} for value in ROWS[part::3]] for part in range(3)])
    address = f"kafka://{kafka.address}/first"
    missing = init(address)
    assert missing.code == 1
    assert "first-released" in missing.out.decode(), "the doctor names the topic to create"
    for topic in ("first-released", "first-released-dead-letters"):
        kafka.make_topic(topic)
    written = init(address)
    assert written.code == 0, written.out.decode() + written.err
    assert "all 900 rows" in written.out.decode()
    assert tomllib.loads((folder / "policy.toml").read_text())["source"]["topics"] == ["first"]
    assert_unread(kafka, "first", 3)
    with Served(folder, policy=(folder / "policy.toml").read_text()).running() as served:
        state = first_state(served.client, lambda state: state["totals"]["in"] == 900)
        kafka.produce("first", [[{"value": value} for value in ROWS[:30]], [], []])
        state = first_state(served.client, lambda state: state["totals"]["in"] == 930)
        assert state["run"]["source"] == "kafka"
        assert state["totals"]["published"] > 100
    summary = served.end()
    published = [json.loads(value) for part in kafka.content("first-released") for _, value in part if value]
    assert len(published) == summary.released > 100


def assert_unread(kafka: Kafka, topic: str, partitions: int) -> None:
    """The group of the policy has no member and no offset."""
    groups = AdminClient({"bootstrap.servers": kafka.address}).list_consumer_groups().result()
    assert "shoal" not in [one.group_id for one in groups.valid]
    with closing(Consumer({"bootstrap.servers": kafka.address, "group.id": "shoal"})) as consumer:
        stored = consumer.committed([TopicPartition(topic, at) for at in range(partitions)], timeout=30)
    assert all(one.offset < 0 for one in stored)


@pytest.fixture(scope="module", params=STREAMS)
def streams(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A running broker; skips if it is not on this machine."""
    server, kind = STREAMS[request.param]
    missing = server.missing()
    if missing:
        pytest.skip(missing)
    running: Server
    with server() as running:
        yield kind(running)


def test_streams_from_their_messages(streams: Any, folder: Path) -> None:
    streams.produce("first", ROWS)
    source = tomllib.loads(streams.source("first"))
    where = source["url"].partition("://")[2].removesuffix("/0") if "url" in source else source["brokers"]
    before = streams.content("first")
    written = init(f"{source['kind']}://{where}/first")
    assert written.code == 0, written.out.decode() + written.err
    assert streams.content("first") == before
    text = (folder / "policy.toml").read_text()
    (folder / "policy.toml").write_text(text.replace("[source]\n", '[source]\nuntil = "end"\n'))
    ran = shoal("run", "policy.toml", "--quiet", "--json")
    assert ran.code == 0, ran.err
    assert ran.summary["released"] == len(streams.content("first-released")) > 100
