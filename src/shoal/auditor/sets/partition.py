"""Find which label stands for which item, and check that the release is the truth under that partition."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from shoal.auditor.counting import surplus
from shoal.auditor.findings import Notes
from shoal.auditor.hierarchies.hierarchy import Hierarchy
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.sets.records import Sets, collect


@dataclass(frozen=True, slots=True)
class Partition:
    """For every item of the truth the number of its label; -1 if unknown."""

    label_of: Ints
    labels: tuple[str, ...]
    """The release's labels first, with their numbers; then labels that should have been released but were not."""
    is_unclear: Bools | None = None
    """Items released under a label that could not be determined; items without a label are not released."""


def only_known(truth: Sets, names: Collection[str], notes: Notes) -> Sets:
    """Return the truth without unknown items, which are not released."""
    known = np.array([item in names for item in truth.labels], np.bool_)
    lost = np.unique(truth.items[~known[truth.items]])
    notes.warning(
        "unknown-item",
        "Items of the truth are in no block, hierarchy, places or graph; sets are released without them.",
        count=len(lost),
    )
    return collect(truth.owners, truth.items, len(truth), truth.labels, known[truth.items]) if len(lost) else truth


def only_common(truth: Sets, least: int, notes: Notes) -> Sets:
    """Return the truth without the items that fewer records contain, which must not be released."""
    lost = rare_items(np.bincount(truth.items, minlength=len(truth.labels)), least, notes)[truth.items]
    return collect(truth.owners, truth.items, len(truth), truth.labels, ~lost) if lost.any() else truth


def rare_items(records: Ints, least: int, notes: Notes) -> Bools:
    """Return which items fewer records contain; ``records`` is the number of records with each item."""
    is_rare = (records > 0) & (records < least)
    total = int(records.sum())
    notes.metrics["items_dropped"] = int(is_rare.sum())
    notes.metrics["items_dropped_share"] = int(records[is_rare].sum()) / total if total else 0.0
    return np.asarray(is_rare, np.bool_)


def check_antichain(release: Sets, hierarchy: Hierarchy, own: Collection[str], notes: Notes) -> None:
    """Check that labels are in the hierarchy and none is above another: an item would be released in two ways.

    Labels in ``own`` stand only for themselves.
    """
    there = set(release.labels).difference(own)
    unknown = np.array([not hierarchy.path(label) for label in release.labels], np.bool_)
    nested = np.array([not there.isdisjoint(hierarchy.path(label)[1:]) for label in release.labels], np.bool_)
    notes.violation(
        "unknown-label",
        f"The release has {int(unknown.sum())} labels that are not in the hierarchy.",
        rows=holding(release, unknown),
    )
    notes.violation(
        "not-an-antichain",
        f"The release has {int(nested.sum())} labels and also a label above them.",
        rows=holding(release, nested),
    )


def from_hierarchy(truth: Sets, release: Sets, hierarchy: Hierarchy, notes: Notes) -> Partition:
    """Map every item to the label at or above it; of several to the highest: the lower ones are leaks."""
    number = {label: place for place, label in enumerate(release.labels)}
    found = [[number[step] for step in hierarchy.path(item) if step in number] for item in truth.labels]
    label_of = np.array([steps[-1] if steps else -1 for steps in found], np.int64)
    return _closed(truth, release, np.where(label_of < 0, len(release.labels), label_of), ("",), notes)


def from_blocks(truth: Sets, release: Sets, blocks: Mapping[str, list[str]], notes: Notes) -> Partition:
    """Map every item to the label of its block."""
    labels = tuple(release.labels)
    number = {label: place for place, label in enumerate(dict.fromkeys((*labels, *blocks)))}
    block_of: dict[str, int] = {}
    for label, items in blocks.items():
        for item in items:
            block_of.setdefault(item, number[label])
    label_of = np.array([block_of.get(item, -1) for item in truth.labels], np.int64)
    return _closed(truth, release, label_of, tuple(number)[len(labels) :], notes)


def from_names(truth: Sets, release: Sets) -> Partition | None:
    """Map every item to itself if every label is an item; else return None."""
    number = {label: place for place, label in enumerate(release.labels)}
    if not set(number) <= set(truth.labels):
        return None
    beyond = len(number)
    return Partition(np.array([number.get(item, beyond) for item in truth.labels], np.int64), (*release.labels, ""))


