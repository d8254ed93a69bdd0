"""Check the trace itself, and read from it what was decided in which order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from shoal.auditor.counting import shared_codes
from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.z.aligned import Aligned
from shoal.auditor.z.combined import Decided, check_waiting, order_combined, read_passed
from shoal.auditor.z.promise import ZPromise

_VERDICTS: Final = ("released", "suppressed", "dead")
_REASONS: Final = ("late", "ahead", "null-person", "null-time", "bad-time", "unknown-value")
_LONG_AGO: Final = -(2**62)  # minus the longest duration it still fits 64 bits


@dataclass(frozen=True, slots=True)
class Decisions:
    """Which truth rows counted, in the order they were decided, and where each was released."""

    accepted: Ints
    start: Ints
    """How often the stream had started anew before each accepted row; earlier starts do not count."""
    shown_at: Ints
    """For every accepted row the number of its released row, -1 for none."""
    link: Ints | None
    """For every released row its row of the truth; None when trace and release differ in length."""
    z: dict[str, Ints]
    """The z in force for every accepted row, by attribute, as the trace has it (-1: not written)."""
    passed: dict[str, Ints] | None = None
    """Where combinations are promised: the level at which z let each accepted row pass (-1: not), by attribute."""


def read_decisions(trace: Rows, aligned: Aligned, promise: ZPromise, notes: Notes) -> Decisions:
    """Check a trace against the truth and the release."""
    row, verdict = trace.numbers("row"), _verdicts(trace, notes)
    exists = (row >= 0) & (row < len(aligned.time))
    notes.violation("trace-row", "The trace names a record that the truth does not have.", count=int((~exists).sum()))
    first = _is_first(row, exists)
    notes.violation("decided-twice", "The trace decides a record more than once.", count=int((exists & ~first).sum()))
    link = _link(row, verdict, exists, aligned, notes)
    shown_at = np.where(verdict == 0, np.cumsum(verdict == 0) - 1, -1)
    counted = np.flatnonzero(first & ((verdict == 0) | (verdict == 1)))
    counted = _only_usable(counted, row, aligned, notes)
    if promise.k is None:
        counted, start = _in_order(counted, row, aligned, promise, notes)
        _check_undecided(row[first], row[counted], aligned, promise, notes)
        passed = None
    else:
        passed = read_passed(trace, promise, notes)
        counted, start = order_combined(trace, Decided(counted, row, verdict, passed), aligned, promise, notes)
        check_waiting(row[first], row[counted], start, aligned, promise, notes)
        passed = passed and {name: level[counted] for name, level in passed.items()}
    _check_dead(trace, row, first & (verdict == 2), aligned, promise, notes)
    _count(verdict, aligned, row[first], notes)
    return Decisions(row[counted], start, shown_at[counted], link, _z_in_force(trace, promise, counted), passed)


def _verdicts(trace: Rows, notes: Notes) -> Ints:
    labels, (codes,) = shared_codes(trace.text("verdict"))
    numbers = [_VERDICTS.index(label) if label in _VERDICTS else -1 for label in labels]
    verdict = np.array([*numbers, -1], np.int64)[codes]
    notes.violation("trace-verdict", "The trace holds an unknown verdict.", count=int((verdict < 0).sum()))
    return verdict


def _is_first(row: Ints, exists: Bools) -> Bools:
    first = np.zeros(len(row), np.bool_)
    first[np.unique(row, return_index=True)[1]] = True
    return first & exists


def _link(row: Ints, verdict: Ints, exists: Bools, aligned: Aligned, notes: Notes) -> Ints | None:
    released = verdict == 0
    apart = abs(int(released.sum()) - len(aligned.shown_time))
    notes.violation("release-count", "The release and the trace do not have the same number of rows.", count=apart)
    return None if apart else np.where(exists, row, -1)[released]


def _only_usable(counted: Ints, row: Ints, aligned: Aligned, notes: Notes) -> Ints:
    usable = aligned.usable[row[counted]]
    notes.violation(
        "unusable-accepted",
        "A record without a person or a time was not put among the dead ones.",
        count=int((~usable).sum()),
    )
    return counted[usable]


def _in_order(counted: Ints, row: Ints, aligned: Aligned, promise: ZPromise, notes: Notes) -> tuple[Ints, Ints]:
    """Check that records were decided by time, equal times by arrival; put them so where they were not.

    Also number the starts of the stream: a first clock far ahead must not stop everyone else, so while only
    one person was seen, another's record more than ``max_gap`` older starts anew, and nothing before counts.
    """
    rows, time = row[counted], aligned.time[row[counted]]
    back = (time[1:] < time[:-1]) | ((time[1:] == time[:-1]) & (rows[1:] < rows[:-1]))
    steps = np.flatnonzero(back) + 1
    starts = _fresh_starts(steps, time, aligned.person[rows], max(promise.max_gap_ns, promise.lateness_ns))
    wrong = len(steps) - len(starts)
    notes.violation(
        "decision-order",
        "Records were not decided in the order of time (equal times in order of arrival).",
        count=wrong,
    )
    if not len(steps):
        _check_lateness(rows, time, promise, notes)
    if wrong:
        return counted[np.lexsort((rows, time))], np.zeros(len(counted), np.int64)
    return counted, np.searchsorted(np.array(starts, np.int64), np.arange(len(counted)), side="right")


def _check_lateness(rows: Ints, time: Ints, promise: ZPromise, notes: Notes) -> None:
    """Check that no record counted that came after a newer one by more than was allowed."""
    time = time[np.argsort(rows)]
    late = time < np.maximum.accumulate(time) - promise.lateness_ns
    notes.violation(
        "late-accepted", "A record was counted although it came later than lateness allows.", count=int(late.sum())
    )


def _fresh_starts(steps: Ints, time: Ints, person: Ints, max_gap: int) -> list[int]:
    """Return the steps back in time at which the stream was allowed to start anew."""
    changes = np.append(np.flatnonzero(np.diff(person)) + 1, len(person))
    starts: list[int] = []
    for step in steps.tolist():
        begin = starts[-1] if starts else 0
        only_one = int(changes[np.searchsorted(changes, begin, side="right")]) == step
        if only_one and int(time[step - 1]) - int(time[step]) > max_gap:
            starts.append(step)
    return starts


def _check_dead(trace: Rows, row: Ints, dead: Bools, aligned: Aligned, promise: ZPromise, notes: Notes) -> None:
    """Warn of records put away as late that were not, or as empty that were not."""
    reasons, (code,) = shared_codes(trace.text("reason"))
    silent = int((dead & (code < 0)).sum())
    notes.unchecked("Why records were put away was not checked: the trace has no reason for them.", count=silent)
    late = np.array([reason == "late" for reason in reasons] + [False])[code] & dead
    empty = np.array([reason.startswith("null") for reason in reasons] + [False])[code] & dead
    strange = dead & ~np.array([*(_is_known(reason) for reason in reasons), True])[code]
    notes.warning(
        "dead-without-cause",
        "A record was put among the dead ones for an unknown reason, though nothing is seen to be wrong with it.",
        count=int((strange & _at(aligned.usable, row, strange)).sum()),
    )
    newest = _newest_before(aligned)
    in_time = aligned.usable[row[late]] & (aligned.time[row[late]] >= newest[row[late]] - promise.lateness_ns)
    wrong = int(in_time.sum()) + int((empty & _at(aligned.usable, row, empty)).sum())
    notes.warning(
        "dead-without-cause", "A record was put among the dead ones for a reason it does not have.", count=wrong
    )


def _is_known(reason: str) -> bool:
    return reason.split(".")[0] in _REASONS


def _at(values: Bools, row: Ints, among: Bools) -> Bools:
    found = np.zeros(len(row), np.bool_)
    found[among] = values[row[among]]
    return found


def _newest_before(aligned: Aligned) -> Ints:
    """Return, for every record, the newest time before it, whether or not it was let move the clock."""
    time = np.where(aligned.usable, aligned.time, _LONG_AGO)
    return np.maximum.accumulate(np.insert(time, 0, _LONG_AGO))[:-1]


def _check_undecided(decided: Ints, accepted: Ints, aligned: Aligned, promise: ZPromise, notes: Notes) -> None:
    """Tell records still held (or not read yet) when the trace ends from records that got lost."""
    open_rows = np.setdiff1d(np.arange(len(aligned.time)), decided)
    last = accepted[-1] if len(accepted) else -1
    passed = ~aligned.usable[open_rows]
    if last >= 0:
        time = aligned.time[open_rows]
        passed |= (time < aligned.time[last]) | ((time == aligned.time[last]) & (open_rows < last))
    lost = passed & (open_rows < decided.max(initial=-1))
    notes.violation("lost", "The trace has no verdict on a record that others have overtaken.", count=int(lost.sum()))
    held = len(open_rows) - int(lost.sum())
    notes.info("held", "Records had no verdict yet when the trace ended.", count=held)
    if held and not promise.lateness_ns:
        notes.warning("trace-ends-early", "Nothing may be held, but the trace ends before the input does.", count=held)


def _count(verdict: Ints, aligned: Aligned, decided: Ints, notes: Notes) -> None:
    counts = {name: int((verdict == number).sum()) for number, name in enumerate(_VERDICTS)}
    notes.metrics["verdicts"] = {"in": len(aligned.time), **counts, "undecided": len(aligned.time) - len(decided)}


def _z_in_force(trace: Rows, promise: ZPromise, counted: Ints) -> dict[str, Ints]:
    found = {}
    for attribute in promise.attributes:
        name = next((name for name in (f"z.{attribute.name}", "z") if name in trace.columns), None)
        found[attribute.name] = trace.numbers(name)[counted] if name else np.full(len(counted), -1, np.int64)
    return found
