"""A stream of NATS JetStream: messages in the order of their sequence."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import orjson
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import api
from nats.js.client import JetStreamContext

from shoal.clients.nats import CALL_SECONDS, NatsConnection
from shoal.clients.trouble import Unreachable
from shoal.decode.messages import Messages
from shoal.errors import InputError
from shoal.sources.reader import Fetched, Id, Needs

_BATCH: Final = 10_000
_BATCH_BYTES: Final = 32 * 1024 * 1024
_EXPIRES_SECONDS: Final = 5.0
_FORGET_SECONDS: Final = 60.0
"""The server removes a consumer that was not asked for messages for this long."""


class NatsReader:
    """Reads a stream with a consumer that lives as long as the connection. The place of a message is its sequence.

    Messages are requested in batches of limited size, so the server never sends more than fits in memory.

    Parameters
    ----------
    subject
        Read messages of this subject only.
    from_latest, until_end
        Start with messages that arrive from now on; read up to the end as it is when reading starts.
    """

    def __init__(
        self,
        connection: NatsConnection,
        stream: str,
        *,
        name: str,
        subject: str | None = None,
        from_latest: bool = False,
        until_end: bool = False,
        batch: int = _BATCH,
    ) -> None:
        self._connection, self.name, self.topics = connection, name, (stream,)
        self._stream, self._subject = stream, subject
        self._from_latest, self._until_end, self._batch = from_latest, until_end, batch
        self._after, self._end = 0, -1
        self._consumer: str | None = None
        self._pending: int | None = None
        self._arrived: list[Msg] = []
        self._trouble: str | None = None
        self._wanted = 0
        self._asked_at = 0.0

    def connect(self) -> Sequence[str]:
        return self.topics

    def open(self, after: Sequence[Id | None], needs: Needs) -> Sequence[Id]:
        self._needs = needs
        state = self._connection.call(self._state, CALL_SECONDS)
        if after[0] is None:
            self._after = state.last_seq if self._from_latest else max(0, state.first_seq - 1)
        else:
            self._after = int(after[0])
            self._require_messages(state)
        self._end = state.last_seq if self._until_end else -1
        return [self._after]

    async def _state(self, _: Client, stream: JetStreamContext) -> api.StreamState:
        return (await stream.stream_info(self._stream)).state

    def _require_messages(self, state: api.StreamState) -> None:
        if self._after < state.first_seq - 1:
            what = f"messages {self._after + 1} to {state.first_seq - 1} were removed before they were read"
        elif self._after > state.last_seq:
            what = f"message {self._after} was read, but the last one is {state.last_seq}"
        else:
            return
        raise InputError(f"{self.name}: {what}; restore the stream, or start over with a new checkpoint folder")

    # ---- messages

    def fetch(self, logs: Collection[int], seconds: float) -> Iterable[Fetched]:
        if not logs or self.has_ended(0):
            return []
        if self._consumer is None or not self._connection.is_connected:
            self._consumer = None
            self._connection.call(self._start, CALL_SECONDS)
        try:
            messages = self._connection.call(lambda client, _: self._collect(client, seconds), CALL_SECONDS + seconds)
        except Unreachable:
            self._consumer = None
            raise
        return self._fetched(messages) if messages else []

    async def _start(self, client: Client, stream: JetStreamContext) -> None:
        """Make a consumer behind the last message that was fetched."""
        config = api.ConsumerConfig(
            ack_policy=api.AckPolicy.NONE,
            deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=self._after + 1,
            filter_subject=self._subject,
            inactive_threshold=_FORGET_SECONDS,
            mem_storage=True,
        )
        info = await stream.add_consumer(self._stream, config)
        self._pending = info.num_pending
        self._inbox = client.new_inbox()
        self._arrived, self._trouble, self._wanted, self._numbers = [], None, 0, 0
        self._news = asyncio.Event()
        await client.subscribe(self._inbox, cb=self._accept, pending_msgs_limit=-1, pending_bytes_limit=-1)
        self._consumer = info.name

    async def _accept(self, message: Msg) -> None:
        if message.reply:
            self._arrived.append(message)
            self._wanted -= 1
        else:
            self._end_request(message.headers or {})
        self._news.set()

    def _end_request(self, headers: dict[str, str]) -> None:
        """A request ended before all its messages came: there are no more now, or they would be too many bytes."""
        status = headers.get("Status", "")
        if status in ("404", "408") or "MaxBytes" in headers.get("Description", ""):
            self._wanted -= int(headers.get("Nats-Pending-Messages", self._wanted))
        elif status != "100":
            self._trouble = f"the server ended the request with status {status}"

    async def _collect(self, client: Client, seconds: float) -> list[Msg]:
        """What has arrived; waits if that is nothing."""
        await self._request(client)
        if not self._arrived:
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), seconds)
            except TimeoutError:
                if time.monotonic() - self._asked_at > _EXPIRES_SECONDS + CALL_SECONDS:
                    raise Unreachable("the server does not answer a request for messages") from None
        if self._trouble is not None and not self._arrived:
            raise Unreachable(self._trouble)
        messages, self._arrived = self._arrived, []
        return messages

    async def _request(self, client: Client) -> None:
        """Keep the server sending while what arrived is used."""
        if self._wanted <= self._batch // 2:
            request = {
                "batch": self._batch, "max_bytes": _BATCH_BYTES, "expires": int(_EXPIRES_SECONDS * 1e9)
            }  # fmt: skip
            subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._consumer}"
            await client.publish(subject, orjson.dumps(request), reply=self._inbox)
            self._wanted += self._batch
            self._asked_at = time.monotonic()

    def _fetched(self, messages: list[Msg]) -> list[Fetched]:
        """Messages up to the first gap: the rest is requested again."""
        details = [_details(message.reply) for message in messages]
        numbers = np.array([int(one[1]) for one in details])
        sound = np.cumprod(numbers == np.arange(self._numbers + 1, self._numbers + 1 + len(numbers)), dtype=np.int64)
        count = int(sound.sum())
        if count < len(messages):
            self._consumer = None
            messages, details = messages[:count], details[:count]
        if not messages:
            raise Unreachable("messages were lost on the way")
        self._numbers += count
        ids = np.array([int(one[0]) for one in details], dtype=np.int64)
        self._after, self._pending = int(ids[-1]), int(details[-1][3])
        if self._end >= 0:
            keep = int(np.searchsorted(ids, self._end, side="right"))
            ids, messages, details = ids[:keep], messages[:keep], details[:keep]
        needs = self._needs
        found = Messages(
            [message.data for message in messages],
            [message.subject for message in messages] if needs.keys else None,
            [int(one[2]) for one in details] if needs.times else None,
            [list((message.headers or {}).items()) for message in messages] if needs.headers else None,
        )
        return [Fetched(0, found, ids)]

    # ---- the rest

    def is_read(self, log: int) -> bool:
        return self._pending == 0 and not self._arrived

    def has_ended(self, log: int) -> bool:
        return self._end >= 0 and (self._after >= self._end or self._pending == 0)

    def keep(self, after: Sequence[Id]) -> None:
        """Nothing to do: the stream's own limits remove messages."""

    def leave(self, after: Mapping[str, Id]) -> None:
        """Nothing to do: only Kafka has a place to note it."""

    def lag(self) -> int | None:
        return self._pending

    def place(self, log: int, at: Id) -> dict[str, Any]:
        return {"stream": self._stream, "sequence": at}

    def close(self) -> None:
        self._connection.close()


def _details(reply: str) -> Sequence[str]:
    """Sequence in the stream, number in the consumer, time (ns) and pending messages, from a message's reply subject.

    >>> _details("$JS.ACK.visits.c1.1.70.7.1700000000000000000.3")
    ['70', '7', '1700000000000000000', '3']
    """
    words = reply.split(".")
    return words[5:9] if len(words) == 9 else words[7:11]  # servers of several accounts add two words before
