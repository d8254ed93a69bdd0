"""Which label stands for which item: by the hierarchy, the blocks file, the trace, or the names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from shoal.auditor.checks import Answer
from shoal.auditor.findings import Notes
from shoal.auditor.hierarchies.hierarchy import Hierarchy
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.relation import Relation
from shoal.auditor.sets.blocks import Blocks
from shoal.auditor.sets.counting import SUMS, added_up
from shoal.auditor.sets.labels import having
from shoal.auditor.sets.promise import SetPromise
from shoal.auditor.sets.records import Records, sets_check, sets_of

_CELLS: Final = 50_000_000
_JOINED: Final = re.compile(r"(.+) \+(\d+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Partition:
    """For every item of the truth the number of its label; -1 if unknown."""

    label_of: Ints
    labels: tuple[str, ...]
    """The release's labels first, with their numbers; then labels that should have been released but were not."""
    is_unclear: Bools | None = None
    """Items released under a label that could not be determined; items without a label are not released."""


@sets_check(
    "item-without-label", "Items of the truth have no released label.", by="none", needs=("truth",),
    advice="What these people have is not published although nothing says so. Run the method again.",
)  # fmt: skip
def without_label(partition: Partition, used: Bools, labels: int) -> int:
    """Count the items that people have, whose label was not released; ``labels`` is how many were."""
    return int((used & (partition.label_of >= labels)).sum())


@sets_check(
    "label-of-no-item", "The release has labels that have no item of the truth.", by="record", needs=("truth",),
    advice="The release says something that the truth does not. Run the method again, or give the truth of this run.",
)  # fmt: skip
def of_no_item(rows: Relation, idle: Bools) -> Answer:
    """Mark rows with a label that no item of the truth has."""
    return Answer(
        having(rows, idle), sentence=f"The release has {int(idle.sum())} labels that have no item of the truth."
    )


def idle_labels(partition: Partition, used: Bools, labels: int) -> Bools:
    """Return which released labels no item has that people have."""
    meant = np.zeros(len(partition.labels) + 1, np.bool_)
    meant[partition.label_of[used]] = True
    return ~meant[:labels]


def from_hierarchy(items: Sequence[str], labels: Sequence[str], hierarchy: Hierarchy) -> Partition:
    """Map every item to the label at or above it; of several to the highest: the lower ones are leaks."""
    number = {label: place for place, label in enumerate(labels)}
    found = [[number[step] for step in hierarchy.path(item) if step in number] for item in items]
    return Partition(np.array([steps[-1] if steps else len(labels) for steps in found], np.int64), (*labels, ""))


def from_blocks(items: Sequence[str], labels: Sequence[str], blocks: Mapping[str, list[str]]) -> Partition:
    """Map every item to the label of its block."""
    number = {label: place for place, label in enumerate(dict.fromkeys((*labels, *blocks)))}
    block_of: dict[str, int] = {}
    for label, own in blocks.items():
        for item in own:
            block_of.setdefault(item, number[label])
    return Partition(np.array([block_of.get(item, -1) for item in items], np.int64), tuple(number))


def from_names(items: Sequence[str], labels: Sequence[str]) -> Partition | None:
    """Map every item to itself if every label is an item; else return None."""
    number = {label: place for place, label in enumerate(labels)}
    if not set(number) <= set(items):
        return None
    return Partition(np.array([number.get(item, len(number)) for item in items], np.int64), (*labels, ""))


