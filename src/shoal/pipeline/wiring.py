"""From a checked policy to the objects that run it: source, method, sinks.

The class of the table ``[source]`` or ``[sink]`` selects the system. Systems of messages are connected in
:mod:`shoal.pipeline.live.wiring`; everything else in this file is about files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from shoal.crypto.keys import Secret
from shoal.decode import decoder_for
from shoal.decode.base import Decoder
from shoal.decode.prepared import PreparedDecoder
from shoal.encode import encoder_for
from shoal.encode.base import Encoder
from shoal.encode.sealed import SealedEncoder
from shoal.methods.base import StreamMethod
from shoal.methods.registry import METHODS
from shoal.pipeline.live.parts import Sinks
from shoal.pipeline.live.wiring import TYPES, make_live_sinks, make_live_source
from shoal.policy import Policy, tables
from shoal.policy.fields import Section
from shoal.policy.live.messages import MessageSink, MessageSource
from shoal.schema import ROWS
from shoal.sinks.atomic_file import AtomicFile
from shoal.sinks.base import Sink
from shoal.sinks.behind import WriteBehind
from shoal.sinks.files import FileSink, FolderSink, JoinedFileSink, StandardOutputSink
from shoal.sinks.part_files import PartFiles
from shoal.sources.ahead import ReadAhead
from shoal.sources.base import Source
from shoal.sources.files import FileSource, find_files
from shoal.sources.input_file import InputFile


def make_files(policy: Policy) -> list[InputFile]:
    """The input files in reading order."""
    places = [place.text if place.is_standard else str(place.path) for place in policy.file_source.path]
    return find_files(places, compression=policy.file_source.compression)


def make_source(policy: Policy) -> Source:
    """Where records come from."""
    if isinstance(policy.source, MessageSource):
        return make_live_source(policy)
    return SOURCES[type(policy.source)](policy)


def make_file_source(policy: Policy, files: list[InputFile] | None = None) -> FileSource:
    """The records of files; by default those that the policy names."""
    return FileSource(make_files(policy) if files is None else files, partial(make_decoder, policy))


def _files_source(policy: Policy) -> Source:
    source = make_file_source(policy)
    # A pipe hands over what it has, when it has it; there is nothing to read ahead.
    return ReadAhead(source) if all(file.path and file.path.is_file() for file in source.files) else source


def make_anonymizer(policy: Policy, secret: Secret) -> StreamMethod:
    """The anonymizer with the policy's parameters."""
    made: StreamMethod = METHODS[policy.anonymize.METHOD].load()(**policy.parameters(), key=secret)
    return made


def make_decoder(
    policy: Policy,
    file: InputFile,
    columns: tuple[str, ...],
    types: dict[str, pa.DataType] | None = None,
    *,
    first_row: int = 0,
) -> Decoder:
    """The decoder of one file; `types` are those of the first file, `first_row` is where it begins in the stream."""
    stream = policy.stream
    # The sanitization process knows people for longer than one stream has rows.
    row = ROWS if stream.person == ROWS and ROWS in columns and policy.sanitize is None else None
    time = stream.time if stream.time_unit is not None and stream.time in columns else None
    inner = _file_decoder(policy, file, columns, types, optional=() if row is None else (row,))
    if row is None and time is None:
        return inner
    known = None if types is None else frozenset(types)
    unit = stream.time_unit or "s"
    return PreparedDecoder(
        inner, name=file.name, columns=columns, row=row, first=first_row, time=time, unit=unit, known=known
    )


def raw_decoder(policy: Policy, file: InputFile, column: str) -> Decoder:
    """A decoder of one column, without any conversion."""
    options = {"time": column, "time_unit": "s"}  # so that no other type is assumed for it
    plain = replace(policy, stream=policy.stream.model_copy(update=options))
    return _file_decoder(plain, file, (column,), None, optional=())


