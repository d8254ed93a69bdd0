"""JSON lines: one object per row."""

from __future__ import annotations

from typing import Any, BinaryIO, ClassVar

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from shoal.encode.base import Encoder, Writer
from shoal.encode.compression import SUFFIXES, Compression, check_compression, compressor
from shoal.encode.text import json_column


class JsonlEncoder(Encoder):
    """One object per line, with every column; intervals are arrays of two numbers, NaN is null."""

    appendable: ClassVar[bool] = True

    def __init__(self, *, compression: Compression = "none") -> None:
        check_compression(compression)
        self._compression = compression

    @property
    def suffix(self) -> str:
        return ".jsonl" + SUFFIXES[self._compression]

    def open(self, out: BinaryIO, schema: pa.Schema, *, fresh: bool) -> Writer:
        return _JsonlWriter(out, compression=self._compression)


class _JsonlWriter(Writer):
    def __init__(self, out: BinaryIO, *, compression: Compression) -> None:
        self._out = compressor(compression, out)

    def write(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        self._out.write(_bytes_of(json_objects(batch, end="}\n")))

    def close(self) -> None:
        self._out.close()


def json_objects(batch: pa.RecordBatch, *, end: str = "}") -> Any:
    """Every row as the text of an object."""
    parts: list[Any] = []
    for at, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True)):
        parts += [("{" if at == 0 else ",") + orjson.dumps(name).decode() + ":", json_column(column)]
    return pc.binary_join_element_wise(*parts, end, "")


def _bytes_of(lines: Any) -> pa.Buffer:
    """The text of all rows, which is contiguous in memory."""
    offsets = memoryview(lines.buffers()[1]).cast("i")
    start, end = offsets[lines.offset], offsets[lines.offset + len(lines)]
    return lines.buffers()[2][start:end]
