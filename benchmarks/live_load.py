"""A producer in a process of its own, for `benchmarks.soak`: visits to web sites, as fast as it is allowed to send.

It reads from standard input how many messages it may have sent in all, line by line, and prints how many it
has sent. Streams are kept short, so that hours of messages fit in memory and on disk.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Callable
from typing import Protocol

IN, OUT = "visits", "visits-anonymous"
LETTERS = f"{OUT}-dead-letters"
KEPT = 1_000_000
"""Messages that a stream keeps, at least; more than are ever unread."""
BATCH = 1_000
_APPEND = "for _, value in ipairs(ARGV) do redis.call('XADD', KEYS[1], '*', 'value', value) end"
"""A script for Redis: one command for many messages."""
_PEOPLE, _SITES = 100_000, 10_000


class Load(Protocol):
    """A system, as a producer uses it."""

    source: str
    """Settings of [source]."""
    sink: str

    def prepare(self) -> None:
        """Make streams that forget old messages."""

    def send(self, values: list[bytes]) -> None:
        """Append messages; returns when the system has them."""

    def trim(self) -> None:
        """Remove old messages, where the system does not do it by itself."""

    def close(self) -> None:
        """Close the connection."""


class RedisLoad:
    """Streams of Redis, trimmed by the producer."""

    def __init__(self, address: str) -> None:
        import redis

        self.source = f'kind = "redis"\nurl = "redis://{address}/0"\nstreams = ["{IN}"]'
        self.sink = f'kind = "redis"\nstream = "{OUT}"'
        self._client = redis.Redis.from_url(f"redis://{address}/0")
        self._append = self._client.register_script(_APPEND)

    def prepare(self) -> None:
        """Streams are made by their first message."""

    def send(self, values: list[bytes]) -> None:
        self._append([IN], values)

    def trim(self) -> None:
        for stream in (IN, OUT):
            self._client.xtrim(stream, maxlen=KEPT, approximate=True)

    def close(self) -> None:
        self._client.close()


class NatsLoad:
    """Streams of NATS JetStream with a limit."""

    def __init__(self, address: str) -> None:
        import nats

        self.source = f'kind = "nats"\nurl = "nats://{address}"\nstream = "{IN}"'
        self.sink = f'kind = "nats"\nstream = "{OUT}"'
        self._loop = asyncio.new_event_loop()
        self._client = self._loop.run_until_complete(nats.connect(f"nats://{address}"))
        self._streams = self._client.jetstream()

    def prepare(self) -> None:
        for name in (IN, OUT, LETTERS):
            self._loop.run_until_complete(self._streams.add_stream(name=name, subjects=[name], max_msgs=KEPT))

    def send(self, values: list[bytes]) -> None:
        self._loop.run_until_complete(self._send(values))

    async def _send(self, values: list[bytes]) -> None:
        *others, last = values
        for value in others:
            await self._client.publish(IN, value)
        await self._streams.publish(IN, last)  # answered when those before it are stored

    def trim(self) -> None:
        """The streams have a limit."""

    def close(self) -> None:
        self._loop.run_until_complete(self._client.close())
        self._loop.close()


class KafkaLoad:
    """Topics of Kafka that forget old messages."""

    def __init__(self, address: str) -> None:
        from confluent_kafka import Producer

        self._address = address
        self.source = f'kind = "kafka"\nbrokers = "{address}"\ntopics = ["{IN}"]'
        self.sink = f'kind = "kafka"\ntopic = "{OUT}"'
        self._producer = Producer({"bootstrap.servers": address, "linger.ms": 5, "queue.buffering.max.messages": 10**6})

    def prepare(self) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        limits = {"retention.bytes": str(200 * KEPT), "segment.bytes": str(50 * KEPT)}
        topics = [NewTopic(name, 1, 1, config=limits) for name in (IN, OUT, LETTERS)]
        admin = AdminClient({"bootstrap.servers": self._address})
        for done in admin.create_topics(topics).values():
            done.result(30)

    def send(self, values: list[bytes]) -> None:
        for value in values:
            self._producer.produce(IN, value)
        self._producer.flush()

    def trim(self) -> None:
        """The topics have a limit."""

    def close(self) -> None:
        self._producer.flush()


LOADS: dict[str, Callable[[str], Load]] = {"nats": NatsLoad, "redis": RedisLoad, "kafka": KafkaLoad}


class Visits:
    """Endless visits at the time they are made: few sites have most of them."""

    def __init__(self) -> None:
        draw = random.Random(1)
        # Lists of coprime lengths: the same person visits other sites every time round.
        people = draw.sample(range(_PEOPLE), _PEOPLE)
        sites = draw.choices(range(_SITES), weights=[1 / (rank + 1) for rank in range(_SITES)], k=_PEOPLE + 1)
        self._people = [b'{"user":"person-%d","site":"site-' % who for who in people]
        self._sites = [b'%d.example","time":' % site for site in sites]
        self._at = 0

    def take(self, count: int) -> list[bytes]:
        """The next messages."""
        now = b"%d}" % (time.time_ns() // 10**6)
        places = range(self._at, self._at + count)
        self._at += count
        return [self._people[at % _PEOPLE] + self._sites[at % (_PEOPLE + 1)] + now for at in places]


def produce(system: str, address: str) -> None:
    """Send what standard input allows until it ends."""
    load, visits, sent = LOADS[system](address), Visits(), 0
    for line in sys.stdin:
        while sent < int(line):
            values = visits.take(min(BATCH, int(line) - sent))
            load.send(values)
            sent += len(values)
            print(sent, flush=True)
        load.trim()
    load.close()


if __name__ == "__main__":
    produce(*sys.argv[1:])
