"""RabbitMQ: streams in, streams out, by the ids of a named publisher."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from shoal.clients.addresses import addresses
from shoal.clients.rabbitmq import RabbitConnection
from shoal.pipeline.live.common import (
    check_reader,
    check_writers,
    input_failure,
    live_source,
    message_sinks,
    output_failure,
)
from shoal.pipeline.live.parts import Finding, Output, SinkParts, Sinks, SourceParts
from shoal.policy.live.systems import RabbitSink as SinkTable
from shoal.policy.live.systems import RabbitSource as SourceTable
from shoal.sinks.rabbitmq import RabbitWriter
from shoal.sources.live import LiveSource
from shoal.sources.rabbitmq import RabbitReader

PROMISE: Final = (
    "RabbitMQ: every record is published exactly once, as long as the server does not lose what it confirmed; a stream "
    "with several replicas keeps what a single machine may lose in a power cut"
)
_PORT: Final = 5552


def make_source(parts: SourceParts) -> LiveSource:
    """The streams of the policy."""
    return live_source(parts, _reader(parts))


def _reader(parts: SourceParts) -> RabbitReader:
    table = parts.section
    assert isinstance(table, SourceTable)
    name = f"RabbitMQ at {table.brokers}"
    return RabbitReader(
        RabbitConnection(addresses(table.brokers, port=_PORT), parts.settings, input_failure(name)),
        table.streams,
        name=name,
        from_latest=table.start == "latest",
        until_end=table.until == "end",
    )


def make_sinks(parts: SinkParts) -> Sinks:
    """The stream of rows and that of dead letters."""
    return message_sinks(parts, _writer)


def _writer(parts: SinkParts, output: Output) -> RabbitWriter:
    table = parts.section
    assert isinstance(table, SinkTable)
    name = f"RabbitMQ at {parts.address}, stream {output.name}"
    connection = RabbitConnection(addresses(parts.address, port=_PORT), parts.settings, output_failure(name))
    return RabbitWriter(connection, output.name, name=name, publisher=table.publisher)


def check_source(parts: SourceParts) -> Iterator[Finding]:
    """Whether the server answers and has the streams."""
    return check_reader(_reader(parts))


def check_sinks(parts: SinkParts) -> Iterator[Finding]:
    """Whether the server answers, and nothing was published under the name of the publisher."""
    return check_writers(parts, _writer)
