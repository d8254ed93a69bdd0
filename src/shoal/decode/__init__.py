"""Bytes become Arrow batches: one format per file."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from shoal.errors import PolicyError

if TYPE_CHECKING:
    from shoal.decode.base import Decoder

DECODERS: Final = {
    "csv": "shoal.decode.csv:CsvDecoder",
    "jsonl": "shoal.decode.jsonl:JsonlDecoder",
    "parquet": "shoal.decode.parquet:ParquetDecoder",
    "arrow": "shoal.decode.arrow:ArrowDecoder",
    "access-log": "shoal.decode.access_log:AccessLogDecoder",
    "zeek": "shoal.decode.zeek:ZeekDecoder",
}


def decoder_for(kind: str) -> type[Decoder]:
    """The decoder of a format, imported when it is first needed: some need a compiler."""
    if kind not in DECODERS:
        raise PolicyError(f"format: {kind!r} is unknown; use one of {', '.join(DECODERS)}")
    module, name = DECODERS[kind].split(":")
    found: type[Decoder] = getattr(import_module(module), name)
    return found
