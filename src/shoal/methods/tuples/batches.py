"""Tuples in batches: read, take in, decide, write out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.kernels import clock as clock_kernel
from shoal.kernels.tuples import layout as t
from shoal.kernels.tuples.clock import move_by_all
from shoal.methods.arrow_input import fitted, plain, record_batches, select
from shoal.methods.base import VERDICTS, Release
from shoal.methods.chunk import Piece
from shoal.methods.quasi_readers import Bools, Floats, Ints, NumericReader
from shoal.methods.refusals import AHEAD, BAD_TIME, FIRST_REFUSED, NULL_PERSON, NULL_TIME
from shoal.methods.trace import IS_DEAD, IS_RELEASED, IS_SUPPRESSED, NO_REASON
from shoal.methods.tuples.publish_order import in_secret_order
from shoal.methods.tuples.publishing import Shown
from shoal.methods.tuples.sensitive import Coded, readable
from shoal.methods.tuples.state import Decided
from shoal.methods.tuples.stream import TupleStream
from shoal.times import column_ns, now_ns

_CHUNK: Final = 16_384
_BITS: Final = 63
Reasons = npt.NDArray[np.int16]
_Made = TypeVar("_Made")


def masks_of(values: Floats) -> Ints:
    """Which attributes each tuple carries, as bits."""
    wide, count = values.shape
    words = [(1 << min(wide - first, _BITS)) - 1 for first in range(0, wide, _BITS)]
    masks = np.tile(np.array(words, dtype=np.int64), (count, 1))
    for a in range(wide):
        is_missing = np.isnan(values[a])
        if is_missing.any():
            masks[:, a // _BITS] ^= is_missing.astype(np.int64) << (a % _BITS)
    return masks


class TupleBatches(TupleStream):
    """Decides tuples batch by batch, and what waits when time passes."""

    def push_batch(self, batch: Any) -> Release:
        schema, pieces = record_batches(batch)
        fields = select(schema, self.columns)
        batches = [piece.select(fields.names) for piece in pieces]
        if any(piece.num_rows for piece in batches) or not any(pa.types.is_null(kind) for kind in fields.types):
            self.bind(fields)
            batches = [fitted(piece, self._input_schema) for piece in batches]
        most = self._piece_rows()
        pieces = [piece.slice(start, most) for piece in batches for start in range(0, piece.num_rows, most)]
        self._check_room(pieces)
        releases = [self._push_piece(piece) for piece in self._begun(pieces)]
        return releases[0].made() if len(releases) == 1 else self._joined(releases)

    def _piece_rows(self) -> int:
        return _CHUNK

    def _check_room(self, pieces: list[pa.RecordBatch]) -> None:
        """Refuse too many sensitive values before any piece is taken in."""
        for column in self._codes if len(pieces) > 1 else ():
            whole = pa.chunked_array([plain(piece.column(column.name)) for piece in pieces])
            column.check_room(readable(whole.unique(), column.name))

    def _begun(self, batches: list[pa.RecordBatch]) -> Iterator[Piece]:
        """The pieces; reading the next has begun when one is handed over."""
        waiting: Piece | None = None
        for batch in batches:
            piece = Piece(batch, self._settings.schema.person, self._person_key, self._readers)
            piece.read_all = self._soon(piece.read, piece.parts)
            if waiting is not None:
                yield waiting
            waiting = piece
        if waiting is not None:
            yield waiting

    def _soon(self, work: Callable[[int], _Made], count: int) -> Callable[[], list[_Made]]:
        """What work makes of 0, 1, 2, …; where there are threads, it is made by the time it is asked for."""
        made = [work(number) for number in range(count)]
        return lambda: made

    def _push_piece(self, piece: Piece) -> Release:
        reasons = self._reasons_of(piece)
        times = self._move_time(piece.batch, piece.persons, reasons)
        usable = reasons == NO_REASON
        codes = self._read_sensitive(piece.batch, usable)  # may refuse the batch: nothing has changed yet
        self._number(piece.batch, usable, reasons)
        return self._take_in(piece, reasons, times[usable], codes)

    def _reasons_of(self, piece: Piece) -> Reasons:
        """Why rows cannot be used."""
        reasons = np.full(len(piece), NO_REASON, dtype=np.int16)
        nameless, *of_readers = piece.read_all()
        for number, refused in reversed(list(enumerate(of_readers))):  # the first column refused is named
            reasons[refused] = FIRST_REFUSED + number
        if self._settings.is_timed:
            column = piece.batch.column(self._settings.schema.time)
            _, timely = column_ns(column)
            missing = ~np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
            reasons[~timely] = np.where(missing[~timely], NULL_TIME, BAD_TIME)
        reasons[nameless] = NULL_PERSON
        return reasons

    def _move_time(self, batch: pa.RecordBatch, persons: Ints, reasons: Reasons) -> Ints:
        """The stream's time at each row; refuses rows too far ahead. The clock itself moves with the batch taken in."""
        times = np.zeros(batch.num_rows, dtype=np.int64)
        if not self._settings.is_timed:
            return times
        self._next_clock = self._clock.copy()
        usable = np.flatnonzero(reasons == NO_REASON)
        given, _ = column_ns(batch.column(self._settings.schema.time))
        codes, newest = np.zeros(len(usable), dtype=np.int8), np.zeros(len(usable), dtype=np.int64)
        gap = self._settings.max_gap_ns
        move_by_all(self._next_clock, persons[usable], given[usable], gap, codes, newest)
        reasons[usable[codes == clock_kernel.AHEAD]] = AHEAD
        times[usable] = newest
        return times

    def _read_sensitive(self, batch: pa.RecordBatch, usable: Bools) -> Ints:
        chosen = pa.array(usable)
        coded = [Coded(batch.column(column.name).filter(chosen), column.name) for column in self._codes]
        for known, column in zip(self._codes, coded, strict=True):
            known.check_room(column.values)
        columns = [column.codes(known) for known, column in zip(self._codes, coded, strict=True)]
        if columns:
            self._state.know_values(self._codes, self._is_ordered)
        return np.array(columns, dtype=np.int64).reshape(len(columns), int(usable.sum()))

    def _number(self, batch: pa.RecordBatch, usable: Bools, reasons: Reasons) -> None:
        """Number the rows, move time, count what is refused and what is clamped."""
        for reason in reasons[~usable].tolist():
            self._counts[self._reasons[reason]] += 1
        self._counts["clamped"] += sum(
            reader.count_clamped(batch.column(reader.name), usable)
            for reader in self._readers
            if isinstance(reader, NumericReader)
        )
        self._seen += batch.num_rows
        if self._settings.is_timed:
            self._clock = self._next_clock

    def _take_in(self, piece: Piece, reasons: Reasons, times: Ints, codes: Ints) -> Release:
        usable, first = reasons == NO_REASON, self._seen - len(piece)
        rows, dead = first + np.flatnonzero(usable), np.flatnonzero(~usable)
        piece.keep_only(usable)
        if self._kept:
            kept = piece.batch.select(self._kept.schema.names)
            self._kept.add(rows, kept.filter(pa.array(usable)))  # always: it copies, and the buffers are the caller's
        lanes = np.zeros(len(rows), dtype=np.int64)
        masks = masks_of(piece.values)
        arrivals = t.Arrivals(piece.values, piece.raws, masks, piece.persons, rows, times, lanes, codes)
        return self._close(self._state.take(arrivals), first + dead, reasons[dead])

    def _close(self, decided: Decided, dead: Ints | None = None, reasons: Reasons | None = None) -> Release:
        """Hand over what was decided, and what was refused."""
        decided = in_secret_order(decided, self._order_key)
        rows = self._rows(decided)
        self._kept.keep_only(self._state.held_rows())
        if dead is None or reasons is None:
            dead, reasons = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int16)
        return Release(rows, partial(self._trace, decided, dead, reasons))

    # ---- rows

    def _rows(self, decided: Decided) -> Callable[[], pa.RecordBatch]:
        leaves = decided.verdicts == t.IS_RELEASED
        if self._settings.suppressed == "root":
            leaves[:] = True
        groups, masks = decided.groups[leaves], decided.masks[leaves]
        kept = self._kept.take(decided.rows[leaves]).columns if self._kept else []
        shown = Shown(decided, self._readers, groups)
        columns = self._soon(lambda a: self._column(a, shown, masks), len(self._readers))
        return lambda: pa.RecordBatch.from_arrays([*columns(), *kept], schema=self._output_schema)

    def _column(self, a: int, shown: Shown, masks: Ints) -> pa.Array:
        kind = self._output_schema.field(a).type
        if self._settings.nulls != "paper" or not self._hides_own:
            return shown.column(a, kind)
        return shown.column(a, kind, (masks[:, a // _BITS] >> (a % _BITS)) & 1 == 0)

    _hides_own = True
    """Whether in the papers' mode a row shows only what it carries itself."""

    # ---- trace

    def _trace(self, decided: Decided, dead: Ints, reasons: Reasons) -> pa.RecordBatch:
        """One row a decision, in the order in which pushing one by one would decide."""
        count, refused = len(decided), len(dead)
        events = np.concatenate((decided.at, dead))
        order = np.argsort(events, kind="stable")
        rows = np.concatenate((decided.rows, dead))
        verdicts = np.where(decided.verdicts == t.IS_RELEASED, IS_RELEASED, IS_SUPPRESSED)
        verdicts = np.concatenate((verdicts, np.full(refused, IS_DEAD))).astype(np.int8)
        why = np.concatenate((np.zeros(count, np.int16), reasons))
        groups = np.concatenate((decided.groups, np.full(refused, t.NO_GROUP)))
        delays = np.concatenate((decided.delays, np.zeros(refused, np.int64)))
        return self._trace_batch(decided, [array[order] for array in (rows, verdicts, why, groups, delays, events)])

    def _trace_batch(self, decided: Decided, in_order: list[npt.NDArray[Any]]) -> pa.RecordBatch:
        rows, verdicts, why, groups, delays, events = in_order
        alone = groups < 0
        places = pa.array(groups, mask=alone)
        per_group = [
            pa.array(decided.numbers), pa.array(decided.reused.astype(np.bool_)),
            _lists(decided.carriers.astype(np.int32)),
        ]  # fmt: skip
        number, reused, carriers = (column.take(places) for column in per_group)
        columns = [
            pa.array(rows),
            pa.DictionaryArray.from_arrays(pa.array(verdicts), pa.array(VERDICTS)),
            pa.DictionaryArray.from_arrays(pa.array(why, mask=verdicts != IS_DEAD), self._reason_names),
            number,
            pa.array(delays),
            pa.repeat(pa.scalar(self._settings.k, pa.int64()), len(rows)),
            reused,
            carriers,
            pa.array(events),
        ]
        if self._settings.remembers:
            columns.append(self._references(groups, decided))
        return pa.RecordBatch.from_arrays(columns, schema=self.trace_schema)

    def _references(self, groups: Ints, decided: Decided) -> pa.Array:
        """What clusters were held against, on the first row of each that was formed."""
        seen: set[int] = set()
        found: list[list[dict[str, Any]] | None] = []
        for place in groups.tolist():
            is_first = place >= 0 and place not in seen and not decided.reused[place]
            seen.add(place)
            found.append(self._reference(decided.reference[place]) if is_first else None)
        return pa.array(found, type=self.trace_schema.field("reference").type)

    def _reference(self, counts: Floats) -> list[dict[str, Any]]:
        return [
            {"column": column.name, "value": value, "count": int(count)}
            for column, row in zip(self._codes, counts, strict=True)
            for value, count in zip(column.texts(self.input_schema.field(column.name).type), row, strict=False)
            if count
        ]

    def _joined(self, parts: list[Release]) -> Release:
        rows = pa.RecordBatch.from_pylist([], schema=self._output_schema)
        joined = pa.concat_batches([rows, *(part.rows for part in parts)])
        return Release(joined, partial(self._joined_trace, parts))

    def _joined_trace(self, parts: list[Release]) -> pa.RecordBatch:
        nothing = pa.RecordBatch.from_pylist([], schema=self.trace_schema)
        return pa.concat_batches([nothing, *(part.trace for part in parts)])

    # ---- time and end

    def advance(self, now: object) -> Release:
        time = now_ns(now, name="now")
        if not self._settings.is_timed:
            return self._joined([])
        clock = self._clock
        if clock[clock_kernel.STARTED] == 0 or time > clock[clock_kernel.NEWEST]:
            clock[clock_kernel.NEWEST] = time
            clock[clock_kernel.STARTED] = clock[clock_kernel.CONFIRMED] = 1
        return self._close_all(self._state.pass_time(int(clock[clock_kernel.NEWEST])))

    def flush(self) -> Release:
        if self._clock[clock_kernel.STARTED]:
            self._clock[clock_kernel.CONFIRMED] = 1  # what leaves now left by this clock
        return self._close_all(self._state.finish())

    def _close_all(self, decided: Decided) -> Release:
        """Hand over what a call without records decided: all of it is one event, after the last record."""
        return self._close(replace(decided, at=np.full(len(decided), self._seen - 1, dtype=np.int64))).made()


def _lists(rows: npt.NDArray[np.int32]) -> pa.ListArray:
    """A list a row."""
    offsets = np.arange(0, rows.size + 1, max(rows.shape[1], 1), dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(rows.ravel()))
