"""Kafka: topics in, topics out, in transactions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from shoal.clients.trouble import Unreachable
from shoal.errors import OutputError, RunError
from shoal.pipeline.live.common import both_sinks, check_reader, live_source, named
from shoal.pipeline.live.parts import Finding, SinkParts, Sinks, SourceParts
from shoal.policy.live.systems import KafkaSink as SinkTable
from shoal.policy.live.systems import KafkaSource as SourceTable
from shoal.sinks.kafka.kafka import KafkaSink, KafkaTopics
from shoal.sinks.kafka.keyed import KeyedTopicSink
from shoal.sinks.kafka.topics import count_partitions, make_topic, probe
from shoal.sinks.kafka.transactions import KafkaTransactions
from shoal.sources.kafka.kafka import KafkaReader
from shoal.sources.kafka.shares import Keying, Share
from shoal.sources.live import LiveSource

PROMISE: Final = (
    "Kafka: every record is published exactly once, for readers with isolation.level = read_committed, which is the "
    "default of librdkafka and has to be set in Java"
)

_MESSAGE_MS: Final = 120_000
"""How long a message may wait for its acknowledgement before its transaction is aborted and written again."""
_ANSWER_MS: Final = 30_000
"""How long brokers may take to answer before a connection counts as lost."""
_EARLIER: Final = 5 / 6
"""A broker that waits for its replicas gives up before its client does."""


def make_source(parts: SourceParts) -> LiveSource:
    """The topics of the policy; all of their partitions, or those of a worker."""
    reader, table = _reader(parts), parts.section
    if table.workers == 1:
        return live_source(parts, reader)
    keying = Keying(table.keyed_by, table.partitioner)
    return live_source(parts, reader, lambda log, decoded: keying.misplaced_rows(decoded, *reader.partition(log)))


def make_sinks(parts: SinkParts) -> Sinks:
    """The topic of rows and that of dead letters, in the same transactions."""
    topics = KafkaTopics(_transactions(parts))
    return both_sinks(parts, lambda output: KafkaSink(topics, output.name, output.encoder))


def make_keyed_sinks(parts: SinkParts, *, column: str, raw: str, keeps_keys: bool) -> Sinks:
    """The same for messages as they came, in the partitions of a column."""
    topics = KafkaTopics(_transactions(parts))
    rows = KeyedTopicSink(topics, parts.rows.name, column=column, raw=raw, keeps_keys=keeps_keys)
    letters = parts.letters
    return Sinks(rows, KafkaSink(topics, letters.name, letters.encoder) if letters is not None else None)


def prepare_topic(parts: SinkParts, topic: str, *, partitions: int | None) -> int:
    """How many partitions a topic has; it is created if it is not there and `partitions` are given."""
    trouble = probe(parts.address, parts.settings)
    if trouble is not None:
        raise OutputError(named(f"Kafka at {parts.address}", trouble))
    try:
        if partitions is not None:
            make_topic(parts.address, topic, partitions, parts.settings)
        found = count_partitions(parts.address, topic, parts.settings)
    except Unreachable as error:
        raise OutputError(named(f"Kafka at {parts.address}", error)) from None
    if partitions not in (None, found):
        raise OutputError(f"Kafka topic {topic}: has {found} partitions, not {partitions}; name another topic")
    return found


def _reader(parts: SourceParts) -> KafkaReader:
    table = parts.section
    assert isinstance(table, SourceTable)
    return KafkaReader(
        table.brokers,
        table.topics,
        group=table.group,
        settings=parts.settings,
        start=table.start,
        until_end=table.until == "end",
        share=Share(table.workers, parts.worker) if table.workers > 1 else None,
    )


def _transactions(parts: SinkParts) -> KafkaTransactions:
    table = parts.section
    assert isinstance(table, SinkTable)
    return KafkaTransactions(
        parts.address,
        table.transactional_id or table.topic,
        settings={**_time_limits(table), **parts.settings},
        give_up=table.give_up.ns / 1e9,
    )


def _time_limits(table: SinkTable) -> dict[str, int]:
    """Limits that fit each other: answer, then message, then transaction; by itself the client waits for the last."""
    transaction = int(table.transaction_ms)
    answer = min(_ANSWER_MS, transaction)
    return {
        "socket.timeout.ms": answer,
        "request.timeout.ms": int(answer * _EARLIER),
        "message.timeout.ms": max(answer, min(_MESSAGE_MS, int(table.give_up.ns / 1e6), transaction)),
        "transaction.timeout.ms": transaction,
    }


# ---- doctor


def check_source(parts: SourceParts) -> Iterator[Finding]:
    """Whether the topics exist and may be read."""
    trouble = probe(parts.table.address, parts.settings)
    if trouble is not None:
        yield Finding("wrong", f"[source] {named(f'Kafka at {parts.table.address}', trouble)}")
        return
    # Where a first run would begin is its own question: there may be a checkpoint.
    whole = parts.section.model_copy(update={"start": "earliest"})
    yield from check_reader(_reader(replace(parts, section=whole)))


def check_sinks(parts: SinkParts) -> Iterator[Finding]:
    """Whether the topics exist."""
    trouble = probe(parts.address, parts.settings)
    if trouble is not None:
        yield Finding("wrong", f"[sink] {named(f'Kafka at {parts.address}', trouble)}")
        return
    for output in parts.outputs:
        try:
            count = count_partitions(parts.address, output.name, parts.settings)
        except (RunError, Unreachable) as error:
            yield Finding("wrong", f"[sink] {named(f'Kafka at {parts.address}', error)}")
        else:
            yield Finding("good", f"Kafka answers; the topic {output.name} has {count} partitions")
