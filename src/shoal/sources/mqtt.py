"""Topics of an MQTT broker: at least once from the broker, exactly once from our own log on.

MQTT has no position to return to: a message that was acknowledged is gone. So every message is appended to a log next
to the checkpoints and synced before it is acknowledged, and the run reads the log. A message whose acknowledgement was
lost arrives again. Such a repeat can be told from a new message only by an id in its content.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

import numpy as np
import orjson
from paho.mqtt.subscribeoptions import SubscribeOptions

from shoal.clients.mqtt import MqttConnection
from shoal.clients.patience import Patience
from shoal.clients.trouble import Unreachable
from shoal.decode.messages import Messages
from shoal.errors import InputError, RunError
from shoal.sources.message_log import LoggedMessage, MessageLog
from shoal.sources.reader import Fetched, Id, Needs

_LOG: Final = "log"
_READ: Final = 10_000
_BATCH: Final = 1_000
_STEP_SECONDS: Final = 0.1
REPEATED: Final = "repeats a message that arrived before"


class MqttReader:
    """Receives messages in a thread of its own and reads them from the log. The place of a message is its number there.

    Parameters
    ----------
    open_log
        Makes the log; called when reading starts.
    repeats
        Recognizes messages that arrived before; None to accept every message.
    max_log_bytes
        Messages are not acknowledged while the log is longer, so the broker has to keep them.
    """

    def __init__(
        self,
        connection: MqttConnection,
        topics: Sequence[str],
        open_log: Callable[[], MessageLog],
        *,
        name: str,
        repeats: Repeats | None = None,
        max_log_bytes: int = 2**30,
    ) -> None:
        self._connection, self.name, self.topics = connection, name, tuple(topics)
        self._open_log, self._repeats, self._max_log_bytes = open_log, repeats, max_log_bytes
        self._log: MessageLog | None = None
        self._arrived: list[Any] = []
        self._news = threading.Condition()
        self._failure: Exception | None = None
        self._is_closing = threading.Event()
        self._receiver: threading.Thread | None = None
        self._kept = 0

    def connect(self) -> Sequence[str]:
        return (_LOG,)

    def open(self, after: Sequence[Id | None], needs: Needs) -> Sequence[Id]:
        log = self._log = self._open_log()
        self._after = log.first - 1 if after[0] is None else int(after[0])
        if not log.first <= self._after + 1 <= log.next:
            raise InputError(
                f"{self.name}: the message log next to the checkpoints has messages {log.first} to {log.next - 1}, and "
                f"{self._after + 1} is the next to be read; restore the folder, or start over with a new one"
            )
        self._kept = self._after + 1
        if self._repeats is not None:
            for _, message in log.read(max(log.first, log.next - self._repeats.window), log.next):
                self._repeats.is_repeat(message.value)
        self._connection.client.on_message = lambda client, data, message: self._arrived.append(message)
        self._connection.on_session = self._subscribe
        self._receiver = threading.Thread(target=self._receive, name="shoal MQTT", daemon=True)
        self._receiver.start()
        return [self._after]

    # ---- from the broker to the log, in the receiver's thread

    def _subscribe(self, goes_on: bool) -> None:  # noqa: FBT001 - the client calls it
        if self._connection.is_modern:
            options = SubscribeOptions(qos=1, retainHandling=SubscribeOptions.RETAIN_SEND_IF_NEW_SUB)
            self._connection.client.subscribe([(topic, options) for topic in self.topics])
        elif not goes_on:  # an older broker would send retained messages again
            self._connection.client.subscribe([(topic, 1) for topic in self.topics])

    def _receive(self) -> None:
        patience = Patience(float("inf"))  # `fetch` reports it, and the source decides when to give up
        while not self._is_closing.is_set():
            try:
                self._step()
            except Unreachable as trouble:
                self._arrived.clear()  # not acknowledged, so the broker sends them again
                self._note(trouble)
                patience.fail()
                patience.wait()
            except (OSError, RunError) as error:
                self._note(error)
                return
            else:
                patience.succeed()

    def _step(self) -> None:
        """Exchange packets while messages arrive; log them, then acknowledge them."""
        assert self._log is not None
        self._connection.step(_STEP_SECONDS)
        count = 0
        while count < len(self._arrived) < _BATCH:
            count = len(self._arrived)
            self._connection.read_more()
        if self._connection.is_connected:
            self._note(None)
        if not self._arrived or self._log.size >= self._max_log_bytes:
            return
        now, repeats = time.time_ns(), self._repeats
        logged = [
            LoggedMessage(one.topic, now, bytes(one.payload), repeats is not None and repeats.is_repeat(one.payload))
            for one in self._arrived
        ]
        with self._news:
            self._log.append(logged)
            self._news.notify_all()
        for one in self._arrived:
            self._connection.client.ack(one.mid, one.qos)
        self._arrived.clear()

    def _note(self, failure: Exception | None) -> None:
        with self._news:
            self._failure = failure
            self._news.notify_all()

    # ---- from the log to the run

    def fetch(self, logs: Collection[int], seconds: float) -> Iterable[Fetched]:
        assert self._log is not None
        if not logs:
            return []
        with self._news:
            if not self._news.wait_for(lambda: self._has_news, seconds) or not self._has_messages:
                self._report()
                return []
            found = list(self._log.read(self._after + 1, _READ))
        self._after = found[-1][0]
        messages = Messages(
            [one.value for _, one in found],
            [one.topic for _, one in found],
            [one.time for _, one in found],
        )
        refused = {row: REPEATED for row, (_, one) in enumerate(found) if one.is_repeat}
        ids = np.array([number for number, _ in found], dtype=np.int64)
        return [Fetched(0, messages, ids, refused)]

    @property
    def _has_messages(self) -> bool:
        return self._log is not None and self._after + 1 < self._log.next

    @property
    def _has_news(self) -> bool:
        return self._has_messages or self._failure is not None

    def _report(self) -> None:
        failure = self._failure
        if isinstance(failure, OSError):
            raise InputError(f"{self.name}: the message log cannot be written ({failure.strerror}); make room")
        if failure is not None:
            raise failure

    def is_read(self, log: int) -> bool:
        return not self._has_messages

    def has_ended(self, log: int) -> bool:
        return False

    def keep(self, after: Sequence[Id]) -> None:
        """Remove what neither this checkpoint nor the one before it needs, nor the recognition of repeats."""
        kept, self._kept = self._kept, int(after[0]) + 1
        if self._log is not None:
            window = self._repeats.window if self._repeats is not None else 0
            with self._news:
                self._log.drop(min(kept, self._log.next - window))

    def leave(self, after: Mapping[str, Id]) -> None:
        """Nothing to do: only Kafka has a place to note it."""

    def lag(self) -> int | None:
        """Messages in the log; what the broker still holds is unknown."""
        return None if self._log is None else self._log.next - 1 - self._after

    def place(self, log: int, at: Id) -> dict[str, Any]:
        return {"log": at}

    def close(self) -> None:
        self._is_closing.set()
        if self._receiver is not None:
            self._receiver.join(5)
        self._connection.close()
        if self._log is not None:
            self._log.close()


class Repeats:
    """Recognizes messages by an id in their content, among the last `window` of them.

    >>> repeats = Repeats("id", window=2)
    >>> [repeats.is_repeat(b'{"id": %d}' % number) for number in (1, 1, 2, 3, 1)]
    [False, True, False, False, False]

    A message without a usable id is never a repeat.
    """

    def __init__(self, column: str, *, window: int = 100_000) -> None:
        self._column, self.window = column, window
        self._recent: OrderedDict[bytes, None] = OrderedDict()

    def is_repeat(self, value: bytes) -> bool:
        """Whether the id of this message is known; from now on it is."""
        try:
            record = orjson.loads(value)
            found = record.get(self._column) if isinstance(record, dict) else None
        except ValueError:
            found = None
        if found is None:
            return False
        mark = blake2b(orjson.dumps(found), digest_size=16).digest()
        if mark in self._recent:
            return True
        self._recent[mark] = None
        if len(self._recent) > self.window:
            self._recent.popitem(last=False)
        return False
