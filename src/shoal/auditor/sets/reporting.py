"""Report what was counted in a release of sets: sets below k, shares of itemsets, and the loss."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import numpy as np

from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Ints
from shoal.auditor.sets.blocks import Blocks
from shoal.auditor.sets.partition import Partition
from shoal.auditor.sets.promise import SetPromise
from shoal.auditor.sets.shares import Measured

_ROUNDING: Final = 1e-12
NO_PARTITION: Final = (
    "The items of a label are not known, so neither the image nor the share of original "
    "itemsets was checked: give a hierarchy in the policy, a blocks file next to the release, or the trace."
)


def all_items(promise: SetPromise, blocks: Blocks | None) -> Collection[str] | None:
    """Return all items; None if any item is allowed."""
    if promise.generalization.way is None and blocks is not None:
        return {item for items in blocks.values() for item in items}
    return promise.generalization.names


def write_measured(side: str, size: int, found: Measured | None, notes: Notes) -> None:
    """Write the measurements of one size."""
    notes.metrics[f"{side}_sets_of_{size}"] = None if found is None else found.to_dict()


def labels_sentence(size: int, promise: SetPromise) -> str:
    """Return what is said of label sets below k."""
    return f"Sets of {size} labels are in fewer than k = {promise.k[size - 1]} released records."


def report_labels(size: int, found: Measured, promise: SetPromise, notes: Notes) -> None:
    """Report label sets below k: each is the image of some itemset, and with sigma 1 each needs k records."""
    sentence = labels_sentence(size, promise)
    if found.rows is not None:
        notes.violation("below-k", sentence, rows=found.rows)
    else:
        notes.violation("below-k", sentence, count=found.below)
        _note_sampled(size, notes)


def report_itemsets(size: int, found: Measured, promise: SetPromise, notes: Notes, *, is_settled: bool) -> None:
    """Report itemsets below k, or too many of them; ``is_settled``: all sets of labels were counted."""
    k, sigma = promise.k[size - 1], promise.sigma[size - 1]
    if sigma == 1:
        sentence = f"Itemsets of size {size} share their image with fewer than k = {k} records."
        notes.violation("itemset-below-k", sentence, count=found.below)
        if not found.is_counted and not is_settled:
            _note_sampled(size, notes)
        return
    for adversary in promise.adversaries:
        share = found.shares[adversary]
        broken = share.low > 1 - sigma + _ROUNDING
        how = "" if found.is_counted else " (lower bound, 99.9% sure)"
        notes.violation(
            "sigma-broken",
            f"Size {size}, adversary {adversary}: {share.low:.4%}{how} of the itemsets share their image with "
            f"fewer than k = {k} records; at most {1 - sigma:.4%} may.",
            count=found.below if broken else 0,
        )


def _note_sampled(size: int, notes: Notes) -> None:
    notes.skip(f"Not all sets of size {size} were checked: too many, a sample was drawn.")


def measure_loss(items: Sequence[str], records: Ints, partition: Partition, promise: SetPromise, notes: Notes) -> None:
    """Measure how much labels lose; ``records`` is the number of records with each item."""
    known = (partition.label_of >= 0) & (records > 0)
    if not known.any():
        return
    label, weight = partition.label_of[known], records[known]
    names = np.array(items, np.object_)[known]
    shown = np.array(partition.labels, np.object_)[label]
    dropped = float(notes.metrics.get("items_dropped_share") or 0.0)  # lost as if they were all items
    changed = int(weight[names != shown].sum()) / int(weight.sum())
    notes.metrics["items_generalized_share"] = changed * (1 - dropped)
    lost = float((_ncp_of_labels(partition, promise)[label] * weight).sum()) / int(weight.sum())
    notes.metrics["ncp"] = lost * (1 - dropped) + dropped


def _ncp_of_labels(partition: Partition, promise: SetPromise) -> Any:
    """Return for every label the share of all items under it; 0 for a single item."""
    tree = promise.generalization.tree
    if tree is not None:
        leaves = tree.leaf_counts()
        below, total = np.array([leaves.get(label, 0) for label in partition.labels]), leaves[tree.root]
    else:
        known = partition.label_of[partition.label_of >= 0]
        below, total = np.bincount(known, minlength=len(partition.labels)), len(known)
    return np.where(below > 1, below / total, 0.0)
