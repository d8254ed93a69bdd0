"""What the sink of Kafka leaves for its next run, and what it skips after an older checkpoint."""

from __future__ import annotations

import pyarrow as pa
import pytest

from shoal.encode.messages import JsonMessages
from shoal.errors import InputError, OutputError
from shoal.sinks.kafka.kafka import KafkaSink, KafkaTopics
from shoal.sinks.kafka.transactions import KafkaTransactions
from shoal.sources.kafka.kafka import KafkaReader
from shoal.sources.reader import Needs
from tests.brokers.kafka_server import Kafka

SCHEMA = pa.schema([("n", pa.int64())])


def sink_of(kafka: Kafka, topic: str) -> KafkaSink:
    return KafkaSink(KafkaTopics(KafkaTransactions(kafka.address, topic)), topic, JsonMessages())


def rows(first: int, count: int) -> pa.RecordBatch:
    return pa.record_batch([list(range(first, first + count))], schema=SCHEMA)


def numbers(kafka: Kafka, topic: str) -> list[list[bytes | None]]:
    return [[value for _, value in part] for part in kafka.content(topic)]


def test_messages_take_turns_in_partitions_across_writes_and_runs(kafka: Kafka) -> None:
    kafka.make_topic("turns", 4)
    sink = sink_of(kafka, "turns")
    assert sink.published() == ()
    sink.open(SCHEMA)
    sink.write(rows(0, 3))
    sink.write(rows(3, 4))
    receipt = sink.commit(0)
    sink.publish("checkpoint-1")
    sink.close()
    sink = sink_of(kafka, "turns")
    assert sink.published() == ("checkpoint-1",)
    sink.recover(SCHEMA, receipt)
    sink.write(rows(7, 3))
    sink.commit(1)
    sink.publish("checkpoint-2")
    assert sink.published() == ("checkpoint-2", "checkpoint-1")
    sink.close()
    expected = [[0, 4, 8], [1, 5, 9], [2, 6], [3, 7]]
    assert numbers(kafka, "turns") == [[b'{"n":%d}' % n for n in part] for part in expected]


def test_what_was_published_after_an_older_checkpoint_is_skipped(kafka: Kafka) -> None:
    kafka.make_topic("skipped")
    sink = sink_of(kafka, "skipped")
    sink.published()
    sink.open(SCHEMA)
    sink.write(rows(0, 2))
    old = sink.commit(0)
    sink.publish("checkpoint-1")
    sink.write(rows(2, 3))
    sink.commit(1)
    sink.publish("checkpoint-2")
    sink.close()
    sink = sink_of(kafka, "skipped")
    sink.published()
    sink.recover(SCHEMA, old)
    sink.write(rows(2, 4))  # three of them are there
    sink.commit(1)
    sink.publish("checkpoint-3")
    sink.close()
    assert numbers(kafka, "skipped") == [[b'{"n":%d}' % n for n in range(6)]]


def test_rows_and_letters_are_published_together(kafka: Kafka) -> None:
    kafka.make_topic("together")
    kafka.make_topic("together-letters")
    topics = KafkaTopics(KafkaTransactions(kafka.address, "together"))
    sinks = [KafkaSink(topics, topic, JsonMessages()) for topic in ("together", "together-letters")]
    sinks[0].published()
    for count, sink in enumerate(sinks, 1):
        sink.open(SCHEMA)
        sink.write(rows(0, count))
        sink.commit(0)
    for sink in sinks:
        sink.publish("checkpoint-1")
        sink.close()
    again = KafkaTransactions(kafka.address, "together")
    again.start(["together", "together-letters"])
    assert (again.published, again.held("together"), again.held("together-letters")) == (("checkpoint-1",), 1, 2)
    again.close()


def test_a_second_run_shuts_out_the_first(kafka: Kafka) -> None:
    kafka.make_topic("fenced")
    first = sink_of(kafka, "fenced")
    first.published()
    first.open(SCHEMA)
    first.write(rows(0, 1))
    second = sink_of(kafka, "fenced")
    second.published()
    with pytest.raises(OutputError, match="has taken over"):  # noqa: PT012 - the client may learn it while it writes
        first.write(rows(1, 1))
        first.commit(0)
    first.close()
    second.close()


def test_a_topic_of_transactions_is_read_to_its_end(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    """Markers of commits take offsets, too; an open transaction is not read."""
    monkeypatch.setattr("shoal.sources.kafka.kafka._PROBE_SECONDS", 0.0)
    kafka.make_topic("chained")
    sink = sink_of(kafka, "chained")
    sink.published()
    sink.open(SCHEMA)
    reader = KafkaReader(kafka.address, ["chained"])
    reader.connect()
    reader.open([None], Needs())
    found = []
    for number in range(3):
        sink.write(rows(number, 1))
        sink.commit(number)
        sink.publish(f"checkpoint-{number}")
        while len(found) <= number or not reader.is_read(0):
            found += [value for one in reader.fetch([0], 0.4) for value in one.messages.values]
        reader.fetch([0], 0.4)
        assert reader.is_read(0), "still after it was asked for"
    sink.write(rows(3, 1))
    sink.commit(3)
    assert list(reader.fetch([0], 0.4)) == []
    assert found == [b'{"n":%d}' % number for number in range(3)]
    reader.close()
    sink.close()


def test_a_reader_notices_new_partitions(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.sources.kafka.kafka._LOOK_SECONDS", 0.0)
    kafka.make_topic("growing")
    reader = KafkaReader(kafka.address, ["growing"])
    reader.connect()
    reader.open([None], Needs())
    assert list(reader.fetch([0], 0.4)) == []
    kafka.add_partitions("growing", 2)

    def read() -> None:
        for _ in range(300):  # brokers take a moment to know it
            reader.fetch([0], 0.4)

    with pytest.raises(InputError, match="topic growing has new partitions"):
        read()
    reader.close()
