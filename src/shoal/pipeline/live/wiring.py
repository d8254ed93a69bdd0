"""From a checked policy to the sources and sinks of systems of messages."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, cast

import pyarrow as pa

from shoal.avro.registry import SchemaRegistry
from shoal.decode.json_records import Columns
from shoal.decode.messages import Envelope, MessageDecoder, RecordParser, avro_parser, json_parser
from shoal.encode.messages import AvroMessages, JsonMessages, MessageEncoder, TextMessages
from shoal.errors import RunError
from shoal.pipeline.live.parts import Output, SinkParts, Sinks, SourceParts, System
from shoal.policy import Policy
from shoal.policy.live.messages import MessageSink, MessageSource
from shoal.schema import ROWS
from shoal.sources.base import Source

WHOLE: Final = "shoal: message"
"""The column of whole messages, for what passes them on."""
TYPES: Final = {
    "int64": pa.int64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "timestamp": pa.timestamp("ns", tz="UTC"),
}


def make_live_source(policy: Policy) -> Source:
    """The source of messages that the policy names."""
    parts = source_parts(policy)
    return system(parts.table.kind).make_source(parts)


def make_live_sinks(policy: Policy) -> Sinks:
    """The sinks of messages that the policy names."""
    parts = sink_parts(policy)
    return system(parts.table.kind).make_sinks(parts)


def system(kind: str) -> System:
    """The module that connects a system."""
    name = f"shoal.pipeline.live.{kind}"
    if find_spec(name) is None:
        raise RunError(f'kind = "{kind}": this version cannot connect to it; update shoal')
    return cast(System, import_module(name))


def source_parts(policy: Policy) -> SourceParts:
    """What the source is made of."""
    section = policy.message_source
    parser = source_parser(section)

    def open_decoder(columns: tuple[str, ...], types: Mapping[str, str] | None) -> MessageDecoder:
        return _decoder(policy, parser, columns, types)

    folder = policy.checkpoint.path.path if policy.checkpoint is not None else None
    return SourceParts(section, section.settings("source"), open_decoder, folder, policy.worker)


def sink_parts(policy: Policy) -> SinkParts:
    """What the sinks are made of."""
    section = policy.message_sink
    source = policy.source if isinstance(policy.source, MessageSource) and policy.source.kind == section.kind else None
    address = section.address or (source.address if source is not None else "")
    letters = policy.dead_letters.name
    return SinkParts(
        section,
        address,
        section.settings("sink"),
        Output(section.name, _encoder(section)),
        Output(letters, TextMessages()) if letters is not None else None,
        source if source is not None and source.address == address else None,
    )


def message_decoder(policy: Policy, columns: tuple[str, ...], types: Mapping[str, str] | None) -> MessageDecoder:
    """The decoder of the policy's messages; of its secrets it reads only the login of a schema registry."""
    return _decoder(policy, source_parser(policy.message_source), columns, types)


def source_parser(section: MessageSource) -> RecordParser:
    """What parses the values of messages."""
    if section.format == "json":
        return json_parser(section.max_message_bytes)
    schema = section.schema_file.path if section.schema_file is not None else None
    return avro_parser(section.max_message_bytes, registry=make_registry(section, "source"), schema=schema)


def make_registry(section: MessageSource | MessageSink, name: str) -> SchemaRegistry | None:
    """The schema registry of a section, ``source`` or ``sink``, if it names one."""
    if section.registry is None:
        return None
    return SchemaRegistry(section.registry, credentials=section.registry_login(name))


def _decoder(
    policy: Policy, parser: RecordParser, columns: tuple[str, ...], types: Mapping[str, str] | None
) -> MessageDecoder:
    section, stream, method = policy.message_source, policy.stream, policy.anonymize
    row = ROWS if stream.person == ROWS and ROWS in columns else None
    unit = stream.time_unit
    assumed = {name: TYPES[kind] for name, kind in method.column_types().items() if unit is None or name != stream.time}
    needed = Columns(
        f"{section.kind} {', '.join(section.logs)}",
        columns,
        {name: TYPES[kind] for name, kind in section.types.items() if name in columns},
        {name: kind for name, kind in assumed.items() if name in columns},
        frozenset(method.list_columns()),
        frozenset(stream.carry),
        frozenset() if row is None else frozenset([row]),
    )
    raw = WHOLE if WHOLE in columns else None
    envelope = Envelope(section.key_column, section.timestamp_column, dict(section.headers), raw)
    options: dict[str, Any] = {"time": stream.time if stream.time in columns else None, "unit": unit}
    return MessageDecoder(parser, needed, envelope=envelope, row=row, types=types, **options)


def _encoder(section: MessageSink) -> MessageEncoder:
    if section.format == "json":
        return JsonMessages(key=section.key)
    schema = section.schema_file.path if section.schema_file is not None else None
    return AvroMessages(section.name, key=section.key, registry=make_registry(section, "sink"), schema=schema)
