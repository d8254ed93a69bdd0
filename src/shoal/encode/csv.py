"""CSV text."""

from __future__ import annotations

from typing import BinaryIO, ClassVar

import pyarrow as pa
import pyarrow.csv as arrow_csv

from shoal.encode.base import Encoder, Writer
from shoal.encode.compression import SUFFIXES, Compression, check_compression, compressor
from shoal.encode.text import csv_column
from shoal.errors import PolicyError


class CsvEncoder(Encoder):
    """Comma-separated text with a header line; texts are quoted, null and NaN are empty fields without quotes."""

    appendable: ClassVar[bool] = True

    def __init__(self, *, compression: Compression = "none", delimiter: str = ",") -> None:
        check_compression(compression)
        if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
            raise PolicyError("delimiter: must be one ASCII character, no quote and no line end")
        self._compression = compression
        self._delimiter = delimiter

    @property
    def suffix(self) -> str:
        return ".csv" + SUFFIXES[self._compression]

    def open(self, out: BinaryIO, schema: pa.Schema, *, fresh: bool) -> Writer:
        return _CsvWriter(out, schema, compression=self._compression, delimiter=self._delimiter, fresh=fresh)


class _CsvWriter(Writer):
    def __init__(
        self, out: BinaryIO, schema: pa.Schema, *, compression: Compression, delimiter: str, fresh: bool
    ) -> None:
        self._out = compressor(compression, out)
        self._delimiter = delimiter
        if fresh:
            names = pa.schema([(name, pa.string()) for name in schema.names])
            self._write(pa.RecordBatch.from_pylist([], schema=names), header=True)

    def write(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            columns = [csv_column(column) for column in batch.columns]
            self._write(pa.RecordBatch.from_arrays(columns, names=batch.schema.names), header=False)

    def close(self) -> None:
        self._out.close()

    def _write(self, batch: pa.RecordBatch, *, header: bool) -> None:
        text = pa.BufferOutputStream()
        options = arrow_csv.WriteOptions(include_header=header, delimiter=self._delimiter)
        arrow_csv.write_csv(batch, text, options)
        self._out.write(text.getvalue())
