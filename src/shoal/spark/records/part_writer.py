"""Files out: every part is written by one task, into a folder that the driver has made.

An executor never makes the folder. One that does not see it would write to its own disk, and the rows would be missing
from the release. The driver also looks at every file before anything is published.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, NamedTuple

import pyarrow as pa

from shoal.crypto.safe_open import create_file
from shoal.encode.base import Encoder
from shoal.errors import OutputError, PolicyError
from shoal.policy import Policy
from shoal.sinks.durable import make_folder, output_error
from shoal.spark.records.columns import cast

WRITTEN: Final = pa.schema([("part", pa.int32()), ("rows", pa.int64()), ("bytes", pa.int64())])


class Written(NamedTuple):
    """A part that was written; one without rows has no file and no bytes, unless it is the first."""

    rows: int
    bytes: int


def output_folder(policy: Policy) -> Path:
    """The folder that rows are written to."""
    place = policy.file_sink.path
    if not place.is_folder:
        raise PolicyError(
            f"[sink] path: on Spark several tasks write; {place.text} must be a folder, so end its name with /"
        )
    return place.path.absolute()


def require_folder(folder: Path) -> None:
    """Raise OutputError on an executor that does not see a folder of the driver."""
    if not folder.is_dir():
        raise OutputError(
            f"{folder}: an executor does not see this folder, which the driver has made; mount it under the same path "
            "on every machine"
        )


def require_files(folder: Path, sizes: Mapping[str, int]) -> None:
    """Raise OutputError on the driver if a file that an executor wrote is not there, or is not as long."""
    for name, size in sizes.items():
        path = folder / name
        if not path.is_file() or path.stat().st_size != size:
            raise OutputError(
                f"{path}: is not what an executor wrote there, so nothing is published; mount the folder under the "
                "same path on every machine"
            )


@dataclass(frozen=True, slots=True)
class PartWriter:
    """Writes rows to part files; a file appears when it is complete.

    A task that runs twice writes the same rows under the same name.
    """

    folder: Path
    encoder: Encoder
    schema: pa.Schema

    def prepare(self) -> None:
        """Make the folder, on the driver."""
        with output_error(self.folder):
            make_folder(self.folder)

    def write(self, part: int, batches: Iterable[pa.RecordBatch]) -> Written:
        """Write a part; one without rows gets a file only if it is the first."""
        require_folder(self.folder)
        path, rows = self.folder / self._name(part), 0
        working = path.with_name(f".{path.name}.{token_hex(8)}.tmp")
        with output_error(path):
            with create_file(working) as out:
                writer = self.encoder.open(out, self.schema, fresh=True)
                for batch in batches:
                    writer.write(batch)
                    rows += batch.num_rows
                writer.close()
                out.flush()
                os.fsync(out.fileno())
            if not rows and part != 0:
                working.unlink()
                return Written(0, 0)
            size = working.stat().st_size
            os.replace(working, path)
        return Written(rows, size)

    def require(self, parts: Mapping[int, int]) -> None:
        """Check on the driver that all parts are there, by the bytes of each."""
        require_files(self.folder, {self._name(part): size for part, size in parts.items() if size})

    def _name(self, part: int) -> str:
        return f"part-{part:05d}{self.encoder.suffix}"


@dataclass(frozen=True, slots=True)
class WriteParts:
    """Writes the rows of one task to one file."""

    writer: PartWriter

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context: Any = TaskContext.get()
        part = context.partitionId()
        found = self.writer.write(part, (cast(batch, self.writer.schema) for batch in batches))
        yield pa.RecordBatch.from_pylist([{"part": part, **found._asdict()}], schema=WRITTEN)
