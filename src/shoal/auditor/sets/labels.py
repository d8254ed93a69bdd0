"""Which labels may be released: known ones, of which none is above another; and what they stand for in a record."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np

from shoal.auditor.checks import Answer
from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.relation import Relation, place_of_rising
from shoal.auditor.sets.blocks import Blocks, own_labels
from shoal.auditor.sets.promise import Generalization, SetPromise
from shoal.auditor.sets.records import TRUTH, Look, Records, look_at, once, sets_check
from shoal.auditor.sorting import distinct

_UNEXPLAINED: Final = "Readers cannot know what the label stands for. Run the method again, and publish what it wrote."
_NESTED: Final = "An item is published in two ways, which tells more than either label. Run the method again."


@sets_check("unknown-label", "The release has labels that the hierarchy or the blocks file does not have.", by="record",
            advice=_UNEXPLAINED)  # fmt: skip
def unknown_label(rows: Relation, unknown: Bools, where: str) -> Answer:
    """Mark rows with an unknown label."""
    return Answer(having(rows, unknown), sentence=f"The release has {int(unknown.sum())} labels that {where}.")


@sets_check("not-an-antichain", "The release has labels and also a label above them.", by="record", advice=_NESTED)
def below_another(rows: Relation, nested: Bools) -> Answer:
    """Mark rows with a label below another released label."""
    return Answer(
        having(rows, nested), sentence=f"The release has {int(nested.sum())} labels and also a label above them."
    )


@sets_check("not-an-antichain", "A released set has a label and also a label above it.", by="record", advice=_NESTED)
def nested_in_a_row(rows: Relation, labels_above: list[list[int]]) -> Bools:
    """Mark rows in which one label is above another, where labels may differ from record to record."""
    entry, _ = matches(rows, rows, labels_above)
    nested = np.zeros(len(rows), np.bool_)
    nested[entry] = True
    return once(rows, nested)


def having(rows: Relation, marked: Bools) -> Bools:
    """Mark one entry of every row that has a marked label."""
    return once(rows, np.append(marked, np.False_)[rows["label"]])  # label -1 picks the last


def check_labels(release: Records, promise: SetPromise, blocks: Blocks | None, notes: Notes) -> None:
    """Check the labels of the release against the hierarchy and the blocks file."""
    hierarchy, labels = promise.generalization.hierarchy, release.labels
    checks: list[Look] = []
    if promise.is_local:
        above = Above(labels, promise.generalization, blocks)
        unknown = np.array([not above.known(label) for label in labels], np.bool_)
        checks.append((unknown_label, unknown, "are in no hierarchy or block"))
        checks.append((nested_in_a_row, [above.label(label) for label in labels]))
    elif hierarchy is not None:
        there = set(labels) - own_labels(blocks, promise.generalization)
        paths = [hierarchy.path(label) for label in labels]
        unknown = np.array([not path for path in paths], np.bool_)
        checks.append((unknown_label, unknown, "are not in the hierarchy"))
        checks.append((below_another, np.array([not there.isdisjoint(path[1:]) for path in paths], np.bool_)))
    if blocks is not None:
        foreign = np.array([label not in blocks for label in labels], np.bool_)
        checks.append((unknown_label, foreign, "the blocks file does not have"))
    notes.findings += look_at(release.place, release.table, checks)


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
    shown = rows.take(rows["label"] >= 0).ordered("row", "label")
    found = place_of_rising(entries["row"][entry] * base + label, shown["row"] * base + shown["label"]) >= 0
    return entry[found], label[found]


@sets_check(
    "item-without-label", "Items have no label in the released row of their record.", by="record",
    needs=("truth", "trace"),
    advice="The released set leaves out what the person has. Run the method again.",
)  # fmt: skip
def not_published(entries: Relation) -> Bools:
    """Mark released rows whose record has an item that no label there stands for."""
    return once(entries, (entries["label"] >= 0) & (entries["shown"] < 0))


def _publish(labels_of: list[list[int]], truth: Relation, rows: Relation) -> Relation:
    """Read as what label every item is published in the row of its record: the lowest one there; -1 for none."""
    entry, label = matches(truth, rows, labels_of)
    entry, lowest = np.unique(entry, return_index=True)
    shown = np.full(len(truth), -1)
    shown[entry] = label[lowest]
    return truth.having(shown=shown)


def read_published(truth: Records, release: Records, above: Above, notes: Notes) -> tuple[Records, Ints]:
    """Return records of kinds, which are items with the label they are published as; and the label of every kind."""
    place, base = truth.place, len(release.labels) + 1
    work = partial(_publish, [above.item(item) for item in truth.labels])
    published = place.both(truth.table, release.table, ("row",), work, {**TRUTH, "shown": int})
    notes.findings += look_at(place, published, [(not_published,)])
    parts = place.divide(published, ("row",), partial(_kinds, base))
    kinds = distinct(np.concatenate([np.zeros(0, np.int64), *parts]))
    table = place.each(published, partial(_as_kinds, kinds, base), TRUTH)
    items = [truth.labels[item] for item in (kinds // base).tolist()]
    return Records(place, table, "record", items), kinds % base - 1


def _kinds(base: int, published: Relation) -> Ints:
    return np.unique((published["label"] * base + published["shown"] + 1)[published["label"] >= 0])


def _as_kinds(kinds: Ints, base: int, published: Relation) -> Relation:
    """Replace every item by the number of (item, published label)."""
    kind = np.searchsorted(kinds, published["label"] * base + published["shown"] + 1)
    return published.having(label=np.where(published["label"] >= 0, kind, -1)).only(*TRUTH)
