"""One shard of a stream for the flexible method, with the calibration of the whole stream."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.crypto.snapshots import open_state, seal_state
from shoal.methods.arrow_input import as_bytes
from shoal.methods.flexible.calibration import Calibration
from shoal.methods.release import DEAD, RELEASED, Release
from shoal.spark.decision_rows import decisions_of_shard, groups_of_shard, note_of_shard
from shoal.spark.recipe import Recipe
from shoal.spark.records.blocks import packed
from shoal.spark.records.columns import (
    AT_END,
    DECIDED,
    DELAY,
    DETAILS,
    GROUP,
    ORDER,
    REASON,
    ROW,
    VERDICT,
    cast,
    decision_schema,
    wire_schema,
)

Ints = npt.NDArray[np.int64]
PENDING: Final = "pending"
"""The verdict on a record that its shard could not publish."""


class FlexibleShard:
    """Decides the records of one shard: it forms groups each time a window of its own records is full.

    Parameters
    ----------
    calibration
        Of the whole stream; not needed with a state.
    state
        From dump() after the batch before.
    again
        Whether its records were pending in another shard, where they have been counted.
    keeps
        Whether pending records are kept as they came, for another shard.
    """

    def __init__(
        self,
        recipe: Recipe,
        shard: int,
        types: pa.Schema,
        calibration: Calibration | None,
        state: bytes | None = None,
        *,
        again: bool = False,
        keeps: bool = False,
    ) -> None:
        self._recipe, self._shard, self._types, self._again, self._keeps = recipe, shard, types, again, keeps
        method: Any = recipe.make()
        self._method = method
        self._own = self._rows = self._arrivals = np.empty(0, np.int64)
        """Undecided records: index in this shard, number in the stream, index among the usable records here."""
        self._pushed = self._accepted = self._decisions = 0
        self._kept = pa.RecordBatch.from_pylist([], schema=self.kept_schema)
        if state is not None:
            self._load(state)
        self._method.bind(types)
        if state is None:
            self._method.set_calibration(calibration)
        self.published: pa.Schema = self._method.output_schema

    @property
    def schema(self) -> pa.Schema:
        """The columns of decisions."""
        return decision_schema(self.published)

    @property
    def kept_schema(self) -> pa.Schema:
        """The columns of kept records."""
        return pa.schema([*wire_schema(self._types), (ROW, pa.int64())])

    @property
    def kept(self) -> pa.RecordBatch:
        """The pending records, as they came."""
        return self._kept

    def push(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Accept records in the order of the stream; return what they decide."""
        release, numbers = self._method.push_batch(cast(batch, self._types)), np.asarray(batch.column(ROW))
        trace = release.trace
        dead = np.asarray(trace.filter(pc.equal(trace.column("verdict").cast(pa.string()), DEAD)).column("row"))
        is_usable = np.ones(batch.num_rows, np.bool_)
        is_usable[dead - self._pushed] = False
        arrivals = self._accepted + np.cumsum(is_usable) - 1
        self._own = np.concatenate((self._own, self._pushed + np.arange(batch.num_rows)))
        self._rows = np.concatenate((self._rows, numbers))
        self._arrivals = np.concatenate((self._arrivals, arrivals))
        if self._keeps:
            self._kept = pa.concat_batches([self._kept, batch.select(self.kept_schema.names)])
        found = self._decided(release, numbers[is_usable])
        self._pushed, self._accepted = self._pushed + len(numbers), self._accepted + len(numbers) - len(dead)
        return found

    def finish(self, last: int) -> list[pa.RecordBatch]:
        """The stream ends with record `last`: publish what can be, mark the rest as pending, and note counts."""
        formed = self._decided(self._method.flush(), None, last)
        return [formed, self._left(last), self.note()]

    def _decided(self, release: Release, usable: Ints | None, last: int = 0) -> pa.RecordBatch:
        """Decisions at the arrivals of these usable records, or at the end of the stream."""
        trace = release.trace
        count, places = trace.num_rows, np.searchsorted(self._own, np.asarray(trace.column("row")))
        verdicts, delays = trace.column("verdict").cast(pa.string()), np.asarray(trace.column("delay"))
        rows, is_released = self._rows[places], np.asarray(pc.equal(verdicts, RELEASED))
        at = np.full(count, last)
        if usable is not None:
            # A delay counts usable records up to the one that filled the window.
            filled = self._arrivals[places] + delays - self._accepted
            at = rows.copy()
            at[is_released] = usable[filled[is_released]]
        self._drop(places)
        details = np.stack([np.asarray(trace.column(name).fill_null(0)) for name in ("k", "k_s")], axis=1)
        order = self._decisions + np.arange(count)
        self._decisions += count
        return self._batch(release.rows, is_released, {
            ROW: rows, VERDICT: verdicts, REASON: trace.column("reason").cast(pa.string()),
            GROUP: groups_of_shard(trace.column("group"), self._shard), DELAY: delays,
            DETAILS: pa.FixedSizeListArray.from_arrays(pa.array(details.ravel().astype(np.int32)), 2),
            DECIDED: at, ORDER: order, AT_END: pa.repeat(pa.scalar(usable is None), count),
        })  # fmt: skip

    def _drop(self, places: Ints) -> None:
        """Forget records that are decided."""
        is_open = np.ones(len(self._own), np.bool_)
        is_open[places] = False
        self._own, self._rows, self._arrivals = self._own[is_open], self._rows[is_open], self._arrivals[is_open]
        if self._keeps:
            self._kept = self._kept.filter(pa.array(is_open))

    def _left(self, last: int) -> pa.RecordBatch:
        """The records that are still pending."""
        count = len(self._rows)
        none = pa.RecordBatch.from_pylist([], schema=self.published)
        return self._batch(none, np.zeros(count, np.bool_), {
            ROW: self._rows, VERDICT: pa.repeat(PENDING, count), DECIDED: np.full(count, last),
            ORDER: self._decisions + np.arange(count), AT_END: pa.repeat(pa.scalar(True), count),  # noqa: FBT003
        })  # fmt: skip

    def _batch(self, rows: pa.RecordBatch, is_shown: npt.NDArray[np.bool_], fields: dict[str, Any]) -> pa.RecordBatch:
        return decisions_of_shard(self._shard, fields, rows, is_shown, self.published)

    def note(self, **more: Any) -> pa.RecordBatch:
        """Counts and losses so far."""
        counts, metrics = self._method.counts, self._method.metrics
        losses = {name: value * counts["released"] for name, value in metrics.items() if name.startswith("loss")}
        seen = {name: value for name, value in metrics.items() if name == "clamped" or name.startswith("unknown_")}
        found = {
            "losses": losses, "seen": {} if self._again else seen, "again": self._again, "shard": self._shard,
            "released": counts["released"], "pending": len(self._own),
            "oldest": int(self._rows[0]) if len(self._rows) else None, **more,
        }  # fmt: skip
        return note_of_shard(self._shard, found, self.published)

    # ---- state

    def dump(self) -> bytes:
        """The state, sealed."""
        header = {"pushed": self._pushed, "accepted": self._accepted, "decisions": self._decisions}
        arrays: dict[str, npt.NDArray[Any]] = {
            "own": self._own, "rows": self._rows, "arrivals": self._arrivals,
            "kept": as_bytes(packed(self._kept).buffers()[2]),
            "method": np.frombuffer(self._method.snapshot(), dtype=np.uint8),
        }  # fmt: skip
        return seal_state(self._recipe.secret(), header, arrays)

    def _load(self, state: bytes) -> None:
        opened = open_state(self._recipe.secret(), state)
        self._own, self._rows, self._arrivals = (opened.arrays[name].copy() for name in ("own", "rows", "arrivals"))
        self._pushed, self._accepted, self._decisions = (
            opened.header[name] for name in ("pushed", "accepted", "decisions")
        )
        self._kept = pa.ipc.open_stream(opened.arrays["kept"].tobytes()).read_next_batch()
        self._method.restore(opened.arrays["method"].tobytes())
