"""A live source of messages: everything that systems have in common once their messages are fetched.

A system is a :class:`~shoal.sources.reader.Reader` of one or more logs (streams, partitions). :class:`LiveSource`
decodes messages, merges the logs in event time, remembers where records are, lets time pass while nothing arrives, and
tries again while the system does not answer.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.avro.registry import RegistryUnreachable
from shoal.clients.background import Background
from shoal.clients.patience import Patience
from shoal.clients.trouble import Unreachable, persist
from shoal.decode.base import Decoded, Position, Refused
from shoal.decode.messages import MessageDecoder, Messages, OpenDecoder
from shoal.errors import InputError
from shoal.sources.base import End, Idle, Mark, Polled
from shoal.sources.merging import NO_TIME, Chunk, Merged, PartitionMerge
from shoal.sources.reader import Fetched, Id, Needs, Reader

POLL_SECONDS: Final = 0.4
_IDLE_SECONDS: Final = 1.0
"""Time is passed to the method at most this often: every time it is, a checkpoint is written."""
_PENDING_ROWS: Final = 262_144
_PENDING_BYTES: Final = 64 * 1024 * 1024
"""A log is not fetched while this many of its records, or bytes of them, wait for other logs."""
_REMEMBERED_ROWS: Final = 1_048_576
_AHEAD_NS: Final = 60 * 10**9
"""For the order, a record is at most this far ahead of the broker's time: a wrong clock must not hold back its log."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How a live source deals with time."""

    lag_seconds: float
    """How far the time that passes on a silent stream stays behind the clock."""
    idle_seconds: float
    """How long a silent log may hold others back."""
    give_up_seconds: float


FindMisplaced = Callable[[int, Decoded], Mapping[int, str]]
"""Which records of a log do not belong there, with the reason."""


