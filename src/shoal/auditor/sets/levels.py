"""Audit local recoding: records have labels of their own precision, so an item's label is read from its row."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.sets.blocks import Blocks, check_below
from shoal.auditor.sets.counting import find
from shoal.auditor.sets.partition import Partition, holding
from shoal.auditor.sets.promise import Generalization
from shoal.auditor.sets.records import Sets, collect

NEEDS_TRACE = (
    "Whether sets are true, and the share of original itemsets, was not checked: labels differ from record to record, "
    "so the trace is needed."
)


class Above:
    """Finds the released labels at or above an item or a label, by the hierarchy or else by the blocks file."""

    def __init__(self, release: Sets, generalization: Generalization, blocks: Blocks | None) -> None:
        self._number = {label: place for place, label in enumerate(release.labels)}
        self._hierarchy = generalization.hierarchy
        self._blocks = {label: set(items) for label, items in (blocks or {}).items() if label in self._number}
        self._of_item: dict[str, list[int]] = {}
        for label in sorted(self._blocks, key=lambda label: (len(self._blocks[label]), label)):
            for item in self._blocks[label]:
                self._of_item.setdefault(item, []).append(self._number[label])

    def item(self, item: str) -> list[int]:
        """Return the labels that stand for an item, the lowest first."""
        if self._hierarchy is not None:
            return [self._number[step] for step in self._hierarchy.path(item) if step in self._number]
        return self._of_item.get(item, [])

    def label(self, label: str) -> list[int]:
        """Return the labels above a label."""
        if self._hierarchy is not None:
            return [self._number[step] for step in self._hierarchy.path(label)[1:] if step in self._number]
        own = self._blocks.get(label, set())
        return [self._number[other] for other, items in self._blocks.items() if own < items]

    def known(self, label: str) -> bool:
        """Return whether a label is in the hierarchy, or in the blocks file."""
        return bool(self._hierarchy.path(label)) if self._hierarchy is not None else label in self._blocks


def check_rows_of_labels(release: Sets, above: Above, notes: Notes) -> None:
    """Check that no record has a label and another one above it: an item would be under two of its labels."""
    unknown = np.array([not above.known(label) for label in release.labels], np.bool_)
    notes.violation(
        "unknown-label",
        f"The release has {int(unknown.sum())} labels that are in no hierarchy or block.",
        rows=holding(release, unknown),
    )
    higher = [above.label(label) for label in release.labels]
    entry, _ = _matches(release, release.owners, release.items, higher)
    nested = np.zeros(len(release), np.bool_)
    nested[release.owners[entry]] = True
    notes.violation("not-an-antichain", "A released set has a label and also a label above it.", rows=nested)


def _matches(release: Sets, rows: Ints, kinds: Ints, labels_of: list[list[int]]) -> tuple[Ints, Ints]:
    """Return pairs (entry, label): the labels of an entry's kind that the entry's released row has."""
    widths = np.array([len(labels) for labels in labels_of], np.int64)
    first = np.concatenate([[0], np.cumsum(widths)])
    flat = np.array([label for labels in labels_of for label in labels], np.int64)
    width = widths[kinds]
    entry = np.repeat(np.arange(len(kinds)), width)
    turn = np.arange(len(entry)) - np.repeat(np.cumsum(width) - width, width)
    label = flat[first[kinds[entry]] + turn]
    base = max(len(release.labels), 1)
    there = find(release.owners * base + release.items, rows[entry] * base + label) >= 0
    return entry[there], label[there]


@dataclass(frozen=True, slots=True)
class Published:
    """The truth's records with every item as it is published in that record: kinds of (item, label)."""

    sets: Sets
    """Records of kinds; the label of a kind is its item."""
    partition: Partition
    """The released label of every kind."""


