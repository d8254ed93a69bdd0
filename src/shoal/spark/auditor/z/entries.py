"""Entries of the trace: numbered where they are read, and joined with their records where these are checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from shoal.auditor.reading.columns import TEXT, Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.z.aligned import Aligned
from shoal.auditor.z.combined import read_waited
from shoal.spark.auditor.join_trace import EntryNumbers
from shoal.spark.auditor.shares import Share
from shoal.spark.auditor.z.facts import verdicts_of
from shoal.spark.auditor.z.plan import Plan

_ENTRY: Final = ("entry", "row", "verdict", "position")


def entry_batch(share: Share, plan: Plan) -> tuple[pa.RecordBatch, Bools]:
    """The entries of a share with their numbers, and which have a released row."""
    trace = share.read()
    verdicts, _ = verdicts_of(trace, plan.facts.count("truth"))
    entry, shown = plan.trace.first_entry(share.number), plan.trace.first_shown(share.number)
    numbers: dict[str, Any] = {
        "entry": np.arange(len(verdicts.row)) + entry,
        "row": np.where(verdicts.exists, verdicts.row, -1),
        "verdict": verdicts.verdict,
        "position": np.where(verdicts.is_shown, np.cumsum(verdicts.is_shown) - 1 + shown, -1),
    }
    for attribute in plan.promise.attributes:
        name = next((name for name in (f"z.{attribute.name}", "z") if name in trace.columns), None)
        numbers[f"z.{attribute.name}"] = np.full(len(trace), -1) if name is None else trace.numbers(name)
    if plan.promise.k is not None:
        numbers["waited"] = read_waited(trace)
    for of, level in (plan.levels or {}).items():
        numbers[f"level.{of}"] = trace.numbers(level)
    columns = {f"\0{name}": pa.array(values, pa.int64()) for name, values in numbers.items()}
    columns["\1reason"] = pa.concat_arrays(trace.text("reason").cast(TEXT).chunks or [pa.array([], TEXT)])
    return pa.record_batch(columns), verdicts.is_shown


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of a bin, in the order of the trace; records are counted from the first of the bin, -1 for none."""

    entry: Ints
    row: Ints
    exists: Bools
    first: Bools
    """Which are the first entry of their record."""
    verdict: Ints
    position: Ints
    """The released row, -1 for none."""
    z: dict[str, Ints]
    level: dict[str, Ints] | None
    """The level at which values passed z, if combinations are promised."""
    waited: Ints | None
    """The epoch at whose end each was decided, if combinations are promised."""
    trace: Rows

    @classmethod
    def of(cls, batches: Sequence[pa.RecordBatch], first: int, plan: Plan) -> Entries:
        """The entries of some batches."""
        z = [f"z.{attribute.name}" for attribute in plan.promise.attributes]
        level = [f"level.{name}" for name in plan.levels or ()]
        waited = [] if plan.promise.k is None else ["waited"]
        found = EntryNumbers.of(batches, [*_ENTRY, *z, *level, *waited], first)
        numbers = found.numbers
        return cls(
            numbers["entry"], found.row, found.exists, found.first, numbers["verdict"], numbers["position"],
            {name.removeprefix("z."): numbers[name] for name in z},
            None if plan.levels is None else {name.removeprefix("level."): numbers[name] for name in level},
            numbers.get("waited"), found.texts(batches, "reason"),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Events:
    """The records of a bin, the entries that decide them, and their released rows, which keep the order of entries."""

    first: int
    """The number of the first record."""
    aligned: Aligned
    release: Rows
    entries: Entries
    counted: Ints
    """The entries that accept a usable record."""
    rows: Ints
    """Their records, counted from the first of the bin."""
    start: Ints
    """How often the stream had restarted before each of these."""

    @property
    def shown(self) -> Bools:
        """Which entries have a released row."""
        return self.entries.position >= 0

    @property
    def position(self) -> Ints:
        """The released row of every accepted record, -1 for none."""
        return self.entries.position[self.counted]
