"""Streaming DataFrames: each micro-batch appears as a folder of Parquet files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from shoal.crypto.private_files import replace_private, sync_folder
from shoal.encode.parquet import ParquetEncoder
from shoal.errors import OutputError, PolicyError
from shoal.sinks.durable import make_folder, output_error
from shoal.spark.dead_letters import Letter
from shoal.spark.families import head_columns
from shoal.spark.outcome import Outcome
from shoal.spark.recipe import Recipe
from shoal.spark.records.numbering import number_rows, require_columns
from shoal.spark.records.part_writer import PartWriter
from shoal.spark.streams.micro_batches import MicroBatches, Taken
from shoal.spark.streams.state import Commit, StateFolder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter


@dataclass(frozen=True, slots=True)
class BatchFolders:
    """A folder for each micro-batch, and files for its trace and its dead letters."""

    out: Path
    trace_folder: Path | None
    letters_folder: Path | None
    shows_suppressed: bool

    @property
    def folders(self) -> tuple[Path, ...]:
        """Folders that all machines must share."""
        return (self.out,)

    def writer(self, attempt: str, published: pa.Schema) -> PartWriter:
        """Writes rows, hidden."""
        return PartWriter(self._hidden(attempt), ParquetEncoder(), published)

    def trace(self, batch: int, attempt: str) -> Path | None:
        """The file for the trace."""
        if self.trace_folder is None:
            return None
        make_folder(self.trace_folder)
        return self.trace_folder / f"batch={batch:09d}.parquet"

    def stage(self, batch: int, attempt: str, letters: list[Letter], before: Commit | None) -> dict[str, Any]:
        """Write the dead letters."""
        if self.letters_folder is not None:
            text = b"".join(orjson.dumps(letter) + b"\n" for letter, _ in letters)
            replace_private(self.letters_folder / f"batch={batch:09d}.jsonl", text)
        return {}

    def show(self, commit: Commit) -> None:
        """Let the rows of a micro-batch appear, and remove what is left of other attempts."""
        with output_error(self.out):
            hidden, shown = self._hidden(commit.attempt), self.out / f"batch={commit.batch:09d}"
            if hidden.exists() and not shown.exists():
                os.replace(hidden, shown)
                sync_folder(self.out)
            for left in self.out.glob(".attempt-*"):
                shutil.rmtree(left, ignore_errors=True)

    def _hidden(self, attempt: str) -> Path:
        return self.out / f".attempt-{attempt}"


@dataclass(frozen=True, slots=True)
class OnEachBatch:
    """What Spark calls with each micro-batch: a DataFrame and its number."""

    micro_batches: MicroBatches
    order: str | Sequence[str] | None

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Decide the micro-batch and publish it."""

        def take(before: Commit | None) -> Taken:
            recipe, columns = self.micro_batches.recipe, self.micro_batches.method.columns
            first = before.end if before else 0
            rows = number_rows(frame, columns, head_columns(recipe, columns), order=self.order, first=first)
            return Taken(rows, self._letters)

        self.micro_batches.decide(frame.sparkSession, batch, take)

    def _letters(self, outcome: Outcome) -> tuple[list[Letter], int]:
        found = [] if outcome.refused is None else outcome.refused.sort_by("row").to_pylist()
        letters: list[Letter] = []
        for one in found:
            refusal = self.micro_batches.method.explain(one["reason"])
            letters.append(({"row": one["row"], "column": refusal.column, "reason": refusal.sentence}, None))
        return letters, 0


def stream_writer(frame: DataFrame, micro_batches: MicroBatches, order: str | Sequence[str] | None) -> DataStreamWriter:
    """A writer for a streaming DataFrame; Spark keeps its own progress next to the state."""
    require_columns(frame, micro_batches.method.columns)
    for folder in (micro_batches.state, *micro_batches.output.folders):
        make_folder(folder)
    micro_batches.require_same(StateFolder(micro_batches.state).last())
    work, progress = OnEachBatch(micro_batches, order), str(micro_batches.state / "query")
    writer: DataStreamWriter = frame.writeStream.foreachBatch(work).option("checkpointLocation", progress)
    return writer


def check_stream(recipe: Recipe, out: Any, state: Any) -> None:
    """Refuse what a stream cannot do, with what to do."""
    if recipe.family == "sets":
        raise PolicyError(
            f"[anonymize] method: {recipe.method} does not decide streams on Spark; read it as a batch, or run it on "
            "one machine"
        )
    if out is None or state is None:
        raise OutputError(
            "a streaming DataFrame needs out and state: a folder for the rows and one for the state, which every "
            "machine has mounted under the same path"
        )
