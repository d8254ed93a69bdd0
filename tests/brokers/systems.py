"""Redis, NATS and RabbitMQ as tests write and read them: with their clients alone, without shoal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import nats
import redis
from nats.errors import TimeoutError as NatsTimeout
from nats.js.errors import NotFoundError
from rstream import Consumer, ConsumerOffsetSpecification, OffsetType, Producer, RawMessage, amqp_decoder
from rstream.amqp import AMQPMessage

from shoal.clients.addresses import Address
from shoal.clients.nats import NatsConnection
from shoal.clients.rabbitmq import RabbitConnection
from shoal.clients.redis import connect
from shoal.errors import RunError
from shoal.sinks.nats import NatsWriter
from shoal.sinks.rabbitmq import RabbitWriter
from shoal.sinks.redis import RedisWriter
from shoal.sources.nats import NatsReader
from shoal.sources.rabbitmq import RabbitReader
from shoal.sources.redis import RedisReader
from tests.brokers.servers import Server

T = TypeVar("T")
SILENT_SECONDS = 1.0


class RedisStreams:
    """Streams of Redis."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.url = f"redis://127.0.0.1:{server.port}/0"

    def source(self, stream: str) -> str:
        return f'kind = "redis"\nurl = "{self.url}"\nstreams = ["{stream}"]\nuntil = "end"'

    def sink(self, stream: str) -> str:
        return f'kind = "redis"\nstream = "{stream}"'

    def produce(self, stream: str, messages: list[bytes]) -> None:
        with redis.Redis.from_url(self.url) as client:
            pipe = client.pipeline(transaction=False)
            for number, message in enumerate(messages):
                pipe.xadd(stream, {"value": message}, id=f"{1_700_000_000_000 + number // 7}-{number % 7}")
            pipe.execute()

    def content(self, stream: str) -> list[tuple[Any, bytes]]:
        with redis.Redis.from_url(self.url) as client:
            return [(entry, fields[b"value"]) for entry, fields in client.xrange(stream)]

    def reader(self, stream: str) -> RedisReader:
        return RedisReader(connect(self.url, {}), [stream], name="Redis", until_end=True)

    def writer(self, stream: str) -> RedisWriter:
        return RedisWriter(connect(self.url, {}), stream, name="Redis")

    def intrude(self, stream: str) -> None:
        """Append what another process might."""
        with redis.Redis.from_url(self.url) as client:
            client.xadd(stream, {"value": b"{}"})

    def remove(self, stream: str) -> None:
        """Remove all entries, as retention does, and append one."""
        with redis.Redis.from_url(self.url) as client:
            client.xtrim(stream, maxlen=0, approximate=False)
            client.xadd(stream, {"value": b"{}"})


class NatsStreams:
    """Streams of NATS JetStream."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.url = f"nats://127.0.0.1:{server.port}"

    def source(self, stream: str) -> str:
        return f'kind = "nats"\nurl = "{self.url}"\nstream = "{stream}"\nuntil = "end"'

    def sink(self, stream: str) -> str:
        return f'kind = "nats"\nstream = "{stream}"'

    def _call(self, work: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
        async def connected() -> T:
            client = await nats.connect(self.url)
            try:
                return await work(client.jetstream())
            finally:
                await client.close()

        return asyncio.run(connected())

    def produce(self, stream: str, messages: list[bytes]) -> None:
        async def work(js: Any) -> None:
            await js.add_stream(name=stream, subjects=[stream])
            for message in messages:
                await js.publish(stream, message)

        self._call(work)

    def content(self, stream: str) -> list[tuple[Any, bytes]]:
        async def work(js: Any) -> list[tuple[Any, bytes]]:
            try:
                left = (await js.stream_info(stream)).state.messages
            except NotFoundError:
                return []
            found: list[tuple[Any, bytes]] = []
            subscription = await js.subscribe(stream, stream=stream, ordered_consumer=True)
            while len(found) < left:
                try:
                    message = await subscription.next_msg(300)
                except NatsTimeout:
                    break
                found.append((message.metadata.sequence.stream, message.data))
            return found

        return self._call(work)

    def _connection(self) -> NatsConnection:
        return NatsConnection(self.url, {}, RunError)

    def reader(self, stream: str) -> NatsReader:
        return NatsReader(self._connection(), stream, name="NATS", until_end=True)

    def writer(self, stream: str) -> NatsWriter:
        return NatsWriter(self._connection(), stream, name="NATS")

    def intrude(self, stream: str) -> None:
        """Append what another process might."""
        self._call(lambda js: js.publish(stream, b"{}"))

    def remove(self, stream: str) -> None:
        """Remove all messages, as limits do, and append one."""

        async def work(js: Any) -> None:
            await js.purge_stream(stream)
            await js.publish(stream, b"{}")

        self._call(work)


async def rabbit_content(login: dict[str, Any], stream: str) -> list[tuple[Any, bytes]]:
    """Everything in a stream of RabbitMQ; its end is where a server that answers sends nothing more."""
    found: list[tuple[Any, bytes]] = []
    news = asyncio.Event()
    clock = asyncio.get_running_loop().time

    def accept(message: Any, context: Any) -> None:
        found.append((context.offset, bytes(message.body)))
        news.set()

    async with Consumer(**login) as consumer:
        first = ConsumerOffsetSpecification(OffsetType.FIRST, None)
        await consumer.subscribe(stream, accept, decoder=amqp_decoder, offset_specification=first)
        while True:
            news.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), SILENT_SECONDS)
                continue
            asked = clock()
            await consumer.stream_exists(stream)
            if clock() - asked < SILENT_SECONDS / 2 and not news.is_set():
                return found


class RabbitStreams:
    """Streams of RabbitMQ."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._login: dict[str, Any] = {
            "host": "127.0.0.1", "port": server.port, "username": "guest", "password": "guest",
        }  # fmt: skip

    def source(self, stream: str) -> str:
        return f'kind = "rabbitmq"\nbrokers = "127.0.0.1:{self.server.port}"\nstreams = ["{stream}"]\nuntil = "end"'

    def sink(self, stream: str) -> str:
        return f'kind = "rabbitmq"\nstream = "{stream}"'

    def produce(self, stream: str, messages: list[bytes]) -> None:
        async def work() -> None:
            async with Producer(**self._login) as producer:
                await producer.create_stream(stream, exists_ok=True)
                # Like other clients of RabbitMQ, and some as they are.
                mixed = [AMQPMessage(body=one) if at % 3 else one for at, one in enumerate(messages)]
                for one in mixed:
                    await producer.send(stream, one)

        asyncio.run(work())

    def content(self, stream: str) -> list[tuple[Any, bytes]]:
        return asyncio.run(rabbit_content(self._login, stream))

    def _connection(self) -> RabbitConnection:
        return RabbitConnection([Address("127.0.0.1", self.server.port)], {}, RunError)

    def reader(self, stream: str) -> RabbitReader:
        return RabbitReader(self._connection(), [stream], name="RabbitMQ", until_end=True)

    def writer(self, stream: str) -> RabbitWriter:
        return RabbitWriter(self._connection(), stream, name="RabbitMQ")

    def intrude(self, stream: str) -> None:
        """Append what another process with the same name might."""

        async def work() -> None:
            async with Producer(**self._login) as producer:
                await producer.send_wait(stream, RawMessage(b"{}", publishing_id=1_000), publisher_name="shoal")

        asyncio.run(work())
