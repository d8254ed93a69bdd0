"""Messages as they were read, in the partitions of a Kafka topic that a column determines."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.encode.messages import TextMessages
from shoal.encode.partitions import key_texts, text_partitions
from shoal.sinks.kafka.kafka import KafkaSink, KafkaTopics


class KeyedTopicSink(KafkaSink):
    """A topic that is keyed by a column.

    Parameters
    ----------
    column
        Its text is the key of a message. Messages without a value take turns, without a key.
    raw
        The column with whole messages.
    keeps_keys
        Leave keys as they were; only partitions follow the column.
    """

    def __init__(self, topics: KafkaTopics, topic: str, *, column: str, raw: str, keeps_keys: bool) -> None:
        super().__init__(topics, topic, TextMessages())
        self._column, self._raw, self._keeps_keys = column, raw, keeps_keys

    def write(self, rows: pa.RecordBatch) -> None:
        first = self._numbers.written
        skipped = self._numbers.take(rows.num_rows)
        if skipped < rows.num_rows:
            self._topics.transactions.send(self._topic, islice(self._messages(rows, first), skipped, None))

    def _messages(self, rows: pa.RecordBatch, first: int) -> Iterator[tuple[Any, ...]]:
        """What the client's `produce` takes, in its order: value, key, partition, two callbacks, time, headers."""
        texts = key_texts(rows.column(self._column), self._column)
        turns = np.arange(first, first + len(texts)) % self._partitions
        is_missing = texts.is_null().to_numpy(zero_copy_only=False)
        partitions = np.where(is_missing, turns, text_partitions(texts, "murmur2", self._partitions)).tolist()
        raw = rows.column(self._raw)
        values, keys, times, headers = (raw.field(at).to_pylist() for at in range(4))
        if not self._keeps_keys:
            keys = texts.cast(pa.binary()).to_pylist()
        for value, key, partition, stamp, listed in zip(values, keys, partitions, times, headers, strict=True):
            found = [(one["name"], one["value"]) for one in listed] if listed else None
            yield value, key, partition, None, None, stamp, found
