"""Redis: streams in, streams out, by ids that the sink gives itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from shoal.clients.redis import connect, last_id, reporting
from shoal.pipeline.live.common import both_sinks, check_held, check_reader, live_source, output_failure
from shoal.pipeline.live.parts import Finding, Output, SinkParts, Sinks, SourceParts
from shoal.policy.live.systems import RedisSink as SinkTable
from shoal.policy.live.systems import RedisSource as SourceTable
from shoal.sinks.messages import MessageSink
from shoal.sinks.redis import RedisWriter
from shoal.sources.live import LiveSource
from shoal.sources.redis import RedisReader

PROMISE: Final = (
    "Redis: every record is published exactly once, as long as the server does not lose what it acknowledged; set "
    "appendonly yes and appendfsync always, so that it does not"
)


def make_source(parts: SourceParts) -> LiveSource:
    """The streams of the policy."""
    return live_source(parts, _reader(parts))


def _reader(parts: SourceParts) -> RedisReader:
    table = parts.section
    assert isinstance(table, SourceTable)
    return RedisReader(
        connect(table.url, parts.settings),
        table.streams,
        name=f"Redis at {table.url}",
        field=table.field,
        from_latest=table.start == "latest",
        until_end=table.until == "end",
    )


def make_sinks(parts: SinkParts) -> Sinks:
    """The stream of rows and that of dead letters."""
    table = parts.section
    assert isinstance(table, SinkTable)

    def make(output: Output) -> MessageSink:
        client = connect(parts.address, parts.settings)
        writer = RedisWriter(client, output.name, name=_name(parts, output), max_length=table.max_length)
        return MessageSink(writer, output.encoder, give_up_seconds=table.give_up.ns / 1e9)

    return both_sinks(parts, make)


def _name(parts: SinkParts, output: Output) -> str:
    return f"Redis at {parts.address}, stream {output.name}"


def check_source(parts: SourceParts) -> Iterator[Finding]:
    """Whether the server answers."""
    yield from check_reader(_reader(parts))


def check_sinks(parts: SinkParts) -> Iterator[Finding]:
    """Whether the server answers, and the streams are empty."""
    client = connect(parts.address, parts.settings)

    def entries(output: Output) -> int | None:
        with reporting(output_failure(_name(parts, output))):
            return last_id(client, output.name)[1] if client.exists(output.name) else None

    for output in filter(None, (parts.rows, parts.letters)):
        yield from check_held(_name(parts, output), partial(entries, output), client.close)
