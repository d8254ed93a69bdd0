"""Topics of an MQTT broker: at least once from the broker, exactly once from our own log on.

MQTT has no position to return to: a message that was acknowledged is gone. So every message is appended to a log next
to the checkpoints and synced before it is acknowledged, and the run reads the log. A message whose acknowledgement was
lost arrives again. Such a repeat can be told from a new message only by an id in its content.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final

from paho.mqtt.subscribeoptions import SubscribeOptions

from shoal.clients.mqtt import MqttConnection
from shoal.clients.patience import Patience
from shoal.clients.trouble import Unreachable
from shoal.errors import RunError
from shoal.sources.logged.logged import LoggedMessages
from shoal.sources.logged.reader import LoggedReader
from shoal.sources.reader import Id, Needs

_BATCH: Final = 1_000
_STEP_SECONDS: Final = 0.1


class MqttReader(LoggedReader):
    """Receives messages in a thread of its own and reads them from the log.

    Parameters
    ----------
    logged
        The log that messages are appended to.
    max_log_bytes
        Messages are not acknowledged while the log is longer, so the broker has to keep them.
    """

    def __init__(
        self,
        connection: MqttConnection,
        topics: Sequence[str],
        logged: LoggedMessages,
        *,
        name: str,
        max_log_bytes: int = 2**30,
    ) -> None:
        self._connection, self.name, self.topics = connection, name, tuple(topics)
        super().__init__(logged)
        self._max_log_bytes = max_log_bytes
        self._arrived: list[Any] = []
        self._is_closing = threading.Event()
        self._receiver: threading.Thread | None = None

    def open(self, after: Sequence[Id | None], needs: Needs) -> Sequence[Id]:
        start = self._logged.open(after[0])
        self._connection.client.on_message = lambda client, data, message: self._arrived.append(message)
        self._connection.on_session = self._subscribe
        self._receiver = threading.Thread(target=self._receive, name="shoal MQTT", daemon=True)
        self._receiver.start()
        return [start]

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
                self._logged.note(trouble)
                patience.fail()
                patience.wait()
            except (OSError, RunError) as error:
                self._logged.note(error)
                return
            else:
                patience.succeed()

    def _step(self) -> None:
        """Exchange packets while messages arrive; log them, then acknowledge them."""
        self._connection.step(_STEP_SECONDS)
        count = 0
        while count < len(self._arrived) < _BATCH:
            count = len(self._arrived)
            self._connection.read_more()
        if self._connection.is_connected:
            self._logged.note(None)
        if not self._arrived or self._logged.size >= self._max_log_bytes:
            return
        self._logged.append([(one.topic, bytes(one.payload)) for one in self._arrived])
        for one in self._arrived:
            self._connection.client.ack(one.mid, one.qos)
        self._arrived.clear()

    def close(self) -> None:
        self._is_closing.set()
        if self._receiver is not None:
            self._receiver.join(5)
        self._connection.close()
        super().close()
