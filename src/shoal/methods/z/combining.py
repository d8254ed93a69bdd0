"""z-anonymity that also watches combinations: rows wait to the end of their epoch, until k people share each set.

What z decides stays as it is, at a row's own time; this comes after. Rows that z lets pass wait. When time has passed
the end of their epoch, values are taken out of people's sets (see z_sets) and what is left leaves, in order. A flush
decides the running epoch as it stands: what comes later in it still counts for others, but never leaves, because it
would change sets that were shown.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.crypto.keys import Secret
from shoal.crypto.snapshots import State
from shoal.kernels import clock as clock_kernel
from shoal.methods.arrow_input import as_bytes
from shoal.methods.base import SUPPRESSED, Guarantee, Release
from shoal.methods.text_keys import Bools, Ints
from shoal.methods.trace import NO_REASON, Decisions
from shoal.methods.z.arrivals import Arrivals
from shoal.methods.z.batches import When
from shoal.methods.z.combined_traces import AT_ONCE, CombinedDecisions, CombinedTracer
from shoal.methods.z.epochs import EpochRows, Passed, cells_to_keep, without_cells
from shoal.methods.z.following import ZFollowing
from shoal.methods.z.reasons import AHEAD
from shoal.methods.z.settings import ZSettings
from shoal.schema import format_duration
from shoal.times import LATEST


class ZCombining(ZFollowing):
    """Holds rows back for an epoch where the settings have a k; without one nothing here does anything."""

    def _begin(self, settings: ZSettings, secret: Secret) -> None:
        super()._begin(settings, secret)
        self._epochs = EpochRows(settings.rotation_ns, len(settings.attributes))
        if settings.k is not None:
            names = [f"level.{column.name}" for column in self._attributes] if settings.is_table else ["level"]
            self._tracer: Any = CombinedTracer(self._reasons, self._thresholds(), names)

    @property
    def guarantee(self) -> Guarantee:
        plain, settings = super().guarantee, self._settings
        if settings.k is None:
            return plain
        combined = (
            f"all that leaves of a person in an epoch of {format_duration(settings.rotation_ns)}, taken as a set of "
            f"values, leaves of at least {settings.k} different people; rows wait for that to the end of their epoch"
        )
        return replace(
            plain,
            statement=f"{plain.statement}; {combined}",
            max_delay_ns=settings.lateness_ns + settings.rotation_ns,
            max_pending=None,
        )

    @property
    def pending(self) -> int:
        return super().pending + len(self._epochs)

    # ---- batches

    def _decide_now(self, arrivals: Arrivals, when: When) -> Release:
        if self._settings.k is None:
            return super()._decide_now(arrivals, when)
        at_once = self._hold(arrivals, np.zeros(len(arrivals), dtype=np.int64))
        return self._course(at_once, arrivals.times, np.arange(len(arrivals)), arrivals.newest)

    def _decide_later(self, arrivals: Arrivals) -> Release:
        if self._settings.k is None:
            return super()._decide_later(arrivals)
        ready, left_with = self._wait(arrivals)
        decided = self._hold(self._readied(ready), arrivals.newest[left_with] - ready.times)
        dead = arrivals.dead()
        places = dead.rows - arrivals.seqs[0]
        at_once = CombinedDecisions.joined((decided, CombinedDecisions.at_once(dead, len(self._attributes))))
        triggers = np.concatenate((left_with, places))
        return self._course(at_once, np.concatenate((ready.times, arrivals.times[places])), triggers, arrivals.newest)

    def _hold(self, arrivals: Arrivals, delays: Ints) -> CombinedDecisions:
        """Let rows that z lets pass wait for the end of their epoch; decisions on all rows, theirs among them."""
        levels, passed = self._judge(arrivals)
        table = np.stack(levels, axis=1)
        waits = passed & (arrivals.times >= self._epochs.closed_until)
        rows = np.flatnonzero(waits)
        made = self._outgoing_rows(arrivals, rows, [level[rows] for level in levels])
        self._epochs.add(Passed(arrivals.seqs[rows], arrivals.times[rows], table[rows], made), self._output_schema)
        plain = Decisions.of(
            arrivals.seqs, released=np.zeros(len(arrivals), np.bool_), reasons=arrivals.reasons, delays=delays
        )
        return CombinedDecisions(plain, np.where(waits, 0, AT_ONCE), table)

    def _course(
        self, decided: CombinedDecisions, times: Ints, triggers: Ints, newest: Ints, *, everything: bool = False
    ) -> Release:
        """Close the epochs that ended on the way; all decisions in the order in which single pushes would make them.

        newest is the stream's time after each arrival, triggers the arrivals with which rows were decided.
        """
        at_once = decided.epochs == AT_ONCE
        parts = [decided.arranged(np.flatnonzero(at_once))]
        starts, epochs = [triggers[at_once]], [times[at_once] // self._settings.rotation_ns]
        passed = newest - self._settings.lateness_ns
        batches = []
        limit = int(passed[-1]) if len(passed) else -LATEST
        for ended in self._epochs.take_ended(limit, self._output_schema, everything=everything):
            trigger = int(np.searchsorted(passed[:-1], self._epochs.end_of(int(ended.times[0]))))
            rows, closing = self._close_epoch(ended, int(newest[trigger]))
            batches.append(rows)
            parts.append(closing)
            starts.append(np.full(len(ended), trigger))
            epochs.append(closing.epochs)
        # within one epoch, what was decided at once stays before what waited for its end: the sort is stable
        order = np.lexsort((np.concatenate(epochs), np.concatenate(starts)))
        return self._finish(batches, CombinedDecisions.joined(parts).arranged(order))

    def _close_epoch(self, ended: Passed, newest: int) -> tuple[pa.RecordBatch, CombinedDecisions]:
        """Take values out of people's sets until k people share each; what leaves, and decisions on all that waited."""
        settings = self._settings
        assert settings.k is not None
        names = [column.name for column in self._attributes]
        keep = cells_to_keep(ended.batch, settings.person, names, settings.k)
        leaves: Bools = np.ones(len(ended), np.bool_) if self._is_kept_blank else np.logical_or.reduce(keep)
        reasons = np.full(len(ended), NO_REASON, dtype=np.int8)
        delays = np.maximum(newest - ended.times, 0)
        plain = Decisions.of(ended.seqs, released=leaves, reasons=reasons, delays=delays)
        rows = without_cells(ended.batch, names, keep, np.flatnonzero(leaves))
        return rows, CombinedDecisions(plain, ended.times // settings.rotation_ns, ended.levels)

    def _finish(self, batches: list[pa.RecordBatch], decisions: CombinedDecisions) -> Release:
        rows = pa.concat_batches([pa.RecordBatch.from_pylist([], schema=self._output_schema), *batches])
        counted = self._close(rows, decisions.plain)
        return Release(counted.rows, partial(self._tracer.trace_combined, decisions))

    def _start_over(self) -> Release:
        plain = super()._start_over()
        if self._settings.k is None:
            return plain
        # Only one person was seen, so nothing has left: every epoch is open again.
        waited = self._epochs.forget(self._output_schema)
        decisions = Decisions.of(
            waited.seqs,
            released=np.zeros(len(waited), np.bool_),
            reasons=np.full(len(waited), AHEAD, dtype=np.int8),
            delays=np.zeros(len(waited), np.int64),
        )
        held = self._close(pa.RecordBatch.from_pylist([], schema=self._output_schema), decisions)
        return self._joined([held, plain])

    def _release_until(self, limit: int) -> tuple[Release, Ints]:
        if self._settings.k is None:
            return super()._release_until(limit)
        self._held.gather_singles(self.input_schema)
        ready = self._held.take_until(limit, self.input_schema)
        newest = self._clock[[clock_kernel.NEWEST]]
        decided = self._hold(self._readied(ready), np.maximum(newest - ready.times, 0))
        triggers = np.zeros(len(ready), np.int64)
        return self._course(decided, ready.times, triggers, newest, everything=limit == LATEST), ready.times

    # ---- single records

    def _rows_of_ended(self) -> list[dict[str, Any]]:
        newest, rows = int(self._clock[clock_kernel.NEWEST]), []
        for ended in self._epochs.take_ended(newest - self._settings.lateness_ns, self._output_schema):
            made, decisions = self._close_epoch(ended, newest)
            rows += self._finish([made], decisions).rows.to_pylist()
        return rows

    def _let_wait(self, row: dict[str, Any], levels: list[int], time: int, seq: int) -> list[dict[str, Any]]:
        if time < self._epochs.closed_until:
            self._counts[SUPPRESSED] += 1
        else:
            self._epochs.add_one(seq, time, levels, row)
        return []

    # ---- state

    def _further_state(self) -> dict[str, Any]:
        if self._settings.k is None:
            return super()._further_state()
        waiting = self._epochs.dump(self._output_schema)
        return {
            **super()._further_state(),
            "epoch.closed": np.array([self._epochs.closed_until]),
            "epoch.rows": as_bytes(waiting.batch.serialize()),
            "epoch.seqs": waiting.seqs,
            "epoch.times": waiting.times,
            "epoch.levels": waiting.levels.astype(np.int64),
        }

    def _load(self, state: State) -> None:
        super()._load(state)
        self._epochs = EpochRows(self._settings.rotation_ns, len(self._attributes))
        if self._settings.k is None:
            return
        arrays = state.arrays
        rows = pa.ipc.read_record_batch(pa.py_buffer(arrays["epoch.rows"]), self._output_schema)
        levels = arrays["epoch.levels"].reshape(-1, len(self._attributes)).astype(np.int32)
        self._epochs.add(Passed(arrays["epoch.seqs"], arrays["epoch.times"], levels, rows), self._output_schema)
        self._epochs.closed_until = int(arrays["epoch.closed"][0])
