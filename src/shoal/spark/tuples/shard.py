"""One shard of a tuple stream: a method of its own on the time of the whole stream.

The time of the whole stream travels with every row: event time, or the row's number if deadlines count arrivals. So a
row is due when it would be due on one machine, however few rows its shard gets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.crypto.snapshots import open_state, seal_state
from shoal.errors import PolicyError
from shoal.methods.arrow_input import as_bytes
from shoal.methods.release import RELEASED, SUPPRESSED, Release
from shoal.spark.decision_rows import decisions_of_shard, groups_of_shard, note_of_shard
from shoal.spark.recipe import Recipe
from shoal.spark.records.blocks import packed
from shoal.spark.records.columns import (
    AT_END,
    CLOCK,
    DECIDED,
    DELAY,
    DETAILS,
    GROUP,
    ORDER,
    REASON,
    REUSED,
    ROW,
    VERDICT,
    cast,
    decision_schema,
    wire_schema,
)

Ints = npt.NDArray[np.int64]
_LONGEST: Final = "50000d"


def shard_recipe(recipe: Recipe) -> Recipe:
    """The method that decides a shard: its deadlines are spans of the time of the whole stream."""
    settings = recipe.settings()
    if settings.t is not None and settings.declared is None:
        raise PolicyError(
            "[anonymize] reference: on Spark t needs one reference for all shards; give the shares of each sensitive "
            "value, such as {illness = {flu = 0.9, gout = 0.1}}"
        )
    changes = {name: f"{int(getattr(settings, name))}ns" for name in ("deadline", "reuse")}
    if "threads" in recipe.header:
        changes["threads"] = 1  # type: ignore[assignment]
    schema = {**recipe.header["schema"], "time": CLOCK}
    return recipe.with_settings(schema=schema, max_gap=_LONGEST, **changes)


class TupleShard:
    """Decides the rows of one shard, batch after batch.

    Parameters
    ----------
    recipe
        From shard_recipe().
    types
        The types of the input columns.
    state
        From dump() after the batch before.
    again
        Whether its rows were decided in other shards before, where they have been counted.
    keeps
        Whether pending rows are kept as they came, for another shard.
    """

    def __init__(
        self,
        recipe: Recipe,
        shard: int,
        types: pa.Schema,
        state: bytes | None = None,
        *,
        again: bool = False,
        keeps: bool = False,
    ) -> None:
        self._recipe, self._shard, self._again, self._keeps = recipe, shard, again, keeps
        self._method = recipe.make()
        self._types = pa.schema([*types, (CLOCK, pa.timestamp("ns", tz="UTC"))])
        self._rows = self._clocks = np.empty(0, dtype=np.int64)
        """Numbers of the records that are not decided yet in the stream, and the times at which they arrived."""
        self._own = np.empty(0, dtype=np.int64)
        """Numbers of the same records in this shard."""
        self._decisions = 0
        self._rare_at_end = 0
        """Rows suppressed at the end for what they lack, which one more shard decides again."""
        self.kept_schema = pa.schema([*wire_schema(types), (ROW, pa.int64()), (CLOCK, pa.int64())])
        """The columns of kept rows."""
        self._kept = self.left = pa.RecordBatch.from_pylist([], schema=self.kept_schema)
        """Pending rows as they came, if they are kept; those of them that found too few others at the end."""
        if state is not None:
            self._load(state)
        self._method.bind(self._types)
        self._shows_root = self._method.settings.suppressed == "root"

    @property
    def published(self) -> pa.Schema:
        """The columns that are published."""
        return self._method.output_schema

    def push(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Accept rows in the order of the stream; return what they decide."""
        rows, clocks = (np.asarray(batch.column(name)) for name in (ROW, CLOCK))
        first = self._method.counts["pushed"]
        self._rows, self._clocks = np.concatenate((self._rows, rows)), np.concatenate((self._clocks, clocks))
        self._own = np.concatenate((self._own, np.arange(first, first + len(rows))))
        if self._keeps:
            self._kept = pa.concat_batches([self._kept, cast(batch, self.kept_schema)])
        return self._decided(self._method.push_batch(cast(batch, self._types)), at_end=False)

    def pass_time(self, clock: int) -> pa.RecordBatch:
        """Decide what is due at this time of the whole stream."""
        return self._decided(self._method.advance(np.datetime64(clock, "ns")), at_end=False)

    def finish(self, clock: int | None) -> list[pa.RecordBatch]:
        """The stream ends at this time, if one is known: decide everything, and add a note with counts.

        What is not due by then is marked as decided at the end: a row without enough others in this shard may find
        them in another.
        """
        due = [] if clock is None else [self.pass_time(clock)]
        pending = self._kept
        in_time = self._method.metrics["rare_patterns"]
        ended = self._decided(self._method.flush(), at_end=True)
        if not self._again:
            self._rare_at_end = self._method.metrics["rare_patterns"] - in_time
        if self._keeps:
            suppressed = ended.filter(pc.equal(ended.column(VERDICT), SUPPRESSED)).column(ROW)
            self.left = pending.filter(pc.is_in(pending.column(ROW), suppressed))
        return [*due, ended, self.note()]

    def note(self, **more: Any) -> pa.RecordBatch:
        """Counts and losses so far."""
        counts, metrics = self._method.counts, self._method.metrics
        decided = counts["released"] + counts["suppressed"]
        sums = {name: metrics[name] * decided for name in ("loss", "loss_all", "delay")}
        found = {
            "decided": decided, "max_delay": metrics["max_delay"], "clamped": metrics["clamped"], "sums": sums,
            **{name: metrics[name] for name in ("formed", "merged", "reused", "filled")},
            "rare_patterns": metrics["rare_patterns"] - self._rare_at_end,
            "shard": self._shard, "again": self._again, "pushed": counts["pushed"], "suppressed": counts["suppressed"],
            "pending": len(self._own), **more,
        }  # fmt: skip
        return note_of_shard(self._shard, found, self.published)

    @property
    def schema(self) -> pa.Schema:
        """The columns of decisions."""
        return decision_schema(self.published)

    def dump(self) -> bytes:
        """The state, sealed."""
        arrays: dict[str, npt.NDArray[Any]] = {
            "rows": self._rows, "clocks": self._clocks, "own": self._own,
            "kept": as_bytes(packed(self._kept).buffers()[2]),
            "method": np.frombuffer(self._method.snapshot(), dtype=np.uint8),
        }  # fmt: skip
        return seal_state(self._recipe.secret(), {"decisions": self._decisions}, arrays)

    def _load(self, state: bytes) -> None:
        opened = open_state(self._recipe.secret(), state)
        self._rows, self._clocks, self._own = (opened.arrays[name].copy() for name in ("rows", "clocks", "own"))
        self._decisions = opened.header["decisions"]
        self._kept = pa.ipc.open_stream(opened.arrays["kept"].tobytes()).read_next_batch()
        self._method.restore(opened.arrays["method"].tobytes())

    def _decided(self, release: Release, *, at_end: bool) -> pa.RecordBatch:
        trace, count = release.trace, release.trace.num_rows
        places = np.searchsorted(self._own, np.asarray(trace.column("row")))
        verdicts = trace.column("verdict").cast(pa.string())
        is_shown = np.asarray(pc.is_in(verdicts, pa.array(self._shown)))
        rows, clocks, delays = self._rows[places], self._clocks[places], np.asarray(trace.column("delay"))
        order = self._decisions + np.arange(count)
        self._decisions += count
        is_open = np.ones(len(self._own), dtype=np.bool_)
        is_open[places] = False
        self._rows, self._clocks, self._own = self._rows[is_open], self._clocks[is_open], self._own[is_open]
        if self._keeps:
            self._kept = self._kept.filter(pa.array(is_open))
        groups = trace.column("group")
        fields: dict[str, Any] = {
            ROW: rows, VERDICT: verdicts, REASON: trace.column("reason").cast(pa.string()),
            GROUP: groups_of_shard(groups, self._shard), DELAY: delays, REUSED: trace.column("reused"),
            DETAILS: trace.column("carriers"), DECIDED: clocks + delays,
            ORDER: order, AT_END: pa.repeat(pa.scalar(at_end), count),
        }  # fmt: skip
        return decisions_of_shard(self._shard, fields, release.rows, is_shown, self.published)

    @property
    def _shown(self) -> Sequence[str]:
        return [RELEASED, SUPPRESSED] if self._shows_root else [RELEASED]
