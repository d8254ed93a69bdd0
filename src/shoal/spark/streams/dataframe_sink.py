"""Streaming DataFrames: a writer that decides each micro-batch and publishes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from shoal.errors import OutputError, PolicyError
from shoal.pipeline.ownership import Ownership
from shoal.sinks.durable import make_folder
from shoal.spark.dead_letters import letters_by_number
from shoal.spark.families import head_columns
from shoal.spark.recipe import Recipe
from shoal.spark.records.file_order import with_files
from shoal.spark.records.numbering import number_rows, require_columns
from shoal.spark.streams.batch_folders import BatchFolders
from shoal.spark.streams.micro_batches import MicroBatches, Taken
from shoal.spark.streams.state import Commit, StateFolder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_RUN: Final = "spark.jobGroup.id"
"""The property of a thread of Spark that differs between starts of a query."""


@dataclass(frozen=True, slots=True)
class OnEachBatch:
    """What Spark calls with each micro-batch: a DataFrame and its number."""

    micro_batches: MicroBatches
    order: str | Sequence[str] | None
    owner: QueryOwner

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Decide the micro-batch and publish it."""

        def take(before: Commit | None) -> Taken:
            recipe, columns = self.micro_batches.recipe, self.micro_batches.method.columns
            first = before.end if before else 0
            rows = number_rows(frame, columns, head_columns(recipe, columns), order=self.order, first=first)
            return Taken(rows, partial(letters_by_number, method=self.micro_batches.method))

        self.owner.take(frame.sparkSession.sparkContext.getLocalProperty(_RUN))
        self.micro_batches.decide(frame.sparkSession, batch, take)


class QueryOwner:
    """Who uses the folder of a state: the query that started last. One that started before stops at its next commit."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._owned: Ownership | None = None
        self._run: str | None = None

    def take(self, run: str | None) -> None:
        """Take the folder over, once for each start of a query."""
        if self._owned is None or run != self._run:
            self._owned, self._run = Ownership(self._folder, take_over=True), run
            self._owned.release()  # a lock would keep nobody out: every start takes over

    def require(self) -> None:
        """Raise CheckpointError if another query has taken over."""
        if self._owned is not None:
            self._owned.require()


def stream_writer(
    frame: DataFrame,
    method: Any,
    recipe: Recipe,
    *,
    state: Path,
    shards: int,
    output: BatchFolders,
    order: str | Sequence[str] | None,
) -> DataStreamWriter:
    """A writer for a streaming DataFrame; Spark keeps its own progress next to the state."""
    require_columns(frame, method.columns)
    owner = QueryOwner(state)
    micro_batches = MicroBatches(method, recipe, state, shards, output, owner.require)
    for folder in (state, *output.folders):
        make_folder(folder)
    last = StateFolder(state).last()
    micro_batches.require_same(last)
    output.refuse_foreign(last)
    in_files = None if order else with_files(frame)
    chosen = frame if in_files is None else in_files
    work, progress = OnEachBatch(micro_batches, order, owner), str(state / "query")
    writer: DataStreamWriter = chosen.writeStream.foreachBatch(work).option("checkpointLocation", progress)
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
