"""Ranges of offsets: for a reader that decides before it reads which messages of each partition it takes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final

from shoal.clients.kafka import REQUEST_SECONDS, UNKNOWN_TOPIC, Settings, insist, is_passing, make_client, reason
from shoal.clients.patience import Patience
from shoal.errors import InputError

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition  # isort: skip

_FETCH: Final = 20_000
_STEP_SECONDS: Final = 1.0
_FIXED: Final = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
}


class OffsetReader:
    """A consumer that reads from one offset up to another.

    Parameters
    ----------
    settings
        Of the client, by librdkafka's names, secrets included.
    give_up
        Seconds after which unreachable brokers are an error.
    """

    def __init__(self, brokers: str, group: str, settings: Settings | None = None, *, give_up: float = 600.0) -> None:
        self.name = f"Kafka at {brokers}"
        self._patience = Patience(give_up)
        self.had_trouble = False
        """Whether brokers did not answer at first; set back by who asks."""
        given = {**(settings or {}), "bootstrap.servers": brokers, "group.id": group, **_FIXED}
        self._consumer = make_client(Consumer, given, self._failure)

    def limits(self, topics: Sequence[str]) -> dict[tuple[str, int], tuple[int, int]]:
        """The oldest offset of every partition and the one behind its end, by topic and number, in this order."""
        found = {}
        for topic in topics:
            for number in self._numbers(topic):
                at = TopicPartition(topic, number)
                found[topic, number] = self._ask(self._consumer.get_watermark_offsets, at, timeout=REQUEST_SECONDS)
        return found

    def _numbers(self, topic: str) -> list[int]:
        return sorted(self._ask(self._partitions, topic))

    def _partitions(self, topic: str) -> Mapping[int, Any]:
        """The partitions of a topic; a broker that does not know them now is asked again, as one that does not answer.

        A topic without partitions would be forgotten, and read from its beginning when it comes back.
        """
        found = self._consumer.list_topics(topic, timeout=REQUEST_SECONDS).topics[topic]
        if found.error is not None:
            if found.error.name() == UNKNOWN_TOPIC:
                raise InputError(f"{self.name}: there is no topic {topic}; create it, or correct [source] topics")
            raise KafkaException(found.error)
        if not found.partitions:
            raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
        partitions: Mapping[int, Any] = found.partitions
        return partitions

    def read(self, topic: str, number: int, start: int, end: int) -> Iterator[list[Message]]:
        """The messages of a partition from `start` up to, not including, `end`."""
        self._consumer.assign([TopicPartition(topic, number, start)])
        at = start
        while at < end:
            messages = []
            wanted = min(_FETCH, end - at)  # the client waits for all that it is asked for, or the whole step
            for message in self._ask(self._consumer.consume, wanted, timeout=_STEP_SECONDS):
                error = message.error()
                if error is None:
                    at = int(message.offset()) + 1
                    if at <= end:
                        messages.append(message)
                elif error.name() == "_PARTITION_EOF":
                    at = max(at, int(message.offset()))
                elif not is_passing(error):
                    raise self._failure(reason(error))
            if messages:
                yield messages

    def keep(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Store offsets of the group, for tools that show how far a run is."""
        with contextlib.suppress(KafkaException):
            places = [TopicPartition(topic, number, offset) for (topic, number), offset in offsets.items()]
            self._consumer.commit(offsets=places, asynchronous=True)

    def _ask(self, call: Any, *args: Any, **options: Any) -> Any:
        tries = count(1)

        def ask() -> Any:
            self.had_trouble |= next(tries) > 1
            return call(*args, **options)

        return insist(ask, self._patience, self._failure)

    def _failure(self, why: str) -> InputError:
        return InputError(f"{self.name}: cannot be read: {why}")

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()
