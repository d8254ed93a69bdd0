"""The client of a schema registry: fetched once, retried, clear about what is wrong, silent about secrets."""

from __future__ import annotations

import socketserver
import threading
from typing import Any

import pytest

from shoal.avro.registry import RegistryRefused, RegistryUnreachable, SchemaRegistry
from shoal.avro.types import UnusableSchema
from tests.avro.registry_server import serving

SCHEMA = {"type": "record", "name": "visit", "fields": [{"name": "user", "type": "string"}]}


def client(url: str, **options: Any) -> tuple[SchemaRegistry, list[float]]:
    waits: list[float] = []
    return SchemaRegistry(url, wait=waits.append, **options), waits


def test_a_schema_is_fetched_once() -> None:
    with serving() as server:
        number = server.add(SCHEMA)
        registry, _ = client(server.url + "/")
        assert [registry.schema(number) for _ in range(3)] == [SCHEMA] * 3
        assert server.requests == [f"GET /schemas/ids/{number}"]


def test_an_unknown_number_and_another_format_have_no_schema() -> None:
    with serving() as server:
        number = server.add(SCHEMA, schemaType="PROTOBUF")
        registry, _ = client(server.url)
        assert registry.schema(77) is None
        assert registry.schema(number) is None


def test_a_schema_is_registered_under_a_subject() -> None:
    with serving() as server:
        registry, _ = client(server.url)
        number = registry.register("a/b-value", SCHEMA)
        assert registry.schema(number) == SCHEMA
        assert registry.register("a/b-value", SCHEMA) == number
        assert server.requests[0] == "POST /subjects/a%2Fb-value/versions"


def test_failures_are_retried_with_growing_waits() -> None:
    with serving() as server:
        number = server.add(SCHEMA)
        server.failures = 2
        registry, waits = client(server.url)
        assert registry.schema(number) == SCHEMA
        assert len(waits) == 2
        assert waits[1] > waits[0] > 0


def test_a_registry_that_stays_away_may_be_asked_again() -> None:
    with serving() as server:
        number = server.add(SCHEMA)
        server.failures = 3
        registry, _ = client(server.url)
        with pytest.raises(RegistryUnreachable, match=r"does not answer \(HTTP 503\)"):
            registry.schema(number)
        assert registry.schema(number) == SCHEMA


def test_nobody_listens() -> None:
    with serving() as server:
        url = server.url
    registry, waits = client(url)
    with pytest.raises(RegistryUnreachable, match="Connection refused"):
        registry.schema(1)
    assert len(waits) == 2


def test_credentials_are_sent_and_never_shown() -> None:
    with serving() as server:
        number = server.add(SCHEMA)
        server.credentials = "ann:hunter2"
        assert client(server.url, credentials="ann:hunter2")[0].schema(number) == SCHEMA
        wrong, waits = client(server.url, credentials="ann:wrong-word")
        with pytest.raises(RegistryRefused, match="asks for credentials") as caught:
            wrong.schema(number)
        assert "wrong-word" not in str(caught.value) + repr(wrong)
        assert waits == []  # to repeat it would not help


@pytest.mark.parametrize("url", ["localhost:8081", "ftp://host", "file:///etc/passwd"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(RegistryRefused, match="http://"):
        SchemaRegistry(url)


def test_schemas_that_refer_to_others_are_refused() -> None:
    with serving() as server:
        number = server.add(SCHEMA, references=[{"name": "other"}])
        with pytest.raises(UnusableSchema, match="refers to other schemas"):
            client(server.url)[0].schema(number)


class _NotHttp(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self.wfile.write(b"SSH-2.0-server\r\n")


def test_a_server_that_does_not_speak_http_is_unreachable() -> None:
    with socketserver.TCPServer(("127.0.0.1", 0), _NotHttp) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        registry, waits = client(f"http://127.0.0.1:{server.server_address[1]}")
        with pytest.raises(RegistryUnreachable, match=r"does not answer \(BadStatusLine\); check the URL"):
            registry.check()
        server.shutdown()
    assert len(waits) == 2
