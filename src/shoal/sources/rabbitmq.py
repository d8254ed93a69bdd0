"""Streams of RabbitMQ: messages in the order of their offsets."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np
from rstream import OffsetType, amqp_decoder, schema
from rstream.client import Client

from shoal.clients.rabbitmq import CALL_SECONDS, RabbitConnection
from shoal.clients.trouble import Unreachable
from shoal.decode.messages import Given, Messages
from shoal.errors import InputError
from shoal.sources.reader import Fetched, Id, Needs

_CHUNKS: Final = 20
"""Chunks of one stream that the server may send ahead; it decides how many messages are in one."""
_LAST_SECONDS: Final = 3.0
"""If the last chunk of a stream does not arrive within this time, the stream is empty."""
_NO_END: Final = -2
_SHORT, _LONG, _SECTION = b"\x00Su\xa0", b"\x00Su\xb0", b"\x00S"
"""How a message of AMQP 1.0 begins: with data of up to 255 bytes, with longer data, with another section."""


@dataclass(slots=True)
class _Stream:
    """How far one stream is read."""

    name: str
    after: int = -1
    end: int = _NO_END
    is_checked: bool = True
    """Whether no message behind `after` is missing."""
    is_silent: bool = False
    chunks: list[schema.Deliver] = field(default_factory=list)


class RabbitReader:
    """Reads streams. The place of a message is its offset.

    Values are the data of AMQP 1.0 messages, which RabbitMQ's clients write, or whole messages that are not AMQP.

    Parameters
    ----------
    from_latest, until_end
        Start with messages that arrive from now on; read up to the end as it is when reading starts.
    """

    def __init__(
        self,
        connection: RabbitConnection,
        streams: Sequence[str],
        *,
        name: str,
        from_latest: bool = False,
        until_end: bool = False,
    ) -> None:
        self._connection, self.name, self.topics = connection, name, tuple(streams)
        self._from_latest, self._until_end = from_latest, until_end
        self._streams = [_Stream(stream) for stream in streams]
        self._is_subscribed = False

    def connect(self) -> Sequence[str]:
        return self.topics

    def open(self, after: Sequence[Id | None], needs: Needs) -> Sequence[Id]:
        self._needs = needs
        for log, (one, place) in enumerate(zip(self._streams, after, strict=True)):
            last = -1
            if self._until_end or (place is None and self._from_latest):
                last = self._connection.call(partial(self._last_offset, log=log), CALL_SECONDS)
            one.after = int(place) if place is not None else last if self._from_latest else -1
            one.is_checked = place is None or one.after < 0
            one.end = last if self._until_end else _NO_END
        return [one.after for one in self._streams]

    async def _last_offset(self, client: Client, log: int) -> int:
        """The offset of the last message of a stream; -1 if there is none."""
        self._news = asyncio.Event()
        await self._subscribe(client, log, schema.OffsetSpec.from_params(OffsetType.LAST, None), credit=1)
        await client.stream_exists(self.topics[log])  # a slow server sends messages before it answers this
        try:
            await asyncio.wait_for(self._news.wait(), _LAST_SECONDS)
        except TimeoutError:
            return -1
        finally:
            await client.unsubscribe(log)
            await client.stop_queue_listener_task(log)
        chunk = self._streams[log].chunks[-1]
        return int(chunk.chunk_first_offset + chunk.num_records - 1)

    # ---- messages

    def fetch(self, logs: Collection[int], seconds: float) -> Iterable[Fetched]:
        wanted = [log for log in logs if not self.has_ended(log)]
        if not wanted:
            return []
        try:
            if not self._is_subscribed or not self._connection.is_connected:
                self._connection.call(self._start, CALL_SECONDS)
            chunks = self._connection.call(
                lambda client: self._collect(client, wanted, seconds), CALL_SECONDS + seconds
            )
        except Unreachable:
            self._is_subscribed = False
            raise
        return [fetched for log, found in chunks for fetched in self._fetched(log, found)]

    async def _start(self, client: Client) -> None:
        """Subscribe at the last message that was read: if it is still there, no later one was removed."""
        self._news = asyncio.Event()
        for log, one in enumerate(self._streams):
            if one.after < 0:
                spec = schema.OffsetSpec.from_params(OffsetType.FIRST, None)
            else:
                spec = schema.OffsetSpec.from_params(OffsetType.OFFSET, one.after)
            await self._subscribe(client, log, spec, credit=_CHUNKS)
        self._is_subscribed = True

    async def _subscribe(self, client: Client, log: int, spec: schema.OffsetSpec, *, credit: int) -> None:
        one = self._streams[log]
        one.chunks = []

        def accept(chunk: schema.Deliver) -> None:
            if chunk.subscription_id == log:  # the client hands every chunk to all subscriptions
                one.chunks.append(chunk)
                self._news.set()

        await client.run_queue_listener_task(log, accept)
        client.add_handler(schema.Deliver, accept, name=str(log))
        await client.subscribe(one.name, log, spec, initial_credit=credit)

    async def _collect(
        self, client: Client, wanted: list[int], seconds: float
    ) -> list[tuple[int, list[schema.Deliver]]]:
        """What has arrived; waits if that is nothing."""
        if not any(self._streams[log].chunks for log in wanted):
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), seconds)
            except TimeoutError:
                if not client.is_connection_alive():
                    raise Unreachable("the connection was closed") from None
        found = []
        for log in wanted:
            one = self._streams[log]
            chunks, one.chunks = one.chunks, []
            one.is_silent = not chunks
            if chunks:
                await client.credit(log, len(chunks))
                found.append((log, chunks))
        return found

    def _fetched(self, log: int, chunks: list[schema.Deliver]) -> list[Fetched]:
        one = self._streams[log]
        values: list[bytes] = []
        ids: list[int] = []
        times: list[int] = []
        for chunk in chunks:
            self._require_no_gap(one, chunk.chunk_first_offset)
            first = max(0, one.after + 1 - chunk.chunk_first_offset)
            found = chunk.get_messages()[first:]
            if found:
                values += found
                start = chunk.chunk_first_offset + first
                ids += range(start, start + len(found))
                times += [chunk.timestamp * 1_000_000] * len(found)
                one.after = ids[-1]
        if one.end != _NO_END:
            keep = sum(at <= one.end for at in ids)
            values, ids, times = values[:keep], ids[:keep], times[:keep]
        return [Fetched(log, self._messages(values, times), np.array(ids, dtype=np.int64))] if values else []

    def _require_no_gap(self, one: _Stream, first: int) -> None:
        if not one.is_checked and first > one.after:
            raise InputError(
                f"{self.name}: the message at offset {one.after} of stream {one.name}, which was read last, was "
                "removed, and so may be later ones; restore the stream, or start over with a new checkpoint folder"
            )
        one.is_checked = True

    def _messages(self, raw: list[bytes], times: list[int]) -> Messages:
        if not self._needs.headers:
            return Messages([_value(one) for one in raw], times=times)
        decoded = [_decoded(one) for one in raw]
        values = [whole if one is None else _body(one) for whole, one in zip(raw, decoded, strict=True)]
        headers = [None if one is None else _properties(one.application_properties) for one in decoded]
        return Messages(values, times=times, headers=headers)

    # ---- the rest

    def is_read(self, log: int) -> bool:
        return self._streams[log].is_silent

    def has_ended(self, log: int) -> bool:
        one = self._streams[log]
        return one.end != _NO_END and one.after >= one.end

    def keep(self, after: Sequence[Id]) -> None:
        """Nothing to do: the position is in the checkpoint.

        Storing it on the server as well would add an entry to the stream for every checkpoint.
        """

    def leave(self, after: Mapping[str, Id]) -> None:
        """Nothing to do: only Kafka has a place to note it."""

    def lag(self) -> int | None:
        """Unknown: the protocol of RabbitMQ 3.10 has no question for the last offset."""
        return None

    def place(self, log: int, at: Id) -> dict[str, Any]:
        return {"stream": self.topics[log], "offset": at}

    def close(self) -> None:
        self._connection.close()


def _value(message: bytes) -> bytes:
    """The data of a message.

    >>> _value(bytes.fromhex("005375a002") + b"{}"), _value(b"{}")
    (b'{}', b'{}')
    """
    if message[:4] == _SHORT and len(message) == 5 + message[4]:
        return message[5:]
    if message[:4] == _LONG and len(message) == 8 + int.from_bytes(message[4:8]):
        return message[8:]
    decoded = _decoded(message)
    return message if decoded is None else _body(decoded)


def _decoded(message: bytes) -> Any | None:
    """A message of AMQP; None if it is none, or is broken: its bytes are then refused as a record."""
    if not message.startswith(_SECTION):
        return None
    try:
        return amqp_decoder(message)
    except Exception:  # errors of many kinds
        return None


def _body(message: Any) -> bytes:
    """The data of a decoded message: its data sections, or its value if that is text or bytes."""
    body = message.body
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    if isinstance(body, str):
        return body.encode()
    return b"".join(bytes(part) for part in body or ())


def _properties(found: dict[Any, Any] | None) -> list[tuple[str, Given]]:
    names = [name.decode(errors="replace") if isinstance(name, bytes) else str(name) for name in found or ()]
    values = [value if isinstance(value, bytes | str) else str(value) for value in (found or {}).values()]
    return list(zip(names, values, strict=True))
