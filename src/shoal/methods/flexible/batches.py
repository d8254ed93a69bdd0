"""The flexible method in batches: read, let leave what may at once, form groups when a window is full."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.methods.arrow_input import fitted, record_batches, select
from shoal.methods.base import RELEASED, VERDICTS, Release
from shoal.methods.chunk import Piece
from shoal.methods.flexible.reading import are_unknown, as_codes
from shoal.methods.flexible.rounds import Leaving
from shoal.methods.flexible.stream import FlexibleStream
from shoal.methods.quasi_readers import NumericReader
from shoal.methods.refusals import FIRST_REFUSED, NULL_PERSON
from shoal.methods.trace import IS_DEAD, IS_RELEASED, NO_REASON
from shoal.times import now_ns

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Reasons = npt.NDArray[np.int16]


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Records that can be used, as numbers."""

    rows: Ints
    keys: Ints
    codes: Ints
    crowds: Ints

    def between(self, begin: int, end: int) -> Arrivals:
        """A run of them."""
        span = slice(begin, end)
        return Arrivals(self.rows[span], self.keys[:, span], self.codes[:, span], self.crowds[span])


@dataclass(frozen=True, slots=True)
class Decided:
    """Records that leave together: when (the last record seen by then), and how."""

    at: int
    rows: Ints
    delays: Ints
    leaving: Leaving
    is_round: bool


