"""Topics of Kafka: committed messages of all their partitions.

A run has its position in its checkpoint. Offsets of the group are only stored for tools that show the lag.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from shoal.clients.kafka import (
    REQUEST_SECONDS,
    STEP_SECONDS,
    UNKNOWN_TOPIC,
    Settings,
    attempt,
    is_denied,
    is_passing,
    make_client,
    reason,
)
from shoal.clients.trouble import Unreachable
from shoal.errors import InputError
from shoal.sources.kafka.group import DECIDED, Beginning, Start
from shoal.sources.kafka.partitions import Partitions, decodable
from shoal.sources.kafka.shares import Share, require_shareable
from shoal.sources.reader import Fetched, Id, Needs

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition  # isort: skip

FETCH: Final = 20_000
"""Messages read at once."""
_WAIT_SECONDS: Final = 0.1
_PROBE_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 60.0
_UNKNOWN: Final = -1
_DEFAULTS: Final = {"queued.max.messages.kbytes": 65_536, "fetch.wait.max.ms": 100, "socket.timeout.ms": 30_000}
_FIXED: Final = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
}


class KafkaReader:
    """A consumer with its partitions assigned by hand, so that no other process takes them away.

    Parameters
    ----------
    group
        Offsets are stored under this name.
    settings
        Of the client, by librdkafka's names, secrets included.
    start
        Where to begin: with the oldest messages, with those that arrive from now on, or where another run of the group
        has ended.
    until_end
        Read up to the end as it is when the run begins.
    share
        The part of a worker, if several share the topics.
    """

    def __init__(
        self,
        brokers: str,
        topics: Sequence[str],
        *,
        group: str = "shoal",
        settings: Settings | None = None,
        start: Start = "earliest",
        until_end: bool = False,
        share: Share | None = None,
        fetch: int = FETCH,
    ) -> None:
        self.topics = tuple(topics)
        self.name = f"Kafka at {brokers}"
        self._settings = {**_DEFAULTS, **(settings or {}), "bootstrap.servers": brokers, "group.id": group, **_FIXED}
        self._beginning = Beginning(group, start, share)
        self._until_end, self._share, self._fetch = until_end, share, fetch
        self._consumer: Consumer | None = None
        self._partitions = Partitions({})
        self._trouble: KafkaError | None = None
        self._next: list[int] = []
        """The offset behind the last message read of each partition."""
        self._end: list[int] = []
        """Where each partition is known to end."""
        self._last: list[int] = []
        """Where reading of each partition is to end, if it is to end."""
        self._paused: set[int] = set()
        self._probe_at = 0.0
        self._look_at = 0.0

    # ---- start

    def connect(self) -> Sequence[str]:
        if self._consumer is None:
            self._consumer = make_client(Consumer, {**self._settings, "error_cb": self._note_error}, self._failure)
        self._partitions = Partitions({topic: self._numbers(topic) for topic in self.topics}, self._share)
        if self._share is not None:
            require_shareable(self.name, self._share, self._partitions.counts)
        return self._partitions.names

    def partition(self, log: int) -> tuple[int, int]:
        """The number of a log's partition, and how many its topic has."""
        topic, number = self._partitions[log]
        return number, self._partitions.counts[topic]

    def _numbers(self, topic: str) -> list[int]:
        found = self._ask(lambda: self._open_consumer.list_topics(topic, timeout=REQUEST_SECONDS)).topics[topic]
        if found.error is None and found.partitions:
            return sorted(found.partitions)
        if found.error is not None and found.error.name() == UNKNOWN_TOPIC:
            raise InputError(f"{self.name}: there is no topic {topic}; create it, or correct [source] topics")
        raise Unreachable(f"topic {topic} has no leader yet")

    def open(self, after: Sequence[Id | None], needs: Needs) -> Sequence[Id]:
        limits = [
            self._ask(
                lambda at=at: self._open_consumer.get_watermark_offsets(
                    self._partitions.at(at), timeout=REQUEST_SECONDS
                )
            )
            for at in range(len(self._partitions))
        ]
        self._needs = needs
        # A partition that was added while a run stood still is read from its beginning.
        first = [low for low, _ in limits]
        if all(given is None for given in after):
            first = self._beginning.offsets(self.name, self._committed, limits)
        self._next = [
            self._checked(at, first[at] if given is None else int(given) + 1, limits[at])
            for at, given in enumerate(after)
        ]
        self._last = [high for _, high in limits] if self._until_end else []
        self._end = [_UNKNOWN] * len(self._partitions)
        self._paused.clear()
        self._open_consumer.assign([self._partitions.at(at, offset) for at, offset in enumerate(self._next)])
        return [offset - 1 for offset in self._next]

    def _committed(self) -> list[TopicPartition]:
        """The offsets of the group."""
        asked = [self._partitions.at(at) for at in range(len(self._partitions))]
        found: list[TopicPartition] = self._ask(lambda: self._open_consumer.committed(asked, timeout=REQUEST_SECONDS))
        return found

    def _checked(self, at: int, offset: int, limits: tuple[int, int]) -> int:
        low, high = limits
        if low <= offset <= high:
            return offset
        topic, number = self._partitions[at]
        what = f"messages {offset:,} to {low - 1:,} were deleted before they were read" if offset < low else (
            f"it ends at message {high:,}, but {offset:,} were read; it was deleted and created again"
        )  # fmt: skip
        raise InputError(
            f"{self.name}: topic {topic}, partition {number}: {what}; start over with a new checkpoint folder and "
            "another topic to write to"
        )

    # ---- reading

    def fetch(self, logs: Collection[int], seconds: float) -> Iterable[Fetched]:
        self._look_for_partitions()
        self._pause_all_but(logs)
        wait = min(seconds, _WAIT_SECONDS)
        messages: list[Message] = attempt(lambda: self._open_consumer.consume(self._fetch, timeout=wait), self._failure)
        events = [message for message in messages if message.error() is not None]
        if events:
            messages = [message for message in messages if message.error() is None]
            for event in events:
                self._note_event(event)
        if messages or events:
            self._trouble = None
        elif self._trouble is not None or time.monotonic() >= self._probe_at:
            self._probe()
        by_log = self._partitions.by_log(messages)
        return [fetched for log, found in by_log if (fetched := self._fetched(log, found)) is not None]

    def _look_for_partitions(self) -> None:
        """End the run if a topic has got partitions: the next one merges them in."""
        if self._last or time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + _LOOK_SECONDS
        with contextlib.suppress(Unreachable):
            for topic in self.topics:
                if len(self._numbers(topic)) == self._partitions.counts[topic]:
                    continue
                if self._share is None:
                    raise self._failure(f"topic {topic} has new partitions; the same command starts to read them")
                raise self._failure(
                    f"topic {topic} has new partitions, so values move to others, and workers would each see a part of "
                    "their people; write another topic with shoal repartition, and start over with it"
                )

    def _probe(self) -> None:
        """Ask brokers whether nothing is there: silence alone may be a connection that hangs, or one that is lost."""
        self._require_accepted()
        for log in set(range(len(self._partitions))) - self._paused:
            asked = self._partitions.at(log)
            _, high = self._ask(lambda at=asked: self._open_consumer.get_watermark_offsets(at, timeout=STEP_SECONDS))
            if high > max(self._next[log], self._end[log]):
                self._end[log] = _UNKNOWN
        self._trouble, self._probe_at = None, time.monotonic() + _PROBE_SECONDS

    def _fetched(self, log: int, messages: list[Message]) -> Fetched | None:
        """Messages of one partition, without those behind the end."""
        offsets = np.fromiter(map(Message.offset, messages), dtype=np.int64, count=len(messages))
        self._next[log] = int(offsets[-1]) + 1
        if self._last:
            count = int(np.searchsorted(offsets, self._last[log]))
            messages, offsets = messages[:count], offsets[:count]
            if not count:
                return None
        return Fetched(log, decodable(messages, self._needs), offsets)

    def is_read(self, log: int) -> bool:
        return self._next[log] <= self._end[log]

    def has_ended(self, log: int) -> bool:
        return bool(self._last) and max(self._next[log], self._end[log]) >= self._last[log]

    def _pause_all_but(self, logs: Collection[int]) -> None:
        """Messages of a partition that holds others back must not wait behind those of others."""
        paused = set(range(len(self._partitions))) - set(logs)
        if paused == self._paused:
            return
        with contextlib.suppress(KafkaException):  # without effect on what is read, only on how much of it waits
            self._open_consumer.resume([self._partitions.at(at) for at in self._paused - paused])
            self._open_consumer.pause([self._partitions.at(at) for at in paused - self._paused])
            self._paused = paused

    # ---- events and errors

    def _note_event(self, event: Message) -> None:
        error = event.error()
        assert error is not None
        if error.name() == "_PARTITION_EOF":
            self._end[self._partitions.log(event)] = event.offset() or 0
        elif error.name() in ("_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"):
            log = self._partitions.log(event)
            limits = self._open_consumer.get_watermark_offsets(self._partitions.at(log), timeout=STEP_SECONDS)
            self._checked(log, self._next[log], limits)
        elif not is_passing(error):
            raise self._failure(reason(error))

    def _note_error(self, error: KafkaError) -> None:
        if is_denied(error) or is_passing(error):
            self._trouble = error

    def _ask(self, call: Any) -> Any:
        found = attempt(call, self._failure, self._require_accepted)
        self._require_accepted()
        return found

    def _require_accepted(self) -> None:
        """Raise InputError if brokers refuse us; before partitions are assigned, `poll` only reports that."""
        if not self._next:
            self._open_consumer.poll(0)
        if self._trouble is not None and is_denied(self._trouble):
            raise self._failure(reason(self._trouble))

    def _failure(self, why: str) -> InputError:
        return InputError(f"{self.name}: topics {', '.join(self.topics)} cannot be read: {why}")

    # ---- for tools

    def keep(self, after: Sequence[Id]) -> None:
        with contextlib.suppress(KafkaException):
            self._open_consumer.commit(
                offsets=[self._partitions.at(log, int(offset) + 1) for log, offset in enumerate(after)],
                asynchronous=True,
            )

    def leave(self, after: Mapping[str, Id]) -> None:
        logs = self._partitions.names if self._consumer is not None else self.connect()
        if set(logs) == set(after):
            offsets = [self._partitions.at(log, int(after[name]) + 1, DECIDED) for log, name in enumerate(logs)]
            self._ask(lambda: self._open_consumer.commit(offsets=offsets, asynchronous=False))

    def lag(self) -> int | None:
        total = 0
        for log, read in enumerate(self._next):
            high = self._open_consumer.get_watermark_offsets(self._partitions.at(log), cached=True)[1]
            total += max(0, int(high) - read)
        return total

    def place(self, log: int, at: Id) -> dict[str, Any]:
        topic, number = self._partitions[log]
        return {"topic": topic, "partition": number, "offset": at}

    def close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()

    @property
    def _open_consumer(self) -> Consumer:
        if self._consumer is None:
            raise RuntimeError("the source is not open")
        return self._consumer
