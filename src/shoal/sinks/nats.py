"""A stream of NATS JetStream as the log of a sink: the server checks the sequence that every message expects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import orjson
from nats.aio.client import Client
from nats.aio.subscription import Subscription
from nats.js import api
from nats.js.client import JetStreamContext
from nats.js.errors import NotFoundError

from shoal.clients.nats import CALL_SECONDS, NatsConnection
from shoal.clients.trouble import Unreachable
from shoal.errors import OutputError
from shoal.sinks.messages import Start, another_writer, lost_messages

_EXPECTED: Final = "Nats-Expected-Last-Sequence"
_WRONG_SEQUENCE: Final = 10071


class NatsWriter:
    """Appends to one stream, which is created if there is none.

    Message number n has the sequence s + 1 + n, where s is the last one before the run. The last message of a batch
    is answered: the server refuses every message behind one that is missing, so this answer stands for all.
    """

    def __init__(self, connection: NatsConnection, stream: str, *, name: str, subject: str | None = None) -> None:
        self.name = name
        self._connection, self._stream, self._subject = connection, stream, subject or stream
        self._first = 0
        self._answers: tuple[Client, str, Subscription] | None = None

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

    def write(self, number: int, values: Sequence[bytes], keys: Sequence[bytes | None] | None) -> None:
        answer = self._connection.call(lambda client, _: self._publish(client, number, values, keys), CALL_SECONDS * 2)
        error = answer.get("error")
        if error is None and answer.get("seq") == self._first + number + len(values):
            return
        if error is not None and error.get("err_code") != _WRONG_SEQUENCE:
            raise Unreachable(f"the server answers {error.get('description')!r}")
        held = self._connection.call(self._state, CALL_SECONDS).last_seq - self._first
        if held < number:
            raise lost_messages(self.name)
        if held > number + len(values):
            raise another_writer(self.name)
        # Some were appended before, without an answer that arrived.
        if held < number + len(values):
            done = held - number
            self.write(held, values[done:], None if keys is None else keys[done:])

    async def _publish(
        self, client: Client, number: int, values: Sequence[bytes], keys: Sequence[bytes | None] | None
    ) -> dict[str, Any]:
        inbox, answers = await self._inbox(client)
        last = self._first + number
        for at, value in enumerate(values):
            headers = {_EXPECTED: str(last + at)}
            if keys is not None and (key := keys[at]) is not None:
                headers["key"] = key.decode(errors="replace")
            await client.publish(self._subject, value, reply=inbox if at == len(values) - 1 else "", headers=headers)
        try:
            message = await answers.next_msg(CALL_SECONDS)
        except TimeoutError:
            raise Unreachable("the server does not acknowledge messages") from None
        answer: dict[str, Any] = orjson.loads(message.data or b'{"error": {"description": "no stream"}}')
        return answer

    async def _inbox(self, client: Client) -> tuple[str, Subscription]:
        if self._answers is None or self._answers[0] is not client:
            inbox = client.new_inbox()
            self._answers = client, inbox, await client.subscribe(inbox)
        return self._answers[1], self._answers[2]

    def flush(self) -> None:
        """Nothing to wait for: every batch was answered."""

    def close(self) -> None:
        self._connection.close()

    def _failure(self, why: str) -> OutputError:
        return OutputError(f"{self.name}: {why}")
