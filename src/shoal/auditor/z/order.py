"""One pass along the records (restarts of the stream, lateness), and one along the decisions (their order)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.auditor.checks import check
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.relation import Relation, Shape
from shoal.auditor.rows.texts import kept
from shoal.auditor.sorting import distinct, order_of
from shoal.auditor.trace import DEAD
from shoal.auditor.z.evidence import NO_EPOCH
from shoal.auditor.z.promise import ZPromise

_LONG_AGO: Final = -(2**62)  # minus the longest duration it still fits 64 bits
ARRIVAL: Final[Shape] = {"record": int, "time": int, "usable": bool, "person": str, "accepted": bool,
                          "is_decided": bool, "is_late": bool, "is_ahead": bool, "reached": bool}  # fmt: skip
DECISION: Final[Shape] = {"entry": int, "record": int, "time": int, "epoch": int, "has_waited": bool}


@dataclass(slots=True)
class Clock:
    """What the arrivals show."""

    restarts: list[int] = field(default_factory=list)
    """The records at which the stream restarted; nothing before a restart counts after it."""
    late: int = 0
    """Accepted records that came too late."""
    in_time: int = 0
    """Records refused as late that were not."""
    last: tuple[int, int, int] | None = None
    """Start, time and number of the accepted record that belongs last."""
    newest: int = -1
    """The newest record with an entry."""

    def starts(self, record: Ints) -> Ints:
        """How often the stream had restarted before each record."""
        if not self.restarts:
            return np.zeros(len(record), np.int64)
        return np.searchsorted(np.array(self.restarts, np.int64), record, side="right").astype(np.int64)


# ---- along the records


def arrivals(rows: Relation) -> Relation:
    """Every record once, with what the clock depends on."""
    is_one = (rows["record"] >= 0) & (rows["first"] | (rows["entry"] < 0))
    names = "record", "time", "usable", "person", "accepted"
    rows = kept(rows.only(*names, "first", "verdict", "reason"), is_one)
    refused = rows["first"] & (rows["verdict"] == DEAD) & rows["usable"]
    is_late, is_ahead = (refused & (rows.codes("reason") == rows["reason"].of(why)) for why in ("late", "ahead"))
    reached = (rows["usable"] & ~refused) | is_late | is_ahead
    columns = {"is_decided": rows["first"], "is_late": is_late, "is_ahead": is_ahead, "reached": reached}
    return rows.only(*names).having(**columns)


def follow(promise: ZPromise, parts: Iterator[Relation]) -> Clock:
    """Follow the clock of the stream along all records."""
    clock, starts, newest, newest_of = Clock(), _Starts(promise), _LONG_AGO, dict[int, int]()
    for rows in parts:
        clock.restarts += starts.restarts(rows)
        record, time, start = rows["record"], rows["time"], clock.starts(rows["record"])
        clock.newest = max(clock.newest, int(record[rows["is_decided"]].max(initial=-1)))
        usable = np.insert(np.where(rows["usable"], time, _LONG_AGO), 0, newest)
        peak = np.maximum.accumulate(usable)
        newest = int(peak[-1])
        clock.in_time += int((rows["is_late"] & (time >= peak[:-1] - promise.lateness_ns)).sum())
        for number in distinct(start[rows["accepted"]]).tolist():
            own = rows["accepted"] & (start == number)
            times = np.insert(time[own], 0, newest_of.get(number, _LONG_AGO))
            peak = np.maximum.accumulate(times)
            newest_of[number] = int(peak[-1])
            clock.late += int((times < peak - promise.lateness_ns).sum())
            latest = int(times[1:].max())
            found = number, latest, int(record[own][times[1:] == latest].max())
            clock.last = found if clock.last is None else max(clock.last, found)
    return clock


class _Starts:
    """Finds the records at which a stream restarts because its first clock was wrong.

    A first clock far ahead must not stop everyone else: until a second person's record confirms it, another's record
    that is older by more than `max_gap` and `lateness` restarts the stream, and nothing before counts. All records that
    reached the clock matter, also those pending at a restart, which refuses them as ahead.
    """

    def __init__(self, promise: ZPromise) -> None:
        self._max_gap, self._longest = promise.max_gap_ns, max(promise.max_gap_ns, promise.lateness_ns)
        self._owner: str | None = None
        self._newest, self._is_confirmed = 0, False

    def restarts(self, rows: Relation) -> list[int]:
        """The restarts among some records; ends at the first confirmation, usually the second person's first record."""
        found: list[int] = []
        for row in np.flatnonzero(rows["reached"]) if not self._is_confirmed else ():
            person, time = rows["person"].texts[rows.codes("person")[row]], int(rows["time"][row])
            if self._owner is None:
                self._owner, self._newest = person, time
            elif time - self._newest > self._max_gap:
                if not rows["is_ahead"][row]:  # accepted, so another person's record confirmed the jump
                    self._is_confirmed = True
            elif person == self._owner:
                self._newest = max(self._newest, time)
            elif self._newest - time > self._longest and not rows["is_late"][row]:
                found.append(int(rows["record"][row]))
                self._owner, self._newest = person, time
            else:  # also if it is late: time passed without a record, which confirms the clock
                self._is_confirmed = True
            if self._is_confirmed:
                break
        return found


