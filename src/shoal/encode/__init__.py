"""Arrow batches become bytes: one format per file."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from shoal.errors import PolicyError

if TYPE_CHECKING:
    from shoal.encode.base import Encoder

ENCODERS: Final = {
    "csv": "shoal.encode.csv:CsvEncoder",
    "jsonl": "shoal.encode.jsonl:JsonlEncoder",
    "parquet": "shoal.encode.parquet:ParquetEncoder",
    "arrow": "shoal.encode.arrow:ArrowEncoder",
    "arrow-stream": "shoal.encode.arrow:ArrowStreamEncoder",
}


def encoder_for(kind: str) -> type[Encoder]:
    """The encoder of a format, imported when it is first needed."""
    if kind not in ENCODERS:
        raise PolicyError(f"format: {kind!r} is unknown; use one of {', '.join(ENCODERS)}")
    module, name = ENCODERS[kind].split(":")
    found: type[Encoder] = getattr(import_module(module), name)
    return found
