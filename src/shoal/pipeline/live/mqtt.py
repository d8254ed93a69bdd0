"""MQTT: topics in by way of a log of our own, topics out at least once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from shoal.clients.addresses import addresses
from shoal.clients.mqtt import MqttConnection
from shoal.clients.trouble import Unreachable
from shoal.errors import PolicyError, RunError
from shoal.pipeline.live.common import both_sinks, input_failure, live_source, logged_messages, output_failure
from shoal.pipeline.live.parts import Finding, Output, SinkParts, Sinks, SourceParts
from shoal.policy.live.systems import MqttSink as SinkTable
from shoal.policy.live.systems import MqttSource as SourceTable
from shoal.sinks.mqtt import MqttSink
from shoal.sources.live import LiveSource
from shoal.sources.mqtt import MqttReader

PROMISE: Final = (
    "MQTT: no acknowledged message is lost, but a message may arrive twice (name an id in [source] to refuse repeats), "
    "and after a crash rows since the last checkpoint are published again, with the same numbers"
)
_PORT: Final = 1883
_TRIES: Final = 30


def make_source(parts: SourceParts) -> LiveSource:
    """The topics of the policy."""
    table, folder = parts.section, parts.folder
    assert isinstance(table, SourceTable)
    if folder is None:
        raise PolicyError(
            "[checkpoint]: is missing; messages of MQTT are kept next to the checkpoints; add the section"
        )
    name = f"MQTT at {table.broker}"
    connection = _connection(table.broker, table.client_id, parts, input_failure(name))
    logged = logged_messages(name, folder, table.id, table.id_window)
    return live_source(parts, MqttReader(connection, table.topics, logged, name=name))


def _connection(
    address: str, client_id: str, parts: SourceParts | SinkParts, failure: Callable[[str], RunError]
) -> MqttConnection:
    place = addresses(address, port=_PORT)[0]
    return MqttConnection(place, client_id, parts.settings, failure, is_modern=isinstance(parts, SinkParts))


def make_sinks(parts: SinkParts) -> Sinks:
    """The topic of rows and that of dead letters."""
    table = parts.section
    assert isinstance(table, SinkTable)

    def make(output: Output) -> MqttSink:
        name = f"MQTT at {parts.address}, topic {output.name}"
        client_id = table.client_id if output is parts.rows else f"{table.client_id}-dead-letters"
        connection = _connection(parts.address, client_id, parts, output_failure(name))
        return MqttSink(connection, output.name, output.encoder, name=name, give_up_seconds=table.give_up.ns / 1e9)

    return both_sinks(parts, make)


def check_source(parts: SourceParts) -> Iterator[Finding]:
    """Whether the broker answers."""
    table = parts.section
    yield _check(parts, table.broker, f"{table.client_id}-doctor", "source")


def check_sinks(parts: SinkParts) -> Iterator[Finding]:
    """Whether the broker answers."""
    yield _check(parts, parts.address, f"{parts.section.client_id}-doctor", "sink")


def _check(parts: SourceParts | SinkParts, address: str, client_id: str, section: str) -> Finding:
    name = f"MQTT at {address}"
    settings = {**parts.settings, "protocol": 4, "clean_session": True}  # leaves no session behind
    connection = MqttConnection(addresses(address, port=_PORT)[0], client_id, settings, input_failure(name))
    try:
        for _ in range(_TRIES):
            connection.step(0.1)
            if connection.is_connected:
                return Finding("good", f"{name} answers")
    except Unreachable as error:
        return Finding("wrong", f"[{section}] {name}: {error}")
    except RunError as error:
        return Finding("wrong", f"[{section}] {error}")
    finally:
        connection.close()
    return Finding("wrong", f"[{section}] {name}: the broker does not answer")
