"""Files in and out: every input file is decoded by one task, every output part is written by one task."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import orjson
import pyarrow as pa

from shoal.crypto.safe_open import create_file
from shoal.decode.base import Decoded
from shoal.encode.base import Encoder
from shoal.errors import PolicyError
from shoal.methods.arrow_input import with_gaps
from shoal.pipeline.wiring import make_decoder
from shoal.policy import Policy
from shoal.sinks.durable import output_error
from shoal.sources.input_file import InputFile
from shoal.spark.columns import BAD, LINE, ROW, cast, wire_schema
from shoal.spark.frames import mapped, quoted
from shoal.spark.rows import NumberedRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILE: Final = "_shoal_file"
_PLACE: Final = "_shoal_place"
_ABOUT: Final = pa.schema([(_FILE, pa.int32()), (_PLACE, pa.int64()), (LINE, pa.int64()), (BAD, pa.string())])
_WRITTEN: Final = pa.schema([("part", pa.int32()), ("rows", pa.int64())])


@dataclass(frozen=True, slots=True)
class FileRows:
    """The records of files, numbered as one machine numbers them."""

    rows: NumberedRows
    files: Sequence[InputFile]
    starts: Sequence[int]
    """The number of the first record of every file."""
    numbers_rows: bool
    """Whether every record counts as one person."""

    def place(self, row: int) -> dict[str, Any]:
        """Where a record is, for its dead letter."""
        file = bisect_right(self.starts, row) - 1
        return {"file": self.files[file].name, "row": row - self.starts[file] + 1}


def read_files(
    session: SparkSession, policy: Policy, files: Sequence[InputFile], columns: Sequence[str], *, first: int = 0
) -> FileRows:
    """Decode files on executors; the first file determines the types, as in a run on one machine."""
    with make_decoder(policy, files[0], tuple(columns)) as decoder:
        schema, types, numbers_rows = decoder.schema, decoder.types, decoder.numbers_rows
    work = ReadFiles(policy, tuple(files), tuple(columns), types, schema)
    numbers = session.range(0, len(files), 1, len(files))
    decoded = mapped(numbers, work, pa.schema([*wire_schema(schema), *_ABOUT])).persist()
    counts: dict[int, int] = {row[0]: row[1] for row in decoded.groupBy(_FILE).count().collect()}
    starts, total = [], first
    for file in range(len(files)):
        starts.append(total)
        total += counts.get(file, 0)
    frame = _numbered(decoded, starts)
    if numbers_rows:
        frame = frame.withColumn(str(policy.stream.person), _column(f"if({BAD} is null, {ROW}, null)"))
    return FileRows(NumberedRows(frame, schema, first, total - first), files, starts, numbers_rows)


def _numbered(decoded: DataFrame, starts: Sequence[int]) -> DataFrame:
    from pyspark.sql import functions as f

    offsets = f.array(*(f.lit(start).cast("long") for start in starts))
    number = f.element_at(offsets, f.col(_FILE) + 1) + f.col(_PLACE)
    return decoded.withColumn(ROW, number).drop(_FILE, _PLACE)


def _column(expression: str) -> Any:
    from pyspark.sql import functions as f

    return f.expr(expression)


@dataclass(frozen=True, slots=True)
class ReadFiles:
    """Decodes files on an executor."""

    policy: Policy
    files: tuple[InputFile, ...]
    columns: tuple[str, ...]
    types: dict[str, pa.DataType]
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                at = 0
                with make_decoder(self.policy, self.files[number], self.columns, self.types) as decoder:
                    for decoded in decoder.batches():
                        yield self._rows(number, at, decoded)
                        at += decoded.rows

    def _rows(self, file: int, at: int, decoded: Decoded) -> pa.RecordBatch:
        """The records; one that could not be decoded is a row of nulls with a reason."""
        count = decoded.rows
        wire = cast(decoded.batch, wire_schema(self.schema))
        whole = with_gaps(wire, decoded.places) if decoded.refused else wire
        bad = {one.row: orjson.dumps([one.column, one.reason]).decode() for one in decoded.refused}
        lines = pa.nulls(count, pa.int64()) if decoded.lines is None else pa.array(decoded.lines, pa.int64())
        about = [
            pa.repeat(pa.scalar(file, pa.int32()), count), pa.array(at + np.arange(count)), lines,
            pa.array([bad.get(row) for row in range(count)], pa.string()) if bad else pa.nulls(count, pa.string()),
        ]  # fmt: skip
        return pa.RecordBatch.from_arrays([*whole.columns, *about], schema=pa.schema([*whole.schema, *_ABOUT]))


# ---- parts of the output


def output_folder(policy: Policy) -> Path:
    """The folder that rows are written to."""
    place = policy.file_sink.path
    if not place.is_folder:
        raise PolicyError(
            f"[sink] path: on Spark several tasks write; {place.text} must be a folder, so end its name with /"
        )
    return place.path.absolute()


def write_parts(frame: DataFrame, folder: Path, encoder: Encoder, schema: pa.Schema) -> int:
    """Write a sorted DataFrame as part files; return the number of rows."""
    chosen = frame.select(*map(quoted, schema.names))
    written = mapped(chosen, WriteParts(folder, encoder, schema), _WRITTEN).collect()
    return sum(rows for _, rows in written)


@dataclass(frozen=True, slots=True)
class WriteParts:
    """Writes the rows of one task to one file, which appears when it is complete.

    A task that runs twice writes the same rows under the same name.
    """

    folder: Path
    encoder: Encoder
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        part, rows, writer = context.partitionId(), 0, None
        path = self.folder / f"part-{part:05d}{self.encoder.suffix}"
        working = path.with_name(f".{path.name}.{context.taskAttemptId()}.tmp")
        with output_error(path):
            self.folder.mkdir(parents=True, exist_ok=True)
            with create_file(working) as out:
                writer = self.encoder.open(out, self.schema, fresh=True)
                for batch in batches:
                    writer.write(cast(batch, self.schema))
                    rows += batch.num_rows
                writer.close()
                out.flush()
                os.fsync(out.fileno())
            if rows or part == 0:
                os.replace(working, path)
            else:
                working.unlink()
        yield pa.RecordBatch.from_pylist([{"part": part, "rows": rows}], schema=_WRITTEN)
