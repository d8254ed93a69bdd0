"""What the audits of rows with quasi-identifiers share: the inputs, read once, and the checks that need no trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from shoal.auditor.evidence import Evidence
from shoal.auditor.findings import Notes
from shoal.auditor.identifying_columns import Published, check_identifying
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.rows.attributes import Attribute
from shoal.auditor.rows.rules import Rule
from shoal.auditor.spelling import check_row_spelling
from shoal.auditor.trace import trace_with
from shoal.auditor.tuples.clusters import check_values
from shoal.auditor.tuples.truth import read_records


class RowPromise(Protocol):
    """What the promises of such methods have in common."""

    @property
    def person(self) -> str:
        """The column of persons."""

    @property
    def carry(self) -> tuple[str, ...]:
        """Columns published unchanged."""

    @property
    def sensitive(self) -> tuple[str, ...]:
        """Sensitive columns, published unchanged."""

    @property
    def quasi(self) -> tuple[Rule, ...]:
        """The quasi-identifiers."""

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that may be released."""

    @property
    def k(self) -> int:
        """How many people must share a row."""


class RowJudge:
    """One audit. ``time`` is the column that records are decided by, if any."""

    def __init__(
        self,
        evidence: Evidence,
        promise: RowPromise,
        notes: Notes,
        read_attribute: Callable[[Rule, Rows, Rows], Attribute],
        time: str | None = None,
    ) -> None:
        self._promise, self.notes, self.policy = promise, notes, evidence.policy
        self.release = evidence.release
        self.trace = trace_with(("row", "verdict", "group"), evidence.trace, notes)
        self.has_truth = evidence.truth is not None
        self.truth = evidence.truth or Rows((), "truth")
        if len(self.truth):
            self.truth.require(promise.person, *promise.columns, *((time,) if time is not None else ()))
        self.attributes = tuple(read_attribute(rule, self.release, self.truth) for rule in promise.quasi)
        self.records = read_records(promise.person, time, self.truth, self.attributes)

    def check_release(self) -> None:
        """Check that values are allowed, and that equal values are spelled alike."""
        unchanged = (*self._promise.sensitive, *self._promise.carry)
        truth = self.truth if self.has_truth else None
        check_row_spelling(self.release, truth, self.attributes, unchanged, self.notes)
        check_values(self.attributes, self.release.broken, self.notes)

    def check_identifying(self, judged: Bools, person: Ints | None, of_class: Ints) -> None:
        """Measure how identifying the columns are that are published unchanged."""
        published = Published(self.release, judged, person, of_class)
        given = self._promise.carry, self._promise.sensitive
        check_identifying(self.policy, *given, published, ("k", self._promise.k), self.notes)
