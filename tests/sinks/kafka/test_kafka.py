"""Kafka without a server: the client's own imitation of a broker has transactions, but no isolation.

What readers see is tested against a real one, in tests/brokers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from shoal.encode.messages import JsonMessages
from shoal.errors import InputError, OutputError, RunError
from shoal.sinks.kafka.kafka import KafkaSink, KafkaTopics
from shoal.sinks.kafka.transactions import KafkaTransactions
from shoal.sources.kafka.kafka import KafkaReader
from shoal.sources.reader import Needs

SCHEMA = pa.schema([("site", pa.string()), ("n", pa.int64())])
PARTITIONS = 4  # of every topic of the imitation


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    owner = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = owner.list_topics(timeout=30).brokers.values()
    yield f"{broker.host}:{broker.port}"
    owner.close()


def sink_of(address: str, topic: str, *, key: str | None = None, **settings: Any) -> tuple[KafkaSink, KafkaTopics]:
    topics = KafkaTopics(KafkaTransactions(address, topic, settings=settings, give_up=5))
    return KafkaSink(topics, topic, JsonMessages(key=key)), topics


def rows(first: int, count: int) -> pa.RecordBatch:
    numbers = range(first, first + count)
    return pa.record_batch([[f"s{number % 3}" for number in numbers], list(numbers)], schema=SCHEMA)


def read(address: str, topic: str, expected: int) -> list[list[tuple[bytes | None, int]]]:
    """Keys and numbers of all messages, by partition."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "tests", "log_level": 0})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    found: list[list[tuple[bytes | None, int]]] = [[] for _ in range(PARTITIONS)]
    while sum(map(len, found)) < expected:
        for message in consumer.consume(1_000, timeout=1):
            found[message.partition()].append((message.key(), json.loads(message.value())["n"]))
    consumer.close()
    return found


def test_messages_take_turns_in_partitions(address: str) -> None:
    sink, _ = sink_of(address, "turns")
    sink.published()
    sink.open(SCHEMA)
    sink.write(rows(0, 3))
    sink.write(rows(3, 7))
    assert sink.commit(0) == {"messages": 10}
    sink.publish("checkpoint-1")
    sink.close()
    found = read(address, "turns", 10)
    assert [[n for _, n in part] for part in found] == [[0, 4, 8], [1, 5, 9], [2, 6], [3, 7]]


def test_a_key_decides_the_partition(address: str) -> None:
    sink, _ = sink_of(address, "keyed", key="site")
    sink.published()
    sink.open(SCHEMA)
    sink.write(rows(0, 30))
    sink.commit(0)
    sink.publish("checkpoint-1")
    sink.close()
    places: dict[bytes | None, set[int]] = {}
    for number, part in enumerate(read(address, "keyed", 30)):
        for key, n in part:
            assert key == f"s{n % 3}".encode()
            places.setdefault(key, set()).add(number)
    assert sorted(map(len, places.values())) == [1, 1, 1]


def test_a_full_queue_is_waited_for_and_keeps_the_order(address: str) -> None:
    sink, _ = sink_of(address, "full", **{"queue.buffering.max.messages": 10})
    sink.published()
    sink.open(SCHEMA)
    sink.write(rows(0, 200))
    assert sink.commit(0) == {"messages": 200}
    sink.publish("checkpoint-1")
    sink.close()
    for number, part in enumerate(read(address, "full", 200)):
        assert [n for _, n in part] == list(range(number, 200, PARTITIONS))


def test_brokers_that_do_not_answer_are_an_error_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.sinks.kafka.transactions.REQUEST_SECONDS", 0.1)
    sink = KafkaSink(KafkaTopics(KafkaTransactions("127.0.0.1:1", "none", give_up=0)), "none", JsonMessages())
    with pytest.raises(OutputError, match=r"127\.0\.0\.1:1: .* unreachable"):
        sink.published()


@pytest.mark.parametrize("make", [lambda settings: KafkaTransactions("x:1", "t", settings=settings).start([]),
                                  lambda settings: KafkaReader("x:1", ["t"], settings=settings).connect()])  # fmt: skip
