"""What all files of a flexible release say together, and what every task of its audit knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.auditor.findings import Notes
from shoal.auditor.flexible.calibration import Calibration
from shoal.auditor.flexible.promise import FlexiblePromise
from shoal.auditor.flexible.values import has_whole_cells, read_flexible_attribute
from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import TEXT, Bools
from shoal.auditor.reading.rows import Rows, by_stream
from shoal.auditor.rows.attributes import Attribute, Spans, read_attribute
from shoal.auditor.rows.rules import NumberRule
from shoal.auditor.trace import Verdicts, read_verdicts
from shoal.auditor.tuples.truth import read_records
from shoal.spark.auditor.engine import Message, result
from shoal.spark.auditor.facts import NO_ROWS, EntryFacts, QuasiFacts
from shoal.spark.auditor.join_trace import Entries, TruthBins
from shoal.spark.auditor.shares import Share

DETAILS = ("group", "delay", "k", "k_s")
"""Columns of numbers of the trace."""


@dataclass(slots=True)
class Facts(QuasiFacts):
    """Facts of a file, or of all files."""

    fractions: set[str] = field(default_factory=set)
    """Columns with a released range whose ends are not whole numbers."""

    def merge(self, other: Facts) -> None:
        """Add the facts of other files."""
        self.add_quasi(other)
        self.fractions |= other.fractions


@dataclass(frozen=True, slots=True)
class ReadFacts:
    """Reads the facts of a file of the release or of the truth."""

    policy: Policy
    promise: FlexiblePromise

    def __call__(self, share: Share) -> Iterator[Message]:
        found = Facts()
        release, _ = found.describe_quasi(share, self.policy, self.promise.quasi)
        for rule in self.promise.quasi if share.role == "release" else ():
            attribute = read_attribute(rule, release, NO_ROWS) if isinstance(rule, NumberRule) else None
            if isinstance(attribute, Spans) and not has_whole_cells(attribute):
                found.fractions.add(rule.name)
        yield result(found)


@dataclass(slots=True)
class TraceFacts(EntryFacts):
    """What a trace says by itself."""

    claims: dict[int, tuple[bytes, ...]] = field(default_factory=dict)
    """The promise that each share records."""

    def merge(self, other: TraceFacts) -> None:
        """Add another share."""
        self.add(other)
        self.claims |= other.claims

    @property
    def all_claims(self) -> list[bytes]:
        """The promises of all shares, in their order."""
        return [text for number in sorted(self.claims) for text in self.claims[number]]


@dataclass(frozen=True, slots=True)
class ReadTrace:
    """Reads a share of the trace by itself."""

    records: int

    def __call__(self, share: Share) -> Iterator[Message]:
        trace, found = share.read(), TraceFacts()
        found.columns, found.entries[share.number] = set(trace.columns), len(trace)
        found.claims[share.number] = trace.claims
        if {"row", "verdict"} <= found.columns:
            found.describe(share, verdicts_of(trace, self.records))
        yield result(found)


def verdicts_of(trace: Rows, records: int) -> Verdicts:
    """The verdicts of a share; what is wrong with them is reported with their records."""
    return read_verdicts(trace, Notes(), records=records, released=0)


@dataclass(frozen=True, slots=True)
class Plan:
    """What every task knows."""

    policy: Policy
    promise: FlexiblePromise
    facts: Facts
    trace: TraceFacts
    records: TruthBins
    positions: int
    """The released rows of a bin of positions."""
    bins: int
    """Bins of classes; as many follow for groups of the trace, unchanged values, and pending records."""
    has_identifiers: bool
    """Whether persons have identifiers; else they are the numbers of rows."""
    is_strange: bool
    """Whether the release has columns or labels that it must not have: they may be identifiers."""
    calibration: Calibration
    usable_before: tuple[int, ...] = ()
    """Usable records before each bin of the truth."""
    seen: int = 0
    """Usable records that were there in a round of grouping."""

    def attributes(self, release: Rows, truth: Rows) -> tuple[Attribute, ...]:
        """Read the quasi-identifiers of both sides."""
        return attributes_of(self.promise, self.facts, release, truth)

    def truth(self, share: Share) -> Rows:
        """Read a file of the truth, with the numbers of its rows if they stand for people."""
        return read_truth(share, self.policy, self.facts)

    def entries(self, share: Share) -> Entries:
        """The entries of a share of the trace with their numbers, and which have a released row."""
        rows = share.read()
        found = verdicts_of(rows, self.records.records)
        shown = np.cumsum(found.is_shown) - 1 + self.trace.first_shown(share.number)
        numbers: Mapping[str, Any] = {
            "entry": np.arange(len(found.row)) + self.trace.first_entry(share.number),
            "row": np.where(found.exists, found.row, -1),
            "verdict": found.verdict,
            "position": np.where(found.is_shown, shown, -1),
            **{name: rows.numbers(name) for name in DETAILS if name in self.trace.columns},
        }
        columns = {f"\0{name}": pa.array(values, pa.int64()) for name, values in numbers.items()}
        reasons = rows.text("reason").cast(TEXT).chunks if "reason" in rows.columns else []
        columns["\1reason"] = pa.concat_arrays(reasons or [pa.nulls(len(found.row), TEXT)])
        return pa.record_batch(columns), found.is_shown


def attributes_of(promise: FlexiblePromise, facts: Facts, release: Rows, truth: Rows) -> tuple[Attribute, ...]:
    """Read the quasi-identifiers of a part of both sides."""
    return tuple(
        read_flexible_attribute(
            rule, release, truth, facts.spans.get(rule.name), is_whole=rule.name not in facts.fractions
        )
        for rule in promise.quasi
    )


def read_truth(share: Share, policy: Policy, facts: Facts) -> Rows:
    """Read a file of the truth, with the numbers of its rows if they stand for people."""
    return by_stream(share.read(), policy.section("stream"), facts.first(share), numbers=not facts.has_row_column)


def usable_records(promise: FlexiblePromise, facts: Facts, truth: Rows) -> Bools:
    """Which records can be used."""
    return read_records(promise.person, None, truth, attributes_of(promise, facts, NO_ROWS, truth)).usable
