"""Streams on Spark: every micro-batch continues where the one before ended, and is published exactly once.

Order within a micro-batch: rows are written to a hidden folder, shards keep their state, the commit names this attempt,
the rows appear. A micro-batch that is repeated after a crash is decided again if there is no commit, from the state
before it; if there is one, only the last step is repeated.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, Protocol

import orjson
import pyarrow as pa

from shoal.crypto.private_files import replace_private
from shoal.errors import CheckpointError
from shoal.spark.cluster.executor_check import Needs, require_executors
from shoal.spark.dead_letters import Letter
from shoal.spark.flexible.stream import FlexibleStream, continue_flexible
from shoal.spark.outcome import Outcome, WriteTrace
from shoal.spark.recipe import Recipe
from shoal.spark.records.numbering import NumberedRows
from shoal.spark.records.part_writer import PartWriter
from shoal.spark.streams.state import Commit, ShardStates, StateFolder, schema_of, schema_text
from shoal.spark.tuples.stream import continue_tuples
from shoal.spark.z.decide import continue_z

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONTINUE: Final[Mapping[str, Any]] = {"z": continue_z, "tuples": continue_tuples, "flexible": continue_flexible}
STATE_FORMAT: Final = 2
"""Of the files of a state; a folder with another one is refused."""
_KNOWN: Final = "known"
"""What the driver knows after a micro-batch, sealed, is in the file of this name with the attempt's."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The records of a micro-batch."""

    rows: NumberedRows
    letters: Callable[[Outcome], tuple[list[Letter], int]]
    """The dead letters of refused records, in the order of the stream, and how many could not be decoded."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """What the source keeps with the commit, such as where it is."""
    store: Callable[[], None] = lambda: None
    """Called right before the commit: make durable what `more` refers to."""


class Output(Protocol):
    """Where a stream publishes: first hidden, by attempt; after the commit for everybody."""

    @property
    def folders(self) -> tuple[Path, ...]:
        """Folders that all machines must share."""

    @property
    def shows_suppressed(self) -> bool:
        """Whether suppressed rows are published, fully generalized."""

    def writer(self, attempt: str, published: pa.Schema) -> PartWriter:
        """Writes rows, hidden."""

    def trace(self, batch: int, attempt: str) -> Path | None:
        """The file for the trace; None: there is none."""

    def stage(self, batch: int, attempt: str, letters: list[Letter], before: Commit | None) -> dict[str, Any]:
        """Write the dead letters, hidden; return what `show` must know of the commit."""

    def show(self, commit: Commit) -> None:
        """Publish what a commit names. May be repeated."""


@dataclass(frozen=True, slots=True)
class MicroBatches:
    """Decides micro-batches, one after another."""

    method: Any
    recipe: Recipe
    state: Path
    shards: int
    output: Output
    guard: Callable[[], None] = lambda: None
    """Raises CheckpointError if another process has taken over."""
    _checked: list[bool] = field(default_factory=list, repr=False)
    """Not empty once executors were checked, which every process does before its first micro-batch."""

    def decide(
        self, session: SparkSession, batch: int, take: Callable[[Commit | None], Taken], *, is_end: bool = False
    ) -> Commit:
        """Decide a micro-batch and publish it, unless that was done already."""
        states = StateFolder(self.state)
        commit = states.read(batch)
        if commit is None:
            commit = self._decided(session, batch, take, states, is_end=is_end)
        self.guard()
        self.output.show(commit)
        self._remove_old(commit, states.last_before(commit.batch))
        return commit

    def _decided(
        self,
        session: SparkSession,
        batch: int,
        take: Callable[[Commit | None], Taken],
        states: StateFolder,
        *,
        is_end: bool,
    ) -> Commit:
        before, attempt = states.last_before(batch), f"{batch:09d}-{token_hex(8)}"
        if not self._checked:
            require_executors(session, Needs(self.recipe, (self.state, *self.output.folders)))
            self._checked.append(True)
        self.require_open(before)
        taken = take(before)
        rows, chains = taken.rows, dict(before.chains) if before else {}
        self.method.bind(rows.types)
        more = {**(before.more if before else {}), "identity": self._identity(), "schema": schema_text(rows.types)}
        more |= {**taken.more, "changes": []}
        if rows.count or is_end:
            outcome, found = self._publish(taken, batch, attempt, before, is_end=is_end)
            chains |= {str(note["shard"]): note["chain"] for note in outcome.notes if "chain" in note}
            states.require(chains)
            more |= {**found, **_summed(outcome, before), "ended": is_end}
        elif before is not None:
            attempt = before.attempt  # no shard was at work
        commit = Commit(batch, attempt, rows.end, chains, more)
        self.guard()
        taken.store()
        states.write(commit)
        rows.stored.unpersist()
        return commit

    def require_same(self, before: Commit | None) -> None:
        """Raise CheckpointError if a commit is of another stream."""
        require_same(self.state, self.recipe, self.shards, before)

    def require_open(self, before: Commit | None) -> None:
        """Raise CheckpointError if a commit is of another stream, or its stream has ended."""
        self.require_same(before)
        if before is not None and before.more.get("ended"):
            raise CheckpointError(
                f"{self.state}: this stream has ended, everything is decided; start over with a new folder and "
                "another place to write to"
            )

    def _publish(
        self, taken: Taken, batch: int, attempt: str, before: Commit | None, *, is_end: bool
    ) -> tuple[Outcome, dict[str, Any]]:
        """Decide and write everything, hidden."""
        shards = ShardStates(self.state, attempt, before.attempt if before else None, before.chains if before else {})
        known = self._known(before)
        decided, after = _CONTINUE[self.recipe.family](
            taken.rows, self.recipe, shards=self.shards, states=shards, state=known, is_end=is_end
        )
        self._calibrate(getattr(decided, "calibration", None))
        path = self.output.trace(batch, attempt)
        trace = None if path is None else WriteTrace(path, self.recipe)
        writer = self.output.writer(attempt, decided.published)
        outcome: Outcome = decided.publish(writer, trace, suppressed=self.output.shows_suppressed)
        name = f"{_KNOWN}-{attempt}"
        replace_private(self.state / name, after(outcome))
        letters, unreadable = taken.letters(outcome)
        staged = self.output.stage(batch, attempt, letters, before)
        unreadable += before.more.get("unreadable", 0) if before else 0
        return outcome, {_KNOWN: name, "unreadable": unreadable, **staged}

    def recall(self, commit: Commit) -> None:
        """Let the method know what was calibrated by this commit, so that it states its guarantee in full."""
        if self.recipe.family == "flexible" and commit.more["identity"] == self._identity():
            self.method.bind(schema_of(commit.more["schema"]))
            self._calibrate(FlexibleStream.opened(self.recipe, self._known(commit)).calibration)

    def _calibrate(self, calibration: Any) -> None:
        if calibration is not None and self.method.frozen is None:
            self.method.set_calibration(calibration)

    def _known(self, commit: Commit | None) -> bytes | None:
        """What the driver knew after a micro-batch, sealed."""
        return (self.state / commit.more[_KNOWN]).read_bytes() if commit and _KNOWN in commit.more else None

    def _remove_old(self, commit: Commit, before: Commit | None) -> None:
        kept = {one.more.get(_KNOWN) for one in (commit, before) if one is not None}
        for path in self.state.glob(f"{_KNOWN}-*"):
            if path.name not in kept:
                path.unlink(missing_ok=True)

    def _identity(self) -> str:
        return identity_of(self.recipe, self.shards)


def identity_of(recipe: Recipe, shards: int) -> str:
    """Which method, settings, key and shards a state belongs to."""
    known = orjson.dumps([STATE_FORMAT, recipe.method, dict(recipe.header), recipe.key_mark, shards])
    return hashlib.sha256(known).hexdigest()


def require_same(state: Path, recipe: Recipe, shards: int, before: Commit | None) -> None:
    """Raise CheckpointError if a commit is of another stream."""
    if before is not None and before.more["identity"] != identity_of(recipe, shards):
        raise CheckpointError(
            f"{state}: is of another method, other settings, another key, another number of shards or another version "
            "of shoal; name a new folder, or go back to what it was made with"
        )


def _summed(outcome: Outcome, before: Commit | None) -> dict[str, Any]:
    """Counts of the whole stream, and sizes and measurements as they are now."""
    counts = Counter(before.more.get("counts", {}) if before else {})
    counts.update(outcome.counts)
    return {
        "counts": dict(counts), "metrics": outcome.metrics, "live_pairs": outcome.live_pairs,
        "state_bytes": outcome.state_bytes, "changes": list(outcome.changes),
    }  # fmt: skip
