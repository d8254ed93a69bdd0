"""Redis: streams in, streams out, by ids that the sink gives itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from shoal.clients.redis import connect
from shoal.pipeline.live.common import check_reader, check_writers, live_source, message_sinks
from shoal.pipeline.live.parts import Finding, Output, SinkParts, Sinks, SourceParts
from shoal.policy.live.systems import RedisSink as SinkTable
from shoal.policy.live.systems import RedisSource as SourceTable
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
    return message_sinks(parts, _writer)


def _writer(parts: SinkParts, output: Output) -> RedisWriter:
    table = parts.section
    assert isinstance(table, SinkTable)
    name = f"Redis at {parts.address}, stream {output.name}"
    return RedisWriter(connect(parts.address, parts.settings), output.name, name=name, max_length=table.max_length)


def check_source(parts: SourceParts) -> Iterator[Finding]:
    """Whether the server answers."""
    return check_reader(_reader(parts))


def check_sinks(parts: SinkParts) -> Iterator[Finding]:
    """Whether the server answers, and the streams are empty."""
    return check_writers(parts, _writer)