def _closed(truth: Sets, release: Sets, label_of: Ints, beyond: tuple[str, ...], notes: Notes) -> Partition:
    """Report mismatches: items without a label, labels without an item."""
    used = np.bincount(truth.items, minlength=len(truth.labels)) > 0
    lost = used & (label_of >= len(release.labels))
    notes.violation("item-without-label", "Items of the truth have no released label.", count=int(lost.sum()))
    meant = np.zeros(len(release.labels) + len(beyond) + 1, np.bool_)
    meant[label_of[used]] = True
    note_labels_of_no_item(release, ~meant[: len(release.labels)], notes)
    return Partition(label_of, (*release.labels, *beyond))


def note_labels_of_no_item(release: Sets, idle: Bools, notes: Notes) -> None:
    """Report released labels that no item of the truth has."""
    notes.violation(
        "label-of-no-item",
        f"The release has {int(idle.sum())} labels that have no item of the truth.",
        rows=holding(release, idle),
    )


def holding(sets: Sets, marked: Bools) -> Bools:
    """Mark the records that contain a marked label."""
    held = np.zeros(len(sets), np.bool_)
    held[sets.owners[marked[sets.items]]] = True
    return held


_CELLS = 50_000_000
_AT_ONCE = 4_000_000
_JOINED = re.compile(r"(.+) \+(\d+)", re.DOTALL)


def read_positions(trace: Rows, has_item: Bools, released: int, notes: Notes) -> Ints:
    """Return the released row of every record; -1 for records that were not released: no item was usable."""
    records = len(has_item)
    row, position = trace.numbers("row"), trace.numbers("position")
    fits = (row >= 0) & (row < records) & (position < released)
    notes.violation("trace-broken", "The trace names a record or a row that does not exist.", count=int((~fits).sum()))
    row, position = row[fits], position[fits]
    left = position >= 0
    twice = len(row) - len(np.unique(row)) + int(left.sum()) - len(np.unique(position[left]))
    notes.violation("trace-broken", "The trace names a record or a released row twice.", count=twice)
    notes.violation("undecided", "Records are not in the trace.", count=records - len(np.unique(row)))
    positions = np.full(records, -1, np.int64)
    positions[row] = position
    kept_back = np.unique(row[~left & has_item[row]])
    notes.violation(
        "record-missing", "According to the trace, records with items were not released.", count=len(kept_back)
    )
    return positions


def from_trace(truth: Sets, positions: Ints, release: Sets, notes: Notes) -> Partition | None:
    """Find the label that is in the released row of every record with an item; None if that would take too long.

    An item may have several such labels, if other items always occur with it. A label states how many
    items it has ("NAME +3"), which settles most of them; the rest stay unknown.
    """
    items, labels = len(truth.labels), len(release.labels)
    if items * labels > _CELLS:
        return None
    together = np.zeros(items * labels, np.int64)
    for codes in _pairs(truth, positions, release):
        together += np.bincount(codes, minlength=len(together))
    holders = np.bincount(truth.items, minlength=items)
    possible = (together.reshape(items, labels) == holders[:, None]) & (holders > 0)[:, None]
    split = (holders > 0) & ~possible.any(axis=1)
    notes.violation("item-in-two-blocks", "Items were released under more than one label.", count=int(split.sum()))
    note_labels_of_no_item(release, ~possible.any(axis=0), notes)
    label_of = _settled(possible, truth, release)
    unclear = int(((holders > 0) & (label_of < 0) & ~split).sum())
    if unclear:
        notes.skip(f"{unclear} items have several possible labels; sets with them were not checked: no blocks file.")
    return Partition(label_of, tuple(release.labels), label_of < 0)


def _pairs(truth: Sets, positions: Ints, release: Sets) -> Iterator[Ints]:
    """Yield the numbers of all (item, label) pairs released together, some millions at once."""
    row = positions[truth.owners]
    width = release.sizes[row]
    upto = np.cumsum(width)
    start = 0
    while start < len(row):
        before = upto[start - 1] if start else 0
        end = max(int(np.searchsorted(upto, before + _AT_ONCE, side="right")), start + 1)
        some = width[start:end]
        turn = np.arange(some.sum()) - np.repeat(np.cumsum(some) - some, some)
        label = release.items[np.repeat(release.offsets[row[start:end]], some) + turn]
        yield np.repeat(truth.items[start:end], some) * len(release.labels) + label
        start = end


