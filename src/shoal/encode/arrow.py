"""Arrow IPC: the file format, and the stream format for pipes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO, ClassVar

import pyarrow as pa

from shoal.encode.base import Encoder, Writer
from shoal.encode.text import plain_column


class ArrowEncoder(Encoder):
    """The Arrow file format; it has a footer, so pieces must be joined."""

    appendable: ClassVar[bool] = False

    @property
    def suffix(self) -> str:
        return ".arrow"

    def open(self, out: BinaryIO, schema: pa.Schema, *, fresh: bool) -> Writer:
        return _FileWriter(out, schema)

    def join(self, pieces: Iterable[BinaryIO], out: BinaryIO, schema: pa.Schema) -> None:
        writer = self.open(out, schema, fresh=True)
        for piece in pieces:
            reader = pa.ipc.open_file(piece)
            for number in range(reader.num_record_batches):
                writer.write(reader.get_batch(number))
        writer.close()


class _FileWriter(Writer):
    def __init__(self, out: BinaryIO, schema: pa.Schema) -> None:
        self._schema = _plain_schema(schema)
        self._writer = pa.ipc.new_file(out, self._schema)

    def write(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            self._writer.write(_plain(batch, self._schema))

    def close(self) -> None:
        self._writer.close()


class ArrowStreamEncoder(Encoder):
    """The Arrow stream format; it ends without an end mark, so that batches can be appended later."""

    appendable: ClassVar[bool] = True

    @property
    def suffix(self) -> str:
        return ".arrows"

    def open(self, out: BinaryIO, schema: pa.Schema, *, fresh: bool) -> Writer:
        return _StreamWriter(out, schema, fresh=fresh)


class _StreamWriter(Writer):
    def __init__(self, out: BinaryIO, schema: pa.Schema, *, fresh: bool) -> None:
        self._out = out
        self._schema = _plain_schema(schema)
        if fresh:
            out.write(self._schema.serialize())

    def write(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            self._out.write(_plain(batch, self._schema).serialize())

    def close(self) -> None:
        """Nothing to do: every batch is complete."""


def _plain_schema(schema: pa.Schema) -> pa.Schema:
    empty = [plain_column(pa.array([], type=field.type)) for field in schema]
    return pa.schema([(name, column.type) for name, column in zip(schema.names, empty, strict=True)])


def _plain(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Decode dictionaries: they would have to be written again after every resume."""
    return pa.RecordBatch.from_arrays([plain_column(column) for column in batch.columns], schema=schema)
