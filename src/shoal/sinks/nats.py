"""A stream of NATS JetStream as the log of a sink: the server checks the sequence that every message expects."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

import orjson
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import api
from nats.js.client import JetStreamContext
from nats.js.errors import NotFoundError

from shoal.clients.nats import CALL_SECONDS, NatsConnection
from shoal.clients.trouble import Unreachable
from shoal.errors import OutputError
from shoal.sinks.messages import Start, another_writer, lost_messages

_EXPECTED: Final = "Nats-Expected-Last-Sequence"
_WRONG_SEQUENCE: Final = 10071
_WRONG_REQUEST, _SERVER_TROUBLE = 400, 500
"""From the first on, trying again is pointless; from the second on it is not."""


class NatsWriter:
    """Appends to one stream, which is created if there is none.

    Message number n has the sequence s + 1 + n, where s is the last one before the run. Every message is answered: if
    only the last one of a batch were, a message of another process could take the place of one of ours unnoticed.
    """

    def __init__(self, connection: NatsConnection, stream: str, *, name: str, subject: str | None = None) -> None:
        self.name = name
        self._connection, self._stream, self._subject = connection, stream, subject or stream
        self._first = 0
        self._tried_to: int | None = None
        """The end of the messages that were sent without all answers."""
        self._answering: Client | None = None

    def open(self, start: Start | None) -> tuple[Start, int]:
        state = self._connection.call(self._state, CALL_SECONDS)
        if start is None:
            if state.messages:
                raise self._failure(
                    f"the stream has {state.messages:,} messages that are not of this run; name an empty stream, or "
                    "put the checkpoint folder back"
                )
            start = state.last_seq
        self._first = int(start)
        if state.last_seq < self._first:
            raise lost_messages(self.name)
        return start, state.last_seq - self._first

    async def _state(self, _: Client, stream: JetStreamContext) -> api.StreamState:
        try:
            return (await stream.stream_info(self._stream)).state
        except NotFoundError:
            return (await stream.add_stream(name=self._stream, subjects=[self._subject])).state

    def count(self) -> int | None:
        """Messages in the stream; None if there is none."""

        async def ask(_: Client, stream: JetStreamContext) -> int | None:
            try:
                return (await stream.stream_info(self._stream)).state.messages
            except NotFoundError:
                return None

        return self._connection.call(ask, CALL_SECONDS)

    # ---- messages

    def write(self, number: int, values: Sequence[bytes], keys: Sequence[bytes | None] | None) -> None:
        end = number + len(values)
        was_tried, self._tried_to = self._tried_to == end, end
        done = self._appended(number, end) if was_tried else 0
        if done < len(values):
            rest = None if keys is None else keys[done:]
            work = partial(self._publish, number=number + done, values=values[done:], keys=rest)
            refusal = self._connection.call(work, CALL_SECONDS * 2)
            if refusal:
                self._report(orjson.loads(refusal)["error"], was_tried=was_tried)
        self._tried_to = None

    def _appended(self, number: int, end: int) -> int:
        """How many of these messages an earlier attempt appended, whose answers were lost."""
        held = self._connection.call(self._state, CALL_SECONDS).last_seq - self._first
        if held < number:
            raise lost_messages(self.name)
        if held > end:
            raise another_writer(self.name)
        return held - number

    async def _publish(
        self,
        client: Client,
        _: JetStreamContext,
        *,
        number: int,
        values: Sequence[bytes],
        keys: Sequence[bytes | None] | None,
    ) -> bytes:
        """Send messages and wait for the answers; returns the first one that is a refusal, if there is one."""
        await self._listen(client)
        self._left, self._refusal = len(values), b""
        self._done.clear()
        last = self._first + number
        for at, value in enumerate(values):
            headers = {_EXPECTED: str(last + at)}
            if keys is not None and (key := keys[at]) is not None:
                headers["key"] = key.decode(errors="replace")
            await client.publish(self._subject, value, reply=self._inbox, headers=headers)
        try:
            await asyncio.wait_for(self._done.wait(), CALL_SECONDS)
        except TimeoutError:
            raise Unreachable("the server does not acknowledge messages") from None
        return self._refusal

    async def _listen(self, client: Client) -> None:
        """Receive answers on an inbox of this connection."""
        if self._answering is not client:
            self._inbox, self._done = client.new_inbox(), asyncio.Event()
            await client.subscribe(self._inbox, cb=self._accept)
            self._answering = client

    async def _accept(self, answer: Msg) -> None:
        self._left -= 1
        if b'"error"' in answer.data or not answer.data:
            self._refusal = self._refusal or answer.data or b'{"error": {"description": "there is no such stream"}}'
            self._done.set()
        if self._left == 0:
            self._done.set()

    def _report(self, error: dict[str, object], *, was_tried: bool) -> None:
        self._answering = None  # other answers may be on their way
        is_misplaced = error.get("err_code") == _WRONG_SEQUENCE
        if is_misplaced and not was_tried:
            raise another_writer(self.name)
        code = error.get("code")
        if not is_misplaced and isinstance(code, int) and _WRONG_REQUEST <= code < _SERVER_TROUBLE:
            raise self._failure(f"the server refuses messages: {error.get('description')!r}")
        # Messages of an earlier attempt may just have been appended: the next one asks again.
        raise Unreachable(f"the server answers {error.get('description')!r}")

    def flush(self) -> None:
        """Nothing to wait for: every message was answered."""

    def close(self) -> None:
        self._connection.close()

    def _failure(self, why: str) -> OutputError:
        return OutputError(f"{self.name}: {why}")
