"""Check the trace of a z-anonymity run, and read from it what was decided in which order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.trace import DEAD, RELEASED, SUPPRESSED, VERDICTS, Verdicts, note_lost, read_reasons, read_verdicts
from shoal.auditor.z.aligned import Aligned
from shoal.auditor.z.combined import check_waiting, order_combined, read_passed
from shoal.auditor.z.promise import ZPromise

_REASONS: Final = ("late", "ahead", "null-person", "null-time", "bad-time", "unknown-value")
_LONG_AGO: Final = -(2**62)  # minus the longest duration it still fits 64 bits


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
    if promise.k is None:
        counted, start = _in_order(counted, row, aligned, promise, notes)
        _check_undecided(row[first], row[counted], aligned, promise, notes)
    else:
        passed = read_passed(trace, promise, notes)
        counted, start = order_combined(trace, verdicts, counted, passed, aligned, promise, notes)
        check_waiting(row[first], row[counted], start, aligned, promise, notes)
        passed = passed and {name: level[counted] for name, level in passed.items()}
    _check_refused(trace, verdicts, aligned, promise, notes)
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


def _in_order(counted: Ints, row: Ints, aligned: Aligned, promise: ZPromise, notes: Notes) -> tuple[Ints, Ints]:
    """Check that records were decided by time, equal times by arrival; sort them if they were not.

    Also number the restarts of the stream: a first clock far ahead must not stop everyone else, so while only
    one person has been seen, another's record more than ``max_gap`` older restarts it, and nothing before counts.
    """
    rows, time = row[counted], aligned.time[row[counted]]
    back = (time[1:] < time[:-1]) | ((time[1:] == time[:-1]) & (rows[1:] < rows[:-1]))
    steps = np.flatnonzero(back) + 1
    starts = _restarts(steps, time, aligned.person[rows], max(promise.max_gap_ns, promise.lateness_ns))
    wrong = len(steps) - len(starts)
    sentence = "Records were not decided in the order of time (equal times in order of arrival)."
    notes.violation("decision-order", sentence, count=wrong)
    if not len(steps):
        arrived = time[np.argsort(rows)]
        late = int((arrived < np.maximum.accumulate(arrived) - promise.lateness_ns).sum())
        notes.violation(
            "late-accepted", "A record was counted although it came later than lateness allows.", count=late
        )
    if wrong:
        return counted[np.lexsort((rows, time))], np.zeros(len(counted), np.int64)
    return counted, np.searchsorted(np.array(starts, np.int64), np.arange(len(counted)), side="right")


def _restarts(steps: Ints, time: Ints, person: Ints, max_gap: int) -> list[int]:
    """Return the steps back in time at which the stream was allowed to restart."""
    changes = np.append(np.flatnonzero(np.diff(person)) + 1, len(person))
    starts: list[int] = []
    for step in steps.tolist():
        begin = starts[-1] if starts else 0
        only_one = int(changes[np.searchsorted(changes, begin, side="right")]) == step
        if only_one and int(time[step - 1]) - int(time[step]) > max_gap:
            starts.append(step)
    return starts


def _check_refused(trace: Rows, verdicts: Verdicts, aligned: Aligned, promise: ZPromise, notes: Notes) -> None:
    """Warn of records refused for a reason that is unknown, or as late or empty although they were not."""
    row, dead = verdicts.row, verdicts.first & (verdicts.verdict == DEAD)
    reasons, code = read_reasons(trace, dead, notes)
    usable = np.zeros(len(row), np.bool_)
    usable[dead] = aligned.usable[row[dead]]

    def is_one(matches: list[bool]) -> Bools:
        return np.array([*matches, False], np.bool_)[code] & usable  # code -1 picks the last

    unknown = is_one([reason.split(".")[0] not in _REASONS for reason in reasons])
    sentence = "A record was refused for an unknown reason, although nothing is wrong with it."
    notes.warning("dead-without-cause", sentence, count=int(unknown.sum()))
    late = row[is_one([reason == "late" for reason in reasons])]
    time = np.where(aligned.usable, aligned.time, _LONG_AGO)
    newest = np.maximum.accumulate(np.insert(time, 0, _LONG_AGO))[:-1]  # before each record
    wrong = int((aligned.time[late] >= newest[late] - promise.lateness_ns).sum())
    wrong += int(is_one([reason.startswith("null") for reason in reasons]).sum())
    notes.warning("dead-without-cause", "A record was refused for a reason that does not apply to it.", count=wrong)


def _check_undecided(decided: Ints, accepted: Ints, aligned: Aligned, promise: ZPromise, notes: Notes) -> None:
    """Distinguish records still pending (or not read yet) when the trace ends from lost ones."""
    open_rows = np.setdiff1d(np.arange(len(aligned.time)), decided)
    overtaken = ~aligned.usable[open_rows]
    if len(accepted):
        last, time = accepted[-1], aligned.time[open_rows]
        overtaken |= (time < aligned.time[last]) | ((time == aligned.time[last]) & (open_rows < last))
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