class FlexibleBatches(FlexibleStream):
    """Decides batch by batch."""

    def push_batch(self, batch: Any) -> Release:
        schema, pieces = record_batches(batch)
        fields = select(schema, self.columns)
        batches = [piece.select(fields.names) for piece in pieces]
        if any(piece.num_rows for piece in batches) or not any(pa.types.is_null(kind) for kind in fields.types):
            self.bind(fields)
            batches = [fitted(piece, self._input_schema) for piece in batches]
        whole = pa.concat_batches(batches) if len(batches) > 1 else batches[0] if batches else None
        if whole is None or not whole.num_rows:
            return self._release([], np.empty(0, np.int64), np.empty(0, np.int16))
        return self._push_piece(Piece(whole, self._settings.schema.person, self._person_key, self._readers))

    def _push_piece(self, piece: Piece) -> Release:
        reasons = self._reasons_of(piece)
        usable = reasons == NO_REASON
        first = self._seen
        self._number(piece.batch, usable, reasons)
        rows = first + np.flatnonzero(usable)
        if self._kept:
            self._kept.add(rows, piece.batch.select(self._kept.schema.names).filter(pa.array(usable)))
        piece.keep_only(usable)
        codes = self._codes_of(piece.raws)
        self._count_unknown(codes)
        keys = np.ascontiguousarray(piece.persons.T)
        decided = list(self._take(Arrivals(rows, keys, codes, self._crowds_of(codes))))
        dead = np.flatnonzero(~usable)
        return self._release(decided, first + dead, reasons[dead])

    def _reasons_of(self, piece: Piece) -> Reasons:
        """Why rows cannot be used; of several columns the first is named."""
        reasons = np.full(len(piece), NO_REASON, dtype=np.int16)
        nameless, *of_readers = [piece.read(part) for part in range(piece.parts)]
        for number, refused in reversed(list(enumerate(of_readers))):
            reasons[refused] = FIRST_REFUSED + number
        reasons[nameless] = NULL_PERSON
        return reasons

    def _number(self, batch: pa.RecordBatch, usable: Bools, reasons: Reasons) -> None:
        """Number the rows, count what is refused and what is clamped."""
        for reason, count in zip(*np.unique(reasons[~usable], return_counts=True), strict=True):
            self._counts[self._reasons[int(reason)]] += int(count)
        self._counts["clamped"] += sum(
            reader.count_clamped(batch.column(reader.name), usable)
            for reader in self._readers
            if isinstance(reader, NumericReader)
        )
        self._seen += batch.num_rows

    def _codes_of(self, raws: npt.NDArray[np.float64]) -> Ints:
        """A code for each quasi-identifier and row."""
        found = np.empty(raws.shape, dtype=np.int64)
        for a in range(len(self._readers)):
            found[a] = self._grids[a].cells_of(raws[a]) if a in self._grids else as_codes(raws[a])
        return found

    def _crowds_of(self, codes: Ints) -> Ints:
        """The k each row asks for: the largest of its columns' density classes."""
        crowds = np.zeros(codes.shape[1], dtype=np.int64)
        for a, table in self._crowd_tables.items():
            own = np.where(are_unknown(codes[a]), self._unknown_codes.get(a, 0), codes[a])
            crowds = np.maximum(crowds, table[own])
        return crowds if self._crowd_tables else np.full_like(crowds, self._settings.k)

    # ---- deciding

    def _take(self, arrivals: Arrivals) -> Iterator[Decided]:
        """Let rows leave at once or wait; whenever a window is full, form groups."""
        begin, count, window = 0, len(arrivals.rows), self._settings.window
        while begin < count:
            end = min(count, begin + window - self._came % window)
            yield from self._take_run(arrivals.between(begin, end))
            if self._came % window == 0:
                yield from self._form(int(arrivals.rows[end - 1]))
            begin = end

    def _take_run(self, run: Arrivals) -> Iterator[Decided]:
        count = len(run.rows)
        numbers = np.arange(self._came, self._came + count)
        self._came += count
        stays = np.ones(count, dtype=np.bool_)
        if self._grouping is not None:
            joined = self._grouping.join(run.codes)
            stays[joined.places] = False
            if len(joined.places):
                rows = run.rows[joined.places]
                yield self._left(Decided(-1, rows, np.zeros_like(rows), joined, is_round=False))
        codes, keys = np.ascontiguousarray(run.codes[:, stays]), np.ascontiguousarray(run.keys[:, stays])
        self._waiting.add(run.rows[stays], numbers[stays], keys, codes, run.crowds[stays])

    def _form(self, at: int) -> Iterator[Decided]:
        """Form groups among the rows that wait; what leaves, leaves after the record `at`."""
        if self._grouping is None:
            self._freeze()
        assert self._grouping is not None
        waiting = self._waiting
        left = self._grouping.form(waiting.codes, waiting.people())
        if len(left.places):
            left = left.ordered(self._order_of(left.groups))
            rows, delays = waiting.rows[left.places], self._came - 1 - waiting.arrivals[left.places]
            waiting.drop(left.places)
            yield self._left(Decided(at, rows, delays, left, is_round=True))

    def _order_of(self, groups: Ints) -> Ints:
        """An order for the rows of a round: by group, then by chance. In the order they came they would tell when."""
        counter = [0, 0, self._came, self._counts[RELEASED]]
        chance = np.random.Generator(np.random.Philox(key=self._order_key, counter=counter))
        return np.lexsort((chance.permutation(len(groups)), groups)).astype(np.int64)

    def _left(self, decided: Decided) -> Decided:
        self._counts[RELEASED] += len(decided.rows)
        self._lost += int(decided.leaving.losses.sum())
        return decided

    # ---- what comes out

    def _release(self, decided: list[Decided], dead: Ints, reasons: Reasons) -> Release:
        rows = self._rows(decided)
        self._kept.keep_only(self._waiting.rows)
        return Release(rows, partial(self._trace, decided, dead, reasons))

    def _rows(self, decided: list[Decided]) -> pa.RecordBatch:
        nothing = pa.RecordBatch.from_pylist([], schema=self._output_schema)
        return pa.concat_batches([nothing, *map(self._rows_of, decided)])

    def _rows_of(self, decided: Decided) -> pa.RecordBatch:
        assert self._grouping is not None
        shown = self._grouping.columns(decided.leaving, self._output_schema.types[: len(self._readers)])
        kept = self._kept.take(decided.rows).columns if self._kept else []
        return pa.RecordBatch.from_arrays([*shown, *kept], schema=self._output_schema)

    def _trace(self, decided: list[Decided], dead: Ints, reasons: Reasons) -> pa.RecordBatch:
        """One row a decision, in the order in which pushing one by one would decide."""
        left = [len(part.rows) for part in decided]
        rows = np.concatenate([*(part.rows for part in decided), dead])
        # A row that leaves at once is decided with itself, those of a round right after the record that filled it.
        at = [np.full(len(part.rows), 2 * part.at + 1) if part.is_round else 2 * part.rows for part in decided]
        order = np.argsort(np.concatenate([*at, 2 * dead]), kind="stable")
        released = np.arange(len(rows)) < sum(left)
        k = np.concatenate([*(part.leaving.crowds for part in decided), np.zeros(len(dead), np.int64)])
        columns = {
            "row": rows,
            "group": np.concatenate([*(part.leaving.groups for part in decided), np.zeros(len(dead), np.int64)]),
            "delay": np.concatenate([*(part.delays for part in decided), np.zeros(len(dead), np.int64)]),
            "k": k,
            "k_s": self._k_s(k),
        }
        why = np.concatenate((np.zeros(sum(left), np.int16), reasons))
        return self._trace_batch({name: column[order] for name, column in columns.items()}, released[order], why[order])

    def _k_s(self, crowds: Ints) -> Ints:
        frozen = self.frozen
        return frozen.by_crowd()[crowds] if frozen is not None else np.zeros_like(crowds)

    def _trace_batch(self, columns: dict[str, Ints], released: Bools, why: Reasons) -> pa.RecordBatch:
        verdicts = np.where(released, IS_RELEASED, IS_DEAD).astype(np.int8)
        found = {name: pa.array(column, mask=None if name in ("row", "delay") else ~released)
                 for name, column in columns.items()}  # fmt: skip
        found["verdict"] = pa.DictionaryArray.from_arrays(pa.array(verdicts), pa.array(VERDICTS))
        found["reason"] = pa.DictionaryArray.from_arrays(pa.array(why, mask=released), self._reason_names)
        schema = self.trace_schema
        return pa.RecordBatch.from_arrays([found[name] for name in schema.names], schema=schema)

    # ---- time and end

    def advance(self, now: object) -> Release:
        now_ns(now, name="now")  # nothing is decided by the clock, but what is no time is told
        return self._release([], np.empty(0, np.int64), np.empty(0, np.int16))

    def flush(self) -> Release:
        """Let leave whatever can; the rest stays pending."""
        decided: list[Decided] = []
        while len(self._waiting):
            # Groups that were just published may take in some of the rest.
            formed = list(self._form(self._seen))
            if not formed:
                break
            decided += formed
        return self._release(decided, np.empty(0, np.int64), np.empty(0, np.int16))