class LiveSource:
    """The records of a message system, merged into one stream."""

    is_live: ClassVar[bool] = True

    def __init__(
        self, reader: Reader, open_decoder: OpenDecoder, pace: Pace, find_misplaced: FindMisplaced | None = None
    ) -> None:
        self._reader, self._open_decoder, self._pace = reader, open_decoder, pace
        self._find_misplaced = find_misplaced or (lambda log, decoded: {})
        self._patience = Patience(pace.give_up_seconds)
        self._background: Background[list[Fetched]] | None = None
        self._logs: list[str] = []
        self._after: list[Id] = []
        self._rows = 0
        self._time_passed = 0.0

    @property
    def reader(self) -> Reader:
        """The system."""
        return self._reader

    @property
    def name(self) -> str:
        return self._reader.name

    @property
    def inputs(self) -> int:
        return len(self._reader.topics)

    @property
    def numbers_rows(self) -> bool:
        return self._decoder.numbers_rows

    def identity(self) -> dict[str, str]:
        return {f"{self._reader.name} {topic}": "live" for topic in self._reader.topics}

    def first_rows(self, columns: tuple[str, ...], count: int) -> pa.Table | None:
        """None: a stream is read once."""
        return None

    # ---- start

    def open(self, columns: tuple[str, ...], position: Position | None) -> None:
        found = position or {}
        self._background = Background(self.name)
        self._undecoded: deque[Fetched] = deque()
        self._places = _Places()
        self._decoder: MessageDecoder = self._open_decoder(columns, found.get("types"))
        self._logs = list(persist(self._reader.connect, self._patience, self._failure))
        known = found.get("logs", {})
        missing = [log for log in known if log not in self._logs]
        if missing:
            raise InputError(
                f"{self.name}: {missing[0]} is gone: it was removed, or its topic has another number of partitions "
                "now, which moves keys to others; start over with a new checkpoint folder and another place to write to"
            )
        before = [known.get(log, {}) for log in self._logs]
        merged = {
            "newest": [one.get("newest") for one in before],
            "idle": [log for log, one in enumerate(before) if one.get("is_idle")],
        }
        self._merge = PartitionMerge(len(self._logs), idle_seconds=self._pace.idle_seconds, position=merged)
        self._rows = found.get("rows", 0)
        decoder = self._decoder
        needs = Needs(decoder.needs_keys, decoder.needs_headers, decoder.needs_times or len(self._logs) > 1)
        after = [one.get("after") for one in before]
        self._after = list(persist(lambda: self._reader.open(after, needs), self._patience, self._failure))
        self._end_logs()

    @property
    def schema(self) -> pa.Schema:
        if not self._decoder.is_ready:
            self._learn_types()
        return self._decoder.schema

    def _learn_types(self) -> None:
        """Fetch until the first messages have shown the types of all columns.

        Logs are looked at one after the other, each until all that it holds is read, so that types do not depend on
        which log answers first.
        """
        log = fed = 0
        while not self._decoder.is_ready:
            fetched = self._fetch(range(len(self._logs))) or ()
            self._undecoded.extend(fetched)
            while log < len(self._logs):
                values = [value for one in self._undecoded if one.log == log for value in one.messages.values][fed:]
                fed += len(values)
                if self._decoder.learn(values) or not self._is_silent(log):
                    break
                log, fed = log + 1, 0
            else:
                late = (value for one in fetched for value in one.messages.values)
                self._decoder.learn(late, is_last=all(map(self._reader.has_ended, range(len(self._logs)))))

    def _is_silent(self, log: int) -> bool:
        return self._reader.is_read(log) or self._reader.has_ended(log)

    # ---- the loop

    def poll(self) -> Polled:
        found = self._next()
        if found is not None:
            return found
        if self._has_ended:
            return End()
        is_fetched = self._add_fetched()
        return self._next() or (self._idle() if is_fetched else Idle(None))

    def _next(self) -> Decoded | Mark | None:
        """What can be returned of the messages that were fetched."""
        if self._merge.has_decided:
            self._merge.has_decided = False
            return Mark()
        merged = self._merge.take()
        return None if merged is None else self._hand_out(merged)

    @property
    def _has_ended(self) -> bool:
        is_read = not self._undecoded and self._merge.is_empty
        return is_read and all(map(self._reader.has_ended, range(len(self._logs))))

    def _add_fetched(self) -> bool:
        """Fetch and decode; returns whether the system answered."""
        if not self._undecoded:
            logs = [log for log in range(len(self._logs)) if self._has_room(log)]
            fetched = self._fetch(logs)
            if fetched is None:
                return False
            self._undecoded.extend(fetched)
        if not self._decode():
            return False
        now = time.monotonic()
        self._end_logs()
        for log in filter(self._reader.is_read, range(len(self._logs))):
            self._merge.reach_end(log, now)
        self._merge.declare_idle(now)
        return True

    def _has_room(self, log: int) -> bool:
        return self._merge.pending(log) < _PENDING_ROWS and self._merge.pending_bytes(log) < _PENDING_BYTES

    def _end_logs(self) -> None:
        for log in filter(self._reader.has_ended, range(len(self._logs))):
            self._merge.end(log)

    def _fetch(self, logs: Collection[int]) -> list[Fetched] | None:
        """Messages; None if the system does not answer."""
        assert self._background is not None
        try:
            fetched = self._background.call(lambda: list(self._reader.fetch(logs, POLL_SECONDS)), 2 * POLL_SECONDS)
        except Unreachable as trouble:
            self._be_patient(str(trouble))
            return None
        if fetched is None:  # the system hangs: wait on, while the run serves signals
            return None
        if self._patience.is_in_trouble:
            self._merge.restart_silence(time.monotonic())
        self._patience.succeed()
        return fetched

    def _be_patient(self, trouble: str) -> None:
        """Wait for half a second at most; InputError if the trouble lasts too long."""
        if self._patience.fail():
            raise self._failure(f"unreachable for longer than give_up ({trouble}); check that it runs and its address")
        self._patience.wait()

    def _failure(self, why: str) -> InputError:
        return InputError(f"{self._reader.name}: {why}; the next run continues where this one ended")

    def _decode(self) -> bool:
        """Decode what was fetched; returns whether all schemas were there."""
        while self._undecoded:
            one = self._undecoded[0]
            try:
                decoded = without(self._decoder.decode(one.messages), one.refused)
                decoded = without(decoded, self._find_misplaced(one.log, decoded))
            except RegistryUnreachable as trouble:
                self._be_patient(str(trouble))
                return False
            times = ordering_times(self._decoder, decoded, one.messages)
            self._merge.add(one.log, Chunk(decoded, times, one.ids))
            self._undecoded.popleft()
        return True

    def _hand_out(self, merged: Merged) -> Decoded:
        first, self._rows = self._rows, self._rows + merged.decoded.rows
        for log in np.unique(merged.partitions):
            self._after[log] = _plain(merged.ids[merged.partitions == log][-1])
        self._places.add(first, merged)
        return self._decoder.numbered(merged.decoded, first)

    def _idle(self) -> Idle:
        now = time.time_ns()
        is_read = self._merge.is_empty and all(map(self._reader.is_read, range(len(self._logs))))
        if not is_read or time.monotonic() - self._time_passed < _IDLE_SECONDS:
            return Idle(None)
        self._time_passed = time.monotonic()
        return Idle(now - int(self._pace.lag_seconds * 1e9))

    # ---- positions

    @property
    def position(self) -> Position:
        types = self._decoder.types if self._decoder.is_ready else None
        merged = self._merge.position
        logs = {
            name: {"after": self._after[log], "newest": merged["newest"][log], "is_idle": log in merged["idle"]}
            for log, name in enumerate(self._logs)
        }
        return {"logs": logs, "rows": self._rows, "types": types}

    def keep(self, position: Position) -> None:
        if position:
            self._reader.keep([position["logs"][log]["after"] for log in self._logs])

    def leave(self, position: Position) -> None:
        after = {log: one["after"] for log, one in position["logs"].items()}
        persist(lambda: self._reader.leave(after), self._patience, self._failure)

    def lag(self) -> int | None:
        return self._reader.lag()

    def place(self, row: int) -> dict[str, Any]:
        found = self._places.find(row)
        return self._reader.place(*found) if found else {}

    def close(self) -> None:
        """Close; it can be opened again."""
        if self._background is not None:
            self._background.close()
        self._reader.close()


