"""A stream of RabbitMQ as the log of a sink: the server leaves out messages whose number it has seen."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from rstream import AMQPMessage, exceptions, schema
from rstream.client import Client

from shoal.clients.rabbitmq import CALL_SECONDS, RabbitConnection
from shoal.clients.trouble import Unreachable
from shoal.sinks.messages import Start, another_writer, lost_messages

_PUBLISHER: Final = 1
_SHORT_BYTES: Final = 256


class RabbitWriter:
    """Appends to one stream, which is created if there is none, under the name of a publisher.

    Message number n has the publishing id n + 1. Values are the data of AMQP 1.0 messages, which all clients of
    RabbitMQ read.
    """

    def __init__(self, connection: RabbitConnection, stream: str, *, name: str, publisher: str = "shoal") -> None:
        self.name = name
        self._connection, self._stream, self._publisher = connection, stream, publisher
        self._is_declared = False
        self._written = 0

    def open(self, start: Start | None) -> tuple[Start, int]:
        held = self._call_declared()
        self._written = held
        return 0, held

    def _call_declared(self) -> int:
        held = self._connection.call(self._declare, CALL_SECONDS)
        self._is_declared = True
        return held

    async def _declare(self, client: Client) -> int:
        """Announce the publisher; returns the last publishing id that the server has."""
        with suppress(exceptions.StreamAlreadyExists):
            await client.create_stream(self._stream)
        await client.declare_publisher(self._stream, self._publisher, _PUBLISHER)
        self._unconfirmed: set[int] = set()
        self._refused: int | None = None
        self._news = asyncio.Event()
        client.add_handler(schema.PublishConfirm, self._confirm, name="confirm")
        client.add_handler(schema.PublishError, self._refuse, name="refuse")
        return await client.query_publisher_sequence(self._stream, self._publisher)

    def _confirm(self, frame: schema.PublishConfirm) -> None:
        self._unconfirmed.difference_update(frame.publishing_ids)
        self._news.set()

    def _refuse(self, frame: schema.PublishError) -> None:
        self._refused = frame.errors[0].response_code if frame.errors else 0
        self._news.set()

    def count(self) -> int | None:
        """Messages of this publisher in the stream; None if there is no such stream."""

        async def ask(client: Client) -> int | None:
            if not await client.stream_exists(self._stream):
                return None
            return await client.query_publisher_sequence(self._stream, self._publisher)

        return self._connection.call(ask, CALL_SECONDS)

    def write(self, number: int, values: Sequence[bytes], keys: Sequence[bytes | None] | None) -> None:
        if not self._is_declared or not self._connection.is_connected:
            self._is_declared = False
            if self._call_declared() < number:
                raise lost_messages(self.name)
        bodies = [_message(value) for value in values] if keys is None else list(map(_keyed, values, keys))
        messages = [schema.Message(number + 1 + at, None, body) for at, body in enumerate(bodies)]
        try:
            self._connection.call(lambda client: self._publish(client, messages), CALL_SECONDS * 2)
        except Unreachable:
            self._is_declared = False
            raise
        self._written = number + len(values)

    async def _publish(self, client: Client, messages: list[schema.Message]) -> None:
        """Send messages and wait until all are confirmed."""
        self._unconfirmed.update(one.publishing_id for one in messages)
        await client.send_publish_frame(schema.Publish(publisher_id=_PUBLISHER, messages=messages))
        try:
            async with asyncio.timeout(CALL_SECONDS):
                while self._unconfirmed and self._refused is None and client.is_connection_alive():
                    self._news.clear()
                    await asyncio.wait_for(self._news.wait(), 1.0)
        except TimeoutError:
            pass
        if self._refused is not None:
            raise Unreachable(f"the server refuses messages with code {self._refused}")
        if self._unconfirmed:
            raise Unreachable("the server does not confirm messages")

    def flush(self) -> None:
        """Every message is confirmed; make sure that no other process used the publisher's name."""
        if not self._is_declared or not self._connection.is_connected:
            held = self._call_declared()
        else:
            held = self._connection.call(
                lambda client: client.query_publisher_sequence(self._stream, self._publisher), CALL_SECONDS
            )
        if held != self._written:
            raise another_writer(self.name) if held > self._written else lost_messages(self.name)

    def close(self) -> None:
        self._connection.close()


def _message(value: bytes) -> bytes:
    """A message of AMQP 1.0 with one data section.

    >>> _message(b"{}").hex(" ")
    '00 53 75 a0 02 7b 7d'
    """
    if len(value) < _SHORT_BYTES:
        return b"\x00Su\xa0" + bytes((len(value),)) + value
    return b"\x00Su\xb0" + len(value).to_bytes(4) + value


def _keyed(value: bytes, key: bytes | None) -> bytes:
    """A message with its key as an application property."""
    return _message(value) if key is None else bytes(AMQPMessage(body=value, application_properties={"key": key}))
