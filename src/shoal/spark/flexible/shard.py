"""One shard of a stream for the flexible method, with the calibration of the whole stream."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.methods.flexible.calibration import Calibration
from shoal.methods.release import DEAD, RELEASED, Release
from shoal.spark.columns import (
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
)
from shoal.spark.recipe import Recipe
from shoal.spark.shard_decisions import decisions_of_shard, groups_of_shard, note_of_shard

Ints = npt.NDArray[np.int64]
PENDING: Final = "pending"
"""The verdict on a record that its shard could not publish."""


class FlexibleShard:
    """Decides the records of one shard: it forms groups each time a window of its own records is full.

    Parameters
    ----------
    again
        Whether its records were pending in another shard, where they have been counted.
    """

    def __init__(
        self, recipe: Recipe, shard: int, types: pa.Schema, calibration: Calibration, *, again: bool = False
    ) -> None:
        self._shard, self._types, self._again = shard, types, again
        method: Any = recipe.make()
        self._method = method
        self._method.bind(types)
        self._method.set_calibration(calibration)
        self.published: pa.Schema = self._method.output_schema
        self._rows = np.empty(0, np.int64)
        """Numbers of all records of this shard in the stream."""
        self._usable = np.empty(0, np.int64)
        """Positions of the usable ones among them."""
        self._decided_ones: list[Ints] = []
        self._decisions = 0

    @property
    def schema(self) -> pa.Schema:
        """The columns of decisions."""
        return decision_schema(self.published)

    def push(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Accept records in the order of the stream; return what they decide."""
        first = len(self._rows)
        self._rows = np.concatenate((self._rows, np.asarray(batch.column(ROW))))
        release = self._method.push_batch(cast(batch, self._types))
        trace = release.trace
        dead = np.asarray(trace.filter(pc.equal(trace.column("verdict").cast(pa.string()), DEAD)).column("row"))
        is_usable = np.ones(batch.num_rows, np.bool_)
        is_usable[dead - first] = False
        self._usable = np.concatenate((self._usable, first + np.flatnonzero(is_usable)))
        return self._decided(release, None)

    def finish(self, last: int) -> list[pa.RecordBatch]:
        """The stream ends with record `last`: publish what can be, mark the rest as pending, and note counts."""
        formed = self._decided(self._method.flush(), last)
        return [formed, self._left(last), self.note()]

    def _decided(self, release: Release, last: int | None) -> pa.RecordBatch:
        trace = release.trace
        count, own = trace.num_rows, np.asarray(trace.column("row"))
        self._decided_ones.append(own)
        verdicts, delays = trace.column("verdict").cast(pa.string()), np.asarray(trace.column("delay"))
        at = self._rows[own]
        if last is not None:
            at = np.full(count, last)
        elif count:
            # A delay counts usable records up to the one that filled the window.
            arrival = np.searchsorted(self._usable, own)
            is_usable = np.asarray(pc.equal(verdicts, RELEASED))
            at[is_usable] = self._rows[self._usable[(arrival + delays)[is_usable]]]
        details = np.stack([np.asarray(trace.column(name).fill_null(0)) for name in ("k", "k_s")], axis=1)
        order = self._decisions + np.arange(count)
        self._decisions += count
        return self._batch(release.rows, np.asarray(pc.equal(verdicts, RELEASED)), {
            ROW: self._rows[own], VERDICT: verdicts, REASON: trace.column("reason").cast(pa.string()),
            GROUP: groups_of_shard(trace.column("group"), self._shard), DELAY: delays,
            DETAILS: pa.FixedSizeListArray.from_arrays(pa.array(details.ravel().astype(np.int32)), 2),
            DECIDED: at, ORDER: order, AT_END: pa.repeat(pa.scalar(last is not None), count),
        })  # fmt: skip

    def _left(self, last: int) -> pa.RecordBatch:
        """The records that are still pending."""
        left = np.setdiff1d(np.arange(len(self._rows)), np.concatenate([self._rows[:0], *self._decided_ones]))
        count = len(left)
        none = pa.RecordBatch.from_pylist([], schema=self.published)
        return self._batch(none, np.zeros(count, np.bool_), {
            ROW: self._rows[left], VERDICT: pa.repeat(PENDING, count), DECIDED: np.full(count, last),
            ORDER: self._decisions + np.arange(count), AT_END: pa.repeat(pa.scalar(True), count),  # noqa: FBT003
        })  # fmt: skip

    def _batch(self, rows: pa.RecordBatch, is_shown: npt.NDArray[np.bool_], fields: dict[str, Any]) -> pa.RecordBatch:
        return decisions_of_shard(self._shard, fields, rows, is_shown, self.published)

    def note(self) -> pa.RecordBatch:
        """Counts and losses."""
        counts, metrics = self._method.counts, self._method.metrics
        losses = {name: value * counts["released"] for name, value in metrics.items() if name.startswith("loss")}
        seen = {name: value for name, value in metrics.items() if name == "clamped" or name.startswith("unknown_")}
        found = {"losses": losses, "seen": {} if self._again else seen}
        return note_of_shard(self._shard, found, self.published)
