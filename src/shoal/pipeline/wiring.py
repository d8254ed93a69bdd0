"""From a checked policy to the objects of the rooms."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from shoal.crypto.keys import Secret
from shoal.decode import decoder_for
from shoal.decode.base import Decoder
from shoal.encode import encoder_for
from shoal.encode.base import Encoder
from shoal.methods.base import StreamMethod
from shoal.methods.registry import METHODS
from shoal.pipeline.outlets import AssembledOutlet, FileOutlet, FolderOutlet, Outlet, SealedEncoder
from shoal.pipeline.preparing import PreparedDecoder
from shoal.policy import Policy
from shoal.policy.stream import ROW
from shoal.sinks.files import FileSink, PartsSink, StandardOutput
from shoal.sources.files import FileSource, InputFile

_TYPES: Final = {
    "int64": pa.int64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "timestamp": pa.timestamp("ns", tz="UTC"),
}


def make_files(policy: Policy) -> list[InputFile]:
    """The input files in reading order."""
    places = [place.text if place.is_standard else str(place.path) for place in policy.source.path]
    return FileSource(places, compression=policy.source.compression).files()


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
    row = ROW if stream.person == ROW and ROW in columns and policy.sanitize is None else None
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
    """A decoder of one column as it stands in the file."""
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
    source = policy.source
    options: dict[str, Any] = {}
    declared = {name: _TYPES[kind] for name, kind in source.types.items() if name in columns}
    counted = policy.stream.time if policy.stream.time_unit is not None else None
    assumed = {
        name: _TYPES[kind]
        for name, kind in policy.anonymize.column_types().items()
        if name in columns and name != counted
    }
    if source.kind == "csv":
        options = {
            "delimiter": source.delimiter, "header": source.header, "nulls": source.nulls, "trim": source.trims,
        }  # fmt: skip
        declared = {**assumed, **declared}
    if source.kind == "jsonl":
        options = {"assumed": assumed, "lists": policy.anonymize.list_columns()}
    if source.max_record_bytes is not None:
        options["max_record_bytes"] = source.max_record_bytes
    return decoder_for(source.kind)(file, columns=columns, types=types or declared, optional=optional, **options)


def make_outlet(policy: Policy, *, resumable: bool) -> Outlet:
    """Where released rows go."""
    sink, place = policy.sink, policy.sink.path
    encoder = _encoder(policy)
    if place.is_standard:
        return FileOutlet(encoder, StandardOutput())
    if place.is_folder:
        return FolderOutlet(encoder, make_parts(policy, checked=resumable))
    if resumable and not encoder.appendable:
        return AssembledOutlet(encoder, sink.path.path)
    return FileOutlet(encoder, FileSink(place.path, checked=resumable))


def make_parts(policy: Policy, *, checked: bool = False) -> PartsSink:
    """The folder that released rows go to, where they go to one."""
    return PartsSink(policy.sink.path.path, _encoder(policy).suffix, checked=checked)


def _encoder(policy: Policy) -> Encoder:
    sink = policy.sink
    options: dict[str, Any] = {}
    if "compression" in sink.model_fields_set or sink.compression != "none":
        options["compression"] = sink.compression
    if sink.kind == "csv":
        options["delimiter"] = sink.delimiter
    if sink.kind == "parquet":
        is_written = policy.anonymize.PUBLISHES_PSEUDONYMS
        options["plain"] = (policy.stream.person,) if is_written else ()  # they hardly repeat: a dictionary only costs
    if sink.kind == "arrow":
        return _arrow_encoder(policy)
    return encoder_for(sink.kind)(**options)


def _arrow_encoder(policy: Policy) -> Encoder:
    place = policy.sink.path
    is_stream = place.is_standard or place.path.suffix == ".arrows"
    return encoder_for("arrow-stream" if is_stream else "arrow")()


def make_whole_outlet(policy: Policy) -> FileOutlet:
    """Where rows go that are written all at once, to one file."""
    return FileOutlet(_encoder(policy), FileSink(policy.sink.path.path))


def make_whole_trace(path: Path, secret: Secret | None, *, resumable: bool = False) -> FileOutlet:
    """Where a trace goes that is written all at once, or in sealed pieces one after another."""
    parquet = encoder_for("parquet")()
    sink = FileSink(path, private=True, checked=resumable)
    return FileOutlet(SealedEncoder(parquet, secret) if secret else parquet, sink)


def make_trace_outlet(path: Path, *, resumable: bool, secret: Secret | None) -> Outlet:
    """Where the private trace goes: for its owner alone, sealed where a key was given."""
    if resumable and secret is None:
        return AssembledOutlet(encoder_for("parquet")(), path, private=True)
    return make_whole_trace(path, secret, resumable=resumable)
