"""What all files of a release say together: how many rows there are, which columns, which rows are where."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from shoal.auditor.findings import Finding
from shoal.auditor.layout import count_odd_rows
from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import Ints
from shoal.auditor.reading.hidden_data import Hidden
from shoal.auditor.reading.rows import NOTHING_HIDDEN, Rows, has_row_column
from shoal.auditor.trace import DEAD, RELEASED, SUPPRESSED, Verdicts
from shoal.spark.auditor.shares import Share

NO_ROWS = Rows((), "none")


@dataclass(slots=True)
class FileFacts:
    """Facts of a file of the release or of the truth, or of all files."""

    rows: dict[tuple[str, int], int] = field(default_factory=dict)
    """The rows of each file, by role and number."""
    columns: dict[str, list[str]] = field(default_factory=dict)
    hidden: Hidden = NOTHING_HIDDEN
    odd_rows: int = 0
    has_row_column: bool = False

    def describe(self, share: Share, rows: Rows, policy: Policy) -> None:
        """Take over what a file shows as it was read."""
        self.rows[share.role, share.number] = len(rows)
        self.columns[share.role] = rows.columns
        self.has_row_column = share.role == "truth" and has_row_column(rows)
        if share.role == "release":
            self.hidden = rows.hidden
            self.odd_rows = count_odd_rows(share.path, policy, share.expected)

    def add(self, other: FileFacts) -> None:
        """Add the facts of other files."""
        self.rows |= other.rows
        for role, names in other.columns.items():
            self.columns[role] = list(dict.fromkeys((*self.columns.get(role, ()), *names)))
        self.hidden += other.hidden
        self.odd_rows += other.odd_rows
        self.has_row_column |= other.has_row_column

    def count(self, role: str) -> int:
        """The rows of all files of a role."""
        return sum(rows for (own, _), rows in self.rows.items() if own == role)

    def first(self, share: Share) -> int:
        """The number of the first row of a file."""
        return sum(rows for (role, at), rows in self.rows.items() if role == share.role and at < share.number)


@dataclass(slots=True)
class EntryFacts:
    """Facts of a share of a trace, or of all of it."""

    entries: dict[int, int] = field(default_factory=dict)
    """By share."""
    shown: dict[int, int] = field(default_factory=dict)
    """Entries that have a row in the release, by share."""
    unlinked: int = 0
    """Entries that have a row in the release and no record."""
    verdicts: Ints = field(default_factory=lambda: np.zeros(3, np.int64))
    last: int = -1
    """The last record that the trace names."""
    columns: set[str] = field(default_factory=set)
    """Columns that all shares have."""
    known: set[str] = field(default_factory=set)
    """Columns that some share has."""
    findings: list[Finding] = field(default_factory=list)

    def add(self, other: EntryFacts) -> None:
        """Add another share."""
        self.columns = other.columns if not self.entries else self.columns & other.columns
        self.known = self.known | other.known | other.columns
        self.entries |= other.entries
        self.shown |= other.shown
        self.unlinked += other.unlinked
        self.verdicts = self.verdicts + other.verdicts
        self.last = max(self.last, other.last)
        self.findings += other.findings

    def describe(self, share: Share, verdicts: Verdicts) -> None:
        """Take over the verdicts of a share."""
        self.shown[share.number] = int(verdicts.is_shown.sum())
        self.unlinked = int((verdicts.is_shown & ~verdicts.exists).sum())
        for number in (RELEASED, SUPPRESSED, DEAD):
            self.verdicts[number] = int((verdicts.verdict == number).sum())

    def first_entry(self, number: int) -> int:
        """The number of a share's first entry."""
        return sum(count for at, count in self.entries.items() if at < number)

    def first_shown(self, number: int) -> int:
        """The released row of a share's first shown entry."""
        return sum(count for at, count in self.shown.items() if at < number)
