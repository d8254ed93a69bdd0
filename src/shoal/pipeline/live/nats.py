"""NATS JetStream: a stream in, a stream out, by the sequences that every message expects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from shoal.clients.nats import NatsConnection
from shoal.pipeline.live.common import (
    check_reader,
    check_writers,
    input_failure,
    live_source,
    message_sinks,
    output_failure,
)
from shoal.pipeline.live.parts import Finding, Output, SinkParts, Sinks, SourceParts
from shoal.policy.live.systems import NatsSink as SinkTable
from shoal.policy.live.systems import NatsSource as SourceTable
from shoal.sinks.nats import NatsWriter
from shoal.sources.live import LiveSource
from shoal.sources.nats import NatsReader

PROMISE: Final = (
    "NATS JetStream: every record is published exactly once, as long as the server does not lose what it acknowledged; "
    "it needs storage = file, and sync_interval = always to survive a power cut on a single server"
)


def make_source(parts: SourceParts) -> LiveSource:
    """The stream of the policy."""
    return live_source(parts, _reader(parts))


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


def make_sinks(parts: SinkParts) -> Sinks:
    """The stream of rows and that of dead letters."""
    return message_sinks(parts, _writer)


def _writer(parts: SinkParts, output: Output) -> NatsWriter:
    table = parts.section
    assert isinstance(table, SinkTable)
    name = f"NATS at {parts.address}, stream {output.name}"
    connection = NatsConnection(parts.address, parts.settings, output_failure(name))
    subject = table.subject if output is parts.rows else None
    return NatsWriter(connection, output.name, name=name, subject=subject)


def check_source(parts: SourceParts) -> Iterator[Finding]:
    """Whether the server answers and has the stream."""
    return check_reader(_reader(parts))


def check_sinks(parts: SinkParts) -> Iterator[Finding]:
    """Whether the server answers, and the streams are empty."""
    return check_writers(parts, _writer)
