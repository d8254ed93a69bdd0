"""How much labels lose: the share of items that are generalized, and of all items that a label may stand for."""

from __future__ import annotations

import numpy as np

from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Ints
from shoal.auditor.sets.blocks import Blocks, listed
from shoal.auditor.sets.partition import Partition
from shoal.auditor.sets.promise import SetPromise
from shoal.auditor.sets.records import Records


def measure_loss(
    truth: Records, partition: Partition, blocks: Blocks | None, promise: SetPromise, notes: Notes
) -> None:
    """Measure the loss, averaged over everything that people have; dropped items are lost as if they were all."""
    used = truth.counts.of_label
    known = (partition.label_of >= 0) & (used > 0)
    if not known.any():
        return
    label, weight = partition.label_of[known], used[known]
    shown = np.array(partition.labels, np.object_)[label]
    is_changed = np.array(truth.labels, np.object_)[known] != shown
    dropped = float(notes.metrics.get("items_dropped_share") or 0.0)
    changed = int(weight[is_changed].sum()) / int(weight.sum())
    notes.metrics["items_generalized_share"] = changed * (1 - dropped)
    below, total = _items_below(partition, blocks, promise)
    lost = float((np.where(below > 1, below / max(total, 1), 0.0)[label] * weight).sum()) / int(weight.sum())
    notes.metrics["ncp"] = lost * (1 - dropped) + dropped


def _items_below(partition: Partition, blocks: Blocks | None, promise: SetPromise) -> tuple[Ints, int]:
    """Return how many items are under every label, and how many there are in all."""
    tree = promise.generalization.tree
    if tree is not None:
        leaves = tree.leaf_counts()
        return np.array([leaves.get(label, 0) for label in partition.labels]), leaves[tree.root]
    if promise.is_local:
        own = blocks or {}
        return np.array([len(own.get(label, ())) for label in partition.labels]), len(listed(own))
    known = partition.label_of[partition.label_of >= 0]
    return np.bincount(known, minlength=len(partition.labels)), len(known)
