"""What the traces of all streams share: a verdict on every record, once, and a released row for every release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from shoal.auditor.counting import shared_codes
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


def read_verdicts(trace: Rows, *, records: int, released: int, shows_suppressed: bool = False) -> Verdicts:
    """Read the verdicts on some records, whose released rows are so many."""
    row, verdict = trace.numbers("row"), verdicts_of(trace)
    exists = (row >= 0) & (row < records)
    first = np.zeros(len(row), np.bool_)
    first[np.unique(row, return_index=True)[1]] = True
    first &= exists
    is_shown = (verdict == RELEASED) | ((verdict == SUPPRESSED) & shows_suppressed)
    return Verdicts(row, verdict, exists, first, is_shown, is_linked=int(is_shown.sum()) == released)


def verdicts_of(trace: Rows) -> Ints:
    """The verdict of every entry: RELEASED, SUPPRESSED or DEAD; -1 for anything else."""
    labels, (codes,) = shared_codes(trace.text("verdict"))
    numbers = [VERDICTS.index(label) if label in VERDICTS else -1 for label in labels]
    return np.array([*numbers, -1], np.int64)[codes]
