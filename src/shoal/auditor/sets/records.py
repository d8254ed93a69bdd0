"""Records as numbers: the labels of every record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from shoal.auditor.reading.columns import Bools, Ints


@dataclass(frozen=True, slots=True)
class Sets:
    """Record r has the labels numbered ``items[offsets[r]:offsets[r + 1]]``, ascending, each once."""

    offsets: Ints
    items: Ints
    labels: Sequence[str]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> Ints:
        """Number of labels of every record."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> Ints:
        """The record of every entry of ``items``."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def keys(self) -> list[bytes]:
        """Return one key for every record; equal sets have equal keys."""
        data, width = self.items.tobytes(), self.items.itemsize
        return [data[start * width : end * width] for start, end in pairwise(self.offsets.tolist())]

    def only(self, keep: Bools) -> Sets:
        """Return the marked records."""
        return collect(np.cumsum(keep)[self.owners] - 1, self.items, int(keep.sum()), self.labels, keep[self.owners])


def collect(owner: Ints, item: Ints, count: int, labels: Sequence[str], keep: Bools | None = None) -> Sets:
    """Gather entries into ``count`` records; a label that comes twice in a record counts once."""
    if keep is not None:
        owner, item = owner[keep], item[keep]
    base = max(len(labels), 1)
    entries = owner * base + item
    if (entries[1:] <= entries[:-1]).any():
        entries.sort()
        entries = entries[np.append(True, entries[1:] != entries[:-1])]
    owner, item = np.divmod(entries, base)
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(owner, minlength=count), out=offsets[1:])
    return Sets(offsets, item, labels)
