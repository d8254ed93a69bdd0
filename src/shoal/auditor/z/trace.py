"""Check the trace of a z-anonymity run, and read from it what was decided in which order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.trace import DEAD, RELEASED, SUPPRESSED, VERDICTS, note_lost, read_reasons, read_verdicts
from shoal.auditor.z.aligned import Aligned
from shoal.auditor.z.clock import cannot_wait, check_lateness, find_restarts
from shoal.auditor.z.combined import NO_EPOCH, check_waiting, order_combined, read_passed, read_waited
from shoal.auditor.z.promise import ZPromise

_REASONS: Final = ("late", "ahead", "null-person", "null-time", "bad-time", "unknown-value")
LONG_AGO: Final = -(2**62)  # minus the longest duration it still fits 64 bits


@dataclass(frozen=True, slots=True)
class Decisions:
    """Which truth rows counted, in the order they were decided, and where each was released."""

    accepted: Ints
    start: Ints
    """How often the stream had restarted before each accepted row; rows before a restart do not count after it."""
    shown_at: Ints
    """For every accepted row the number of its released row, -1 for none."""
    link: Ints | None
    """For every released row its row of the truth; None if trace and release differ in length."""
    z: dict[str, Ints]
    """The z in force for every accepted row, by attribute, according to the trace (-1: not recorded)."""
    passed: dict[str, Ints] | None = None
    """If combinations are promised: the level at which each accepted row passed z (-1: did not), by attribute."""


def read_decisions(trace: Rows, aligned: Aligned, promise: ZPromise, notes: Notes) -> Decisions:
    """Check a trace against the truth and the release."""
    records = len(aligned.time)
    verdicts = read_verdicts(trace, notes, records=records, released=len(aligned.shown_time))
    row, verdict, first, passed = verdicts.row, verdicts.verdict, verdicts.first, None
    counted = np.flatnonzero(first & ((verdict == RELEASED) | (verdict == SUPPRESSED)))
    usable = aligned.usable[row[counted]]
    sentence = "A record without a person or a time was not refused."
    notes.violation("unusable-accepted", sentence, count=int((~usable).sum()))
    counted = counted[usable]
    refused = read_refused(trace, row, first & (verdict == DEAD), aligned.usable, notes)
    restarts = _restarts(refused, aligned, promise)
    start = np.searchsorted(restarts, row[counted], side="right")
    if promise.k is None:
        counted, start = _in_order(counted, start, row, aligned, promise, notes)
        _check_undecided(row[first], row[counted], start, restarts, aligned, promise, notes)
    else:
        passed = read_passed(trace, promise, notes)
        counted, start = order_combined(trace, verdicts, counted, start, passed, aligned, promise, notes)
        waited = read_waited(trace)[counted] != NO_EPOCH
        check_waiting(row[first], row[counted], start, waited, restarts, aligned, promise, notes)
        passed = passed and {name: level[counted] for name, level in passed.items()}
    late = refused.rows(lambda reason: reason == "late")
    check_refused(refused, count_in_time(aligned.time[late], newest_before(aligned)[late], promise), notes)
    counts = {name: int((verdict == number).sum()) for number, name in enumerate(VERDICTS)}
    notes.metrics["verdicts"] = {"in": records, **counts, "undecided": records - int(first.sum())}
    return Decisions(
        accepted=row[counted],
        start=start,
        shown_at=np.where(verdicts.is_shown, np.cumsum(verdicts.is_shown) - 1, -1)[counted],
        link=np.where(verdicts.exists, row, -1)[verdicts.is_shown] if verdicts.is_linked else None,
        z=_z_in_force(trace, promise, counted),
        passed=passed,
    )


@dataclass(frozen=True, slots=True)
class Refused:
    """The refused records that have a person and a time."""

    row: Ints
    reasons: list[str]
    code: Ints
    """The number of each record's reason (-1: none)."""

    def rows(self, matches: Callable[[str], bool]) -> Ints:
        """Return the records whose reason matches."""
        return self.row[np.array([*map(matches, self.reasons), False], np.bool_)[self.code]]  # code -1 picks the last


def read_refused(trace: Rows, row: Ints, dead: Bools, usable: Bools, notes: Notes) -> Refused:
    """Return which usable records the ``dead`` entries refuse, and why; ``row`` is the record of every entry."""
    reasons, code = read_reasons(trace, dead, notes)
    kept = dead.copy()
    kept[dead] = usable[row[dead]]
    return Refused(row[kept], reasons, code[kept])


