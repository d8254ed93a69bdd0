"""Values withheld to reach a target: the released and the withheld values of an epoch meet in one task, in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from shoal.auditor.findings import Finding, Notes
from shoal.auditor.reading.columns import Ints
from shoal.auditor.z.promise import ZPromise
from shoal.auditor.z.target import stretches
from shoal.auditor.z.withheld import NO_VALUE, ShownValue, first_of, judge_sets
from shoal.spark.auditor.engine import Message
from shoal.spark.auditor.hashing import Hashes
from shoal.spark.auditor.packing import divided, packed, sorted_columns
from shoal.spark.auditor.z.entries import Events
from shoal.spark.auditor.z.plan import EPOCHS, Plan
from shoal.spark.auditor.z.sending import hashes_of

_NO_COLUMN: Final = -1
"""A row without a value, which shows that a person is there."""


@dataclass(frozen=True, slots=True)
class OfWithheld:
    """What was found about the withheld values of some epochs."""

    findings: list[Finding]
    count: int


def send_shown_rows(plan: Plan, events: Events) -> Iterator[Message]:
    """Send the first released row of each person and epoch, if rows are released without their values."""
    if not plan.promise.keeps_rows:
        return
    aligned, rows = events.aligned, events.rows
    time, person = aligned.time[rows], aligned.person[rows]
    kept = first_of(np.flatnonzero(events.position >= 0), events.start, time // plan.promise.rotation_ns, person)
    columns = {
        "time": time, "row": rows + events.first, "start": events.start, "position": events.position,
        "person": hashes_of(aligned.persons)[person], "value": np.zeros(len(rows), np.uint64),
    }  # fmt: skip
    batch = _batch(columns, kept, _NO_COLUMN, is_held=False)
    for number, part in divided(batch, plan.of_epochs(time[kept] // plan.promise.rotation_ns)):
        yield Message(plan.at(EPOCHS, number), "shown rows", packed(part))


def send_shown_values(
    plan: Plan, column: int, rows: Mapping[str, Any], value: Hashes, published: Hashes, held: Ints
) -> Iterator[Message]:
    """Send withheld values, and the first released one of each person and epoch, to the epoch; rows come in order."""
    epoch = rows["time"] // plan.promise.rotation_ns
    released = np.flatnonzero((rows["position"] >= 0) & (published != 0))
    first = first_of(released, rows["start"], epoch, rows["person"].view(np.int64), published.view(np.int64))
    for kept, of, is_held in ((held, value, True), (first, published, False)):
        batch = _batch({**rows, "value": of}, kept, column, is_held=is_held)
        for number, part in divided(batch, plan.of_epochs(epoch[kept])):
            yield Message(number, "withheld", packed(part))


def _batch(columns: Mapping[str, Any], kept: Ints, column: int, *, is_held: bool) -> pa.RecordBatch:
    found = {name: columns[name][kept] for name in ("time", "row", "start", "person", "value", "position")}
    found["column"], found["held"] = np.full(len(kept), column), np.full(len(kept), is_held)
    return pa.record_batch({name: pa.array(values) for name, values in found.items()})


def judge_withheld(promise: ZPromise, parts: Sequence[bytes]) -> OfWithheld:
    """Judge the epochs of a bin."""
    assert promise.target is not None
    rows = sorted_columns(parts, "start", "time", "row", "column")
    found = judge_sets(_in_order(promise, rows), promise.target)
    positions = np.unique(rows["position"][rows["position"] >= 0])
    notes = Notes(numbers=positions)
    found.note(np.isin(positions, np.array(found.wrong, np.int64)), notes)
    return OfWithheld(notes.findings, found.withheld)


def _in_order(promise: ZPromise, rows: Mapping[str, Any]) -> Iterator[ShownValue]:
    stretch = stretches(rows["time"] // promise.rotation_ns, rows["start"]).tolist()
    columns = (rows[name].tolist() for name in ("position", "column", "person", "value", "held"))
    for position, column, person, value, is_held, own in zip(*columns, stretch, strict=True):
        yield position, column, person, NO_VALUE if column == _NO_COLUMN else value, is_held, own
