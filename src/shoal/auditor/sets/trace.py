"""What the trace of a set release says: which record left as which row, and so which label stands for which item."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.tables import Rows
from shoal.auditor.sets.mapping import Partition, note_labels_of_no_item
from shoal.auditor.sets.records import Sets

_CELLS = 50_000_000
_AT_ONCE = 4_000_000
_JOINED = re.compile(r"(.+) \+(\d+)", re.DOTALL)


def read_positions(trace: Rows, has_item: Bools, released: int, notes: Notes) -> Ints:
    """Return for every record the released row it left as; -1 for those that did not leave: no item was usable."""
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
        "record-missing", "The trace says of records with items that they did not leave.", count=len(kept_back)
    )
    return positions


def from_trace(truth: Sets, positions: Ints, release: Sets, notes: Notes) -> Partition | None:
    """Find the label that every record with an item left with; None where that would take too long.

    An item may have several such labels, since others may come along with it every time. A label says how many
    items it stands for ("NAME +3"), which settles most of them; the rest stay unknown.
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
    notes.violation("item-in-two-blocks", "Items of the truth left under more than one label.", count=int(split.sum()))
    note_labels_of_no_item(release, ~possible.any(axis=0), notes)
    label_of = _settled(possible, truth, release)
    unclear = int(((holders > 0) & (label_of < 0) & ~split).sum())
    if unclear:
        notes.skip(
            f"{unclear} items could stand under several labels; sets with them were not checked: no blocks file."
        )
    return Partition(label_of, tuple(release.labels), label_of < 0)


def _pairs(truth: Sets, positions: Ints, release: Sets) -> Iterator[Ints]:
    """Yield the numbers of all (item, label) that left together, some millions at once."""
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
    """Give every item its label where only one is left; a label that has all its items takes no more."""
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