def ordering_times(decoder: MessageDecoder, decoded: Decoded, messages: Messages) -> npt.NDArray[np.int64]:
    """The time of every record for the order of logs: its event time, or the broker's if records have none."""
    given = None if messages.times is None else np.asarray(messages.times, dtype=np.int64)
    found = decoder.event_times(decoded)
    if found is None:
        return np.full(decoded.rows, NO_TIME) if given is None else given
    times = np.full(decoded.rows, NO_TIME)
    times[decoded.kept] = np.where(found[1], found[0], NO_TIME)
    return times if given is None else np.where(given > NO_TIME, np.minimum(times, given + _AHEAD_NS), times)


class _Places:
    """Where recent records are."""

    def __init__(self) -> None:
        self._parts: deque[tuple[int, Merged]] = deque()
        self._rows = 0

    def add(self, first: int, merged: Merged) -> None:
        """Remember records, the first of which has this number in the stream."""
        self._parts.append((first, Merged(_NOTHING, merged.partitions, merged.ids)))
        self._rows += len(merged.ids)
        while self._rows > _REMEMBERED_ROWS and len(self._parts) > 1:
            self._rows -= len(self._parts.popleft()[1].ids)

    def find(self, row: int) -> tuple[int, Id] | None:
        """The log of a record and its place there; None if it is forgotten."""
        for first, part in reversed(self._parts):
            if first <= row < first + len(part.ids):
                return int(part.partitions[row - first]), _plain(part.ids[row - first])
        return None


def without(decoded: Decoded, refused: Mapping[int, str]) -> Decoded:
    """The same records, some of them refused for another reason."""
    if not refused:
        return decoded
    is_kept = ~np.isin(decoded.kept, list(refused))
    found = {one.row: one for one in decoded.refused} | {row: Refused(row, None, why) for row, why in refused.items()}
    ordered = tuple(found[row] for row in sorted(found))
    return Decoded(decoded.batch.filter(pa.array(is_kept)), ordered, decoded.position, decoded.lines)


_NOTHING: Final = Decoded(pa.record_batch([], names=[]), (), {})


def _plain(value: Any) -> Id:
    """A number or text of Python, for JSON."""
    return value.decode() if isinstance(value, bytes) else int(value)