def _restarts(refused: Refused, aligned: Aligned, promise: ZPromise) -> Ints:
    """Return the records at which the stream restarted; the trace tells which records reached the clock."""
    late, ahead = np.zeros((2, len(aligned.time)), np.bool_)
    late[refused.rows(lambda reason: reason == "late")] = True
    ahead[refused.rows(lambda reason: reason == "ahead")] = True
    reached = aligned.usable.copy()
    reached[refused.row] = False
    return find_restarts(reached | late | ahead, late, ahead, aligned, promise)


def _in_order(
    counted: Ints, start: Ints, row: Ints, aligned: Aligned, promise: ZPromise, notes: Notes
) -> tuple[Ints, Ints]:
    """Check that records were decided by time, equal times by arrival; sort them if they were not."""
    rows, time = row[counted], aligned.time[row[counted]]
    wrong = count_backward(rows, time, start)
    note_backward(wrong, notes)
    if wrong:
        order = np.lexsort((rows, time, start))
        return counted[order], start[order]
    check_lateness(rows, time, start, promise, notes)
    return counted, start


def count_backward(rows: Ints, time: Ints, start: Ints) -> int:
    """Count the records, in the order decided, that belong before the one before them."""
    back = (time[1:] < time[:-1]) | ((time[1:] == time[:-1]) & (rows[1:] < rows[:-1]))
    return int(np.where(start[1:] == start[:-1], back, start[1:] < start[:-1]).sum())


def note_backward(count: int, notes: Notes) -> None:
    """Report records that were decided too late or too early."""
    sentence = "Records were not decided in the order of time (equal times in order of arrival)."
    notes.violation("decision-order", sentence, count=count)


def check_refused(refused: Refused, in_time: int, notes: Notes) -> None:
    """Warn of records refused for an unknown reason, or as late (``in_time``) or empty although they were not."""
    unknown = refused.rows(lambda reason: reason.split(".")[0] not in _REASONS)
    sentence = "A record was refused for an unknown reason, although nothing is wrong with it."
    notes.warning("dead-without-cause", sentence, count=len(unknown))
    note_misjudged(in_time + len(refused.rows(lambda reason: reason.startswith("null"))), notes)


def newest_before(aligned: Aligned) -> Ints:
    """Return the newest time of all usable records before each record."""
    time = np.where(aligned.usable, aligned.time, LONG_AGO)
    found: Ints = np.maximum.accumulate(np.insert(time, 0, LONG_AGO))[:-1]
    return found


def count_in_time(time: Ints, newest: Ints, promise: ZPromise) -> int:
    """Count the records refused as late that were not: ``newest`` is the newest time before each."""
    return int((time >= newest - promise.lateness_ns).sum())


def note_misjudged(count: int, notes: Notes) -> None:
    """Warn of records refused for a reason that does not apply."""
    notes.warning("dead-without-cause", "A record was refused for a reason that does not apply to it.", count=count)


def _check_undecided(
    decided: Ints, accepted: Ints, start: Ints, restarts: Ints, aligned: Aligned, promise: ZPromise, notes: Notes
) -> None:
    """Distinguish records still pending (or not read yet) when the trace ends from lost ones."""
    open_rows = np.setdiff1d(np.arange(len(aligned.time)), decided)
    overtaken, by_time, began = ~aligned.usable[open_rows], np.zeros(len(open_rows), np.bool_), -1
    if len(accepted):
        last, time, began = accepted[-1], aligned.time[open_rows], int(start[-1])
        by_time = (time < aligned.time[last]) | ((time == aligned.time[last]) & (open_rows < last))
    overtaken |= cannot_wait(open_rows, by_time, began, restarts, int(decided.max(initial=-1)))
    pending = note_lost(overtaken, open_rows, decided, notes)
    if pending and not promise.lateness_ns:
        sentence = "Nothing may be pending, but the trace ends before the input does."
        notes.warning("trace-ends-early", sentence, count=pending)


def _z_in_force(trace: Rows, promise: ZPromise, counted: Ints) -> dict[str, Ints]:
    found = {}
    for attribute in promise.attributes:
        name = next((name for name in (f"z.{attribute.name}", "z") if name in trace.columns), None)
        found[attribute.name] = trace.numbers(name)[counted] if name else np.full(len(counted), -1, np.int64)
    return found
