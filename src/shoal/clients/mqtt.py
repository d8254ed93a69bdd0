"""Connections to MQTT brokers, driven by the thread that uses them, and their errors in sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from shoal.clients.addresses import Address
from shoal.clients.tls import distrust, tls_context, without_tls
from shoal.clients.trouble import Unreachable
from shoal.errors import RunError, missing_extra

try:
    from paho.mqtt import client as mqtt
    from paho.mqtt.enums import CallbackAPIVersion
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties
except ImportError:
    raise missing_extra("MQTT", package="paho-mqtt", extra="mqtt") from None

_KEEPALIVE_SECONDS: Final = 30
_CONNECT_SECONDS: Final = 5.0
_FOREVER: Final = 0xFFFFFFFF
_OPTIONS: Final = frozenset({"transport", "clean_session"})
_TRANSPORTS: Final = ("tcp", "websockets", "unix")
_MOST_AT_ONCE: Final = 65_535
_AT_ONCE: Final = 1_000
"""Messages that a broker sends before one of them is acknowledged; the broker may have a lower limit."""


class MqttConnection:
    """One session with a broker, which keeps messages for it while there is no connection.

    Everything happens in `step`, in the thread that calls it, so a message is never acknowledged on another connection
    than the one it came from: its number may mean another message there.

    Parameters
    ----------
    is_modern
        Speak MQTT 5 unless the settings say otherwise; else MQTT 3.1.1, which costs the client half as much.
    settings
        ``username``, ``password``, ``protocol`` (4 or 5), ``transport``, ``keepalive`` and those of
        :mod:`shoal.clients.tls`.
    """

    def __init__(
        self,
        address: Address,
        client_id: str,
        settings: Mapping[str, Any],
        failure: Callable[[str], RunError],
        *,
        is_modern: bool = False,
    ) -> None:
        self._address, self._failure = address, failure
        given = without_tls(settings)
        default = mqtt.MQTTv5 if is_modern else mqtt.MQTTv311
        self.is_modern = given.pop("protocol", default) == mqtt.MQTTv5
        login = given.pop("username", None), given.pop("password", None)
        keepalive = given.pop("keepalive", _KEEPALIVE_SECONDS)
        for name in set(given) - _OPTIONS:
            raise failure(f"the client has no setting {name!r}; correct it in client or secrets")
        options = {"clean_session": None if self.is_modern else False, "manual_ack": True, **given}
        protocol = mqtt.MQTTv5 if self.is_modern else mqtt.MQTTv311
        # The client checks its arguments too, but prints a stack trace when it is then deleted.
        if not isinstance(keepalive, int) or options.get("transport", "tcp") not in _TRANSPORTS:
            raise failure("keepalive must be whole seconds and transport tcp, websockets or unix; correct client")
        self._keepalive = keepalive
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id, protocol=protocol, **options)
        self.client.connect_timeout = _CONNECT_SECONDS
        if login[0] is not None:
            self.client.username_pw_set(*login)
        context = tls_context(settings, failure)
        if context is not None:
            self.client.tls_set_context(context)
        self.client.on_connect = self._note_answer
        self.client.on_disconnect = self._note_end
        self.on_session: Callable[[bool], None] = lambda _: None
        """Called when a session starts (False) or goes on (True)."""
        self.is_connected = False
        self.at_once = _MOST_AT_ONCE
        """Messages that the broker accepts before it has answered one of them."""
        self._refusal: str | None = None
        self._has_tried = False

    def _note_answer(self, client: Any, data: Any, flags: Any, code: Any, properties: Any) -> None:
        if code.is_failure:
            self._refusal = str(code)
            return
        self.is_connected = True
        self.at_once = getattr(properties, "ReceiveMaximum", _MOST_AT_ONCE)
        self.on_session(flags.session_present)

    def _note_end(self, client: Any, data: Any, flags: Any, code: Any, properties: Any) -> None:
        self.is_connected = False

    def step(self, seconds: float) -> None:
        """Exchange packets, waiting this long at most for the first one; connects if necessary.

        Unreachable: the connection was lost, call it again.
        """
        if self.client.socket() is None:
            self._connect()
        code = self.client.loop(seconds)
        if self._refusal is not None:
            refusal, self._refusal = self._refusal, None
            if "uthorized" in refusal or "user name" in refusal.lower():
                raise self._failure("the broker refuses the user or the password; check client and secrets")
            raise Unreachable(f"the broker refuses the connection: {refusal}")
        if code != mqtt.MQTT_ERR_SUCCESS:
            self.is_connected = False
            raise Unreachable(mqtt.error_string(code))

    def read_more(self) -> None:
        """Read a packet if one is there already, without the cost of waiting; errors are those of the next `step`."""
        self.client.loop_read()

    def _connect(self) -> None:
        self.is_connected = False
        try:
            if self._has_tried:
                self.client.reconnect()
                return
            options: dict[str, Any] = {}
            if self.is_modern:
                properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
                properties.SessionExpiryInterval, properties.ReceiveMaximum = _FOREVER, _AT_ONCE
                options = {"clean_start": False, "properties": properties}
            self._has_tried = True
            self.client.connect(self._address.host, self._address.port, self._keepalive, **options)
        except (OSError, ValueError) as error:
            if distrusted := distrust(error):
                raise self._failure(distrusted) from None
            raise Unreachable(str(error) or type(error).__name__) from None

    def close(self) -> None:
        """Disconnect; the session stays."""
        if self.client.socket() is not None:
            self.client.disconnect()
        self.is_connected = False
