"""Audit a release of sets: do k records match what an attacker may know, and is every set true?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from shoal.auditor.findings import AuditReport, Notes
from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import Ints
from shoal.auditor.reading.files import read
from shoal.auditor.reading.paths import Format
from shoal.auditor.reading.rows import Rows, counts_rows
from shoal.auditor.released_columns import check_columns
from shoal.auditor.sets.blocks import Blocks, check_blocks, own_labels, read_blocks
from shoal.auditor.sets.certificate import (
    Certificate,
    check_binding,
    check_certificate,
    check_empty,
    read_certificate,
    sorted_records,
    used_labels,
)
from shoal.auditor.sets.levels import (
    NEEDS_TRACE,
    Above,
    check_local_blocks,
    check_rows_of_labels,
    measure_local_loss,
    read_published,
)
from shoal.auditor.sets.partition import (
    Partition,
    check_antichain,
    check_as_multisets,
    check_order,
    check_rows,
    from_blocks,
    from_hierarchy,
    from_names,
    from_trace,
    only_common,
    only_known,
    read_image,
    read_positions,
)
from shoal.auditor.sets.promise import SetPromise, read_set_promise
from shoal.auditor.sets.reading import read_entries, read_rows, read_truth, separator_of, unfit_rows
from shoal.auditor.sets.records import Sets, collect
from shoal.auditor.sets.reporting import (
    NO_PARTITION,
    all_items,
    measure_loss,
    report_itemsets,
    report_labels,
    write_measured,
)
from shoal.auditor.sets.sampling import seeded_generator
from shoal.auditor.sets.shares import CountedSets, Measured, measure_images, measure_own
from shoal.auditor.trace import trace_with


def audit_sets(policy: Policy, release: Any, truth: Any, trace: Any) -> AuditReport:
    """Check the promise of a policy for sets."""
    promise, notes = read_set_promise(policy), Notes()
    rows = read_rows(release, policy, name="release", section="sink", column=promise.column)
    with notes.guarded():
        _judge(policy, promise, rows, (release, truth, trace), notes)
    return notes.report(promise.method)


def _judge(policy: Policy, promise: SetPromise, rows: Rows, given: tuple[Any, Any, Any], notes: Notes) -> None:
    release, truth, trace = given
    column = promise.item if promise.column not in rows.columns and promise.item in rows.columns else promise.column
    if check_columns((column,), rows, notes):
        sets = read_released_sets(rows, column, policy, notes)
        certificate = read_certificate(release)
        promise = sharpened(promise, certificate, len(sets), int(sets.sizes.max(initial=0)), notes)
        if certificate is not None:
            names = used_labels(sets)
            check_binding(certificate, names, lambda: sorted_records(sets, names), notes)
        judge = _Judge(policy, promise, sets, read_blocks(release), certificate, notes)
        judge.judge_release()
        if truth is None:
            notes.counts_rows = counts_rows(None, policy.section("stream"))
            notes.warning("no-rows", "The release has no row.", count=int(not len(sets)))
            judge.judge_blocks(None)
            notes.skip("Whether sets are true, and the share of original itemsets, was not checked: no truth.")
        else:
            judge.judge_truth(truth, trace, release)


def read_released_sets(rows: Rows, column: str, policy: Policy, notes: Notes) -> Sets:
    """Read the released sets; report rows that are unreadable or repeat a label."""
    entries = read_entries(rows, column, separator_of(policy, "sink"))
    unreadable = rows.broken | unfit_rows(rows, column)
    unreadable[entries.owner[entries.label < 0]] = True
    notes.violation("unreadable", "Released rows are unreadable or contain an empty label.", rows=unreadable)
    sets = collect(entries.owner, entries.label, len(rows), entries.labels, entries.label >= 0)
    listed = np.bincount(entries.owner[entries.label >= 0], minlength=len(rows))
    notes.violation("label-twice", "A released set contains a label more than once.", rows=listed > sets.sizes)
    return sets


def sharpened(
    promise: SetPromise, certificate: Certificate | None, records: int, longest: int, notes: Notes
) -> SetPromise:
    """Return the promise with the certificate's: for a counted size every itemset has its k."""
    if certificate is None:
        notes.skip("The certificate was not checked: the release has no certificate file next to it.")
        return promise
    check_certificate(certificate, promise, records, longest, notes)
    counted = [certificate.is_sure(size) for size in range(1, promise.m + 1)]
    sigma = tuple(1.0 if sure else share for sure, share in zip(counted, promise.sigma, strict=True))
    return replace(promise, sigma=sigma)