def _settled(possible: Bools, truth: Sets, release: Sets) -> Ints:
    """Give every item its label if only one is possible; a label that has all its items takes no more."""
    number = {item: place for place, item in enumerate(truth.labels)}
    room = np.full(len(release.labels), len(truth.labels) + 1, np.int64)
    open_for = possible.copy()
    for label, name in enumerate(release.labels):
        joined = _JOINED.fullmatch(name)
        item = number.get(name, number.get(joined[1]) if joined else None)
        if item is not None and possible[item, label]:
            room[label] = 1 if name in number or joined is None else int(joined[2]) + 1
            open_for[item] = False
            open_for[item, label] = True
    while True:
        sure = open_for.sum(axis=1) == 1
        full = open_for[sure].sum(axis=0) >= room
        closed = open_for & full & ~sure[:, None]
        if not closed.any():
            return np.where(sure, open_for.argmax(axis=1), -1)
        open_for &= ~closed


@dataclass(frozen=True, slots=True)
class Image:
    """The truth's records under the partition, numbered together with the released ones: equal sets, equal numbers."""

    expected: Ints
    shown: Ints
    is_sure: Bools
    """Which expected records have only items with a known label."""
    is_empty: Bools
    shown_is_empty: Bools


def read_image(truth: Sets, release: Sets, partition: Partition) -> Image:
    """Apply the partition to the truth."""
    label = partition.label_of[truth.items]
    expected = collect(truth.owners, label, len(truth), partition.labels, label >= 0)
    unsure = np.zeros(len(truth), np.bool_)
    if partition.is_unclear is not None:
        unsure[truth.owners[partition.is_unclear[truth.items]]] = True
    numbers: dict[bytes, int] = {}
    ours, theirs = (
        np.array([numbers.setdefault(key, len(numbers)) for key in sets.keys()], np.int64)  # noqa: SIM118
        for sets in (expected, release)
    )
    return Image(ours, theirs, ~unsure, truth.sizes == 0, release.sizes == 0)


def check_rows(image: Image, positions: Ints, notes: Notes) -> None:
    """Check row by row, by the trace's released row of every record."""
    wrong, added = np.zeros(len(image.shown), np.bool_), np.ones(len(image.shown), np.bool_)
    wrong[positions[(image.expected != image.shown[positions]) & image.is_sure]] = True
    added[positions] = False
    notes.violation("not-the-image", "A released set is not the image of its original.", rows=wrong)
    notes.violation("record-added", "Rows were released that the trace has no record for.", rows=added)
    notes.metrics["records_that_differ"] = int(wrong.sum())


def check_as_multisets(image: Image, notes: Notes) -> None:
    """Check that the same sets were released, each as often, in any order.

    Records with an item of unknown label may be missing, and so may empty ones.
    """
    binding = image.is_sure & ~image.is_empty
    absent, extra = surplus(image.expected[binding], image.shown)
    unexplained = np.flatnonzero(absent | extra)
    optional = image.expected[~binding]
    none, more = surplus(optional, image.shown[unexplained])
    wrong = np.zeros(len(image.shown), np.bool_)
    wrong[unexplained[none | more]] = True
    notes.violation("not-the-image", "A released set is not the image of an original.", rows=wrong)
    missing, rarer = surplus(image.shown, image.expected[binding])
    lost, added = int((missing | rarer).sum()), int(wrong.sum())
    notes.violation("record-missing", "Records of the truth were not released.", count=max(lost - added, 0))
    notes.violation("record-added", "More records were released than the truth has.", count=max(added - lost, 0))
    notes.metrics["records_that_differ"] = max(lost, added)


def check_order(image: Image, notes: Notes) -> None:
    """Warn if rows are in the order of the truth, which identifies them for anyone who knows that order."""
    several = len(np.unique(image.shown)) > 1
    if several and np.array_equal(image.expected, image.shown):
        notes.warning("in-input-order", "The released rows are in the order of the input; shuffle them.", count=1)
