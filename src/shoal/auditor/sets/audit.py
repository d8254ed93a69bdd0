"""Audit a release of sets: do k records match what an attacker may know, and is every set true?"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from shoal.auditor.checks import look
from shoal.auditor.engine import Place
from shoal.auditor.findings import AuditReport, Notes, Severity
from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.relation import Relation
from shoal.auditor.sets.blocks import check_blocks, listed, read_blocks
from shoal.auditor.sets.certificate import check_binding, check_certificate, check_empty, read_certificate
from shoal.auditor.sets.evidence import read_release, read_truth
from shoal.auditor.sets.image import check_image
from shoal.auditor.sets.labels import Above, check_labels, read_published
from shoal.auditor.sets.loss import measure_loss
from shoal.auditor.sets.measuring import (
    CountedSets,
    Measured,
    below_k,
    image_supports,
    itemset_below_k,
    measure,
    measure_own,
    note_sampled,
    sigma_broken,
    write_measured,
)
from shoal.auditor.sets.partition import Partition, find_partition, of_no_item
from shoal.auditor.sets.promise import SetPromise, read_set_promise
from shoal.auditor.sets.records import Records, look_at, sets_check
from shoal.auditor.sets.trace import join_trace, only_released

_NO_TRUTH: Final = "Whether sets are true, and the share of original itemsets, was not checked: no truth."
_NEEDS_TRACE: Final = (
    "Whether sets are true, and the share of original itemsets, was not checked: labels differ from record to record, "
    "so the trace is needed."
)
_NO_PARTITION: Final = (
    "The items of a label are not known, so neither the image nor the share of original "
    "itemsets was checked: give a hierarchy in the policy, a blocks file next to the release, or the trace."
)


@sets_check("no-rows", "The release has no row.", by="none", severity=Severity.WARNING,
            advice="There was nothing to check. Look whether this is the right file.")  # fmt: skip
def no_rows(rows: int) -> int:
    """Warn if nothing was released."""
    return int(not rows)


@sets_check("record-missing", "The release has no row.", by="none", needs=("truth",),
            advice="People of the truth are not in the release. Give the release of this truth.")  # fmt: skip
def nothing_released(truth: Records) -> int:
    """Count the records with an item that may be released."""
    return truth.counts.records - int(truth.counts.of_size[:1].sum())


@sets_check(
    "unknown-item", "Items of the truth are in no block, hierarchy, places or graph; sets are released without them.",
    by="none", needs=("truth",), severity=Severity.WARNING,
    advice="These items are left out for everyone. Add them to what generalizes items if they should be published.",
)  # fmt: skip
def unknown_items(used: Ints, is_known: Bools) -> int:
    """Count the items that people have and nothing generalizes."""
    return int(((used > 0) & ~is_known).sum())


def audit_sets(place: Place, policy: Policy, release: Any = None) -> AuditReport:
    """Check the promise of a policy for sets; `release` is what was given, next to which are its blocks."""
    promise, notes = read_set_promise(policy), Notes()
    with notes.guarded():
        sets = read_release(place, policy, promise, notes)
        if sets is not None:
            _Audit(policy, promise, sets, release, notes).run()
    return notes.report(promise.method)


class _Audit:
    """One audit: the release, its blocks and its certificate."""

    def __init__(self, policy: Policy, promise: SetPromise, release: Records, given: Any, notes: Notes) -> None:
        self.policy, self.promise, self.release, self.notes = policy, promise, release, notes
        self.place, self.released = release.place, CountedSets(release)
        self.blocks, self.certificate = read_blocks(given), read_certificate(given)
        self.is_file = isinstance(given, str | Path)

    def run(self) -> None:
        """Check the release alone, then against the truth."""
        self._check_certificate()
        check_labels(self.release, self.promise, self.blocks, self.notes)
        self._measure_release()
        if self.place.has("truth"):
            self._check_truth()
            return
        self.notes.counts_rows = self.policy.section("stream").get("person") == "row"
        self.notes.findings += no_rows(self.release.counts.records)
        self._check_blocks(None)
        self.notes.skip(_NO_TRUTH)

    # ---- the release alone

    def _check_certificate(self) -> None:
        """Check the certificate; for a size that it says was counted, every itemset is promised its k."""
        found, promise = self.certificate, self.promise
        if found is None:
            self.notes.skip("The certificate was not checked: the release has no certificate file next to it.")
            return
        check_certificate(found, promise, self.release.counts, self.notes)
        check_binding(found, self.release, self.notes)
        sigma = (1.0 if found.is_sure(size) else share for size, share in enumerate(promise.sigma, 1))
        self.promise = replace(promise, sigma=tuple(sigma))

    def _measure_release(self) -> None:
        """Count the sets of at most m labels within a row; report those in fewer than k rows."""
        notes, counts = self.notes, self.release.counts
        notes.metrics["released_records"] = counts.records
        notes.metrics["released_empty_records"] = int(counts.of_size[:1].sum())
        notes.metrics["released_average_size"] = counts.mean
        notes.metrics["released_labels"] = len(self.release.labels)
        found, rare = measure_own(self.released, self.promise, self.released)
        notes.findings += rare.found.findings
        write_measured("released", self.released, found, notes)
        there = {size: one for size, one in found.items() if one is not None}
        notes.metrics["smallest_k"] = min((one.smallest for one in there.values()), default=None)
        if all(self.released.is_countable(size) or self._is_without(size) for size in found):
            notes.metrics["rows_below_k_share"] = rare.records / counts.records if counts.records else None
        for size, one in there.items():
            if not one.is_counted and self.promise.sigma[size - 1] == 1:
                # A sample does not say which rows have the sets below k; each set counts.
                sets = Relation({"rare_sets": np.ones(one.below)})
                notes.findings += look(sets, (below_k,), size, self.promise)
                note_sampled(size, notes)

    def _is_without(self, size: int) -> bool:
        return self.release.counts.longest < size

    def _check_blocks(self, truth: Records | None) -> None:
        generalization = self.promise.generalization
        if self.blocks is not None:
            used = None if truth is None else np.flatnonzero(truth.counts.of_label).tolist()
            seen = None if truth is None or used is None else {truth.labels[item] for item in used}
            check_blocks(self.blocks, self.promise, seen, self.notes)
        elif generalization.way is not None and generalization.hierarchy is None:
            self.notes.skip("Whether blocks are connected was not checked: no blocks file.")

    # ---- with the truth

    def _check_truth(self) -> None:
        """Check the promise about original itemsets, and that the release is the truth's image."""
        notes, truth = self.notes, read_truth(self.place, self.policy, self.promise, self.notes)
        notes.metrics["records"] = truth.counts.records
        notes.metrics["average_size"] = truth.counts.mean
        before = CountedSets(truth)
        write_measured("risk_before", before, measure_own(before, self.promise, self.released)[0], notes)
        truth = self._released_items(truth)
        if self.certificate is not None:
            check_empty(self.certificate, truth.counts.longest, notes)
        self._check_blocks(truth)
        if not self.release.counts.records:
            self.notes.findings += nothing_released(truth)
            return
        placed = join_trace(truth, self.release.counts.records, notes) if self.place.has("trace") else None
        if placed is not None:
            truth = placed.changed(only_released)
            notes.metrics["dropped_records"] = placed.counts.records - truth.counts.records
        if self.promise.is_local:
            self._check_local(truth, before, has_rows=placed is not None)
        else:
            self._check_global(truth, before, has_rows=placed is not None)

    def _released_items(self, truth: Records) -> Records:
        """Leave out items that the policy does not know, or that too few people have."""
        used, names = truth.counts.of_label, self.promise.generalization.names
        if self.promise.generalization.way is None and self.blocks is not None:
            names = frozenset(listed(self.blocks))
        is_known = np.array([names is None or item in names for item in truth.labels], np.bool_)
        self.notes.findings += unknown_items(used, is_known)
        keep, least = is_known, self.promise.drop_rare
        if least is not None:
            is_rare = is_known & (used > 0) & (used < least)
            total = int(used[is_known].sum())
            self.notes.metrics["items_dropped"] = int(is_rare.sum())
            self.notes.metrics["items_dropped_share"] = int(used[is_rare].sum()) / total if total else 0.0
            keep = is_known & ~is_rare
        return _with_items(truth, keep)

    def _check_global(self, truth: Records, before: CountedSets, *, has_rows: bool) -> None:
        partition, idle = find_partition(self.promise, self.blocks, truth, self.release, self.notes, has_rows=has_rows)
        self.notes.findings += look_at(self.place, self.release.table, [(of_no_item, idle)] if idle.any() else [])
        if partition is None:
            self.notes.skip(_NO_PARTITION)
        else:
            self._compare(truth, partition, before, has_rows=has_rows)

    def _check_local(self, truth: Records, before: CountedSets, *, has_rows: bool) -> None:
        """Check records whose labels differ in precision: an itemset counts once for every way it is published."""
        if not has_rows:
            self.notes.skip(_NEEDS_TRACE)
            return
        if self.blocks is None and self.promise.generalization.hierarchy is None:
            self.notes.skip(_NO_PARTITION)
            return
        above = Above(self.release.labels, self.promise.generalization, self.blocks)
        kinds, label_of = read_published(truth, self.release, above, self.notes)
        self._compare(kinds, Partition(label_of, tuple(self.release.labels)), before, has_rows=True)

    def _compare(self, truth: Records, partition: Partition, before: CountedSets, *, has_rows: bool) -> None:
        check_image(truth, self.release, partition, self.notes, has_rows=has_rows, is_file=self.is_file)
        self._measure_originals(_with_items(truth, partition.label_of >= 0), partition.label_of, before)
        measure_loss(truth, partition, self.blocks, self.promise, self.notes)

    def _measure_originals(self, truth: Records, label_of: Ints, before: CountedSets) -> None:
        """Measure the risk of the release: original itemsets, counted by their images in the released records."""
        released, old = self.released, before.records
        is_same = truth.labels is old.labels and np.array_equal(truth.counts.of_size, old.counts.of_size)
        counted = before if is_same else CountedSets(truth)
        supports = {
            size: image_supports(counted.tally(size), label_of, released.tally)
            for size in range(1, self.promise.m + 1)
            if counted.is_countable(size) and all(map(released.is_countable, range(1, size + 1)))
        }

        def images(rows: Ints) -> Ints:
            assert released.supports is not None
            return released.supports.of_rows(label_of[rows])

        found, _ = measure(counted, supports, self.promise, released, images)
        write_measured("risk_after", counted, found, self.notes)
        for size, one in found.items():
            if one is not None:
                self._report_itemsets(size, one)

    def _report_itemsets(self, size: int, found: Measured) -> None:
        promise = self.promise
        self.notes.findings += itemset_below_k(size, found.below, promise)
        if promise.sigma[size - 1] < 1:
            for adversary in promise.adversaries:
                self.notes.findings += sigma_broken(size, found, adversary, promise)
        elif not found.is_counted and not self._is_settled_by_labels(size):
            note_sampled(size, self.notes)

    def _is_settled_by_labels(self, size: int) -> bool:
        """Return whether all sets of at most as many labels were counted: an itemset's image is one of them."""
        k = self.promise.k
        return all(self.released.is_countable(few) and k[few - 1] >= k[size - 1] for few in range(1, size + 1))


def _with_items(records: Records, keep: Bools) -> Records:
    """Return records without the other items."""
    if keep[records.counts.of_label > 0].all():
        return records
    return records.changed(partial(_without, np.append(keep, np.False_)))


def _without(keep: Bools, part: Relation) -> Relation:
    return part.having(label=np.where(keep[part["label"]], part["label"], -1))
