"""A topic of an MQTT broker: every row at least once.

The protocol has no way to ask what a broker has received. After a crash, rows since the last checkpoint are published
again, with the same numbers in the user property ``number`` (MQTT 5), by which a reader can leave out repeats.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
from paho.mqtt import client as mqtt

from shoal.clients.mqtt import MqttConnection
from shoal.clients.patience import Patience
from shoal.clients.trouble import Unreachable, persist
from shoal.encode.messages import MessageEncoder
from shoal.errors import OutputError
from shoal.sinks.base import PlainSink, Receipt
from shoal.sinks.messages import open_encoder

_SENT_OR_WAITING: Final = (mqtt.MQTT_ERR_SUCCESS, mqtt.MQTT_ERR_NO_CONN, mqtt.MQTT_ERR_CONN_LOST)
"""Without a connection the client keeps a message and sends it when there is one."""
_UNANSWERED: Final = 1_000
"""Messages on their way at once, unless the broker accepts fewer."""
_NUMBER: Final = b"\x26\x00\x06number"
"""How a user property of that name begins in a packet."""
_SILENT_SECONDS: Final = 10.0
_STEP_SECONDS: Final = 0.1


class MqttSink(PlainSink):
    """Publishes rows with quality of service 1."""

    def __init__(
        self,
        connection: MqttConnection,
        topic: str,
        encoder: MessageEncoder,
        *,
        name: str,
        give_up_seconds: float,
    ) -> None:
        self._connection, self._topic, self._encoder, self._name = connection, topic, encoder, name
        self._patience = Patience(give_up_seconds)
        self._written = 0
        self._unanswered: set[int] = set()
        self._refusal: str | None = None
        connection.client.max_inflight_messages_set(0)  # counted here: the client would look at all for every answer
        connection.client.max_queued_messages_set(0)
        connection.client.on_publish = self._note_answer

    def _note_answer(self, client: Any, data: Any, mid: int, code: Any, properties: Any) -> None:
        self._unanswered.discard(mid)
        if code.is_failure:
            self._refusal = str(code)

    def open(self, schema: pa.Schema) -> None:
        open_encoder(self._encoder, schema, self._patience, self._failure)
        persist(self._wait_for_connection, self._patience, self._failure)

    def recover(self, schema: pa.Schema, receipt: Receipt) -> None:
        self.open(schema)
        self._written = receipt["messages"]

    def _wait_for_connection(self) -> None:
        for _ in range(int(_SILENT_SECONDS / _STEP_SECONDS)):
            self._connection.step(_STEP_SECONDS)
            if self._connection.is_connected:
                return
        raise Unreachable("the broker does not answer")

    def write(self, rows: pa.RecordBatch) -> None:
        if not rows.num_rows:
            return
        for value in self._encoder.values(rows):
            while len(self._unanswered) >= min(_UNANSWERED, self._connection.at_once):
                self._exchange()
            info = self._connection.client.publish(self._topic, value, qos=1, properties=self._properties())
            if info.rc not in _SENT_OR_WAITING:
                raise self._failure(f"a message cannot be sent ({mqtt.error_string(info.rc)})")
            self._unanswered.add(info.mid)
            self._written += 1
        self._exchange(0.0)

    def _properties(self) -> Any:
        return _Number(self._written) if self._connection.is_modern else None

    def _exchange(self, seconds: float = _STEP_SECONDS) -> None:
        """Exchange packets; after a loss of connection the client sends again what was not answered."""
        persist(lambda: self._connection.step(seconds), self._patience, self._failure)
        if self._refusal is not None:
            raise self._failure(f"the broker refuses messages: {self._refusal}")

    def commit(self, epoch: int) -> Receipt:
        while self._unanswered:
            self._exchange()
        return {"messages": self._written}

    def finish(self) -> Receipt:
        return {"messages": self._written}

    def verify(self, receipt: Receipt) -> None:
        """Nothing can be checked: a broker does not keep messages."""

    def clean(self) -> None:
        """Nothing to remove."""

    def close(self) -> None:
        self._connection.close()

    def _failure(self, why: str) -> OutputError:
        return OutputError(f"{self._name}: {why}; the next run continues where this one ended")


class _Number:
    """The properties of a message: its number. The client's own class for any properties takes ten times as long.

    >>> _Number(7).pack().hex(" ")
    '0c 26 00 06 6e 75 6d 62 65 72 00 01 37'
    """

    __slots__ = ("_number",)

    def __init__(self, number: int) -> None:
        self._number = number

    def pack(self) -> bytes:
        """The bytes in a packet, with their length."""
        digits = b"%d" % self._number
        property_ = _NUMBER + len(digits).to_bytes(2) + digits
        return bytes((len(property_),)) + property_
