"""Find out which label stands for which item: from the hierarchy, the blocks file, the trace, or the names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from shoal.auditor.findings import Notes
from shoal.auditor.hierarchies.hierarchy import Ladder
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.sets.records import Sets, collect


@dataclass(frozen=True, slots=True)
class Partition:
    """For every item of the truth the number of its label; -1 where it is not known."""

    label_of: Ints
    labels: tuple[str, ...]
    """The release's labels first, with their numbers; then labels that should have been released but were not."""
    is_unclear: Bools | None = None
    """Which items left under a label that could not be told; items without any label leave nothing."""


def only_known(truth: Sets, names: Collection[str], notes: Notes) -> Sets:
    """Return the truth as far as its items are known: sets leave without the others."""
    known = np.array([item in names for item in truth.labels], np.bool_)
    lost = np.unique(truth.items[~known[truth.items]])
    notes.warning(
        "unknown-item",
        "Items of the truth are in no block and no hierarchy, places or graph; sets leave without them.",
        count=len(lost),
    )
    return collect(truth.owners, truth.items, len(truth), truth.labels, known[truth.items]) if len(lost) else truth


def check_antichain(release: Sets, ladder: Ladder, own: Collection[str], notes: Notes) -> None:
    """Check that labels are of the hierarchy and none stands above another: an item would leave in two ways.

    Labels in ``own`` mean but themselves.
    """
    there = set(release.labels).difference(own)
    unknown = np.array([not ladder.path(label) for label in release.labels], np.bool_)
    nested = np.array([not there.isdisjoint(ladder.path(label)[1:]) for label in release.labels], np.bool_)
    notes.violation(
        "unknown-label",
        f"The release has {int(unknown.sum())} labels that are not in the hierarchy.",
        rows=holding(release, unknown),
    )
    notes.violation(
        "not-an-antichain",
        f"The release has {int(nested.sum())} labels beside a label that stands above them.",
        rows=holding(release, nested),
    )


def from_ladder(truth: Sets, release: Sets, ladder: Ladder, notes: Notes) -> Partition:
    """Every item leaves as the label at or above it; of several the highest: lower ones are the leaks."""
    number = {label: place for place, label in enumerate(release.labels)}
    found = [[number[step] for step in ladder.path(item) if step in number] for item in truth.labels]
    label_of = np.array([steps[-1] if steps else -1 for steps in found], np.int64)
    return _closed(truth, release, np.where(label_of < 0, len(release.labels), label_of), ("",), notes)


def from_blocks(truth: Sets, release: Sets, blocks: Mapping[str, list[str]], notes: Notes) -> Partition:
    """Every item leaves as the label of the block it is listed in."""
    labels = tuple(release.labels)
    number = {label: place for place, label in enumerate(dict.fromkeys((*labels, *blocks)))}
    block_of: dict[str, int] = {}
    for label, items in blocks.items():
        for item in items:
            block_of.setdefault(item, number[label])
    label_of = np.array([block_of.get(item, -1) for item in truth.labels], np.int64)
    return _closed(truth, release, label_of, tuple(number)[len(labels) :], notes)


def from_names(truth: Sets, release: Sets) -> Partition | None:
    """Where every label is an item, nothing was joined; None where some label is not."""
    number = {label: place for place, label in enumerate(release.labels)}
    if not set(number) <= set(truth.labels):
        return None
    beyond = len(number)
    return Partition(np.array([number.get(item, beyond) for item in truth.labels], np.int64), (*release.labels, ""))


def _closed(truth: Sets, release: Sets, label_of: Ints, beyond: tuple[str, ...], notes: Notes) -> Partition:
    """Note what does not fit: items that left under no label, labels that stand for no item."""
    used = np.bincount(truth.items, minlength=len(truth.labels)) > 0
    lost = used & (label_of >= len(release.labels))
    notes.violation("item-without-label", "Items of the truth stand under no released label.", count=int(lost.sum()))
    meant = np.zeros(len(release.labels) + len(beyond) + 1, np.bool_)
    meant[label_of[used]] = True
    note_labels_of_no_item(release, ~meant[: len(release.labels)], notes)
    return Partition(label_of, (*release.labels, *beyond))


def note_labels_of_no_item(release: Sets, idle: Bools, notes: Notes) -> None:
    """Note labels that were released although no item of the truth leaves under them."""
    notes.violation(
        "label-of-no-item",
        f"The release has {int(idle.sum())} labels that stand for no item of the truth.",
        rows=holding(release, idle),
    )


def holding(sets: Sets, marked: Bools) -> Bools:
    """Mark the records that hold a marked label."""
    held = np.zeros(len(sets), np.bool_)
    held[sets.owners[marked[sets.items]]] = True
    return held
