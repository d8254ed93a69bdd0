"""Files of tuples: rows, entries of the trace and records are sent to the bins where they meet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import TEXT
from shoal.auditor.reading.hidden_data import Hidden
from shoal.auditor.reading.rows import Rows, by_stream
from shoal.auditor.released_columns import mentioned_people
from shoal.auditor.rows.attributes import Attribute, read_attribute
from shoal.auditor.rows.quasi import RangeFacts
from shoal.auditor.trace import DEAD
from shoal.auditor.tuples.promise import TuplePromise
from shoal.auditor.tuples.trace import read_lists
from shoal.spark.auditor.engine import Message, result
from shoal.spark.auditor.hashing import of_text
from shoal.spark.auditor.join_trace import Entries, TruthBins, send_others, send_positions, send_ranges, whole
from shoal.spark.auditor.shares import Share
from shoal.spark.auditor.tuples.facts import Facts, TraceFacts, decisions_of


@dataclass(frozen=True, slots=True)
class Plan:
    """What every task knows."""

    policy: Policy
    promise: TuplePromise
    spans: Mapping[str, RangeFacts]
    records: TruthBins
    positions: int
    """The released rows of a bin of positions."""
    classes: int
    """Bins of classes; as many bins of clusters follow, then as many of values that are published unchanged."""
    has_identifiers: bool
    """Whether persons have identifiers; else they are the numbers of rows."""
    is_strange: bool
    """Whether the release has columns or labels that it must not have: they may be identifiers."""
    has_events: bool = True
    """Whether the trace says with which arrival each row was decided."""

    def attributes(self, release: Rows, truth: Rows) -> tuple[Attribute, ...]:
        """Read the quasi-identifiers of both sides."""
        return tuple(read_attribute(rule, release, truth, self.spans.get(rule.name)) for rule in self.promise.quasi)


@dataclass(frozen=True, slots=True)
class SendReleased:
    """Sends released rows, and entries of the trace that have one, to the bin of their position."""

    plan: Plan
    facts: Facts
    trace: TraceFacts

    def __call__(self, share: Share) -> Iterator[Message]:
        yield from send_positions(share, self.facts, self.trace, self.plan.positions, self._entries)

    def _entries(self, share: Share) -> Entries:
        return entry_batch(share, self.plan, self.trace)


@dataclass(frozen=True, slots=True)
class SendRecords:
    """Sends records, and entries of the trace that have no released row, to the bin of the record."""

    plan: Plan
    facts: Facts
    trace: TraceFacts
    hidden: Hidden

    def __call__(self, share: Share) -> Iterator[Message]:
        if share.role == "trace":
            yield from send_others(*entry_batch(share, self.plan, self.trace), self.plan.records)
            return
        stream, first = self.plan.policy.section("stream"), self.facts.first(share)
        truth = by_stream(share.read(), stream, first, numbers=not self.facts.has_row_column)
        persons = truth.text(self.plan.promise.person)
        found = mentioned_people(persons, self.plan.promise.columns, self.hidden)
        yield result(Persons(frozenset(map(of_text, found))))
        yield from send_ranges(whole(truth), first, self.plan.records.size, "truth")


@dataclass(frozen=True, slots=True)
class Persons:
    """Who is mentioned in the metadata of the release, as hashes."""

    mentioned: frozenset[int]


def entry_batch(share: Share, plan: Plan, trace: TraceFacts) -> Entries:
    """The entries of a share with their numbers, and which have a released row."""
    rows = share.read()
    decisions, _ = decisions_of(rows, plan.promise, plan.records.records)
    count = len(decisions.row)
    assert decisions.delay is not None
    event = np.full(count, -1) if decisions.event is None else decisions.event
    decided = decisions.exists & (decisions.verdict != DEAD)
    latest = np.maximum.accumulate(np.append(trace.event_before(share.number), np.where(decided, event, -1)))[1:]
    shown = np.cumsum(decisions.is_shown) - 1 + trace.first_shown(share.number)
    numbers: dict[str, Any] = {
        "entry": np.arange(count) + trace.first_entry(share.number),
        "row": np.where(decisions.exists, decisions.row, -1),
        "verdict": decisions.verdict,
        "group": decisions.group,
        "delay": decisions.delay,
        "reused": decisions.reused.astype(np.int64),
        "event": event,
        "displaced": (decided & (event < latest)).astype(np.int64),
        "position": np.where(decisions.is_shown, shown, -1),
    }
    columns = {f"\0{name}": pa.array(values, pa.int64()) for name, values in numbers.items()}
    columns["\1reason"] = pa.concat_arrays(rows.text("reason").cast(TEXT).chunks or [pa.array([], TEXT)])
    if "carriers" in trace.columns:
        width = len(plan.promise.quasi)
        flat = read_lists(rows, "carriers", width).reshape(-1)
        columns["\1carriers"] = pa.FixedSizeListArray.from_arrays(pa.array(flat, pa.int64()), width)
    return pa.record_batch(columns), decisions.is_shown
