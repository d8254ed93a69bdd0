"""Which label stands for which item: by the hierarchy, the blocks file or the names; which may be released."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shoal.auditor.checks import Answer
from shoal.auditor.hierarchies.hierarchy import Hierarchy
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.relation import Relation
from shoal.auditor.sets.blocks import Blocks
from shoal.auditor.sets.counting import find
from shoal.auditor.sets.promise import Generalization
from shoal.auditor.sets.records import once, ordered, sets_check

_UNEXPLAINED = "Readers cannot know what the label stands for, and the auditor cannot check it. Run the method again."
_NESTED = "An item is published in two ways, which tells more than either label. Run the method again."


@dataclass(frozen=True, slots=True)
class Partition:
    """For every item of the truth the number of its label; -1 if unknown."""

    label_of: Ints
    labels: tuple[str, ...]
    """The release's labels first, with their numbers; then labels that should have been released but were not."""
    is_unclear: Bools | None = None
    """Items released under a label that could not be determined; items without a label are not released."""


# ---- the release alone


@sets_check("unknown-label", "The release has labels that are not in the hierarchy.", by="record", advice=_UNEXPLAINED)
def not_in_hierarchy(rows: Relation, labels: Sequence[str], hierarchy: Hierarchy, _: set[str]) -> Answer:
    """Mark rows with a label that the hierarchy does not have."""
    unknown = np.array([not hierarchy.path(label) for label in labels], np.bool_)
    return Answer(having(rows, unknown), sentence=_labels(unknown, "that are not in the hierarchy"))


@sets_check("not-an-antichain", "The release has labels and also a label above them.", by="record", advice=_NESTED)
def below_another(rows: Relation, labels: Sequence[str], hierarchy: Hierarchy, own: set[str]) -> Answer:
    """Mark rows with a label below another released label; those in ``own`` stand only for themselves."""
    there = set(labels) - own
    nested = np.array([not there.isdisjoint(hierarchy.path(label)[1:]) for label in labels], np.bool_)
    return Answer(having(rows, nested), sentence=_labels(nested, "and also a label above them"))


@sets_check("unknown-label", "The release has labels that are in no hierarchy or block.", by="record",
            advice=_UNEXPLAINED)  # fmt: skip
def not_above_items(rows: Relation, above: Above) -> Answer:
    """Mark rows with a label that no hierarchy or block has; labels may differ from record to record."""
    unknown = np.array([not above.known(label) for label in above.labels], np.bool_)
    return Answer(having(rows, unknown), sentence=_labels(unknown, "that are in no hierarchy or block"))


@sets_check("not-an-antichain", "A released set has a label and also a label above it.", by="record", advice=_NESTED)
def nested_in_a_row(rows: Relation, above: Above) -> Bools:
    """Mark rows in which one label is above another."""
    entry, _ = matches(rows, rows, [above.label(label) for label in above.labels])
    nested = np.zeros(len(rows), np.bool_)
    nested[entry] = True
    return once(rows, nested)


@sets_check("unknown-label", "The release has labels that the blocks file does not have.", by="record",
            advice=_UNEXPLAINED)  # fmt: skip
def not_in_blocks(rows: Relation, labels: Sequence[str], blocks: Blocks) -> Answer:
    """Mark rows with a label that the blocks file does not list."""
    unknown = np.array([label not in blocks for label in labels], np.bool_)
    return Answer(having(rows, unknown), sentence=_labels(unknown, "that the blocks file does not have"))


def having(rows: Relation, marked: Bools) -> Bools:
    """Mark one entry of every row that has a marked label."""
    return once(rows, np.append(marked, np.False_)[rows["label"]])  # label -1 picks the last


def _labels(marked: Bools, what: str) -> str:
    return f"The release has {int(marked.sum())} labels {what}."


# ---- the labels of items


@sets_check(
    "item-without-label", "Items of the truth have no released label.", by="none", needs=("truth",),
    advice="What these people have is not published although nothing says so. Run the method again.",
)  # fmt: skip
def without_label(_: Relation, partition: Partition, used: Bools, labels: int) -> int:
    """Count the items that people have, whose label was not released; ``labels`` is how many were."""
    return int((used & (partition.label_of >= labels)).sum())


@sets_check(
    "label-of-no-item", "The release has labels that have no item of the truth.", by="record", needs=("truth",),
    advice="The release says something that the truth does not. Run the method again, or give the truth of this run.",
)  # fmt: skip
def of_no_item(rows: Relation, idle: Bools) -> Answer:
    """Mark rows with a label that no item of the truth has."""
    return Answer(having(rows, idle), sentence=_labels(idle, "that have no item of the truth"))


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


# ---- local recoding: labels differ from record to record


class Above:
    """Finds the released labels at or above an item or a label, by the hierarchy or else by the blocks file."""

    def __init__(self, labels: Sequence[str], generalization: Generalization, blocks: Blocks | None) -> None:
        self.labels = labels
        self._number = {label: place for place, label in enumerate(labels)}
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


def matches(entries: Relation, rows: Relation, labels_of: list[list[int]]) -> tuple[Ints, Ints]:
    """Return pairs (entry, label): those labels of an entry's kind that the entry's released row has."""
    there = entries["label"] >= 0
    widths = np.array([len(labels) for labels in labels_of], np.int64)
    starts = np.concatenate([[0], np.cumsum(widths)])
    flat = np.array([label for labels in labels_of for label in labels], np.int64)
    width = np.where(there, np.append(widths, 0)[entries["label"]], 0)
    entry = np.repeat(np.arange(len(width)), width)
    turn = np.arange(len(entry)) - np.repeat(np.cumsum(width) - width, width)
    label = flat[starts[entries["label"][entry]] + turn]
    base = int(max(rows["label"].max(initial=0), flat.max(initial=0))) + 1
    shown = ordered(rows.take(rows["label"] >= 0), "row", "label")
    found = find(shown["row"] * base + shown["label"], entries["row"][entry] * base + label) >= 0
    return entry[found], label[found]


@sets_check(
    "item-without-label", "Items have no label in the released row of their record.", by="record",
    needs=("truth", "trace"),
    advice="The released set leaves out what the person has. Run the method again.",
)  # fmt: skip
def not_published(entries: Relation) -> Bools:
    """Mark released rows whose record has an item that no label there stands for."""
    return once(entries, (entries["label"] >= 0) & (entries["shown"] < 0))


def publish(labels_of: list[list[int]], truth: Relation, rows: Relation) -> Relation:
    """Read as what label every item is published in the row of its record: the lowest one there; -1 for none."""
    entry, label = matches(truth, rows, labels_of)
    entry, lowest = np.unique(entry, return_index=True)
    shown = np.full(len(truth), -1)
    shown[entry] = label[lowest]
    return truth.having(shown=shown)
