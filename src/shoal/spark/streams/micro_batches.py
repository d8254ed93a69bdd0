"""Streams on Spark: every micro-batch continues where the one before ended, and is published exactly once.

Order within a micro-batch: rows are written to a hidden folder, shards keep their state, the commit names this attempt,
the rows appear. A micro-batch that is repeated after a crash is decided again if there is no commit, from the state
before it; if there is one, only the last step is repeated.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import orjson

from shoal.crypto.private_files import replace_private, sync_folder
from shoal.encode.parquet import ParquetEncoder
from shoal.errors import CheckpointError, OutputError, PolicyError
from shoal.sinks.durable import make_folder, output_error
from shoal.spark.decisions import Outcome, WriteTrace
from shoal.spark.files import PartWriter
from shoal.spark.recipe import Recipe
from shoal.spark.rows import NumberedRows, number_rows
from shoal.spark.shared_paths import require_shared
from shoal.spark.streams.state import Commit, ShardStates, StateFolder
from shoal.spark.z.admit import admission_columns
from shoal.spark.z.decide import continue_z

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter


@dataclass(frozen=True, slots=True)
class MicroBatches:
    """Decides micro-batches, one after another; call it with a DataFrame and its number."""

    method: Any
    recipe: Recipe
    out: Path
    state: Path
    order: str | Sequence[str] | None
    shards: int
    trace: Path | None
    dead_letters: Path | None

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Decide a micro-batch and publish it, unless that was done already."""
        states = StateFolder(self.state)
        commit = states.read(batch)
        if commit is None:
            commit = self._decided(frame, batch, states)
        self._show(commit)

    def _decided(self, frame: DataFrame, batch: int, states: StateFolder) -> Commit:
        before, attempt = states.last_before(batch), f"{batch:09d}-{token_hex(8)}"
        if before is None:
            for folder in (self.state, self.out):
                require_shared(frame.sparkSession, folder, self.recipe)
        elif before.more["identity"] != self._identity():
            raise CheckpointError(
                f"{self.state}: is of another method, other settings, another key or another number of shards; name "
                "a new folder, or go back to what it was made with"
            )
        rows = number_rows(
            frame, self.method.columns, admission_columns(self.recipe.settings()), order=self.order,
            first=before.end if before else 0,
        )  # fmt: skip
        chains, more = dict(before.chains) if before else {}, {"identity": self._identity()}
        if rows.count:
            outcome = self._publish(rows, batch, attempt, before)
            chains |= {str(note["shard"]): note["chain"] for note in outcome.notes}
            more["admission"] = f"admission-{attempt}"
        elif before is not None:
            more, attempt = dict(before.more), before.attempt  # no shard was at work
        commit = Commit(batch, attempt, rows.end, chains, more)
        states.write(commit)
        rows.blocks.unpersist()
        return commit

    def _publish(self, rows: NumberedRows, batch: int, attempt: str, before: Commit | None) -> Outcome:
        """Decide and write everything, hidden."""
        shards = ShardStates(self.state, attempt, before.attempt if before else None, before.chains if before else {})
        known = (self.state / before.more["admission"]).read_bytes() if before and "admission" in before.more else None
        decided, admitted = continue_z(rows, self.recipe, shards=self.shards, states=shards, state=known)
        replace_private(self.state / f"admission-{attempt}", admitted)
        writer = PartWriter(self._hidden(attempt), ParquetEncoder(), decided.published)
        trace = None
        if self.trace is not None:
            make_folder(self.trace)
            trace = WriteTrace(self.trace / f"batch={batch:09d}.parquet", self.recipe)
        outcome = decided.publish(writer, trace, suppressed=False)
        if self.dead_letters is not None:
            self._write_letters(outcome, batch)
        return outcome

    def _show(self, commit: Commit) -> None:
        """Let the rows of a micro-batch appear, and remove what is left of other attempts."""
        with output_error(self.out):
            hidden, shown = self._hidden(commit.attempt), self.out / f"batch={commit.batch:09d}"
            if hidden.exists() and not shown.exists():
                os.replace(hidden, shown)
                sync_folder(self.out)
            for left in self.out.glob(".attempt-*"):
                shutil.rmtree(left, ignore_errors=True)
        for path in self.state.glob("admission-*"):
            if path.name not in (commit.more.get("admission"), self._admission_before(commit)):
                path.unlink(missing_ok=True)

    def _admission_before(self, commit: Commit) -> str | None:
        before = StateFolder(self.state).last_before(commit.batch)
        return before.more.get("admission") if before else None

    def _hidden(self, attempt: str) -> Path:
        return self.out / f".attempt-{attempt}"

    def _write_letters(self, outcome: Outcome, batch: int) -> None:
        assert self.dead_letters is not None
        found = [] if outcome.refused is None else outcome.refused.sort_by("row").to_pylist()
        lines = []
        for one in found:
            refusal = self.method.explain(one["reason"])
            lines.append(orjson.dumps({"row": one["row"], "column": refusal.column, "reason": refusal.sentence}))
        replace_private(self.dead_letters / f"batch={batch:09d}.jsonl", b"".join(line + b"\n" for line in lines))

    def _identity(self) -> str:
        """Which method, settings, key and shards the state belongs to."""
        known = orjson.dumps([self.recipe.method, dict(self.recipe.header), self.recipe.key_mark, self.shards])
        return hashlib.sha256(known).hexdigest()


def stream_writer(frame: DataFrame, micro_batches: MicroBatches) -> DataStreamWriter:
    """A writer for a streaming DataFrame; Spark keeps its own progress next to the state."""
    make_folder(micro_batches.out)
    make_folder(micro_batches.state)
    progress = str(micro_batches.state / "query")
    writer: DataStreamWriter = frame.writeStream.foreachBatch(micro_batches).option("checkpointLocation", progress)
    return writer


def check_stream(recipe: Recipe, out: Any, state: Any) -> None:
    """Refuse what a stream cannot do, with what to do."""
    if recipe.family != "z":
        raise PolicyError(
            f"[anonymize] method: {recipe.method} decides a streaming DataFrame on one machine only; read it as a "
            "batch, or use z-anonymity"
        )
    if out is None or state is None:
        raise OutputError(
            "a streaming DataFrame needs out and state: a folder for the rows and one for the state, which every "
            "machine has mounted under the same path"
        )
