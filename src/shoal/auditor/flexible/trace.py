"""Read the trace of a flexible release, and check that it accounts for every record once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from shoal.auditor.counting import shared_codes
from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.rows import Rows

_RELEASED, _DEAD, _SUPPRESSED = 0, 1, 2
_VERDICTS: Final = ("released", "dead", "suppressed")
_CAUSES: Final = ("outside", "unknown", "null-person")
"""Reasons for a dead record that the truth can be asked about."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The trace; what is of released rows stands in their order."""

    is_linked: bool
    """Whether the release has as many rows as the trace says."""
    row: Ints
    """The record of every released row; -1 where the trace names none that exists."""
    group: Ints
    k: Ints | None
    """What was in force by the trace itself; None where it does not say. So is ``k_s``."""
    k_s: Ints | None
    decided: Ints
    """All records that there is a verdict on."""
    waited: Ints
    """Released records that waited for it: they left in a round of grouping."""
    before_first: int | None
    """Usable records that had come when the first row left; None where that cannot be told."""


def read_trace(trace: Rows, usable: Bools | None, released: int, notes: Notes) -> Trace:
    """Check a trace by itself, and against the records (None: not at hand) and the number of released rows."""
    row, verdict = trace.numbers("row"), _verdicts(trace, notes)
    exists = row >= 0 if usable is None else (row >= 0) & (row < len(usable))
    notes.violation("trace-row", "The trace names a record that the truth does not have.", count=int((~exists).sum()))
    _check_once(row, exists, notes)
    leaves = verdict == _RELEASED
    apart = abs(int(leaves.sum()) - released)
    notes.violation("release-count", "The release and the trace do not have the same number of rows.", count=apart)
    if apart:
        notes.skip("Nothing was followed row by row: trace and release do not have the same number of rows.")
    if usable is not None:
        _check_usable(row, leaves & exists, usable, notes)
        _check_dead(trace, row, exists & (verdict == _DEAD), usable, notes)
    _check_left(row[exists], verdict, usable, notes)
    group = trace.numbers("group")
    notes.violation(
        "trace-group",
        "The trace has a released row without a group, or another row with one.",
        count=int((leaves != (group >= 0)).sum()),
    )
    delay = _column(trace, "delay", leaves)
    _measure_delays(delay, notes)
    record = np.where(exists, row, -1)[leaves]
    return Trace(
        is_linked=not apart,
        row=record,
        group=group[leaves],
        k=_column(trace, "k", leaves),
        k_s=_column(trace, "k_s", leaves),
        decided=row[exists],
        waited=record[:0] if delay is None else record[(record >= 0) & (delay > 0)],
        before_first=_before_first(record, delay, usable),
    )


def _before_first(record: Ints, delay: Ints | None, usable: Bools | None) -> int | None:
    """Count the usable records up to the first release: each left so many arrivals after its own as it waited."""
    if delay is None or usable is None or not len(record) or (record < 0).any():
        return None
    arrival = np.cumsum(usable)  # from 1
    return int((arrival[record] + delay).min())


def _verdicts(trace: Rows, notes: Notes) -> Ints:
    labels, (codes,) = shared_codes(trace.text("verdict"))
    numbers = [_VERDICTS.index(label) if label in _VERDICTS else -1 for label in labels]
    verdict = np.array([*numbers, -1], np.int64)[codes]
    notes.violation("trace-verdict", "The trace holds an unknown verdict.", count=int((verdict < 0).sum()))
    dropped = int((verdict == _SUPPRESSED).sum())
    notes.violation("suppressed", "A record was suppressed; what cannot leave has to wait.", count=dropped)
    return verdict


def _check_once(row: Ints, exists: Bools, notes: Notes) -> None:
    again = int(exists.sum()) - len(np.unique(row[exists]))
    notes.violation("decided-twice", "The trace decides a record more than once.", count=again)


def _check_usable(row: Ints, leaves: Bools, usable: Bools, notes: Notes) -> None:
    notes.violation(
        "unusable-accepted",
        "A record without a person, or with a value outside its domain or hierarchy, was not put among the dead ones.",
        count=int((~usable[row[leaves]]).sum()),
    )


def _check_dead(trace: Rows, row: Ints, dead: Bools, usable: Bools, notes: Notes) -> None:
    """Check that nobody was dropped under a pretext; what a decoder could not read is not seen here."""
    reasons, (code,) = shared_codes(trace.text("reason"))
    silent = int((dead & (code < 0)).sum())
    notes.unchecked("Why records were put away was not checked: the trace has no reason for them.", count=silent)
    checked = np.array([*(reason.partition(":")[0] in _CAUSES for reason in reasons), True])[code]
    sentence = "A record was put among the dead ones for a reason it does not have."
    notes.violation("dead-without-cause", sentence, count=int(usable[row[dead & checked]].sum()))
    sentence = "A record was put among the dead ones though nothing is seen to be wrong with it."
    notes.warning("dead-without-cause", sentence, count=int(usable[row[dead & ~checked]].sum()))


def _check_left(row: Ints, verdict: Ints, usable: Bools | None, notes: Notes) -> None:
    found: dict[str, Any] = {"released": int((verdict == _RELEASED).sum()), "dead": int((verdict == _DEAD).sum())}
    if usable is not None:
        open_rows = np.setdiff1d(np.arange(len(usable)), row)
        unusable = int((~usable[open_rows]).sum())
        notes.violation("lost", "The trace has no verdict on a record that cannot be used.", count=unusable)
        pending = len(open_rows) - unusable
        notes.info("held", "Records had no verdict yet when the trace ended.", count=pending)
        found = {"in": len(usable), **found, "pending": pending}
    notes.metrics["verdicts"] = found


def _column(trace: Rows, name: str, leaves: Bools) -> Ints | None:
    return trace.numbers(name)[leaves] if name in trace.columns else None


def _measure_delays(delay: Ints | None, notes: Notes) -> None:
    if delay is None:
        return
    notes.violation("trace-delay", "A delay is missing or below 0.", count=int((delay < 0).sum()))
    waited = delay[delay >= 0]
    if len(waited):
        median, most = float(np.median(waited)), int(waited.max())
        notes.metrics["delay"] = {"median": median, "longest": most}