def read_published(truth: Sets, positions: Ints, release: Sets, above: Above, notes: Notes) -> Published:
    """Read what every item is published as in the row of its record; report items that no label there covers."""
    entry, label = _matches(release, positions[truth.owners], truth.items, [above.item(item) for item in truth.labels])
    entry, lowest = np.unique(entry, return_index=True)
    is_covered = np.zeros(len(truth.items), np.bool_)
    is_covered[entry] = True
    bare = np.zeros(len(release), np.bool_)
    bare[positions[truth.owners[~is_covered]]] = True
    notes.violation("item-without-label", "Items have no label in the released row of their record.", rows=bare)
    base = len(release.labels) + 1
    codes = np.full(len(truth.items), 0, np.int64)
    codes[entry] = label[lowest] + 1
    kinds, kind = np.unique(truth.items * base + codes, return_inverse=True)
    items, labels = np.divmod(kinds, base)
    names = [truth.labels[item] for item in items.tolist()]
    return Published(
        collect(truth.owners, kind.astype(np.int64), len(truth), names), Partition(labels - 1, tuple(release.labels))
    )


def measure_local_loss(
    published: Published, blocks: Blocks | None, generalization: Generalization, notes: Notes
) -> None:
    """Measure how much labels lose, averaged over everything that people have."""
    used = np.bincount(published.sets.items, minlength=len(published.sets.labels))
    label_of, labels = published.partition.label_of, published.partition.labels
    known: Bools = (label_of >= 0) & (used > 0)
    if not known.any():
        return
    shown = [labels[label] for label in label_of[known].tolist()]
    names = [name for name, is_known in zip(published.sets.labels, known.tolist(), strict=True) if is_known]
    weight, dropped = used[known], float(notes.metrics.get("items_dropped_share") or 0.0)
    changed = np.array([name != label for name, label in zip(names, shown, strict=True)], np.bool_)
    notes.metrics["items_generalized_share"] = int(weight[changed].sum()) / int(weight.sum()) * (1 - dropped)
    tree = generalization.tree
    below = tree.leaf_counts() if tree is not None else {label: len(items) for label, items in (blocks or {}).items()}
    total = below[tree.root] if tree is not None else len({item for items in (blocks or {}).values() for item in items})
    sizes = np.array([below.get(label, 0) for label in shown])
    lost = float((np.where(sizes > 1, sizes / max(total, 1), 0.0) * weight).sum()) / int(weight.sum())
    notes.metrics["ncp"] = lost * (1 - dropped) + dropped


def check_local_blocks(
    blocks: Blocks, release: Sets, generalization: Generalization, seen: Collection[str] | None, notes: Notes,
    *, has_all: bool,
) -> None:  # fmt: skip
    """Check that the blocks file lists the items under every label, and that blocks are nested or apart."""
    listed = {item for items in blocks.values() for item in items}
    foreign = np.array([label not in blocks for label in release.labels], np.bool_)
    notes.violation(
        "unknown-label",
        f"The release has {int(foreign.sum())} labels that the blocks file does not have.",
        rows=holding(release, foreign),
    )
    if seen is not None:
        lost = len(set(seen) - listed)
        notes.violation("item-without-label", "Items are in no block of the blocks file.", count=lost)
    real = generalization.names if generalization.names is not None and has_all else seen
    if real is not None:
        notes.violation("foreign-item", "The blocks file lists items that do not exist.", count=len(listed - set(real)))
    if generalization.hierarchy is not None:
        check_below(blocks, generalization, listed if real is None else real, notes)
    else:
        notes.violation("item-in-two-blocks", "Blocks overlap, and none contains the other.", count=_overlaps(blocks))
        notes.skip("Whether blocks are nodes of the balanced tree was not checked.")


def _overlaps(blocks: Blocks) -> int:
    """Count the pairs of blocks that share an item although neither contains the other."""
    own = {label: frozenset(items) for label, items in blocks.items()}
    holders: dict[str, list[str]] = {}
    for label in sorted(own, key=lambda label: len(own[label])):
        for item in own[label]:
            holders.setdefault(item, []).append(label)
    pairs = {pair for chain in holders.values() for pair in pairwise(chain)}
    return sum(not own[small] <= own[large] for small, large in pairs)
