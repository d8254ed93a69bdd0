"""The partitions that a run reads: their names, and what was read of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.decode.messages import Messages
from shoal.sources.kafka.shares import Share
from shoal.sources.merging import NO_TIME
from shoal.sources.reader import Needs

from confluent_kafka import OFFSET_INVALID, Message, TopicPartition  # isort: skip

_NS_A_MS: Final = 1_000_000


class Partitions:
    """The partitions of all topics, or those of one worker; a log is the number of a partition in this list.

    Parameters
    ----------
    numbers
        The numbers of each topic's partitions, those of other workers included.
    """

    def __init__(self, numbers: Mapping[str, Sequence[int]], share: Share | None = None) -> None:
        self.counts: Final = {topic: len(found) for topic, found in numbers.items()}
        self._share = share
        self._places = [
            (topic, number)
            for topic, found in numbers.items()
            for number in found
            if share is None or share.owns(number)
        ]

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, log: int) -> tuple[str, int]:
        return self._places[log]

    @property
    def names(self) -> list[str]:
        """How positions name them."""
        if self._share is None:
            return [f"{topic}/{number}" for topic, number in self._places]
        # With another number of partitions, keys are in other ones: a checkpoint must not go on with these.
        return [f"{topic}/{number} of {self.counts[topic]}" for topic, number in self._places]

    def log(self, message: Message) -> int:
        """The log of a message or event."""
        return self._places.index((str(message.topic()), message.partition() or 0))

    def at(self, log: int, offset: int = OFFSET_INVALID, metadata: str = "") -> TopicPartition:
        """A place in a partition, as the client names it."""
        topic, number = self._places[log]
        return TopicPartition(topic, number, offset, metadata)

    def by_log(self, messages: list[Message]) -> list[tuple[int, list[Message]]]:
        """Messages of each log, in their order."""
        if not messages:
            return []
        logs = self._logs(messages)
        found = np.unique(logs).tolist()
        if len(found) == 1:
            return [(found[0], messages)]
        return [(log, [messages[at] for at in np.flatnonzero(logs == log).tolist()]) for log in found]

    def _logs(self, messages: list[Message]) -> npt.NDArray[np.int64]:
        numbers = np.fromiter(map(Message.partition, messages), dtype=np.int64, count=len(messages))
        if len(self.counts) > 1:
            logs = {place: log for log, place in enumerate(self._places)}
            topics = (str(message.topic()) for message in messages)
            return np.fromiter((logs[place] for place in zip(topics, numbers.tolist(), strict=True)), dtype=np.int64)
        if self._share is not None:  # numbers of own partitions ascend
            return np.searchsorted([number for _, number in self._places], numbers)
        return numbers


def decodable(messages: list[Message], needs: Needs) -> Messages:
    """What the decoder needs of messages."""
    return Messages(
        list(map(Message.value, messages)),
        list(map(Message.key, messages)) if needs.keys else None,
        _times(messages) if needs.times else None,
        [_headers(message) for message in messages] if needs.headers else None,
    )


def _headers(message: Message) -> list[tuple[str, bytes | str | None]]:
    given = message.headers() or []
    return list(given.items()) if isinstance(given, dict) else given


def _times(messages: Sequence[Message]) -> Any:
    """When the broker, or the producer, says that each message was written."""
    stamps = np.fromiter((stamp for _, stamp in map(Message.timestamp, messages)), dtype=np.int64, count=len(messages))
    return np.where(stamps < 0, NO_TIME, stamps * _NS_A_MS)
