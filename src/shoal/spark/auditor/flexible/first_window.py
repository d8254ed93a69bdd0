"""The first records: they decide which quasi-identifiers are sparse and how many people must share them."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.auditor.findings import Notes
from shoal.auditor.flexible.calibration import Calibration, Records, calibrate, read_claims
from shoal.auditor.flexible.density import row_k, with_measured_density
from shoal.auditor.flexible.promise import FlexiblePromise
from shoal.auditor.policy import Policy
from shoal.auditor.reading.rows import Rows
from shoal.auditor.tuples.truth import read_records
from shoal.spark.auditor.engine import Message, result
from shoal.spark.auditor.facts import NO_ROWS
from shoal.spark.auditor.flexible.facts import Facts, TraceFacts, attributes_of, read_truth, usable_records, verdicts_of
from shoal.spark.auditor.join_trace import TruthBins, slices, truth_rows, whole
from shoal.spark.auditor.packing import divided, packed, unpacked
from shoal.spark.auditor.shares import Share


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The usable records of a bin of the truth; they are counted from the first of the bin."""

    number: int
    usable: int
    first_release: int | None
    """Usable records of the bin, and arrivals after them, up to the first release."""
    last_pending: int
    """Usable records of the bin up to the last one that was pending and then released."""


@dataclass(frozen=True, slots=True)
class SendUsable:
    """Sends which records are usable, and the delays of released ones, to the bins of the records."""

    policy: Policy
    promise: FlexiblePromise
    facts: Facts
    trace: TraceFacts
    records: TruthBins

    def __call__(self, share: Share) -> Iterator[Message]:
        if share.role == "truth":
            usable = usable_records(self.promise, self.facts, read_truth(share, self.policy, self.facts))
            batch = pa.record_batch({"usable": pa.array(usable)})
            for number, start, part in slices(batch, self.facts.first(share), self.records.size):
                marks = part.column(0).to_numpy(zero_copy_only=False)
                yield Message(number, "usable", pickle.dumps((start, np.packbits(marks), len(marks))))
            return
        rows = share.read()
        found = verdicts_of(rows, self.records.records)
        shown = found.is_shown & found.exists
        entries = pa.record_batch({"row": found.row[shown], "delay": rows.numbers("delay")[shown]})
        for number, part in divided(entries, self.records.of(found.row[shown])):
            yield Message(number, "delays", packed(part))


@dataclass(frozen=True, slots=True)
class CountArrivals:
    """Counts the usable records of a bin."""

    records: TruthBins

    def __call__(self, number: int, kinds: dict[str, list[bytes]]) -> Iterator[Message]:
        parts = sorted((pickle.loads(data) for data in kinds.get("usable", ())), key=lambda part: part[0])
        usable = np.concatenate([np.zeros(0, np.bool_), *(_bits(bits, count) for _, bits, count in parts)])
        arrived = np.cumsum(usable)
        first, last = None, 0
        for data in kinds.get("delays", ()):
            row, delay = (column.to_numpy() for column in unpacked(data).columns)
            at = arrived[row - number * self.records.size]
            soonest = int((at + delay).min())
            first = soonest if first is None else min(first, soonest)
            last = max(last, int(at[delay > 0].max(initial=0)))
        yield result(Arrivals(number, int(usable.sum()), first, last))


def _bits(bits: Any, count: int) -> Any:
    return np.unpackbits(bits, count=count).astype(np.bool_)


@dataclass(frozen=True, slots=True)
class Timing:
    """When records came, and when the first rows were released."""

    before: tuple[int, ...]
    """Usable records before each bin, and in all."""
    came: int | None
    """Usable records before the first release; None if not known."""
    last_pending: int
    """Usable records up to the last one that was pending and then released."""

    @classmethod
    def of(cls, parts: Sequence[Arrivals], bins: int, trace: TraceFacts) -> Timing:
        """Of the counts of all bins."""
        counts = np.zeros(bins, np.int64)
        for part in parts:
            counts[part.number] = part.usable
        before = (0, *np.cumsum(counts).tolist())
        firsts = [before[part.number] + part.first_release for part in parts if part.first_release is not None]
        came = min(firsts) if firsts and not trace.unlinked and "delay" in trace.columns else None
        lasts = [before[part.number] + part.last_pending for part in parts if part.last_pending]
        return cls(before, came, max(lasts, default=0))

    def seen(self, window: int) -> int:
        """Usable records that were there in a round of grouping: after every window, and at a flush."""
        total = self.before[-1]
        full = total // window * window
        return total if self.last_pending > full else full


@dataclass(frozen=True, slots=True)
class SendFirst:
    """Sends the first usable records of a file to the task that calibrates."""

    policy: Policy
    promise: FlexiblePromise
    facts: Facts
    count: int

    def __call__(self, share: Share) -> Iterator[Message]:
        truth = read_truth(share, self.policy, self.facts)
        rows = np.flatnonzero(usable_records(self.promise, self.facts, truth))[: self.count]
        yield Message(0, "truth", pickle.dumps((share.number, packed(whole(truth).take(pa.array(rows))))))


@dataclass(frozen=True, slots=True)
class Calibrated:
    """What the first records say."""

    calibration: Calibration
    promise: FlexiblePromise
    """With the k of density classes, if they are measured."""
    metrics: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Calibrate:
    """Calibrates with the first usable records."""

    promise: FlexiblePromise
    facts: Facts
    claims: tuple[bytes, ...]
    came: int | None

    def __call__(self, _number: int, kinds: dict[str, list[bytes]]) -> Iterator[Message]:
        yield result(self.calibrated(truth_rows(kinds.get("truth", ()))))

    def calibrated(self, truth: Rows) -> Calibrated:
        """Calibrate with records that are all usable."""
        notes, attributes = Notes(), attributes_of(self.promise, self.facts, NO_ROWS, truth)
        records = read_records(self.promise.person, None, truth, attributes)
        promise = with_measured_density(self.promise, attributes, records.person, records.usable, self.came)
        k = row_k(promise, attributes, np.arange(len(truth)))
        found = calibrate(
            promise, attributes, Records(records.person, records.usable, k), read_claims(self.claims), notes, self.came
        )
        return Calibrated(found, promise, notes.metrics)


def first_shares(truth: Sequence[Share], facts: Facts, timing: Timing, size: int, count: int) -> list[Share]:
    """The files that have the first usable records."""
    bins = next((number for number, before in enumerate(timing.before) if before >= count), len(timing.before) - 1)
    return [share for share in truth if facts.first(share) < bins * size]
