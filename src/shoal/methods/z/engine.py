"""The engine of z-anonymity: reader, admission, judge and publisher at work, for batches and for single records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.crypto.keys import Secret
from shoal.crypto.pseudonyms import Pseudonyms
from shoal.kernels import clock as clock_kernel
from shoal.methods.base import Record
from shoal.methods.release import NO_REASON, Counts, Refusal, Release
from shoal.methods.text_keys import Bools, Ints, as_text, key_words
from shoal.methods.z.admission import REASONS, Admission, Admitted, Clock
from shoal.methods.z.crowds.columns import CrowdColumn
from shoal.methods.z.epochs.combiner import Combiner, Passed
from shoal.methods.z.epochs.follower import Follower, ZChange
from shoal.methods.z.epochs.values import CrowdSizes, value_tracer_for
from shoal.methods.z.helper_thread import ahead, pieces_of
from shoal.methods.z.judge import Judge, Judged
from shoal.methods.z.pieces import PieceWork, PublishedPieces
from shoal.methods.z.publisher import Publisher
from shoal.methods.z.reader import AHEAD, Arrivals, Event, Reader, explain, reasons_of
from shoal.methods.z.reorder_buffer import OneWaiting, Waiting
from shoal.methods.z.settings import ZSettings, guarantee_of
from shoal.methods.z.trace import AT_ONCE, Decisions, tracer_for


@dataclass(frozen=True, slots=True)
class _Turns:
    """When rows are decided."""

    numbers: Ints
    """The number of the arrival with which each row is decided."""
    delays: Ints
    clock: Clock
    refused: Decisions | None = None
    """Decisions on the arrivals that are refused, where the rows decided are others."""


def _at_once(admitted: Admitted) -> _Turns:
    """Every row is decided with its own arrival."""
    return _Turns(admitted.numbers, np.zeros(len(admitted), dtype=np.int64), admitted.clock)


class ZEngine:
    """Reads, decides and publishes; a target adds a follower, combine a combiner.

    With `is_apart`, values are judged for epochs that another process closes (see epochs/values.py); `has_keys`: for
    one that follows a stream of which it gets one part after another.
    """

    def __init__(self, settings: ZSettings, secret: Secret, *, is_apart: bool = False, has_keys: bool = False) -> None:
        self._settings = settings
        self._person, self._lateness_ns = settings.person, settings.lateness_ns  # read once: settings are slow to read
        self._waits = self._lateness_ns > 0
        self.columns = settings.read_columns
        self.guarantee = guarantee_of(settings)
        reasons = reasons_of(settings)
        self.counts = Counts(reasons)
        self._tracer: Any = (
            value_tracer_for(settings, reasons, has_keys=has_keys) if is_apart else tracer_for(settings, reasons)
        )
        self.trace_schema = self._tracer.schema
        self.attributes = [
            CrowdColumn(column, key_words(secret.subkey("table of values", column.name.encode())))
            for column in settings.attributes
        ]
        person_key = key_words(secret.subkey("table of people"))
        self._keeps_blank = not settings.is_table and settings.attributes[0].on_private == "blank"
        self.follower = None if settings.target is None or is_apart else Follower(
            settings.target, rotation_ns=settings.rotation_ns, keeps_blank=self._keeps_blank,
            windows_ns=[column.window_ns for column in settings.attributes],
        )  # fmt: skip
        self.sizes = CrowdSizes(settings, has_keys=has_keys) if settings.target is not None and is_apart else None
        self.combiner = (
            None if settings.k is None or is_apart else Combiner(settings, settings.k, keeps_blank=self._keeps_blank)
        )
        self.reader = Reader(settings, self.attributes, person_key)
        self.admission = Admission(settings, person_key, self.reader, self.counts)
        self._judge = Judge(
            settings, self.attributes, follower=self.sizes or self.follower, keeps_blank=self._keeps_blank
        )
        self._publisher = Publisher(settings, self.attributes, Pseudonyms(secret, rotation_ns=settings.rotation_ns))
        self.assumed_schema = self.reader.assumed_schema
        self.check_types = self.reader.check_types
        self.read_record = self.reader.read_record

    # ---- what it is

    @property
    def pending(self) -> int:
        """Records accepted and not decided yet."""
        return len(self._judge.buffer) + (0 if self.combiner is None else len(self.combiner.epochs))

    @property
    def metrics(self) -> dict[str, Any]:
        """The z in force and how past epochs went, with a target; else empty."""
        return {} if self.follower is None else self.follower.metrics()

    @property
    def state_bytes(self) -> int:
        """Bytes of the tables."""
        return sum(column.nbytes for column in self.attributes)

    def take_changes(self) -> list[ZChange]:
        """Every z set since the last call; none where z is fixed."""
        return [] if self.follower is None else self.follower.take_changes()

    def explain(self, reason: str) -> Refusal:
        """Why a record with this reason is refused, in words."""
        return explain(reason, self._settings)

    def set_types(self, schema: pa.Schema, *, is_bound: bool) -> pa.Schema:
        """Prepare for input of these types; return the output schema."""
        output = self._publisher.set_types(schema)
        self.reader.schema = self._judge.buffer.schema = schema
        if self.combiner is not None:
            self.combiner.epochs.schema = output
        return output

    # ---- batches

    def push_batches(self, batches: list[pa.RecordBatch]) -> list[Release]:
        """Decide about batches; all threads read and publish pieces of them, and count shards of their values."""
        pieces = pieces_of(batches)
        if len(pieces) <= 1 or self._waits or self.combiner is not None:
            read_ahead = ahead(self.reader.read, pieces)
            return [release for read in read_ahead for release in self.judge(self.admission.admit(read))]
        published = PublishedPieces(self._publisher, sum(piece.num_rows for piece in pieces))
        releases = []
        while pieces and not self.admission.is_confirmed:  # time may start over
            releases += self.judge(self.admission.admit(self.reader.read(pieces.pop(0))), published)

        def note(judged: Judged, admitted: Admitted) -> None:
            releases.append(self._counted(None, self._decided(judged, _at_once(admitted))))

        PieceWork(self.reader, self.admission, self._judge, published, note=note).run(pieces)
        return [Release(published.joined, lambda: pa.concat_batches([release.trace for release in releases]))]

    # ---- admission

    def admit(self, batches: list[pa.RecordBatch]) -> Admitted:
        """Number rows, let them move time and refuse what is late, too far ahead or unusable."""
        admitted = self.admission.admit(self.reader.read(self.reader.joined(batches)))
        return Admitted(admitted.rows, admitted.clock.condensed())

    def refused(self, admitted: Admitted) -> pa.RecordBatch:
        """The trace of the rows that admission refused."""
        rows, dead = admitted.rows, ~admitted.accepted
        return self._tracer.trace(self._tracer.refused(rows.seqs[dead], rows.times[dead], rows.reasons[dead]))

    # ---- judgement

    def judge(self, admitted: Admitted, published: PublishedPieces | None = None) -> list[Release]:
        """Judge rows, and publish those that pass; one release for each stretch of the clock."""
        first, *later = admitted.clock.stretches()
        if not later:
            return [self._decide(admitted.rows, first, published)] if len(first.numbers) else []
        starts = np.searchsorted(admitted.numbers, admitted.clock.restarts).tolist()
        bounds = pairwise([*starts, len(admitted)])
        releases = []
        if len(first.numbers):
            releases.append(self._decide(self.reader.part(admitted.rows, 0, starts[0]), first, published))
        for clock, (start, stop) in zip(later, bounds, strict=True):
            part = self.reader.part(admitted.rows, start, stop)
            releases += [self._start_over(), self._decide(part, clock, published)]
        return releases

    def _decide(self, arrivals: Arrivals, clock: Clock, published: PublishedPieces | None = None) -> Release:
        """Decide about rows just admitted, or about those that waited and whose turn has come with them."""
        if not len(arrivals.seqs):
            arrivals = self.reader.read(self.reader.joined([]))  # in the types of this engine
        if self._waits:
            ready, numbers, delays = self._judge.reorder(arrivals, clock)
            dead = arrivals.reasons != NO_REASON
            refused = self._tracer.refused(arrivals.seqs[dead], arrivals.times[dead], arrivals.reasons[dead])
            turns, rows = _Turns(numbers, delays, clock, refused), self.reader.read_waiting(ready)
        else:
            turns, rows = _at_once(Admitted(arrivals, clock)), arrivals
        release = self._release(self._judge.judge(rows), turns, published)
        if not len(arrivals.seqs) and not clock.is_end:
            self._judge.expire(int(clock.newest[-1]) - self._lateness_ns)
        return release

    def _release(self, judged: Judged, turns: _Turns, published: PublishedPieces | None) -> Release:
        """Publish what passed z, here or as one of several pieces, or let it wait for the end of its epoch."""
        combiner, refused = self.combiner, [] if turns.refused is None else [turns.refused]
        if combiner is None:
            rows = self._publisher.rows(judged, judged.passed) if published is None else None
            if published is not None:
                published.add(judged, judged.passed)()
            decisions = self._decided(judged, turns)
            if refused:
                decisions = Decisions.joined([decisions, *refused])
                decisions = decisions.arranged(np.argsort(decisions.turns, kind="stable"))
        else:
            waits = combiner.waits(judged)
            combiner.keep(judged, waits, self._publisher.rows(judged, waits))
            decided = _decisions(judged, turns, released=np.zeros_like(waits), has_epochs=True).arranged(~waits)
            closed = combiner.close_ended(turns.clock)
            rows, decisions = combiner.joined(Decisions.joined([decided, *refused]), closed)
        return self._counted(rows, decisions)

    def _decided(self, judged: Judged, turns: _Turns) -> Decisions:
        """Decisions on rows that are published if they passed z."""
        return _decisions(judged, turns, released=judged.passed, has_epochs=self._settings.k is not None)

    def _counted(self, rows: pa.RecordBatch | None, decisions: Decisions) -> Release:
        released, judged = np.count_nonzero(decisions.released), np.count_nonzero(decisions.reasons == NO_REASON)
        self.counts.released += int(released)
        self.counts.suppressed += int(judged - released)
        return Release(rows, partial(self._tracer.trace, decisions))

    def _start_over(self) -> Release:
        """Forget the stream so far, because the first clock was wrong; refuse all rows that wait under it."""
        # only one person was seen, so no set was published, blank rows at most: every epoch is open again
        waiting: list[Passed | Waiting] = [] if self.combiner is None else [self.combiner.epochs.forget()]
        parts = [
            self._tracer.refused(rows.seqs, rows.times, np.full(len(rows), AHEAD, dtype=np.int8))
            for rows in (*waiting, self._judge.forget())
        ]
        self.counts.refuse(AHEAD, sum(len(part.rows) for part in parts))
        return self._counted(pa.RecordBatch.from_pylist([], schema=self._publisher.schema), Decisions.joined(parts))

    # ---- single records

    def push_record(self, event: Event) -> list[dict[str, Any]]:
        """Decide about one record: the same decisions as for batches, without Arrow on the way."""
        record, person, time, texts, reason = event
        counts = self.counts
        seq = counts.pushed
        counts.pushed += 1
        if reason == NO_REASON:
            code = self.admission.admit_one(person, time)
            reason = REASONS[code]
            if code == clock_kernel.RESTART:
                self._start_over()
        if reason != NO_REASON:
            counts.refuse(reason)
            return []
        if not self._waits:
            rows = self._decide_one(record, person, time, texts, seq)
        else:
            ((low, high),) = self.admission.person.tolist()
            waiting = OneWaiting(time, seq, (low, high), {name: record.get(name) for name in self.columns})
            self._judge.buffer.add_one(waiting)
            rows = self._decide_ready()
        return rows if self.combiner is None else rows + self._rows_of_ended(self.combiner)

    def _decide_ready(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        limit = self.admission.newest - self._lateness_ns
        while (one := self._judge.buffer.pop_one(limit)) is not None:
            self.admission.person[0] = one.key
            person = as_text(one.record[self._person]) or ""
            rows += self._decide_one(one.record, person, one.time, self.reader.texts(one.record), one.seq)
        return rows

    def _decide_one(
        self, record: Record, person: str, time: int, texts: list[str | None], seq: int
    ) -> list[dict[str, Any]]:
        levels = self._judge.judge_one(texts, self.admission.person, time)
        if max(levels) < 0 and not self._keeps_blank:
            self.counts.suppressed += 1
            return []
        row = self._publisher.row(record, person, time, texts, levels)
        if self.combiner is None:
            self.counts.released += 1
            return [row]
        if not self.combiner.keep_one(seq, time, levels, row):
            self.counts.suppressed += 1
        return []

    def _rows_of_ended(self, combiner: Combiner) -> list[dict[str, Any]]:
        clock = Clock(np.zeros(1, np.int64), np.array([self.admission.newest]))
        ended = (self._counted(*closed) for closed in combiner.close_ended(clock))
        return [row for release in ended for row in release.rows.to_pylist()]

    # ---- time and end

    def advance(self, now_ns: int) -> Release:
        """Let time pass without a record."""
        (release,) = self.judge(self.admission.admit_time(now_ns))
        return release

    def flush(self) -> Release:
        """Decide everything pending; what comes later and is older is late."""
        (release,) = self.judge(self.admission.admit_end())
        return release

    # ---- state

    def dump(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """The state as plain values and named arrays."""
        return {}, {
            **self.admission.dump(),
            **self._judge.dump(),
            **({} if self.combiner is None else self.combiner.dump()),
        }

    def load(self, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over a state from dump()."""
        self.admission.load(arrays)
        self._judge.load(arrays)
        if self.combiner is not None:
            self.combiner.load(arrays)


def _decisions(judged: Judged, turns: _Turns, *, released: Bools, has_epochs: bool = False) -> Decisions:
    arrivals, details = judged.arrivals, np.empty((len(judged.arrivals.seqs), 0), dtype=np.int64)
    if judged.z is not None:
        details = judged.z if judged.z.ndim > 1 else judged.z[:, np.newaxis]
    elif has_epochs:
        details = np.column_stack((np.full(len(arrivals.seqs), AT_ONCE), *judged.levels))
    return Decisions(arrivals.seqs, arrivals.times, turns.numbers, released, arrivals.reasons, turns.delays, details)
