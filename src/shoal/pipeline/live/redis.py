"""Redis: streams in, streams out, by ids that the sink gives itself."""

from __future__ import annotations

from typing import Final

from shoal.clients.redis import connect
from shoal.pipeline.live.common import NumberedSystem
from shoal.pipeline.live.parts import Output, SinkParts, SourceParts
from shoal.policy.live.systems import RedisSink as SinkTable
from shoal.policy.live.systems import RedisSource as SourceTable
from shoal.sinks.redis import RedisWriter
from shoal.sources.redis import RedisReader

PROMISE: Final = (
    "Redis: every record is published exactly once, as long as the server does not lose what it acknowledged; set "
    "appendonly yes and appendfsync always, so that it does not"
)


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


def _writer(parts: SinkParts, output: Output) -> RedisWriter:
    table = parts.section
    assert isinstance(table, SinkTable)
    name = f"Redis at {parts.address}, stream {output.name}"
    return RedisWriter(connect(parts.address, parts.settings), output.name, name=name, max_length=table.max_length)


_SYSTEM: Final = NumberedSystem(_reader, _writer)
make_source, make_sinks = _SYSTEM.make_source, _SYSTEM.make_sinks
check_source, check_sinks = _SYSTEM.check_source, _SYSTEM.check_sinks
