"""Settings that a client library does not accept: one sentence, without the value."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import Consumer

from shoal.clients.addresses import Address
from shoal.clients.kafka import make_client
from shoal.clients.mqtt import MqttConnection
from shoal.clients.nats import NatsConnection
from shoal.clients.redis import connect, reporting
from shoal.errors import InputError, PolicyError

NOWHERE = Address("127.0.0.1", 1)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("security.protocol", 'Invalid value for configuration property "security.protocol"'),
        ("colour", 'No such configuration property: "colour"'),
        ("socket.timeout.ms", 'Invalid value for configuration property "socket.timeout.ms"'),
    ],
)
def test_kafka(name: str, sentence: str) -> None:
    with pytest.raises(InputError, match=f"^the client refuses its settings .*{sentence}") as raised:
        make_client(Consumer, {"group.id": "shoal", name: "hunter2"}, InputError)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("settings", [{"keepalive": "hunter2"}, {"transport": "hunter2"}])
def test_mqtt(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"^keepalive must be whole seconds and transport tcp, websockets or unix"):
        MqttConnection(NOWHERE, "shoal", settings, InputError)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"colour": "hunter2"}, "the client has no setting 'colour'; correct it in client or secrets"),
        ({"nkeys_seed": "missing-file"}, "need the package nkeys|a file that client names cannot be read"),
    ],
)
def test_nats(settings: dict[str, Any], sentence: str) -> None:
    async def nothing(*_: object) -> None:
        return None

    with (
        closing(NatsConnection(f"nats://{NOWHERE}", settings, InputError)) as connection,
        pytest.raises(InputError, match=sentence) as raised,
    ):
        connection.call(nothing, 5.0)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("url", ["localhost:6379", "redis://localhost:port"])
def test_redis(url: str) -> None:
    with pytest.raises(PolicyError, match="is not an address of Redis; write it like redis://localhost:6379/0"):
        connect(url, {})


def test_redis_repeats_no_argument_of_a_command(refusing_server: str) -> None:
    client = connect(refusing_server, {"client_name": None})
    sentence = "the server answers \"unknown command 'EXISTS'\"; check it"
    with pytest.raises(InputError, match=sentence) as raised, reporting(InputError):
        client.exists("hunter2")
    assert "hunter2" not in str(raised.value)


@pytest.fixture
def refusing_server() -> Iterator[str]:
    """A server that knows no command, and repeats the arguments as Redis does."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while line := self.rfile.readline():
                words = [self._word() for _ in range(int(line[1:]))]
                refusal = b"-ERR unknown command 'EXISTS', with args beginning with: '%s'" % words[1]
                self.wfile.write((refusal if words[0] == b"EXISTS" else b"+OK") + b"\r\n")

        def _word(self) -> bytes:
            return self.rfile.read(int(self.rfile.readline()[1:]) + 2)[:-2]

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"redis://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
