"""Rows as messages of a Kafka topic, exactly once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import cycle, islice, repeat
from typing import ClassVar, Final

import pyarrow as pa

from shoal.avro.registry import RegistryUnreachable
from shoal.clients.trouble import Unreachable
from shoal.encode.messages import MessageEncoder
from shoal.sinks.base import Receipt
from shoal.sinks.kafka.transactions import KafkaTransactions
from shoal.sinks.numbered import MessageNumbers

_BY_KEY: Final = -1
"""The client chooses the partition by the key's bytes."""


class KafkaSink:
    """A topic. Several of them, such as that of rows and that of dead letters, share transactions.

    The partition of a message follows from its key, or from its number if it has none: it never depends on the run.
    """

    decides: ClassVar[bool] = True

    def __init__(self, topics: KafkaTopics, topic: str, encoder: MessageEncoder) -> None:
        self._topics, self._topic, self._encoder = topics, topic, encoder
        self._numbers = topics.add(topic)

    def published(self) -> tuple[str, ...]:
        return self._topics.start()

    def open(self, schema: pa.Schema) -> None:
        self._begin(schema)
        self._numbers.start(held=self._topics.transactions.held(self._topic))

    def recover(self, schema: pa.Schema, receipt: Receipt) -> None:
        self._begin(schema)
        self._numbers.recover(receipt, held=self._topics.transactions.held(self._topic))

    def _begin(self, schema: pa.Schema) -> None:
        self._topics.start()
        self._topics.transactions.insist(lambda: self._open_encoder(schema))
        self._partitions = self._topics.transactions.partitions(self._topic)

    def _open_encoder(self, schema: pa.Schema) -> None:
        try:
            self._encoder.open(schema)
        except RegistryUnreachable as trouble:
            raise Unreachable(str(trouble)) from None

    def write(self, rows: pa.RecordBatch) -> None:
        self.write_messages(self._encoder.values(rows), self._encoder.keys(rows))

    def write_messages(self, values: Sequence[bytes], keys: Sequence[bytes | None] | None = None) -> None:
        """Write messages; those that the topic holds already are skipped."""
        first = self._numbers.written
        skipped = self._numbers.take(len(values))
        if skipped == len(values):
            return
        partitions: Iterable[int] = repeat(_BY_KEY)
        if keys is None:
            partitions = islice(cycle(range(self._partitions)), (first + skipped) % self._partitions, None)
        given: Iterable[bytes | None] = repeat(None) if keys is None else islice(keys, skipped, None)
        self._topics.transactions.send(self._topic, zip(islice(values, skipped, None), given, partitions, strict=False))

    def commit(self, epoch: int) -> Receipt:
        self._topics.transactions.flush()
        return self._numbers.receipt

    def publish(self, checkpoint: str) -> None:
        self._topics.publish(checkpoint)

    def finish(self) -> Receipt:
        """Nothing to do: everything is published already."""
        return self._numbers.receipt

    def verify(self, receipt: Receipt) -> None:
        """Messages that were published cannot be altered."""

    def clean(self) -> None:
        """Nothing to remove."""

    def close(self) -> None:
        self._topics.transactions.close()


class KafkaTopics:
    """The topics of one run, published together."""

    def __init__(self, transactions: KafkaTransactions) -> None:
        self.transactions = transactions
        self._numbers: dict[str, MessageNumbers] = {}

    def add(self, topic: str) -> MessageNumbers:
        """Another topic; returns the numbers of its messages."""
        return self._numbers.setdefault(topic, MessageNumbers(f"Kafka topic {topic}"))

    def start(self) -> tuple[str, ...]:
        """Connect, once; the checkpoints published by an earlier run, newest first."""
        self.transactions.start(self._numbers)
        return self.transactions.published

    def publish(self, checkpoint: str) -> None:
        """Publish all topics, once for each checkpoint."""
        self.transactions.publish(checkpoint, {topic: numbers.held for topic, numbers in self._numbers.items()})