class _Judge:
    """One audit: the release, read once."""

    def __init__(
        self, policy: Policy, promise: SetPromise, release: Sets, blocks: Blocks | None,
        certificate: Certificate | None, notes: Notes,
    ) -> None:  # fmt: skip
        self.policy, self.promise, self.release, self.notes = policy, promise, release, notes
        self.blocks, self.certificate = blocks, certificate
        self.counted = CountedSets(release)
        self.rng = seeded_generator(release.offsets, release.items)

    # ---- the release alone

    def judge_release(self) -> None:
        """Check what needs no truth: sets of at most m labels within a row."""
        notes, release = self.notes, self.release
        notes.metrics["released_records"] = len(release)
        notes.metrics["released_empty_records"] = int((release.sizes == 0).sum())
        notes.metrics["released_average_size"] = _mean(release.sizes)
        notes.metrics["released_labels"] = len(release.labels)
        if self.promise.is_local:
            check_rows_of_labels(release, self._above(), notes)
        elif self.promise.generalization.hierarchy is not None:
            own = own_labels(self.blocks, self.promise.generalization)
            check_antichain(release, self.promise.generalization.hierarchy, own, notes)
        found_of = {size: measure_own(self.counted, size, self.promise.k[size - 1], self.rng) for size in self._sizes()}
        self._measure_k([found for found in found_of.values() if found is not None])
        for size, found in found_of.items():
            sigma = self.promise.sigma[size - 1]
            write_measured("released", size, found, notes)
            if found is not None and sigma == 1:
                report_labels(size, found, self.promise, notes)

    def _measure_k(self, found: list[Measured]) -> None:
        """Measure how many records share the rarest set of labels; a sample may miss the rarest."""
        metrics = self.notes.metrics
        metrics["smallest_k"] = min((one.smallest for one in found), default=None)
        rows = [one.rows for one in found if one.rows is not None]
        if len(rows) == len(found):
            below = np.logical_or.reduce([np.zeros(len(self.release), np.bool_), *rows])
            metrics["rows_below_k_share"] = float(below.mean()) if len(below) else None

    def judge_blocks(self, truth: Sets | None) -> None:
        """Check the blocks file."""
        generalization = self.promise.generalization
        if self.blocks is not None:
            seen = None if truth is None else {truth.labels[item] for item in np.unique(truth.items).tolist()}
            has_all = self.promise.drop_rare is None
            check = check_local_blocks if self.promise.is_local else check_blocks
            check(self.blocks, self.release, generalization, seen, self.notes, has_all=has_all)
        elif generalization.way is not None and generalization.hierarchy is None:
            self.notes.skip("Whether blocks are connected was not checked: no blocks file.")

    def _sizes(self) -> range:
        return range(1, self.promise.m + 1)

    def _is_settled_by_labels(self, size: int) -> bool:
        """Return whether all sets of at most as many labels were counted: an itemset's image is one of them."""
        return all(
            self.counted.is_countable(fewer) and self.promise.k[fewer - 1] >= self.promise.k[size - 1]
            for fewer in range(1, size + 1)
        )

    # ---- with the truth

    def judge_truth(self, what: Any, trace: Any, release: Any) -> None:
        """Check the promise about original itemsets, and that the release is the truth's image."""
        read_in = read_truth(what, self.policy, self.promise)
        truth, notes, positions = read_in.sets, self.notes, None
        notes.counts_rows = read_in.counts_rows
        notes.metrics["records"] = len(truth)
        notes.metrics["unusable_rows"] = read_in.unusable
        notes.metrics["average_size"] = _mean(truth.sizes)
        before = self._measure_before(truth)
        names = all_items(self.promise, self.blocks)
        if names is not None:
            truth = only_known(truth, names, notes)
        if self.promise.drop_rare is not None:
            truth = only_common(truth, self.promise.drop_rare, notes)
        if self.certificate is not None:
            check_empty(self.certificate, int(truth.sizes.max(initial=0)), notes)
        self.judge_blocks(truth)
        if not len(self.release):
            notes.violation("record-missing", "The release has no row.", count=int((truth.sizes > 0).sum()))
            return
        rows = None if trace is None else read(trace, name="trace", expected=Format(), part="trace")
        rows = trace_with(("row", "position"), rows, notes)
        if rows is not None:
            positions = read_positions(rows, truth.sizes > 0, len(self.release), notes)
            notes.metrics["dropped_records"] = int((positions < 0).sum())
            if (positions < 0).any():
                truth, positions = truth.only(positions >= 0), positions[positions >= 0]
        if self.promise.is_local:
            self._judge_local(truth, positions, before, is_file=isinstance(release, str | Path))
            return
        partition = self._partition(truth, positions)
        if partition is None:
            notes.skip(NO_PARTITION)
            return
        self._judge_image(truth, partition, positions, is_file=isinstance(release, str | Path))
        self._judge_originals(truth, partition, before)
        measure_loss(
            truth.labels, np.bincount(truth.items, minlength=len(truth.labels)), partition, self.promise, notes
        )

    def _above(self) -> Above:
        return Above(self.release, self.promise.generalization, self.blocks)

    def _judge_local(self, truth: Sets, positions: Ints | None, before: CountedSets, *, is_file: bool) -> None:
        """Judge records whose labels differ in precision: an itemset counts once for every way it is published."""
        if positions is None:
            self.notes.skip(NEEDS_TRACE)
            return
        if self.blocks is None and self.promise.generalization.hierarchy is None:
            self.notes.skip(NO_PARTITION)
            return
        published = read_published(truth, positions, self.release, self._above(), self.notes)
        self._judge_image(published.sets, published.partition, positions, is_file=is_file)
        self._judge_originals(published.sets, published.partition, before)
        measure_local_loss(published, self.blocks, self.promise.generalization, self.notes)

    def _partition(self, truth: Sets, positions: Ints | None) -> Partition | None:
        generalization = self.promise.generalization
        if generalization.hierarchy is not None and (generalization.tree is not None or self.blocks is None):
            return from_hierarchy(truth, self.release, generalization.hierarchy, self.notes)
        if self.blocks is not None:
            return from_blocks(truth, self.release, self.blocks, self.notes)
        if positions is not None:
            return from_trace(truth, positions, self.release, self.notes)
        return from_names(truth, self.release)

    def _judge_image(self, truth: Sets, partition: Partition, positions: Ints | None, *, is_file: bool) -> None:
        image = read_image(truth, self.release, partition)
        if positions is not None:
            check_rows(image, positions, self.notes)
        else:
            check_as_multisets(image, self.notes)
        if is_file:
            check_order(image, self.notes)

    def _measure_before(self, truth: Sets) -> CountedSets:
        """Measure the risk of the input: original itemsets, counted in the original records."""
        counted = CountedSets(truth)
        for size in self._sizes():
            found = measure_own(counted, size, self.promise.k[size - 1], self.rng)
            write_measured("risk_before", size, found, self.notes)
        return counted

    def _judge_originals(self, truth: Sets, partition: Partition, before: CountedSets) -> None:
        """Measure the risk of the release: original itemsets, counted by their images in the released records."""
        is_known = partition.label_of[truth.items] >= 0
        if truth is before.sets and is_known.all():
            known = before
        else:
            known = CountedSets(collect(truth.owners, truth.items, len(truth), truth.labels, is_known))
        for size in self._sizes():
            k = self.promise.k[size - 1]
            found = measure_images(known, partition.label_of, self.counted, size, k, self.rng)
            write_measured("risk_after", size, found, self.notes)
            if found is not None:
                report_itemsets(size, found, self.promise, self.notes, is_settled=self._is_settled_by_labels(size))


def _mean(sizes: Ints) -> float | None:
    return float(sizes.mean()) if len(sizes) else None
