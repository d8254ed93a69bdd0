"""What the traces of all streams share: a verdict on every record, once, and a released row for every release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from shoal.auditor.counting import shared_codes
from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.rows import Rows

RELEASED, SUPPRESSED, DEAD = 0, 1, 2
VERDICTS: Final = ("released", "suppressed", "dead")


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The entries of a trace, in its order."""

    row: Ints
    """The record of every entry."""
    verdict: Ints
    """RELEASED, SUPPRESSED or DEAD; -1 for anything else."""
    exists: Bools
    """Which entries name a record that exists."""
    first: Bools
    """Which of those are the first entry for their record."""
    is_shown: Bools
    """Which entries have a row in the release, which keeps their order."""
    is_linked: bool
    """Whether the release has as many rows as the trace says."""


def trace_with(names: tuple[str, ...], trace: Rows | None, notes: Notes) -> Rows | None:
    """Return the trace if it has these columns; without them it proves nothing, which fails the audit."""
    missing = [] if trace is None else [name for name in names if name not in trace.columns]
    if missing:
        notes.unchecked(f"The trace proves nothing: it has no column {', '.join(missing)}.")
    return None if missing else trace


def read_verdicts(
    trace: Rows, notes: Notes, *, records: int, released: int, shows_suppressed: bool = False
) -> Verdicts:
    """Read the verdicts; check them against the number of records and of released rows."""
    labels, (codes,) = shared_codes(trace.text("verdict"))
    numbers = [VERDICTS.index(label) if label in VERDICTS else -1 for label in labels]
    row, verdict = trace.numbers("row"), np.array([*numbers, -1], np.int64)[codes]
    notes.violation("trace-verdict", "The trace contains an unknown verdict.", count=int((verdict < 0).sum()))
    exists = (row >= 0) & (row < records)
    notes.violation("trace-row", "The trace names a record that the truth does not have.", count=int((~exists).sum()))
    first = np.zeros(len(row), np.bool_)
    first[np.unique(row, return_index=True)[1]] = True
    first &= exists
    notes.violation("decided-twice", "The trace decides a record more than once.", count=int((exists & ~first).sum()))
    is_shown = (verdict == RELEASED) | ((verdict == SUPPRESSED) & shows_suppressed)
    apart = abs(int(is_shown.sum()) - released)
    notes.violation("release-count", "The release and the trace do not have the same number of rows.", count=apart)
    if apart:
        notes.skip("Rows were not checked one by one: trace and release do not have the same number of rows.")
    return Verdicts(row, verdict, exists, first, is_shown, is_linked=not apart)


def read_reasons(trace: Rows, dead: Bools, notes: Notes) -> tuple[list[str], Ints]:
    """Return the different reasons of the trace and the number of every entry's (-1: none)."""
    reasons, (code,) = shared_codes(trace.text("reason"))
    sentence = "Why records were refused was not checked: the trace gives no reason."
    notes.unchecked(sentence, count=int((dead & (code < 0)).sum()))
    return reasons, code


def note_lost(is_overtaken: Bools, undecided: Ints, decided: Ints, notes: Notes) -> int:
    """Report records without a verdict although later records were decided; return how many others are pending."""
    lost = int((is_overtaken & (undecided < decided.max(initial=-1))).sum())
    notes.violation("lost", "A record has no verdict although later records were decided.", count=lost)
    note_pending(len(undecided) - lost, notes)
    return len(undecided) - lost


def note_pending(count: int, notes: Notes) -> None:
    """Report how many records were pending when the trace ended."""
    notes.info("pending", "Records had no verdict yet when the trace ended.", count=count)
