"""Audit a release of sets on Spark: supports are counted over parts of the records and added up."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import add
from typing import Any, Final

import numpy as np

from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.sets.blocks import Blocks
from shoal.auditor.sets.certificate import Certificate, check_binding, check_empty
from shoal.auditor.sets.judge import sharpened
from shoal.auditor.sets.partition import (
    Partition,
    only_known,
    rare_items,
)
from shoal.auditor.sets.reporting import (
    NO_PARTITION,
    all_items,
    measure_loss,
    report_itemsets,
    write_measured,
)
from shoal.auditor.sets.shares import Measured, image_supports
from shoal.spark.auditor.engine import Engine, Step
from shoal.spark.auditor.merge_findings import add_all
from shoal.spark.auditor.sets.images import CheckRecords, Compared, CompareRows, OfRecords, Order, SendReleased
from shoal.spark.auditor.sets.reading import (
    CountPeople,
    CountReleased,
    Files,
    Plan,
    SendTruth,
    SetCounts,
)
from shoal.spark.auditor.sets.records import Entries, FindBelow, Records, SendEntries, SendPeople
from shoal.spark.auditor.sets.released_rows import (
    FindRows,
    OfRows,
    SortRecords,
    check_labels,
    find_partition,
    items_of,
    no_records,
    report_order,
    report_rows,
)
from shoal.spark.auditor.sets.tallies import (
    Chances,
    Sums,
    TallyPart,
    TallyReleased,
    is_countable,
    joined_tallies,
    measured,
    sum_bin,
)
from shoal.spark.auditor.stream_checks import by_type

BOUND: Final = 50_000_000
"""The driver digests the sets that a certificate is bound to, if they have at most this many labels in all."""


class SetJudge:
    """One audit: what was counted over all parts."""

    def __init__(
        self, engine: Engine, plan: Plan, files: Files, blocks: Blocks | None, certificate: Certificate | None,
        notes: Notes,
    ) -> None:  # fmt: skip
        self._engine, self._plan, self._files, self._notes = engine, plan, files, notes
        self._blocks, self._certificate = blocks, certificate
        nothing = SetCounts(Counter(), np.zeros(len(plan.labels), np.int64))
        self.released = reduce(add, engine.run(files.release, CountReleased(plan)), nothing)
        add_all(notes, self.released.findings)
        self._promise = sharpened(plan.promise, certificate, self.released.count, self.released.longest, notes)
        if certificate is not None:
            self._check_binding(certificate)
        self._partition: Partition | None = None
        self._seen: Ints | None = None
        self._kept: Ints | None = None
        self._sums: Sums = {}

    # ---- the release alone

    def judge_release(self) -> None:
        """Count the sets of at most m labels within a row."""
        notes, plan, released = self._notes, self._plan, self.released
        notes.metrics["released_records"] = released.count
        notes.metrics["released_empty_records"] = released.sizes[0]
        notes.metrics["released_average_size"] = released.mean
        notes.metrics["released_labels"] = len(plan.labels)
        sizes = tuple(size for size in self._sizes if is_countable(len(plan.labels), size, released.sizes))
        parts = self._engine.run(self._files.release, TallyReleased(plan, sizes), Step(plan.bins, sum_bin))
        self._sums = joined_tallies(parts, {"released": max(len(plan.labels), 1)}, sizes)
        for size in self._sizes:
            if size not in sizes:
                notes.skip(f"Sets of {size} labels were not counted: too many, and no sample is drawn on Spark.")

    @property
    def _sizes(self) -> range:
        return range(1, self._promise.m + 1)

    def _check_binding(self, certificate: Certificate) -> None:
        if int(self.released.records.sum()) > BOUND:
            self._notes.skip("Whether the certificate is of these sets was not checked: too many for the driver.")
            return
        used = np.flatnonzero(self.released.records)
        names = sorted(self._plan.labels[at] for at in used.tolist())

        def records() -> Iterator[bytes]:
            found = self._engine.run(self._files.release, SortRecords(self._plan, tuple(names)))
            return iter(heapq.merge(*found))

        check_binding(certificate, names, records, self._notes)

    def judge_blocks(self, seen: Ints | None) -> None:
        """Check the blocks file, and that labels are in the hierarchy; rows with them are found in parts."""
        self._seen = seen
        generalization = self._promise.generalization
        check_labels(self._promise, self._blocks, self._plan.items, seen, no_records(self._plan), self._notes)
        if self._blocks is None and generalization.way is not None and generalization.hierarchy is None:
            self._notes.skip("Whether blocks are connected was not checked: no blocks file.")

    # ---- with the truth

    def judge_truth(self) -> None:
        """Check the promise about original itemsets, and that the release is the truth's image."""
        notes, plan, promise = self._notes, self._plan, self._promise
        nothing = SetCounts(Counter(), np.zeros(len(plan.items), np.int64), ranges=(0,) * plan.bins)
        counts = reduce(
            add, self._engine.run(self._files.truth, SendTruth(plan), Step(plan.bins, CountPeople(plan))), nothing
        )
        notes.metrics["records"] = counts.count
        notes.metrics["average_size"] = counts.mean
        is_allowed = self._allowed(counts.records)
        seen = np.where(is_allowed, counts.records, 0)
        self.judge_blocks(seen)
        starts = (0, *np.cumsum(counts.ranges).tolist())
        sizes = tuple(size for size in self._sizes if is_countable(len(plan.items), size, counts.sizes))
        for size in self._sizes:
            if size not in sizes:
                notes.skip(f"Itemsets of {size} items were not counted: too many, and no sample is drawn on Spark.")
        if not self.released.count:
            self._nothing_released(Records(plan, starts, is_allowed, None, (), has_trace=False, sizes=sizes))
            return
        self._partition = find_partition(promise, self._blocks, items_of(plan, seen), no_records(plan), Notes())
        partition = self._partition
        records = Records(
            plan, starts, is_allowed, None if partition is None else partition.label_of,
            () if partition is None else partition.labels, bool(self._files.trace), sizes,
        )  # fmt: skip
        self._compare(records, counts)

    def _nothing_released(self, records: Records) -> None:
        of = self._run(records, in_order=False)
        ranges: list[OfRecords] = of.get(OfRecords, [])
        self._check_empty(ranges)
        count = sum(part.with_items for part in ranges)
        self._notes.violation("record-missing", "The release has no row.", count=count)
        self._add_sums(of, records)
        self._judge_itemsets(records, np.zeros(len(self._plan.items), np.int64))

    def _add_sums(self, of: dict[type, list[Any]], records: Records) -> None:
        items = max(len(self._plan.items), 1)
        sums = joined_tallies(of.get(TallyPart, []), {"before": items, "after": items}, records.sizes)
        self._sums = {**self._sums, **sums}

    def _allowed(self, records: Ints) -> Bools:
        """Which items are released: known ones that are not rare."""
        plan, promise, notes = self._plan, self._promise, self._notes
        is_allowed = np.ones(len(plan.items), np.bool_)
        names = all_items(promise, self._blocks)
        if names is not None:
            only_known(items_of(plan, records), names, notes)
            is_allowed &= np.array([item in names for item in plan.items], np.bool_)
        if promise.drop_rare is not None:
            is_allowed &= ~rare_items(np.where(is_allowed, records, 0), promise.drop_rare, notes)
        return is_allowed

    def _compare(self, records: Records, counts: SetCounts) -> None:
        plan, files, notes = self._plan, self._files, self._notes
        in_order = files.is_file and counts.count == self.released.count
        of = self._run(records, in_order=in_order)
        ranges: list[OfRecords] = of.get(OfRecords, [])
        dropped = sum(part.dropped for part in ranges)
        parts = [part.findings for kind in (Entries, OfRecords, Compared) for part in of.get(kind, [])]
        add_all(notes, [one for findings in parts for one in findings])
        if records.has_trace:
            notes.metrics["dropped_records"] = dropped
        kept = sum((part.records for part in ranges), np.zeros(len(plan.items), np.int64))
        self._check_empty(ranges)
        self._add_sums(of, records)
        if self._partition is None:
            notes.skip(NO_PARTITION)
        else:
            self._kept = kept
            find_partition(self._promise, self._blocks, items_of(plan, kept), no_records(plan), notes)
            report_rows(of.get(Compared, []), notes, has_trace=records.has_trace)
            report_order([] if dropped else of.get(Order, []), notes)
            if dropped and files.is_file and counts.count - dropped == self.released.count:
                notes.skip("Whether rows are in the order of the input was not checked: records were left out.")
        self._judge_itemsets(records, kept)

    def _run(self, records: Records, *, in_order: bool) -> dict[type, list[Any]]:
        plan, files = self._plan, self._files
        found = self._engine.run(
            [*files.truth, *(files.trace if records.has_trace else ())], SendEntries(records),
            Step(plan.bins, SendPeople(records)),
            Step(plan.bins, CheckRecords(records, in_order)),
            Step(3 * plan.bins, CompareRows(records), files.release, SendReleased(records, in_order)),
        )  # fmt: skip
        return by_type(found)

    def _check_empty(self, ranges: Sequence[OfRecords]) -> None:
        if self._certificate is not None:
            check_empty(self._certificate, max((part.longest for part in ranges), default=0), self._notes)

    def _judge_itemsets(self, records: Records, kept: Ints) -> None:
        """Report how many records share each itemset, before and after."""
        plan, files, promise, notes = self._plan, self._files, self._promise, self._notes
        supports = {("before", size): self._sums["before", size].supports for size in records.sizes}
        partition = self._partition
        if partition is not None:
            for size in records.sizes:
                if all(("released", fewer) in self._sums for fewer in range(1, size + 1)):
                    supports["after", size] = image_supports(
                        self._sums["after", size], partition.label_of, lambda fewer: self._sums["released", fewer]
                    )
        below = {
            (side, size): self._sums[side, size].codes[counts < promise.k[size - 1]]
            for (side, size), counts in supports.items()
        }
        found = [
            part
            for part in self._engine.run(
                [*files.truth, *files.trace], SendEntries(records),
                Step(plan.bins, SendPeople(records)), Step(plan.bins, FindBelow(records, below)),
            )
            if isinstance(part, Chances)
        ]  # fmt: skip
        for side, name in (("before", "risk_before"), ("after", "risk_after")):
            if side == "after" and partition is None:
                continue
            for size in self._sizes:
                one = self._measured(side, size, supports, found)
                write_measured(name, size, one, notes)
                if side == "after" and one is not None:
                    report_itemsets(size, one, promise, notes, is_settled=True)
        if partition is not None:
            measure_loss(plan.items, kept, partition, promise, notes)

    def _measured(self, side: str, size: int, supports: Any, found: Sequence[Chances]) -> Measured | None:
        counts = supports.get((side, size))
        if counts is None:
            return None
        own = [part for part in found if (part.side, part.size) == (side, size)]
        return measured(counts, self._promise.k[size - 1], own)

    # ---- released rows, file by file

    def judge_rows(self) -> None:
        """Find the released rows that contain a set below k, or a label that must not be there."""
        notes, promise = self._notes, self._promise
        supports = {key: found.supports for key, found in self._sums.items() if key[0] == "released"}
        below = {
            size: self._sums["released", size].codes[counts < promise.k[size - 1]]
            for (_, size), counts in supports.items()
        }
        work = FindRows(self._plan, promise, self._blocks, self._seen, self._kept, below)
        rows: list[OfRows] = self._engine.run(self._files.release, work)
        add_all(notes, [one for part in rows for one in part.findings])
        of_sizes = {
            size: self._measured("released", size, supports, [one for part in rows for one in part.chances])
            for size in self._sizes
        }
        for size, one in of_sizes.items():
            write_measured("released", size, one, notes)
        there = [one for one in of_sizes.values() if one is not None]
        notes.metrics["smallest_k"] = min((one.smallest for one in there), default=None)
        if len(supports) == promise.m:
            count = self.released.count
            notes.metrics["rows_below_k_share"] = sum(part.below for part in rows) / count if count else None
