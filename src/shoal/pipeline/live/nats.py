"""NATS JetStream: a stream in, a stream out, by the sequences that every message expects."""

from __future__ import annotations

from typing import Final

from shoal.clients.nats import NatsConnection
from shoal.pipeline.live.common import NumberedSystem, input_failure, output_failure
from shoal.pipeline.live.parts import Output, SinkParts, SourceParts
from shoal.policy.live.systems import NatsSink as SinkTable
from shoal.policy.live.systems import NatsSource as SourceTable
from shoal.sinks.nats import NatsWriter
from shoal.sources.nats import NatsReader

PROMISE: Final = (
    "NATS JetStream: every record is published exactly once, as long as the server does not lose what it acknowledged; "
    "it needs storage = file, and sync_interval = always to survive a power cut on a single server"
)


def _reader(parts: SourceParts) -> NatsReader:
    table = parts.section
    assert isinstance(table, SourceTable)
    name = f"NATS at {table.url}"
    return NatsReader(
        NatsConnection(table.url, parts.settings, input_failure(name)),
        table.stream,
        name=name,
        subject=table.subject,
        from_latest=table.start == "latest",
        until_end=table.until == "end",
    )


def _writer(parts: SinkParts, output: Output) -> NatsWriter:
    table = parts.section
    assert isinstance(table, SinkTable)
    name = f"NATS at {parts.address}, stream {output.name}"
    connection = NatsConnection(parts.address, parts.settings, output_failure(name))
    subject = table.subject if output is parts.rows else None
    return NatsWriter(connection, output.name, name=name, subject=subject)


_SYSTEM: Final = NumberedSystem(_reader, _writer)
make_source, make_sinks = _SYSTEM.make_source, _SYSTEM.make_sinks
check_source, check_sinks = _SYSTEM.check_source, _SYSTEM.check_sinks
