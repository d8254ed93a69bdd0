"""Read the trace of a flexible release, and check that it accounts for every record once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.trace import DEAD, RELEASED, SUPPRESSED, note_pending, read_reasons, read_verdicts

_CHECKABLE: Final = ("outside", "unknown", "null-person")
"""Reasons for a refusal that the truth can confirm."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The trace; arrays about released rows are in their order."""

    is_linked: bool
    """Whether the release has as many rows as the trace says."""
    row: Ints
    """The record of every released row; -1 if the trace names none that exists."""
    group: Ints
    k: Ints | None
    """The k in force according to the trace; None if not recorded. So is ``k_s``."""
    k_s: Ints | None
    decided: Ints
    """All records with a verdict."""
    delayed: Ints
    """Released records that were pending: they were released in a round of grouping."""
    before_first: int | None
    """Usable records that had arrived when the first row was released; None if not known."""


def read_trace(trace: Rows, usable: Bools | None, released: int, notes: Notes) -> Trace:
    """Check a trace by itself, and against the records (None: no truth) and the number of released rows."""
    records = np.iinfo(np.int64).max if usable is None else len(usable)
    found = read_verdicts(trace, notes, records=records, released=released)
    row, verdict, exists, is_shown = found.row, found.verdict, found.exists, found.is_shown
    sentence = "A record was suppressed; records that cannot be released must stay pending."
    notes.violation("suppressed", sentence, count=int((verdict == SUPPRESSED).sum()))
    counts: dict[str, Any] = {"released": int(is_shown.sum()), "dead": int((verdict == DEAD).sum())}
    if usable is not None:
        accepted = row[(verdict == RELEASED) & exists]
        sentence = "A record without a person, or with a value outside its domain or hierarchy, was not refused."
        notes.violation("unusable-accepted", sentence, count=int((~usable[accepted]).sum()))
        _check_refused(trace, row, exists & (verdict == DEAD), usable, notes)
        undecided = np.setdiff1d(np.arange(len(usable)), row[exists])
        lost = int((~usable[undecided]).sum())
        notes.violation("lost", "The trace has no verdict on a record that cannot be used.", count=lost)
        note_pending(len(undecided) - lost, notes)
        counts = {"in": len(usable), **counts, "pending": len(undecided) - lost}
    notes.metrics["verdicts"] = counts
    group = trace.numbers("group")
    sentence = "The trace has a released row without a group, or another row with one."
    notes.violation("trace-group", sentence, count=int((is_shown != (group >= 0)).sum()))
    delay = _column(trace, "delay", is_shown)
    if delay is not None:
        notes.violation("trace-delay", "A delay is missing or below 0.", count=int((delay < 0).sum()))
        delayed = delay[delay >= 0]
        if len(delayed):
            notes.metrics["delay"] = {"median": float(np.median(delayed)), "longest": int(delayed.max())}
    record = np.where(exists, row, -1)[is_shown]
    return Trace(
        is_linked=found.is_linked,
        row=record,
        group=group[is_shown],
        k=_column(trace, "k", is_shown),
        k_s=_column(trace, "k_s", is_shown),
        decided=row[exists],
        delayed=record[:0] if delay is None else record[(record >= 0) & (delay > 0)],
        before_first=_before_first(record, delay, usable),
    )


def _column(trace: Rows, name: str, is_shown: Bools) -> Ints | None:
    return trace.numbers(name)[is_shown] if name in trace.columns else None


def _before_first(record: Ints, delay: Ints | None, usable: Bools | None) -> int | None:
    """Count the usable records up to the first release; the delay of a record is counted in arrivals."""
    if delay is None or usable is None or not len(record) or (record < 0).any():
        return None
    arrival = np.cumsum(usable)  # from 1
    return int((arrival[record] + delay).min())


def _check_refused(trace: Rows, row: Ints, dead: Bools, usable: Bools, notes: Notes) -> None:
    """Check that no usable record was refused; what a decoder could not read is not visible here."""
    reasons, code = read_reasons(trace, dead, notes)
    checked = np.array([*(reason.partition(":")[0] in _CHECKABLE for reason in reasons), True])[code]
    sentence = "A record was refused for a reason that does not apply to it."
    notes.violation("dead-without-cause", sentence, count=int(usable[row[dead & checked]].sum()))
    sentence = "A record was refused although nothing is visibly wrong with it."
    notes.warning("dead-without-cause", sentence, count=int(usable[row[dead & ~checked]].sum()))
