"""z-anonymity: an event leaves at once if at least z people did the same within the window."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import pyarrow as pa

from shoal.anonymizers.attributes import OnPrivate
from shoal.anonymizers.base import DEAD, RELEASED, SUPPRESSED, VERDICTS, Anonymizer, Guarantee, Record, Refusal, Release
from shoal.anonymizers.exposures import Bools, Ints, Texts, as_text, is_text_like, key_words
from shoal.anonymizers.held import HeldRows, OneWaiting, Waiting
from shoal.anonymizers.helper_thread import one_ahead, piece_rows, soon
from shoal.anonymizers.intake import (
    as_bytes,
    fits,
    plain,
    plain_type,
    record_batches,
    record_type,
    require_same,
    select,
    without_views,
)  # fmt: skip
from shoal.anonymizers.traces import NO_REASON, Decisions, Tracer
from shoal.anonymizers.z_arrivals import Arrivals
from shoal.anonymizers.z_reasons import (
    AHEAD,
    BAD_TIME,
    FIRST_UNKNOWN,
    LATE,
    NULL_PERSON,
    NULL_TIME,
    explain,
    reasons_for,
)
from shoal.anonymizers.z_settings import ZSettings, check_settings, settings_from
from shoal.errors import CheckpointError, InputError
from shoal.hierarchies import Hierarchy
from shoal.kernels import clock as clock_kernel
from shoal.kernels.events import admit_text
from shoal.times import EARLIEST, LATEST, column_ns, is_time_type, now_ns, value_ns
from shoal.vault.keys import Secret, as_secret
from shoal.vault.pseudonyms import Pseudonyms
from shoal.vault.snapshots import State, open_state, seal_state

Rows: TypeAlias = "pa.RecordBatch | Callable[[], pa.RecordBatch]"
When: TypeAlias = Callable[..., Rows]
"""How to call a function: at once, or soon in the other thread."""


def at_once(function: Callable[..., pa.RecordBatch], *args: Any) -> pa.RecordBatch:
    """Call a function now."""
    return function(*args)


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    rows = piece_rows(batch.num_rows)
    return (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))


class ZAnonymity(Anonymizer):
    """Release an event at once if at least z different people exposed the same value within the window.

    **Promise.** Every value that leaves at time t was exposed by at least ``z`` different people, the row's own
    person among them, at times t' with ``t - window <= t' <= t``. People are counted, never events; the count is
    exact. With several attribute columns this holds for each column, not for the combination in one row.

    **It does not protect** someone by the combination of what is released of them (see docs/guarantees), nor by the
    times and the order of rows, nor across epochs if their behaviour or a carried column gives them away.

    Parameters
    ----------
    z
        How many people must have exposed a value, at least 1.
    window
        How far back they are counted: a duration such as ``"1h"``, or seconds. The window is closed.
    person, time, attribute
        Column names. ``attribute`` may be a table of columns, ``{"site": {"z": 20, "window": "1h"}, …}``; then a
        private value is blanked and a row leaves unless all its values are private.
    hierarchy, on_private
        What to do with a private value: ``"drop"`` the row, ``"blank"`` the value, or ``"generalize"`` it up the
        hierarchy to the most specific label that passes.
    lateness
        How long events are held so that late ones can be sorted in. With 0 nothing is held and an event older than
        the newest is refused.
    max_gap
        An event further ahead than this does not move time before a second person's event confirms it.
    rotation
        How long a pseudonym lasts; by default the (shortest) window.
    carry
        Columns that leave unchanged.
    key
        At least 16 secret bytes for pseudonyms and snapshots. By default those in the file that the environment
        variable ``SHOAL_KEY_FILE`` names, else random ones that end with the process.

    Examples
    --------
    A value is held back until a second person shows it:

    >>> z = ZAnonymity(z=2, window="1h", person="user", time="ts", attribute="site", key=bytes(16))
    >>> z.push({"ts": 0, "user": "ann", "site": "a.example"})
    []
    >>> z.push({"ts": 60, "user": "bob", "site": "a.example"})
    [{'ts': 60, 'user': '...', 'site': 'a.example'}]
    >>> z.push({"ts": 4000, "user": "ann", "site": "a.example"})
    []
    >>> z.counts["suppressed"], z.counts["released"]
    (2, 1)

    References
    ----------
    Jha, Vassio, Trevisan, Leonardi, Mellia: Practical anonymization for data streams: z-anonymity and relation with
    k-anonymity. Performance Evaluation 159 (2023), doi:10.1016/j.peva.2022.102329; Algorithm 1.

    Notes
    -----
    One order of expiry for all attributes replaces the paper's list for each, which would keep idle attributes for
    ever. Generalizing counts for a label only exposures not released strictly below it: a plain count per level can
    be undone by subtraction. Table keys are 128 bits and keyed; see the guarantee page for what a collision would do.
    """

    method: ClassVar[str] = "z-anonymity"

    def __init__(  # noqa: PLR0913 - the method's parameters, all by name
        self,
        *,
        z: int | None = None,
        window: str | float | None = None,
        person: str,
        time: str,
        attribute: str | Mapping[str, Mapping[str, Any]],
        hierarchy: Hierarchy | None = None,
        on_private: OnPrivate = "drop",
        lateness: str | float = "0s",
        max_gap: str | float = "24h",
        rotation: str | float | None = None,
        carry: Sequence[str] = (),
        key: Secret | bytes | None = None,
    ) -> None:
        shared = {"z": z, "window": window, "hierarchy": hierarchy, "on_private": on_private}
        settings = check_settings(
            attribute=attribute, shared=shared, person=person, time=time, carry=carry,
            lateness=lateness, max_gap=max_gap, rotation=rotation,
        )  # fmt: skip
        self._begin(settings, as_secret(key))

    @classmethod
    def from_state(cls, state: State, secret: Secret) -> Self:
        """The anonymizer whose opened snapshot this is."""
        made = cls.__new__(cls)
        made._begin(settings_from(state.header["settings"]), secret)  # noqa: SLF001 - it is one of us
        made._load(state)  # noqa: SLF001
        return made

    def _begin(self, settings: ZSettings, secret: Secret) -> None:
        self._settings = settings
        self._secret = secret
        self._attributes = settings.attributes
        self._person_key = key_words(secret.subkey("table of people"))
        for column in self._attributes:
            column.rekey(key_words(secret.subkey("table of values", column.name.encode())))
        self._pseudonyms = Pseudonyms(secret, rotation_ns=settings.rotation_ns)
        self._reasons = reasons_for(column.name for column in self._attributes)
        self._tracer = Tracer(self._reasons, self._thresholds())
        self._clock = np.zeros(clock_kernel.CLOCK, dtype=np.int64)
        self._clock[clock_kernel.NEWEST] = EARLIEST  # time only ever moves forward, from the first event on too
        self._held = HeldRows()
        self._seen = 0
        self._counts = dict.fromkeys((RELEASED, SUPPRESSED, *self._reasons), 0)
        self._scratch = np.zeros((1, 2), dtype=np.int64)
        self._input_schema: pa.Schema | None = None
        self._output_schema = self._outgoing(self._assumed_schema())

    def _thresholds(self) -> dict[str, int]:
        if not self._settings.is_table:
            return {"z": self._attributes[0].z}
        return {f"z.{column.name}": column.z for column in self._attributes}

    # ---- what it is

    @property
    def columns(self) -> tuple[str, ...]:
        return self._settings.columns

    @property
    def input_schema(self) -> pa.Schema:
        return self._input_schema or self._assumed_schema()

    @property
    def output_schema(self) -> pa.Schema:
        return self._output_schema

    @property
    def trace_schema(self) -> pa.Schema:
        return self._tracer.schema

    @property
    def guarantee(self) -> Guarantee:
        promises = [
            f"every {column.name!r} that leaves was exposed by at least {column.z} different people "
            f"within the {column.window_ns / 1e9:g} s up to it"
            for column in self._attributes
        ]
        return Guarantee(
            method=self.method,
            statement="; ".join(promises),
            parameters=self._settings.describe(),
            max_delay_ns=self._settings.lateness_ns,
            max_held=0 if self._settings.lateness_ns == 0 else None,
        )

    @property
    def held(self) -> int:
        return len(self._held)

    @property
    def counts(self) -> dict[str, int]:
        """Records pushed so far by what became of them: released, suppressed, dead (and dead by reason)."""
        dead = {reason: self._counts[reason] for reason in self._reasons if self._counts[reason]}
        return {
            "pushed": self._seen,
            RELEASED: self._counts[RELEASED],
            SUPPRESSED: self._counts[SUPPRESSED],
            DEAD: sum(dead.values()),
            "held": self.held,
            **dead,
        }

    @property
    def live_pairs(self) -> int:
        """(person, value) pairs inside the windows now: what the memory is for."""
        return sum(column.crowd.live_pairs for column in self._attributes)

    @property
    def state_bytes(self) -> int:
        """Bytes of the tables."""
        return sum(column.crowd.nbytes for column in self._attributes)

    def explain(self, reason: str) -> Refusal:
        return explain(reason, person=self._settings.person, time=self._settings.time)

    # ---- types

    def bind(self, schema: pa.Schema) -> None:
        fields = select(schema, self.columns)
        self._check_types(fields)
        if self._input_schema is None:
            self._input_schema = pa.schema([(field.name, plain_type(field.type)) for field in fields])
            self._output_schema = self._outgoing(self._input_schema)

    def _check_types(self, fields: pa.Schema) -> None:
        if self._input_schema is not None:
            require_same(self._input_schema, fields)
        settings = self._settings
        if not is_time_type(fields.field(settings.time).type):
            raise InputError(
                f"column {settings.time!r}: {fields.field(settings.time).type} is no time; "
                "give timestamps, numbers of seconds, or ISO 8601 text"
            )
        for name in (settings.person, *(column.name for column in self._attributes)):
            if not is_text_like(fields.field(name).type):
                raise InputError(
                    f"column {name!r}: {fields.field(name).type} cannot be counted; give text or whole numbers"
                )

    def _assumed_schema(self) -> pa.Schema:
        types = {self._settings.time: pa.timestamp("ns", tz="UTC")}
        return pa.schema([(name, types.get(name, pa.string())) for name in self.columns])

    def _outgoing(self, schema: pa.Schema) -> pa.Schema:
        settings = self._settings
        return pa.schema(
            [
                (settings.time, schema.field(settings.time).type),
                (settings.person, pa.string()),
                *((column.name, column.output_type(schema.field(column.name).type)) for column in self._attributes),
                *((name, schema.field(name).type) for name in settings.carry),
            ]
        )

    # ---- batches

    def push_batch(self, batch: Any) -> Release:
        schema, pieces = record_batches(batch)
        fields = select(schema, self.columns)
        batches = [piece.select(fields.names) for piece in pieces]
        has_rows = any(piece.num_rows for piece in batches)
        if has_rows or not any(pa.types.is_null(kind) for kind in fields.types):
            self.bind(fields)  # an empty table has types too, unless it says nothing of them
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
        missing = ~np.asarray(batch.column(settings.time).is_valid().to_numpy(zero_copy_only=False))
        reasons[~timely] = np.where(missing[~timely], NULL_TIME, BAD_TIME)
        reasons[~people.filled] = NULL_PERSON
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
            rows, Decisions.of(arrivals.seqs, released=released, reasons=arrivals.reasons, delays=delays)
        )

    def _decide_later(self, arrivals: Arrivals) -> Release:
        """Let usable rows wait; decide what no late event can come before any more."""
        schema = self.input_schema
        usable = arrivals.usable
        self._held.gather_singles(schema)
        self._held.add(arrivals.waiting().pick(usable))
        passed = arrivals.newest - self._settings.lateness_ns
        ready = self._held.take_until(int(passed[-1]), schema)
        rows, decided = self._decide_waiting(ready)
        # a row leaves with the arrival that moved time past it: that orders the trace as one-by-one pushes would
        left_with = np.maximum(np.searchsorted(passed, ready.times), ready.seqs - arrivals.seqs[0])
        decided = Decisions(decided.rows, decided.verdicts, decided.reasons, arrivals.newest[left_with] - ready.times)
        dead = arrivals.dead()
        order = np.argsort(np.concatenate((left_with, dead.rows - arrivals.seqs[0])), kind="stable")
        return self._close(rows, decided.followed_by(dead).arranged(order))

    def _decide_waiting(self, ready: Waiting) -> tuple[Rows, Decisions]:
        """Decide rows that waited; they are in order now."""
        readings = self._read(ready.batch)
        reasons = np.full(len(ready), NO_REASON, dtype=np.int8)
        arrivals = Arrivals(ready.batch, ready.seqs, ready.times, ready.persons, reasons, readings)
        rows, released = self._decide(arrivals, at_once)
        delays = np.maximum(self._clock[clock_kernel.NEWEST] - ready.times, 0)
        return rows, Decisions.of(ready.seqs, released=released, reasons=reasons, delays=delays)

    def _decide(self, arrivals: Arrivals, when: When) -> tuple[Rows, Bools]:
        """The rows that leave and which of the arrivals they are; the only place where the crowds change."""
        usable = arrivals.usable
        levels = [
            column.decide(reading, persons=arrivals.persons, times=arrivals.times, usable=usable)
            for column, reading in zip(self._attributes, arrivals.readings, strict=True)
        ]
        if self._is_kept_blank:
            released = usable
        else:
            released = np.logical_or.reduce([level >= 0 for level in levels])
        rows = np.flatnonzero(released)
        return when(self._outgoing_rows, arrivals, rows, [level[rows] for level in levels]), released

    @property
    def _is_kept_blank(self) -> bool:
        return not self._settings.is_table and self._attributes[0].on_private == "blank"

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
            *(plain(batch.column(name).take(chosen)) for name in settings.carry),
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
            newest = int(times[-1]) + self._settings.lateness_ns
            self._clock[clock_kernel.NEWEST] = max(int(self._clock[clock_kernel.NEWEST]), newest)
        return release

    def _release_until(self, limit: int) -> tuple[Release, Ints]:
        self._held.gather_singles(self.input_schema)
        waiting = self._held.take_until(limit, self.input_schema)
        return self._close(*self._decide_waiting(waiting)), waiting.times

    # ---- one record

    def push(self, record: Record) -> list[dict[str, Any]]:
        settings = self._settings
        person = as_text(record.get(settings.person))
        time = value_ns(record.get(settings.time))
        reason = self._trouble(record, person, time)
        if settings.lateness_ns and reason == NO_REASON:
            self._require_types(record)
        self._seen += 1
        if reason == NO_REASON:
            assert person is not None
            assert time is not None
            reason = self._admit_one(person.encode(), time)
        if reason != NO_REASON:
            self._counts[self._reasons[reason]] += 1
            return []
        return self._push_usable(record, person, time)  # type: ignore[arg-type]

    def _push_usable(self, record: Record, person: str, time: int) -> list[dict[str, Any]]:
        if not self._settings.lateness_ns:
            return self._decide_one(record, person, time)
        key = (int(self._scratch[0, 0]), int(self._scratch[0, 1]))
        waiting = {name: record.get(name) for name in self.columns}
        self._held.add_one(OneWaiting(time, self._seen - 1, key, waiting))
        return self._pop_ready()

    def _trouble(self, record: Record, person: str | None, time: int | None) -> int:
        if not person:
            return NULL_PERSON
        if time is None:
            return NULL_TIME if record.get(self._settings.time) is None else BAD_TIME
        for number, column in enumerate(self._attributes):
            if column.is_listed and not column.knows(as_text(record.get(column.name))):
                return FIRST_UNKNOWN + number
        return NO_REASON

    def _admit_one(self, person: bytes, time: int) -> int:
        settings = self._settings
        code = admit_text(
            self._person_key, self._clock, np.frombuffer(person, dtype=np.uint8), time,
            settings.lateness_ns, settings.max_gap_ns, self._scratch,
        )  # fmt: skip
        if code == clock_kernel.RESTART:
            self._start_over()
        return {clock_kernel.LATE: LATE, clock_kernel.AHEAD: AHEAD}.get(code, NO_REASON)

    def _pop_ready(self) -> list[dict[str, Any]]:
        limit = int(self._clock[clock_kernel.NEWEST]) - self._settings.lateness_ns
        rows: list[dict[str, Any]] = []
        while (one := self._held.pop_one(limit, self.input_schema)) is not None:
            self._scratch[0] = one.key
            rows += self._decide_one(one.record, as_text(one.record[self._settings.person]) or "", one.time)
        return rows

    def _decide_one(self, record: Record, person: str, time: int) -> list[dict[str, Any]]:
        texts = [as_text(record.get(column.name)) for column in self._attributes]
        levels = [
            column.decide_one(text, person=self._scratch, time=time)
            for column, text in zip(self._attributes, texts, strict=True)
        ]
        if max(levels) < 0 and not self._is_kept_blank:
            self._counts[SUPPRESSED] += 1
            return []
        self._counts[RELEASED] += 1
        settings = self._settings
        row = {settings.time: record[settings.time], settings.person: self._pseudonyms.name(person.encode(), time)}
        for column, text, level in zip(self._attributes, texts, levels, strict=True):
            row[column.name] = column.publish_one(record.get(column.name), text, level)
        for name in settings.carry:
            row[name] = record.get(name)
        return [row]

    def _require_types(self, record: Record) -> None:
        """Records that wait become columns later, so they must fit one type each."""
        types = self._record_types(record) if self._input_schema is None else self._input_schema
        for name, kind in zip(types.names, types.types, strict=True):
            if not fits(record.get(name), kind):
                raise InputError(f"column {name!r}: a value is not {kind}; give one type")
        if self._input_schema is None:
            self.bind(types)

    def _record_types(self, record: Record) -> pa.Schema:
        counted = {self._settings.person, *(column.name for column in self._attributes)}
        types = {name: record_type(record.get(name), is_counted=name in counted) for name in self.columns}
        for name, kind in types.items():
            if kind is None:
                raise InputError(f"column {name!r}: {type(record[name]).__name__} cannot be held; give plain values")
        return pa.schema(types)

    # ---- state

    def snapshot(self) -> bytes:
        waiting = self._held.dump(self.input_schema)
        header = {
            "method": self.method,
            "settings": self._settings.describe(),
            "seen": self._seen,
            "counts": self._counts,
            "is_bound": self._input_schema is not None,
        }
        arrays: dict[str, Any] = {
            "clock": self._clock,
            "schema": as_bytes(self.input_schema.serialize()),
            "held.rows": as_bytes(waiting.batch.serialize()),
            "held.seqs": waiting.seqs,
            "held.times": waiting.times,
            "held.persons": waiting.persons,
        }
        for number, column in enumerate(self._attributes):
            arrays[f"crowd{number}.pool"], arrays[f"crowd{number}.attrs"] = column.crowd.dump()
        return seal_state(self._secret, header, arrays)

    def restore(self, state: bytes) -> Self:
        opened = open_state(self._secret, state)
        if opened.header["method"] != self.method or opened.header["settings"] != self._settings.describe():
            raise CheckpointError("the snapshot is of another method or of other parameters")
        self._load(opened)
        return self

    def _load(self, state: State) -> None:
        arrays = state.arrays
        schema = pa.ipc.read_schema(pa.py_buffer(arrays["schema"]))
        self._input_schema = schema if state.header["is_bound"] else None
        self._output_schema = self._outgoing(schema)
        self._clock = arrays["clock"].copy()
        self._seen, self._counts = state.header["seen"], dict(state.header["counts"])
        self._held = HeldRows()
        rows = pa.ipc.read_record_batch(pa.py_buffer(arrays["held.rows"]), schema)
        self._held.add(Waiting(arrays["held.seqs"], arrays["held.times"], arrays["held.persons"], rows))
        for number, column in enumerate(self._attributes):
            column.crowd.load(arrays[f"crowd{number}.pool"], arrays[f"crowd{number}.attrs"])
