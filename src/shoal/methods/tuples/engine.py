"""The engine of the tuple methods: a reader, a decider, a publisher, and the guarantee they give together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.crypto.keys import Secret
from shoal.kernels.tuples import layout as t
from shoal.methods.arrow_input import as_bytes
from shoal.methods.base import Guarantee, Record
from shoal.methods.quasi_readers import Bools, Ints
from shoal.methods.release import NO_REASON, Counts, Refusal, Release
from shoal.methods.schema_reader import AHEAD, Chunk, Reasons, Single, explain, tuple_reasons
from shoal.methods.tuples.decider.base import Decided, Decider
from shoal.methods.tuples.publisher import TuplePublisher, TupleTracer, at_once
from shoal.methods.tuples.reader import StreamClock, TupleReader
from shoal.methods.tuples.settings import TupleSettings

CHUNK_ROWS: Final = 16_384
_NO_ROWS: Final = np.empty(0, dtype=np.int64)
_NO_REASONS: Final = np.empty(0, dtype=np.int16)


class TupleEngine:
    """An :class:`shoal.methods.engine.Engine` that reads tuples, has them decided and publishes the decisions.

    With `fills_missing`, a row shows what its cluster shows where its own value is missing, in the papers' mode too.
    `chunk_rows` are read and decided at once. `start` computes what is needed later: at once, or in threads.
    """

    def __init__(
        self,
        method: str,
        settings: TupleSettings,
        secret: Secret,
        reader: TupleReader,
        decider: Decider,
        *,
        fills_missing: bool = False,
        chunk_rows: int | None = None,
        start: Callable[..., Callable[[], list[Any]]] = at_once,
    ) -> None:
        self._settings, self._reader, self.decider = settings, reader, decider
        self._chunk_rows, self._start = chunk_rows or CHUNK_ROWS, start
        self._clock = StreamClock(settings.max_gap_ns)
        self._publisher = TuplePublisher(settings, secret, reader.quasi, fills_missing=fills_missing, start=start)
        self.columns = settings.schema.columns
        self.counts = Counts(tuple_reasons(settings.schema))
        self.guarantee = guarantee_of(method, settings)
        self._tracer = TupleTracer(settings, self.counts.reasons, reader.codes)
        self.trace_schema = self._tracer.schema

    # ---- what it knows

    @property
    def pending(self) -> int:
        return self.decider.pending

    @property
    def state_bytes(self) -> int:
        return self.decider.nbytes

    @property
    def metrics(self) -> dict[str, Any]:
        """How the stream went so far.

        ``loss`` is the average over decided rows of what a row lost of the attributes it carries (a suppressed row
        lost all), ``loss_all`` the same over all attributes, ``cost`` the loss grown by ``1 + alpha`` for every
        arrival (or second) of delay. ``delay`` and ``max_delay`` are in arrivals or seconds. ``rare_patterns`` counts
        rows that were suppressed although k people were pending, because fewer than k lacked the same attributes;
        ``filled`` counts values that rows show although their records lack them, but for suppressed rows at the root.
        """
        tally, sums = self.decider.tally, self.decider.sums
        decided = max(int(tally[t.RELEASED] + tally[t.SUPPRESSED]), 1)
        unit = 1e9 if self._settings.is_timed else 1
        return {
            "loss": float(sums[t.LOSS]) / decided,
            "loss_all": float(sums[t.LOSS_ALL]) / decided,
            "cost": float(sums[t.COST]) / decided,
            "delay": int(tally[t.DELAYS]) / decided / unit,
            "max_delay": int(tally[t.LONGEST]) / unit,
            "formed": int(tally[t.FORMED]),
            "merged": int(tally[t.MERGED]),
            "reused": int(tally[t.REUSED]),
            "suppressed": int(tally[t.SUPPRESSED]),
            "rare_patterns": int(tally[t.RARE]),
            "filled": int(tally[t.FILLED]),
            "clamped": self.counts.clamped,
        }

    def take_changes(self) -> list[Any]:
        return []

    def explain(self, reason: str) -> Refusal:
        return explain(reason, self._settings.schema)

    # ---- types

    def assumed_schema(self) -> pa.Schema:
        return self._reader.columns.assumed_schema()

    def check_types(self, fields: pa.Schema) -> None:
        self._reader.check_types(fields)

    def set_types(self, schema: pa.Schema, *, is_bound: bool) -> pa.Schema:
        self._reader.set_types(schema, is_bound=is_bound)
        self.decider.know_values()
        self._output_schema, carried = self._reader.columns.output_schema(schema)
        self._publisher.set_types(self._output_schema, carried)
        return self._output_schema

    # ---- batches

    def push_batches(self, batches: list[pa.RecordBatch]) -> list[Release]:
        """Decide about batches, chunk by chunk; all of it is published at once."""
        size = self._chunk_rows
        chunks = [batch.slice(start, size) for batch in batches for start in range(0, batch.num_rows, size)]
        if len(chunks) > 1:  # refuse too many sensitive values before any chunk is accepted
            self._reader.check_room(chunks)
        decided = [self._decide_chunk(chunk, refused()) for chunk, refused in self._read_ahead(chunks)]
        if not decided:
            return []
        parts, dead, reasons = zip(*decided, strict=True)
        return [self._release(Decided.joined([*chain(*parts)]), np.concatenate(dead), np.concatenate(reasons))]

    def _read_ahead(self, batches: list[pa.RecordBatch]) -> Iterator[tuple[Chunk, Callable[[], list[Bools]]]]:
        """The chunks, and what their columns refuse; reading the next has begun when one is handed over."""
        waiting = None
        for batch in batches:
            chunk = self._reader.columns.chunk(batch)
            begun = chunk, self._start(chunk.read, chunk.parts)
            if waiting is not None:
                yield waiting
            waiting = begun
        if waiting is not None:
            yield waiting

    def _decide_chunk(self, chunk: Chunk, refused: list[Bools]) -> tuple[list[Decided], Ints, Reasons]:
        """What is decided during a chunk, which of its rows are refused, and why."""
        reasons, times = self._reader.columns.reasons(chunk, refused)
        clock = self._clock.state
        if self._settings.is_timed:
            clock, times = self._clock.moved(chunk.persons, times, reasons)
        usable = reasons == NO_REASON
        codes = self._reader.code_sensitive(chunk.batch, usable)  # may refuse the batch: nothing has changed yet
        if len(codes):
            self.decider.know_values()
        self._clock.state = clock
        first, dead = self.counts.pushed, np.flatnonzero(~usable)
        self.counts.pushed += len(chunk)
        self.counts.refuse_all(reasons[dead].tolist())
        self.counts.clamped += self._reader.columns.count_clamped(chunk.batch, usable)
        rows = first + np.flatnonzero(usable)
        carried = self._publisher.carried
        if carried:  # filtering copies, which must be: the buffers are the caller's
            carried.add(rows, chunk.batch.select(carried.schema.names).filter(pa.array(usable)))
        chunk.keep_only(usable)
        times = times if self._settings.is_timed else times[usable]
        decided = self.decider.take(self._reader.arrivals(chunk, rows, times, codes))
        return decided, first + dead, reasons[dead]

    def _release(self, decided: Decided, dead: Ints = _NO_ROWS, reasons: Reasons = _NO_REASONS) -> Release:
        self._count(decided)
        decided = self._publisher.in_order(decided)
        rows = self._publisher.rows(decided)
        if self._publisher.carried:
            self._publisher.carried.keep_only(self.decider.pending_rows())
        return Release(rows, partial(self._tracer.trace, decided, dead, reasons))

    def _count(self, decided: Decided) -> None:
        released = int(np.count_nonzero(decided.is_released))
        self.counts.released += released
        self.counts.suppressed += len(decided) - released

    # ---- single records

    def read_record(self, record: Record, known: pa.Schema | None) -> tuple[Single, pa.Schema]:
        return self._reader.read_one(record, known)

    def push_record(self, record: Single) -> list[dict[str, Any]]:
        reason = record.reason
        if reason is None and self._settings.is_timed and not self._clock.move(record.keys, record.time):
            reason = AHEAD
        row, self.counts.pushed = self.counts.pushed, self.counts.pushed + 1
        if reason is not None:
            self.counts.refuse(reason)
            return []
        self.counts.clamped += record.clamped
        arrivals = self._reader.arrival(record, row, self._clock.now if self._settings.is_timed else 0)
        if len(arrivals.sensitive):
            self.decider.know_values()
        carried = self._publisher.carried
        carried.add_one(row, tuple(record.given.get(name) for name in carried.schema.names))
        decided = Decided.joined(self.decider.take(arrivals))
        if not len(decided):
            return []
        self._count(decided)
        return self._publisher.records(self._publisher.in_order(decided))

    # ---- time and end

    def advance(self, now_ns: int) -> Release:
        """Decide what is due by now, where deadlines are durations."""
        if not self._settings.is_timed:
            nothing = (pa.RecordBatch.from_pylist([], schema=kind) for kind in (self._output_schema, self.trace_schema))
            return Release(*nothing)
        self._clock.advance(now_ns)
        return self._after_last(self.decider.pass_time(self._clock.now))

    def flush(self) -> Release:
        self._clock.confirm()
        return self._after_last(self.decider.finish())

    def _after_last(self, parts: list[Decided]) -> Release:
        """Publish what a call without records decided: all of it is one event, after the last record."""
        return self._release(Decided.joined(parts).during(self.counts.pushed - 1)).made()

    # ---- snapshots

    def dump(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """The state as named arrays."""
        arrays = {f"state.{name}": array for name, array in self.decider.dump().items()}
        carried = self._publisher.carried.forget_all_but(self.decider.pending_rows())
        arrays |= {"clock": self._clock.state, "carried": as_bytes(carried.serialize())}
        for number, column in enumerate(self._reader.codes):
            batch = pa.RecordBatch.from_arrays([pa.array(column.seen, type=column.kind)], names=["value"])
            arrays[f"sensitive{number}"] = as_bytes(batch.serialize())
        return {}, arrays

    def load(self, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self._clock.state = arrays["clock"].copy()
        for number, column in enumerate(self._reader.codes):
            kind = pa.schema([("value", column.kind)])
            batch = pa.ipc.read_record_batch(pa.py_buffer(arrays[f"sensitive{number}"]), kind)
            column.code_all(batch.column(0).to_pylist())
        self.decider.know_values()
        prefix = "state."
        state = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
        self.decider.load(state)
        carried = self._publisher.carried
        kept = pa.ipc.read_record_batch(pa.py_buffer(arrays["carried"]), carried.schema)
        carried.add(self.decider.pending_rows(), kept)


_PROMISES: Final = {
    "own": (
        "every published combination of quasi-identifiers is shared by at least {k} different people, all "
        "of them with a value for what it shows and none for what it does not"
    ),
    "covered": (
        "every published combination of quasi-identifiers, missing values included, is shared by at least {k} "
        "different people, and each attribute shown was carried by at least {carriers} of them"
    ),
    "hidden": (
        "every published combination of quasi-identifiers, missing values included, is shared by at least {k} "
        "different people, all of them with a value for what is shown"
    ),
    "paper": (
        "every row was generalized together with rows of at least {k} different people; which attributes are missing "
        "still tells rows apart, so this is not k-anonymity"
    ),
}


def guarantee_of(method: str, settings: TupleSettings) -> Guarantee:
    """The guarantee of a method with these settings."""
    deadline = int(settings.deadline) if settings.KEEPS_DEADLINE else None
    in_arrivals = None if settings.is_timed else deadline
    return Guarantee(
        method=method,
        statement=_statement(settings),
        parameters=settings.describe(),
        max_delay_ns=deadline if settings.is_timed else None,
        max_pending=in_arrivals,
        max_delay_arrivals=in_arrivals,
    )


def _statement(settings: TupleSettings) -> str:
    each = "each cluster, but not each class of equal rows," if settings.missing == "paper" else "each"
    parts = [_PROMISES[settings.missing].format(k=settings.k, carriers=settings.carriers)]
    if settings.distinct_l > 1:
        parts.append(f"{each} with at least {settings.distinct_l} different known sensitive values, or none")
    if settings.entropy > 1.0:
        parts.append(f"{each} with known sensitive values whose entropy is at least log {settings.entropy:g}, or none")
    if settings.t is not None:
        parts.append(f"{each} with sensitive values, and those that are known, within {settings.t:g} of the reference")
    if settings.max_share is not None:
        parts.append(f"no person has more than {settings.max_share:g} of the rows of one")
    return "; ".join(parts)