def find_partition(
    promise: SetPromise, blocks: Blocks | None, truth: Records, release: Records, notes: Notes, *, has_rows: bool
) -> tuple[Partition | None, Bools]:
    """Return which label stands for which item, and the released labels that stand for none; None if unknown."""
    generalization, used = promise.generalization, truth.counts.of_label > 0
    items, labels, none = truth.labels, release.labels, np.zeros(len(release.labels), np.bool_)
    if generalization.hierarchy is not None and (generalization.tree is not None or blocks is None):
        partition = from_hierarchy(items, labels, generalization.hierarchy)
    elif blocks is not None:
        partition = from_blocks(items, labels, blocks)
    elif not has_rows:
        return from_names(items, labels), none
    else:
        candidates = find_candidates(truth, release)
        if candidates is None:
            return None, none
        notes.findings += split_items(candidates)
        partition, unclear = from_trace(items, labels, candidates)
        if unclear:
            notes.skip(
                f"{unclear} items have several possible labels; sets with them were not checked: no blocks file."
            )
        return partition, np.asarray(~candidates.possible.any(axis=0))
    notes.findings += without_label(partition, used, len(labels))
    return partition, idle_labels(partition, used, len(labels))


# ---- the items of labels, where neither a hierarchy nor a blocks file gives them


@sets_check(
    "item-in-two-blocks", "Items were released under more than one label.", by="none", needs=("truth", "trace"),
    advice="An item is published in two ways, which tells more than either label. Run the method again.",
)  # fmt: skip
def split_items(candidates: Candidates) -> int:
    """Count the items that no label accompanies in every record."""
    return int(((candidates.holders > 0) & ~candidates.possible.any(axis=1)).sum())


@dataclass(frozen=True, slots=True)
class Candidates:
    """Which labels are in the released row of every record with an item: it must be one of them."""

    possible: Bools
    """By item and label."""
    holders: Ints
    """How many records have each item."""


def find_candidates(truth: Records, released: Records) -> Candidates | None:
    """Find the possible labels of every item; None if that would take too long."""
    items, labels = len(truth.labels), len(released.labels)
    if items * labels > _CELLS:
        return None
    place, possible = truth.place, np.zeros(items * labels, np.bool_)
    pairs = place.both(truth.table, released.table, ("row",), partial(_pairs, truth.labels, released.labels), SUMS)
    found, holders = added_up(place, pairs), truth.counts.of_label
    possible[found["code"][found["support"] == holders[found["code"] // max(labels, 1)]]] = True
    return Candidates(possible.reshape(items, labels), holders)


def _pairs(items: Sequence[str], labels: Sequence[str], truth: Relation, rows: Relation) -> Relation:
    """Count in how many records an item and a label come together."""
    heads, released = sets_of(rows, "row", labels)
    truth = truth.take(truth["label"] >= 0)
    row = np.searchsorted(heads["row"], truth["row"])
    width = released.sizes[row]
    turn = np.arange(width.sum()) - np.repeat(np.cumsum(width) - width, width)
    label = released.items[np.repeat(released.offsets[row], width) + turn]
    code, support = np.unique(np.repeat(truth["label"], width) * len(labels) + label, return_counts=True)
    return Relation({"code": code, "support": support})


def from_trace(items: Sequence[str], labels: Sequence[str], candidates: Candidates) -> tuple[Partition, int]:
    """Give every item its label if only one is possible; return how many items have several.

    An item may have several possible labels, if other items always occur with it. A label states how many items it has
    ("NAME +3"), which settles most of them: one that has all its items takes no more.
    """
    number = {item: place for place, item in enumerate(items)}
    room = np.full(len(labels), len(items) + 1, np.int64)
    possible, open_for = candidates.possible, candidates.possible.copy()
    for label, name in enumerate(labels):
        joined = _JOINED.fullmatch(name)
        item = number.get(name, number.get(joined[1]) if joined else None)
        if item is not None and possible[item, label]:
            room[label] = 1 if name in number or joined is None else int(joined[2]) + 1
            open_for[item] = False
            open_for[item, label] = True
    while True:
        sure = open_for.sum(axis=1) == 1
        closed = open_for & (open_for[sure].sum(axis=0) >= room) & ~sure[:, None]
        if not closed.any():
            break
        open_for &= ~closed
    label_of = np.where(sure, open_for.argmax(axis=1), -1) if len(labels) else np.full(len(items), -1)
    unclear = int(((label_of < 0) & possible.any(axis=1)).sum())
    return Partition(label_of, tuple(labels), label_of < 0), unclear