def _file_decoder(
    policy: Policy,
    file: InputFile,
    columns: tuple[str, ...],
    types: dict[str, pa.DataType] | None,
    *,
    optional: tuple[str, ...],
) -> Decoder:
    source = policy.file_source
    options: dict[str, Any] = {}
    declared = {name: TYPES[kind] for name, kind in source.types.items() if name in columns}
    counted = policy.stream.time if policy.stream.time_unit is not None else None
    assumed = {
        name: TYPES[kind]
        for name, kind in policy.anonymize.column_types().items()
        if name in columns and name != counted
    }
    if source.kind == "csv":
        options = {
            "delimiter": source.delimiter, "header": source.header, "nulls": source.nulls, "trim": source.trims,
            "encoding": source.encoding, "decimal": source.decimal, "dates": source.dates,
        }  # fmt: skip
        declared = {**assumed, **declared}
    if source.kind in ("jsonl", "zeek"):
        options = {"assumed": assumed, "lists": policy.anonymize.list_columns(), "carried": policy.stream.carry}
    if source.max_record_bytes is not None:
        options["max_record_bytes"] = source.max_record_bytes
    return decoder_for(source.kind)(file, columns=columns, types=types or declared, optional=optional, **options)


def make_sinks(policy: Policy, *, resumable: bool) -> Sinks:
    """Where published rows go, and dead letters if they go to the same system."""
    if isinstance(policy.sink, MessageSink):
        return make_live_sinks(policy)
    return Sinks(SINKS[type(policy.sink)](policy, resumable=resumable), None)


def _files_sink(policy: Policy, *, resumable: bool) -> Sink:
    place, encoder = policy.file_sink.path, make_encoder(policy)
    if place.is_standard:
        return StandardOutputSink(encoder)
    if place.is_folder:
        return WriteBehind(FolderSink(encoder, make_parts(policy, checked=resumable)))
    if resumable and not encoder.appendable:
        return WriteBehind(JoinedFileSink(encoder, place.path))
    return WriteBehind(make_file_sink(policy, resumable=resumable))


def make_file_sink(policy: Policy, *, resumable: bool = False) -> FileSink:
    """One file for published rows, written at once or in a format that can be appended to."""
    return FileSink(make_encoder(policy), AtomicFile(policy.file_sink.path.path, checked=resumable))


def make_parts(policy: Policy, *, checked: bool = False) -> PartFiles:
    """The folder of part files for published rows."""
    return PartFiles(policy.file_sink.path.path, make_encoder(policy).suffix, checked=checked)


def make_trace_sink(path: Path, *, resumable: bool, secret: Secret | None) -> Sink:
    """Where the private trace goes: readable only by its owner, sealed if there is a key."""
    if resumable and secret is None:
        return WriteBehind(JoinedFileSink(encoder_for("parquet")(), path, private=True))
    return WriteBehind(make_trace_file(path, secret, resumable=resumable))


def make_trace_file(path: Path, secret: Secret | None, *, resumable: bool = False) -> FileSink:
    """One file for a trace, written at once or in sealed pieces."""
    parquet = encoder_for("parquet")()
    file = AtomicFile(path, private=True, checked=resumable)
    return FileSink(SealedEncoder(parquet, secret) if secret else parquet, file)


def make_encoder(policy: Policy) -> Encoder:
    """The format of published rows in files."""
    sink = policy.file_sink
    options: dict[str, Any] = {}
    if "compression" in sink.model_fields_set or sink.compression != "none":
        options["compression"] = sink.compression
    if sink.kind == "csv":
        options["delimiter"] = sink.delimiter
    if sink.kind == "parquet":
        # Pseudonyms and the times of events hardly repeat.
        options["varied"] = (policy.stream.person, policy.stream.time) if policy.anonymize.PUBLISHES_PSEUDONYMS else ()
    if sink.kind == "arrow":
        is_stream = sink.path.is_standard or sink.path.path.suffix == ".arrows"
        return encoder_for("arrow-stream" if is_stream else "arrow")()
    return encoder_for(sink.kind)(**options)


SOURCES: Final[dict[type[Section], Callable[[Policy], Source]]] = {tables.FileSource: _files_source}
SINKS: Final[dict[type[Section], Callable[..., Sink]]] = {tables.FileSink: _files_sink}