# ---- along the decisions


def decisions(rows: Relation) -> Relation:
    """Every accepted record, with what the order of decisions depends on."""
    rows = kept(rows.only("entry", "record", "time", "epoch", "waited"), rows["accepted"])
    return rows.only("entry", "record", "time", "epoch").having(has_waited=rows["waited"] != NO_EPOCH)


def count_misplaced(promise: ZPromise, clock: Clock, parts: Iterator[Relation]) -> int:
    """Count the records that were decided too late or too early."""
    mark = _is_backward if promise.k is None else _is_misplaced
    count, before = 0, np.zeros((5, 0), np.int64)
    for rows in parts:
        columns = clock.starts(rows["record"]), rows["epoch"], rows["time"], rows["record"], rows["has_waited"]
        both = np.concatenate((before, np.stack(columns)), axis=1)
        count += int(mark(both)[before.shape[1] :].sum())
        before = _decisive(promise, both)
    return count


def _decisive(promise: ZPromise, both: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The records that show whether a later one is misplaced.

    The last one; with `combine` the one that belongs last, and of those that waited the one that belongs last.
    """
    if promise.k is None or not both.shape[1]:
        return both[:, -1:]
    order = order_of(both[0], both[2], both[3])
    return both[:, np.unique(np.append(order[-1:], order[both[4][order] > 0][-1:]))]


def _is_backward(both: npt.NDArray[np.int64]) -> Bools:
    """Mark records, in the order decided, that belong before the one before them."""
    start, _, time, record, _ = both
    back = (time[1:] < time[:-1]) | ((time[1:] == time[:-1]) & (record[1:] < record[:-1]))
    found = np.zeros(len(record), np.bool_)
    found[1:] = np.where(start[1:] == start[:-1], back, start[1:] < start[:-1])
    return found


def _is_misplaced(both: npt.NDArray[np.int64]) -> Bools:
    """Mark records, in the order decided, that belong before any that came before them.

    Rows suppressed by z are decided at once, the others at the end of their epoch. So each of the two kinds is in
    the order of time, and no row of an epoch comes after one of a later epoch.
    """
    start, epoch, time, record, waited = both
    rank, stage = np.empty((2, len(record)), np.int64)
    order = order_of(start, time, record)
    rank[order] = np.arange(len(record))
    is_next = (np.diff(start[order], prepend=start[order][:1]) != 0) | (
        np.diff(epoch[order], prepend=epoch[order][:1]) != 0
    )
    stage[order] = np.cumsum(is_next)
    has_waited = waited > 0
    wrong: Bools = _is_behind(stage) | (_is_behind(rank) & ~has_waited)
    wrong[has_waited] |= _is_behind(rank[has_waited])
    return wrong


def _is_behind(numbers: Ints) -> Bools:
    """Mark numbers that come after a larger one."""
    found: Bools = np.maximum.accumulate(np.append(-1, numbers))[:-1] > numbers
    return found


# ---- checks

of_order = partial(check, families=("z",), by="order", needs=("truth", "trace"))
_RUN_AGAIN: Final = "The trace is not that of this release, or what published it is faulty: run it again."


@of_order(
    "decision-order", "Records were not decided in the order of time (equal times in order of arrival).",
    advice=f"People were counted in another order than promised. {_RUN_AGAIN}")  # fmt: skip
def decision_order(misplaced: int) -> int:
    return misplaced


@of_order(
    "late-accepted", "A record was counted although it came later than lateness allows.",
    advice=f"A record that is too late counts people who had left the window. {_RUN_AGAIN}")  # fmt: skip
def late_accepted(late: int) -> int:
    return late
