"""What all files of a release of events say together, and where the stream restarted."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from shoal.auditor.findings import Finding, Notes
from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.rows import Rows, by_stream
from shoal.auditor.trace import DEAD, Verdicts, read_verdicts
from shoal.auditor.z.aligned import align
from shoal.auditor.z.clock import find_confirmed_restarts
from shoal.auditor.z.promise import ZPromise
from shoal.spark.auditor.engine import Message, result
from shoal.spark.auditor.facts import NO_ROWS, EntryFacts, FileFacts
from shoal.spark.auditor.join_trace import truth_rows, whole
from shoal.spark.auditor.packing import packed
from shoal.spark.auditor.shares import Share

FIRST: Final = 10_000
"""Restarts are looked for in the first records: the second person's record usually confirms the clock."""


@dataclass(frozen=True, slots=True)
class ReadFacts:
    """Reads the facts of a file of the release or of the truth."""

    policy: Policy

    def __call__(self, share: Share) -> Iterator[Message]:
        found = FileFacts()
        found.describe(share, share.read(), self.policy)
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
            found.describe(share, verdicts)
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
