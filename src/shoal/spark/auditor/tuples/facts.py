"""What all files together say: how many rows there are, how columns are written, which rows are where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal.auditor.findings import Finding, Notes
from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.trace import DEAD
from shoal.auditor.tuples.diversity.sensitive import SensitiveFacts, read_sensitive_facts
from shoal.auditor.tuples.promise import TuplePromise
from shoal.auditor.tuples.trace import Decisions, read_decisions
from shoal.spark.auditor.engine import Message, result
from shoal.spark.auditor.facts import EntryFacts, QuasiFacts
from shoal.spark.auditor.join_trace import TruthBins
from shoal.spark.auditor.shares import Share

_PER_ENTRY = frozenset({"trace-verdict", "trace-row", "trace-group", "k-lowered", "unchecked-promise"})
"""What a share of a trace shows by itself; the other checks of a trace need all of it."""


@dataclass(slots=True)
class Facts(QuasiFacts):
    """Facts of a file, or of all files."""

    sensitive: dict[str, SensitiveFacts] = field(default_factory=dict)

    def merge(self, other: Facts) -> None:
        """Add the facts of other files."""
        self.add_quasi(other)
        for name, sensitive in other.sensitive.items():
            self.sensitive[name] = self.sensitive.get(name, SensitiveFacts()) | sensitive


@dataclass(frozen=True, slots=True)
class ReadFacts:
    """Reads the facts of a file of the release or of the truth."""

    policy: Policy
    promise: TuplePromise

    def __call__(self, share: Share) -> Iterator[Message]:
        found = Facts()
        sides = found.describe_quasi(share, self.policy, self.promise.quasi)
        found.sensitive = {name: read_sensitive_facts(name, self.promise, *sides) for name in self.promise.sensitive}
        yield result(found)


@dataclass(slots=True)
class TraceFacts(EntryFacts):
    """What a trace says by itself; the last record that it names may be the event of a decision."""

    dead: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """Refused records, by bin of the truth."""
    events: dict[int, int] = field(default_factory=dict)
    """The last event of each share."""

    def merge(self, other: TraceFacts) -> None:
        """Add another share."""
        self.add(other)
        self.dead = other.dead if not len(self.dead) else self.dead + other.dead
        self.events |= other.events

    def event_before(self, number: int) -> int:
        """The last event before a share."""
        return max((event for at, event in self.events.items() if at < number), default=-1)


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
            found.describe(share, decisions)
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
