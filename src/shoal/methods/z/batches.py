"""z-anonymity of batches: read, admit, decide, write out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from shoal.kernels import clock as clock_kernel
from shoal.methods.arrow_input import (
    fitted,
    plain,
    record_batches,
    select,
    without_views,
)  # fmt: skip
from shoal.methods.base import RELEASED, SUPPRESSED, VERDICTS, Release
from shoal.methods.hidden_values import picked
from shoal.methods.text_keys import Bools, Ints, Texts, is_present
from shoal.methods.trace import NO_REASON, Decisions
from shoal.methods.z.arrivals import Arrivals
from shoal.methods.z.columns import Levels
from shoal.methods.z.helper_thread import one_ahead, piece_rows, soon
from shoal.methods.z.reasons import (
    AHEAD,
    BAD_TIME,
    FIRST_UNKNOWN,
    LATE,
    NULL_PERSON,
    NULL_TIME,
)
from shoal.methods.z.reorder_buffer import Waiting
from shoal.methods.z.stream import ZStream
from shoal.times import EARLIEST, LATEST, column_ns, now_ns

Rows: TypeAlias = "pa.RecordBatch | Callable[[], pa.RecordBatch]"
When: TypeAlias = Callable[..., Rows]
"""How to call a function: at once, or soon in the other thread."""


def at_once(function: Callable[..., pa.RecordBatch], *args: Any) -> pa.RecordBatch:
    """Call a function now."""
    return function(*args)


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    rows = piece_rows(batch.num_rows)
    return (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))


class ZBatches(ZStream):
    """Decides events batch by batch, and what waits when time passes."""

    def push_batch(self, batch: Any) -> Release:
        schema, pieces = record_batches(batch)
        fields = select(schema, self.columns)
        batches = [piece.select(fields.names) for piece in pieces]
        has_rows = any(piece.num_rows for piece in batches)
        if has_rows or not any(pa.types.is_null(kind) for kind in fields.types):
            self.bind(fields)  # an empty table has types too, unless it says nothing of them
            batches = [fitted(piece, self._input_schema) for piece in batches]
        pieces = [piece for whole in batches for piece in _cut(whole)]
        if len(pieces) == 1:
            return self._push_rows(self._arrive(pieces[0]))
        # Not `_push_rows` of each: a release's rows may still be under way, and all are when they are joined.
        return self._joined([self._push_rows(arrivals, soon) for arrivals in one_ahead(self._arrive, pieces)])

    def _push_rows(self, arrivals: Arrivals, when: When = at_once) -> Release:
        self._admit(arrivals)
        restarts = np.flatnonzero(arrivals.codes == clock_kernel.RESTART).tolist()
        if not restarts:
            return self._decide_arrivals(arrivals, when)
        parts = [self._decide_arrivals(self._part(arrivals, 0, restarts[0]))]
        for start, stop in zip(restarts, [*restarts[1:], len(arrivals)], strict=True):
            parts += [self._start_over(), self._decide_arrivals(self._part(arrivals, start, stop))]
        return self._joined(parts)

    def _part(self, arrivals: Arrivals, start: int, stop: int) -> Arrivals:
        batch = arrivals.batch.slice(start, stop - start)
        return arrivals.between(start, stop, batch=batch, readings=self._read(batch))

    def _read(self, batch: pa.RecordBatch) -> list[Any]:
        return [column.reader.read(batch.column(column.name)) for column in self._attributes]

    def _decide_arrivals(self, arrivals: Arrivals, when: When = at_once) -> Release:
        if self._settings.lateness_ns and len(arrivals):
            return self._decide_later(arrivals)
        return self._decide_now(arrivals, when)

    def _arrive(self, batch: pa.RecordBatch) -> Arrivals:
        """Read a batch: who, when, what, and which rows cannot be used."""
        settings = self._settings
        # rows that wait are joined later and need one type; where none waits, a dictionary saves hashing
        as_read = plain if settings.lateness_ns else without_views
        batch = pa.RecordBatch.from_arrays([as_read(column) for column in batch.columns], names=batch.schema.names)
        times, timely = column_ns(batch.column(settings.time))
        people = Texts.of(batch.column(settings.person))
        readings = self._read(batch)
        reasons = np.full(batch.num_rows, NO_REASON, dtype=np.int8)
        for number, column in reversed(list(enumerate(self._attributes))):  # the first unknown column is named
            if column.is_listed:
                reasons[~readings[number].known & readings[number].present] = FIRST_UNKNOWN + number
        if not timely.all():
            reasons[~timely] = np.where(is_present(batch.column(settings.time))[~timely], BAD_TIME, NULL_TIME)
        if not (filled := people.filled).all():
            reasons[~filled] = NULL_PERSON
        seqs = np.arange(batch.num_rows, dtype=np.int64)
        return Arrivals(batch, seqs, times, people.keys(self._person_key), reasons, readings)

    def _admit(self, arrivals: Arrivals) -> None:
        """Number arrivals and let them move time; refuse those that are late or too far ahead."""
        settings, usable = self._settings, arrivals.reasons == NO_REASON
        clock_kernel.admit(
            self._clock, arrivals.persons, arrivals.times, usable, settings.lateness_ns, settings.max_gap_ns,
            arrivals.codes, arrivals.newest,
        )  # fmt: skip
        arrivals.reasons[arrivals.codes == clock_kernel.LATE] = LATE
        arrivals.reasons[arrivals.codes == clock_kernel.AHEAD] = AHEAD
        arrivals.seqs += self._seen
        self._seen += len(arrivals)

    def _decide_now(self, arrivals: Arrivals, when: When) -> Release:
        rows, released = self._decide(arrivals, when)
        delays = np.zeros(len(arrivals), dtype=np.int64)
        return self._close(
            rows, Decisions.of(arrivals.seqs, released=released, reasons=arrivals.reasons, delays=delays, z=arrivals.z)
        )

    def _decide_later(self, arrivals: Arrivals) -> Release:
        """Let usable rows wait; decide what no late event can come before any more."""
        ready, left_with = self._wait(arrivals)
        rows, decided = self._decide_waiting(ready)
        decided = replace(decided, delays=arrivals.newest[left_with] - ready.times)
        dead = arrivals.dead()
        order = np.argsort(np.concatenate((left_with, dead.rows - arrivals.seqs[0])), kind="stable")
        return self._close(rows, decided.followed_by(dead).arranged(order))

    def _wait(self, arrivals: Arrivals) -> tuple[Waiting, Ints]:
        """Let usable rows wait; the rows that need not any more, and with which arrival each leaves."""
        schema = self.input_schema
        self._held.gather_singles(schema)
        self._held.add(arrivals.waiting().pick(arrivals.usable))
        passed = arrivals.newest - self._settings.lateness_ns
        ready = self._held.take_until(int(passed[-1]), schema)
        # a row leaves with the arrival that moved time past it: that orders the trace as one-by-one pushes would
        return ready, np.maximum(np.searchsorted(passed, ready.times), ready.seqs - arrivals.seqs[0])

    def _decide_waiting(self, ready: Waiting) -> tuple[Rows, Decisions]:
        """Decide rows that waited; they are in order now."""
        arrivals = self._readied(ready)
        rows, released = self._decide(arrivals, at_once)
        delays = np.maximum(self._clock[clock_kernel.NEWEST] - ready.times, 0)
        decided = Decisions.of(ready.seqs, released=released, reasons=arrivals.reasons, delays=delays, z=arrivals.z)
        return rows, decided

    def _readied(self, ready: Waiting) -> Arrivals:
        """Rows that waited, as they are decided."""
        reasons = np.full(len(ready), NO_REASON, dtype=np.int8)
        return Arrivals(ready.batch, ready.seqs, ready.times, ready.persons, reasons, self._read(ready.batch))

    def _decide(self, arrivals: Arrivals, when: When) -> tuple[Rows, Bools]:
        """The rows that leave and which of the arrivals they are."""
        levels, released = self._judge(arrivals)
        rows = np.flatnonzero(released)
        return when(self._outgoing_rows, arrivals, rows, [level[rows] for level in levels]), released

    def _judge(self, arrivals: Arrivals) -> tuple[list[Levels], Bools]:
        """The level of every value, and which rows z lets pass; the only place where the crowds change."""
        usable = arrivals.usable
        levels = [
            column.decide(reading, persons=arrivals.persons, times=arrivals.times, usable=usable)
            for column, reading in zip(self._attributes, arrivals.readings, strict=True)
        ]
        if self._is_kept_blank:
            return levels, usable
        return levels, np.logical_or.reduce([level >= 0 for level in levels])

    def _outgoing_rows(self, arrivals: Arrivals, rows: Ints, levels: list[Any]) -> pa.RecordBatch:
        settings, batch, chosen = self._settings, arrivals.batch, pa.array(rows)
        people = Texts.of(batch.column(settings.person))
        names = self._pseudonyms.names(people.offsets, people.data, rows, arrivals.times[rows])
        offsets = np.arange(0, 32 * len(rows) + 1, 32, dtype=np.int32)
        columns = [
            plain(batch.column(settings.time).take(chosen)),
            pa.StringArray.from_buffers(len(rows), pa.py_buffer(offsets), pa.py_buffer(names)),
            *(
                column.reader.publish(reading, rows, level)
                for column, reading, level in zip(self._attributes, arrivals.readings, levels, strict=True)
            ),
            *(plain(picked(batch.column(name), chosen)) for name in settings.carry),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._output_schema)

    def _close(self, rows: Rows, decisions: Decisions) -> Release:
        """Count what was decided and hand it over."""
        self._counts[RELEASED] += int(np.count_nonzero(decisions.verdicts == VERDICTS.index(RELEASED)))
        self._counts[SUPPRESSED] += int(np.count_nonzero(decisions.verdicts == VERDICTS.index(SUPPRESSED)))
        dead = decisions.reasons[decisions.reasons != NO_REASON]
        for number in dead.tolist():
            self._counts[self._reasons[number]] += 1
        return Release(rows, partial(self._tracer.trace, decisions))

    def _joined(self, parts: list[Release]) -> Release:
        rows = pa.RecordBatch.from_pylist([], schema=self._output_schema)
        joined = pa.concat_batches([rows, *(part.rows for part in parts)])
        return Release(joined, partial(self._joined_trace, parts))

    def _joined_trace(self, parts: list[Release]) -> pa.RecordBatch:
        nothing = pa.RecordBatch.from_pylist([], schema=self.trace_schema)
        return pa.concat_batches([nothing, *(part.trace for part in parts)])

    def _start_over(self) -> Release:
        """The first clock was wrong: forget what it brought in; what waits under it is refused."""
        for column in self._attributes:
            column.crowd.clear()
        self._held.gather_singles(self.input_schema)
        waiting = self._held.take_until(LATEST, self.input_schema)
        reasons = np.full(len(waiting), AHEAD, dtype=np.int8)
        decisions = Decisions.of(
            waiting.seqs,
            released=np.zeros(len(waiting), np.bool_),
            reasons=reasons,
            delays=np.zeros(len(waiting), np.int64),
        )
        return self._close(pa.RecordBatch.from_pylist([], schema=self._output_schema), decisions)

    # ---- time and end

    def advance(self, now: object) -> Release:
        time = now_ns(now, name="now")
        clock = self._clock
        if clock[clock_kernel.STARTED] == 0:
            clock[clock_kernel.CLOSED] = clock_kernel.LONG_AGO
        if clock[clock_kernel.STARTED] == 0 or time > clock[clock_kernel.NEWEST]:
            clock[clock_kernel.NEWEST] = time
            clock[clock_kernel.STARTED] = clock[clock_kernel.CONFIRMED] = 1
        limit = int(clock[clock_kernel.NEWEST]) - self._settings.lateness_ns
        release, _ = self._release_until(limit)
        for column in self._attributes:  # nothing older than limit comes any more: an idle stream forgets too
            column.crowd.expire(max(limit - column.window_ns, 2 * EARLIEST))
            column.crowd.trim()
        return release

    def flush(self) -> Release:
        release, times = self._release_until(LATEST)
        if len(times):
            # what comes now and is older than these cannot be sorted in before them any more: it is late
            self._clock[clock_kernel.CLOSED] = max(int(self._clock[clock_kernel.CLOSED]), int(times[-1]))
        return release

    def _release_until(self, limit: int) -> tuple[Release, Ints]:
        self._held.gather_singles(self.input_schema)
        waiting = self._held.take_until(limit, self.input_schema)
        return self._close(*self._decide_waiting(waiting)), waiting.times
