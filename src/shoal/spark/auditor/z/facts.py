"""What all files of a release of events say together, and where the stream restarted."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from shoal.auditor.findings import Finding, Notes
from shoal.auditor.layout import count_odd_rows
from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import TEXT, Bools, Ints
from shoal.auditor.reading.rows import Rows, by_stream, has_row_column
from shoal.auditor.trace import DEAD, RELEASED, SUPPRESSED, Verdicts, read_verdicts
from shoal.auditor.z.aligned import align
from shoal.auditor.z.clock import find_confirmed_restarts
from shoal.auditor.z.promise import ZPromise
from shoal.spark.auditor.engine import Message, result
from shoal.spark.auditor.facts import NO_ROWS, EntryFacts, FileFacts
from shoal.spark.auditor.linking import truth_rows, whole
from shoal.spark.auditor.packing import packed
from shoal.spark.auditor.shares import Share

FIRST: Final = 10_000
"""Restarts are looked for in the first records: the second person's record usually confirms the clock."""


@dataclass(frozen=True, slots=True)
class ReadFacts:
    """Reads the facts of a file of the release or of the truth."""

    policy: Policy

    def __call__(self, share: Share) -> Iterator[Message]:
        rows, found = share.read(), FileFacts()
        found.rows[share.role, share.number] = len(rows)
        found.columns[share.role] = rows.columns
        found.has_row_column = share.role == "truth" and has_row_column(rows)
        if share.role == "release":
            found.hidden = rows.hidden
            found.odd_rows = count_odd_rows(share.path, self.policy, share.expected)
        yield result(found)


@dataclass(frozen=True, slots=True)
class ReadTrace:
    """Reads a share of the trace by itself; the first records go to one task, which looks for restarts."""

    policy: Policy
    facts: FileFacts

    def __call__(self, share: Share) -> Iterator[Message]:
        if share.role == "truth":
            first = self.facts.first(share)
            if first < FIRST:
                rows = whole(read_truth(share, self.policy, self.facts)).slice(0, FIRST - first)
                yield Message(0, "truth", pickle.dumps((first, packed(rows))))
            return
        trace, found = share.read(), EntryFacts()
        found.columns, found.entries[share.number] = set(trace.columns), len(trace)
        if {"row", "verdict"} <= found.columns:
            verdicts, found.findings = verdicts_of(trace, self.facts.count("truth"))
            found.shown[share.number] = int(verdicts.is_shown.sum())
            for number in (RELEASED, SUPPRESSED, DEAD):
                found.verdicts[number] = int((verdicts.verdict == number).sum())
            found.last = int(verdicts.row[verdicts.exists].max(initial=-1))
            dead = np.flatnonzero(verdicts.exists & (verdicts.verdict == DEAD) & (verdicts.row < FIRST))
            reasons = trace.text("reason").take(pa.array(dead)).to_pylist() if "reason" in found.columns else []
            yield Message(0, "dead", pickle.dumps((verdicts.row[dead], reasons)))
        yield result(found)


def read_truth(share: Share, policy: Policy, facts: FileFacts) -> Rows:
    """Read a file of the truth, with the numbers of its rows if they stand for people."""
    numbers = not facts.has_row_column
    return by_stream(share.read(), policy.section("stream"), facts.first(share), numbers=numbers)


def verdicts_of(trace: Rows, records: int) -> tuple[Verdicts, list[Finding]]:
    """The verdicts of a share, and what is wrong with each by itself."""
    notes = Notes()
    found = read_verdicts(trace, notes, records=records, released=0)
    return found, [one for one in notes.findings if one.code in ("trace-verdict", "trace-row")]


@dataclass(frozen=True, slots=True)
class Restarts:
    """The records at which the stream restarted, and whether the clock was confirmed."""

    rows: Ints
    is_confirmed: bool


@dataclass(frozen=True, slots=True)
class FindRestarts:
    """Looks for restarts among the first records."""

    promise: ZPromise

    def __call__(self, _number: int, kinds: dict[str, list[bytes]]) -> Iterator[Message]:
        aligned = align(self.promise, NO_ROWS, truth_rows(kinds.get("truth", ())))
        count = len(aligned.time)
        late, ahead = np.zeros((2, count), np.bool_)
        refused: Bools = np.zeros(count, np.bool_)
        for data in kinds.get("dead", ()):
            rows, reasons = pickle.loads(data)
            for row, reason in zip(rows.tolist(), reasons or [None] * len(rows), strict=True):
                refused[row], late[row], ahead[row] = True, reason == "late", reason == "ahead"
        reached = (aligned.usable & ~refused) | (aligned.usable & (late | ahead))
        yield result(Restarts(*find_confirmed_restarts(reached, late, ahead, aligned, self.promise)))


def entry_batch(share: Share, promise: ZPromise, facts: FileFacts, entries: EntryFacts) -> tuple[pa.RecordBatch, Bools]:
    """The entries of a share with their numbers, and which have a released row."""
    trace = share.read()
    verdicts, _ = verdicts_of(trace, facts.count("truth"))
    entry, shown = entries.first_entry(share.number), entries.first_shown(share.number)
    numbers: dict[str, Any] = {
        "entry": np.arange(len(verdicts.row)) + entry,
        "row": np.where(verdicts.exists, verdicts.row, -1),
        "verdict": verdicts.verdict,
        "position": np.where(verdicts.is_shown, np.cumsum(verdicts.is_shown) - 1 + shown, -1),
    }
    for attribute in promise.attributes:
        name = next((name for name in (f"z.{attribute.name}", "z") if name in trace.columns), None)
        numbers[f"z.{attribute.name}"] = np.full(len(trace), -1) if name is None else trace.numbers(name)
    columns = {f"\0{name}": pa.array(values, pa.int64()) for name, values in numbers.items()}
    columns["\1reason"] = pa.concat_arrays(trace.text("reason").cast(TEXT).chunks or [pa.array([], TEXT)])
    return pa.record_batch(columns), verdicts.is_shown