def test_a_setting_that_the_client_refuses_is_named_without_its_value(make: Any) -> None:
    with pytest.raises(RunError, match="refuses its settings") as found:
        make({"no.such.setting": "secret-4711"})
    assert "secret-4711" not in str(found.value)


# ---- reading


def filled(address: str, topic: str, parts: list[list[Any]]) -> None:
    producer = Producer({"bootstrap.servers": address, "log_level": 0})
    for partition, values in enumerate(parts):
        for value in values:
            producer.produce(topic, value, key=b"k", partition=partition, timestamp=5_000, headers={"h": b"1"})
    assert producer.flush(30) == 0
    producer.close()


def test_a_reader_knows_where_partitions_end(address: str) -> None:
    filled(address, "ends", [[b"0", b"1"], [], [b"2"], [None]])
    reader = KafkaReader(address, ["ends"], until_end=True)
    assert reader.connect() == ["ends/0", "ends/1", "ends/2", "ends/3"]
    assert reader.open([None] * 4, Needs(keys=True, headers=True, times=True)) == [-1] * 4
    assert [reader.has_ended(log) for log in range(4)] == [False, True, False, False]
    found: dict[int, list[Any]] = {}
    while not all(map(reader.has_ended, range(4))):
        for one in reader.fetch(range(4), 0.4):
            found.setdefault(one.log, []).extend(one.messages.values)
            assert one.messages.keys == [b"k"] * len(one.ids)
            assert list(one.messages.times) == [5 * 10**9] * len(one.ids)
            assert one.messages.headers == [[("h", b"1")]] * len(one.ids)
    assert found == {0: [b"0", b"1"], 2: [b"2"], 3: [None]}
    assert reader.place(2, 0) == {"topic": "ends", "partition": 2, "offset": 0}
    reader.close()


def test_a_reader_continues_behind_a_position(address: str) -> None:
    filled(address, "behind", [[b"0", b"1", b"2"], [], [], []])
    reader = KafkaReader(address, ["behind"], until_end=True)
    reader.connect()
    reader.open([0, None, None, None], Needs())
    found = []
    while not reader.has_ended(0):
        found += [value for one in reader.fetch(range(4), 0.4) for value in one.messages.values]
    assert found == [b"1", b"2"]
    with pytest.raises(InputError, match="deleted and created again"):
        reader.open([7, None, None, None], Needs())
    reader.close()


def test_silence_is_no_end_while_brokers_have_more(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that delivers nothing must not let time pass: what it holds back would be late."""
    monkeypatch.setattr("shoal.sources.kafka.kafka._PROBE_SECONDS", 0.0)
    filled(address, "silent", [[b"0"], [], [], []])
    reader = KafkaReader(address, ["silent"])
    reader.connect()
    reader.open([None] * 4, Needs())
    while not all(map(reader.is_read, range(4))):
        reader.fetch(range(4), 0.1)
    assert reader._consumer is not None
    reader._consumer.pause([TopicPartition("silent", 0)])
    filled(address, "silent", [[b"1"], [], [], []])
    assert list(reader.fetch(range(4), 0.1)) == []
    assert [reader.is_read(log) for log in range(4)] == [False, True, True, True]
    reader._consumer.resume([TopicPartition("silent", 0)])
    found: list[Any] = []
    while not found or not reader.is_read(0):
        found += [value for one in reader.fetch(range(4), 0.1) for value in one.messages.values]
    assert found == [b"1"]
    reader.close()


class _Silent:
    """A client whose messages are acknowledged as told: how many are left after each call."""

    def __init__(self, *left: int) -> None:
        self._left = list(left)

    def flush(self, seconds: float) -> int:
        return self._left.pop(0) if len(self._left) > 1 else self._left[0]


def test_messages_that_are_never_acknowledged_end_a_run():
    transactions = KafkaTransactions("x:1", "t", give_up=0)
    transactions._producer = _Silent(3)
    with pytest.raises(OutputError, match="acknowledge nothing; the same command continues"):
        transactions.flush()


def test_messages_that_are_acknowledged_slowly_are_waited_for():
    transactions = KafkaTransactions("x:1", "t", give_up=0)
    transactions._producer = client = _Silent(3, 2, 1, 0)
    transactions.flush()
    assert client._left == [0]
