"""RabbitMQ: streams in, streams out, by the ids of a named publisher."""

from __future__ import annotations

from typing import Final

from shoal.clients.addresses import addresses
from shoal.clients.rabbitmq import RabbitConnection
from shoal.pipeline.live.common import NumberedSystem, input_failure, output_failure
from shoal.pipeline.live.parts import Output, SinkParts, SourceParts
from shoal.policy.live.systems import RabbitSink as SinkTable
from shoal.policy.live.systems import RabbitSource as SourceTable
from shoal.sinks.rabbitmq import RabbitWriter
from shoal.sources.rabbitmq import RabbitReader

PROMISE: Final = (
    "RabbitMQ: every record is published exactly once, as long as the server does not lose what it confirmed; a stream "
    "with several replicas keeps what a single machine may lose in a power cut"
)
_PORT: Final = 5552


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


def _writer(parts: SinkParts, output: Output) -> RabbitWriter:
    table = parts.section
    assert isinstance(table, SinkTable)
    name = f"RabbitMQ at {parts.address}, stream {output.name}"
    connection = RabbitConnection(addresses(parts.address, port=_PORT), parts.settings, output_failure(name))
    return RabbitWriter(connection, output.name, name=name, publisher=table.publisher)


_SYSTEM: Final = NumberedSystem(_reader, _writer)
make_source, make_sinks = _SYSTEM.make_source, _SYSTEM.make_sinks
check_source, check_sinks = _SYSTEM.check_source, _SYSTEM.check_sinks
