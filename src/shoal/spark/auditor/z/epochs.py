"""Epochs of `combine` and of a target: all released rows and all accepted records of an epoch meet in one task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.auditor.counting import Paths, dense
from shoal.auditor.findings import Finding, Notes
from shoal.auditor.hierarchies.hierarchy import NoHierarchy
from shoal.auditor.reading.columns import Ints
from shoal.auditor.z.aligned import Aligned, Values
from shoal.auditor.z.combined import NO_EPOCH, SharedSets, check_let_wait, check_sets
from shoal.auditor.z.promise import Target, ZPromise
from shoal.auditor.z.target import check_recorded, epochs_met, first_free_epoch, is_low, note_early, stretches
from shoal.auditor.z.withheld import first_of
from shoal.spark.auditor.engine import Message, result
from shoal.spark.auditor.hashing import Hashes
from shoal.spark.auditor.packing import divided, packed, sorted_columns
from shoal.spark.auditor.z.entries import Events
from shoal.spark.auditor.z.plan import EPOCHS, Plan
from shoal.spark.auditor.z.sending import hashes_of
from shoal.spark.auditor.z.withheld import send_shown_rows


@dataclass(slots=True)
class OfEpochs:
    """What was found about some epochs."""

    findings: list[Finding] = field(default_factory=list)
    sets: SharedSets = field(default_factory=SharedSets)
    shown: int = 0
    """Epochs with a released row."""
    met: int = 0
    """Those of them in which the target was met."""
    low: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """By start and epoch: how many records have a z below the one at the start, and the first time."""


def early_count(parts: Iterable[OfEpochs], promise: ZPromise, target: Target) -> int:
    """Count the records whose z fell too early; no start of the stream is in two parts with the same epoch."""
    of_starts: dict[int, dict[int, tuple[int, int]]] = {}
    for part in parts:
        for (start, epoch), own in part.low.items():
            of_starts.setdefault(start, {})[epoch] = own
    count = 0
    for epochs in of_starts.values():
        free = first_free_epoch(sorted(epochs), min(first for _, first in epochs.values()), promise, target)
        count += sum(low for epoch, (low, _) in epochs.items() if free is None or epoch < free)
    return count


def epoch_findings(parts: Sequence[OfEpochs], promise: ZPromise) -> list[Finding]:
    """What was found about all epochs."""
    notes = Notes()
    if promise.target is not None:
        note_early(early_count(parts, promise, promise.target), notes)
    return [*notes.findings, *(one for part in parts for one in part.findings)]


# ---- on the tasks of records


def send_epochs(plan: Plan, events: Events) -> Iterator[Message]:
    """Send released rows and accepted records to the bins of their epochs, if something is promised about these."""
    if plan.judges_epochs:
        yield from _shown(plan, events)
    if plan.promise.k is not None and plan.levels is not None:
        yield from _waiting(plan, events)
    if plan.promise.target is not None:
        yield from _recorded(plan, events)
        yield from send_shown_rows(plan, events)


def _shown(plan: Plan, events: Events) -> Iterator[Message]:
    aligned = events.aligned
    columns = {
        "time": pa.array(aligned.shown_time),
        "readable": pa.array(aligned.shown_readable),
        "pseudonym": pa.array(hashes_of(aligned.persons)[aligned.shown_person]),
        "position": pa.array(events.entries.position[events.shown]),
    }
    for name, values in aligned.values.items():
        columns[f"value {name}"] = pa.array(hashes_of(values.texts)[values.shown])
    yield from _divided(plan, pa.record_batch(columns), aligned.shown_time, "shown")


def _divided(plan: Plan, batch: pa.RecordBatch, time: Ints, kind: str) -> Iterator[Message]:
    for number, part in divided(batch, plan.of_epochs(time // plan.promise.rotation_ns)):
        yield Message(plan.at(EPOCHS, number), kind, packed(part))


def _waiting(plan: Plan, events: Events) -> Iterator[Message]:
    """Send records that passed z and did not wait, and the first of each epoch that did."""
    time, counted = events.aligned.time[events.rows], events.counted
    assert events.entries.level is not None
    assert events.entries.waited is not None
    levels, waited = events.entries.level.values(), events.entries.waited[counted]
    may_pass = np.logical_or.reduce([level[counted] >= 0 for level in levels]) | plan.promise.keeps_rows
    first = first_of(np.flatnonzero(waited != NO_EPOCH), events.start, time // plan.promise.rotation_ns)
    kept = np.sort(np.append(first, np.flatnonzero((waited == NO_EPOCH) & may_pass)))
    columns = {"entry": events.entries.entry[counted], "time": time, "start": events.start, "waited": waited}
    batch = pa.record_batch({name: pa.array(values[kept]) for name, values in columns.items()})
    yield from _divided(plan, batch, time[kept], "waiting")


def _recorded(plan: Plan, events: Events) -> Iterator[Message]:
    time = events.aligned.time[events.rows]
    columns = {"time": time, "row": events.rows + events.first, "start": events.start}
    columns |= {f"z {name}": z[events.counted] for name, z in events.entries.z.items()}
    batch = pa.record_batch({name: pa.array(values) for name, values in columns.items()})
    yield from _divided(plan, batch, time, "recorded")


# ---- on the tasks of epochs


def judge_epochs(plan: Plan, number: int, kinds: Mapping[str, Sequence[bytes]]) -> Iterator[Message]:
    """Judge the epochs of a bin; what is withheld is judged in the next step, once it is known."""
    found, notes = OfEpochs(), Notes()
    if kinds.get("shown"):
        _judge_shown(plan.promise, sorted_columns(kinds["shown"], "position"), found, notes)
    if kinds.get("waiting"):
        rows = sorted_columns(kinds["waiting"], "entry")
        epoch = rows["time"] // plan.promise.rotation_ns
        check_let_wait(rows["waited"] == NO_EPOCH, rows["waited"], rows["start"], epoch, notes)
    if kinds.get("recorded"):
        _judge_recorded(plan.promise, sorted_columns(kinds["recorded"], "start", "time", "row"), found, notes)
    found.findings = notes.findings
    if found != OfEpochs():
        yield result(found)
    yield from (Message(number % plan.bins, "withheld", data) for data in kinds.get("shown rows", ()))


def _judge_shown(promise: ZPromise, rows: Mapping[str, Any], found: OfEpochs, notes: Notes) -> None:
    """Judge the sets of values of people."""
    notes.numbers = rows["position"]
    aligned = _released(promise, rows)
    if promise.k is not None:
        found.sets = check_sets(aligned, promise, promise.k, notes)
    if promise.target is not None:
        found.shown, found.met = epochs_met(aligned, promise, promise.target)


def _released(promise: ZPromise, rows: Mapping[str, Any]) -> Aligned:
    """Released rows as if they were all, without their records."""
    none = np.zeros(0, np.int64)
    paths = Paths([], NoHierarchy())
    return Aligned(
        time=none, usable=none > 0, person=none, carry=none, shown_time=rows["time"],
        shown_readable=rows["readable"], shown_person=_codes(rows["pseudonym"]),
        shown_carry=np.zeros(len(rows["time"]), np.int64), persons=[],
        values={
            one.name: Values(none, _codes(rows[f"value {one.name}"]), paths, []) for one in promise.attributes
        },
    )  # fmt: skip


def _codes(hashes: Hashes) -> Ints:
    """Numbers of hashes; null, whose hash is 0, gets -1."""
    found: Ints = np.where(hashes == 0, -1, dense(hashes.view(np.int64)))
    return found


def _judge_recorded(promise: ZPromise, rows: Mapping[str, Any], found: OfEpochs, notes: Notes) -> None:
    """Judge the z of every record; count those below the z at the start: the driver knows if that was too early."""
    assert promise.target is not None
    epoch, start = rows["time"] // promise.rotation_ns, rows["start"]
    columns = [rows[f"z {attribute.name}"] for attribute in promise.attributes]
    check_recorded(stretches(epoch, start), columns, notes)
    low = is_low(columns, promise.target)
    ends = np.flatnonzero(np.diff(stretches(epoch, start))) + 1
    for at, stop in pairwise([0, *ends.tolist(), len(epoch)]):
        found.low[int(start[at]), int(epoch[at])] = int(low[at:stop].sum()), int(rows["time"][at])
