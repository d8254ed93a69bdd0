"""What all files together say: how many rows there are, how columns are written, which rows are where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal.auditor.findings import Finding, Notes
from shoal.auditor.layout import count_odd_rows
from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import Ints
from shoal.auditor.reading.hidden_data import Hidden
from shoal.auditor.reading.rows import NOTHING_HIDDEN, Rows, by_stream, has_row_column
from shoal.auditor.trace import DEAD, RELEASED, SUPPRESSED
from shoal.auditor.tuples.diversity.sensitive import SensitiveFacts, read_sensitive_facts
from shoal.auditor.tuples.promise import LabelRule, NumberRule, TuplePromise
from shoal.auditor.tuples.trace import Decisions, read_decisions
from shoal.auditor.tuples.values import SpanFacts, read_attribute, read_span_facts
from shoal.spark.auditor.engine import Message, result
from shoal.spark.auditor.linking import TruthBins
from shoal.spark.auditor.shares import Share

NO_ROWS = Rows((), "none")
_PER_ENTRY = frozenset({"trace-verdict", "trace-row", "trace-group", "k-lowered", "unchecked-promise"})
"""What a share of a trace shows by itself; the other checks of a trace need all of it."""


@dataclass(slots=True)
class Facts:
    """Facts of a file, or of all files."""

    rows: dict[tuple[str, int], int] = field(default_factory=dict)
    """The rows of each file, by role and number."""
    columns: dict[str, list[str]] = field(default_factory=dict)
    hidden: Hidden = NOTHING_HIDDEN
    odd_rows: int = 0
    spans: dict[str, SpanFacts] = field(default_factory=dict)
    sensitive: dict[str, SensitiveFacts] = field(default_factory=dict)
    has_row_column: bool = False
    is_strange: bool = False
    """Whether a released label is not in its hierarchy."""

    def merge(self, other: Facts) -> None:
        """Add the facts of other files."""
        self.rows |= other.rows
        for role, names in other.columns.items():
            self.columns[role] = list(dict.fromkeys((*self.columns.get(role, ()), *names)))
        self.hidden += other.hidden
        self.odd_rows += other.odd_rows
        for name, spans in other.spans.items():
            self.spans[name] = self.spans.get(name, SpanFacts()) | spans
        for name, sensitive in other.sensitive.items():
            self.sensitive[name] = self.sensitive.get(name, SensitiveFacts()) | sensitive
        self.has_row_column |= other.has_row_column
        self.is_strange |= other.is_strange

    def count(self, role: str) -> int:
        """The rows of all files of a role."""
        return sum(rows for (own, _), rows in self.rows.items() if own == role)

    def first(self, share: Share) -> int:
        """The number of the first row of a file."""
        return sum(rows for (role, at), rows in self.rows.items() if role == share.role and at < share.number)


@dataclass(frozen=True, slots=True)
class ReadFacts:
    """Reads the facts of a file of the release or of the truth."""

    policy: Policy
    promise: TuplePromise

    def __call__(self, share: Share) -> Iterator[Message]:
        rows, found = share.read(), Facts()
        if share.role == "truth":
            found.has_row_column = has_row_column(rows)
            rows = by_stream(rows, self.policy.section("stream"))
        found.rows[share.role, share.number] = len(rows)
        found.columns[share.role] = rows.columns
        sides = (rows, NO_ROWS) if share.role == "release" else (NO_ROWS, rows)
        found.spans = {
            rule.name: read_span_facts(rule, *sides) for rule in self.promise.quasi if isinstance(rule, NumberRule)
        }
        found.sensitive = {name: read_sensitive_facts(name, self.promise, *sides) for name in self.promise.sensitive}
        if share.role == "release":
            found.hidden = rows.hidden
            found.is_strange = any(
                read_attribute(rule, rows, NO_ROWS).faults["unknown-label"].any()
                for rule in self.promise.quasi
                if isinstance(rule, LabelRule)
            )
            found.odd_rows = count_odd_rows(share.path, self.policy, share.expected)
        yield result(found)


@dataclass(slots=True)
class TraceFacts:
    """What a trace says by itself."""

    entries: dict[int, int] = field(default_factory=dict)
    """By share."""
    shown: dict[int, int] = field(default_factory=dict)
    """Entries that have a row in the release, by share."""
    verdicts: Ints = field(default_factory=lambda: np.zeros(3, np.int64))
    dead: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """Refused records, by bin of the truth."""
    last: int = -1
    """The last record that the trace names, as decided or as the event of a decision."""
    events: dict[int, int] = field(default_factory=dict)
    """The last event of each share."""
    columns: set[str] = field(default_factory=set)
    """Columns that all shares have."""
    findings: list[Finding] = field(default_factory=list)

    def merge(self, other: TraceFacts) -> None:
        """Add another share."""
        self.columns = other.columns if not self.entries else self.columns & other.columns
        self.entries |= other.entries
        self.shown |= other.shown
        self.verdicts = self.verdicts + other.verdicts
        self.dead = other.dead if not len(self.dead) else self.dead + other.dead
        self.last = max(self.last, other.last)
        self.events |= other.events
        self.findings += other.findings

    def first_entry(self, number: int) -> int:
        """The number of a share's first entry."""
        return sum(count for at, count in self.entries.items() if at < number)

    def event_before(self, number: int) -> int:
        """The last event before a share."""
        return max((event for at, event in self.events.items() if at < number), default=-1)

    def first_shown(self, number: int) -> int:
        """The released row of a share's first shown entry."""
        return sum(count for at, count in self.shown.items() if at < number)


@dataclass(frozen=True, slots=True)
class ReadTrace:
    """Reads a share of the trace by itself."""

    promise: TuplePromise
    records: int
    bins: TruthBins

    def __call__(self, share: Share) -> Iterator[Message]:
        trace, found = share.read(), TraceFacts()
        found.columns = set(trace.columns)
        found.entries[share.number] = len(trace)
        found.dead = np.zeros(self.bins.count, np.int64)
        if {"row", "verdict", "group", "delay", "reused"} <= found.columns:
            decisions, found.findings = decisions_of(trace, self.promise, self.records)
            found.shown[share.number] = int(decisions.is_shown.sum())
            for number in (RELEASED, SUPPRESSED, DEAD):
                found.verdicts[number] = int((decisions.verdict == number).sum())
            dead = np.unique(decisions.dead_rows)
            found.dead = np.bincount(self.bins.of(dead), minlength=self.bins.count)
            events = decisions.event if decisions.event is not None else decisions.row[:0]
            decided = decisions.exists & (decisions.verdict != DEAD)
            found.events[share.number] = int(events[decided].max(initial=-1)) if len(events) else -1
            found.last = max(int(decisions.row[decisions.exists].max(initial=-1)), int(events.max(initial=-1)))
        yield result(found)


def decisions_of(trace: Rows, promise: TuplePromise, records: int) -> tuple[Decisions, list[Finding]]:
    """The entries of a share, and what is wrong with each by itself."""
    notes = Notes()
    decisions = read_decisions(trace, promise, records=records, released=0, notes=notes)
    return decisions, [found for found in notes.findings if found.code in _PER_ENTRY]


def merged_facts(parts: Sequence[Any]) -> Facts:
    """The facts of all files."""
    found = Facts()
    for part in parts:
        found.merge(part)
    return found
