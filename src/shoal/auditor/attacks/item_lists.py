"""Sets of items by owner, and which owners have all of some items."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.auditor.reading.columns import Ints
from shoal.auditor.reading.numbers import Floats


class ItemLists:
    """The items of owners numbered from 0; each pair once."""

    def __init__(self, owner: Ints, item: Ints, owners: int, items: int) -> None:
        width = max(items, 1)
        pairs = np.unique(owner * width + item)
        self.owner, self.item = np.divmod(pairs, width)
        self.starts = np.searchsorted(self.owner, np.arange(owners + 1))
        order = np.argsort(self.item, kind="stable")
        self._holders = self.owner[order]
        self._item_starts = np.searchsorted(self.item[order], np.arange(width + 1))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def sizes(self) -> Ints:
        """How many items each owner has."""
        return np.diff(self.starts)

    def of(self, owner: int) -> Ints:
        """Return the items of an owner."""
        return self.item[self.starts[owner] : self.starts[owner + 1]]

    def holders(self, item: int) -> Ints:
        """Return the owners that have an item, ascending."""
        return self._holders[self._item_starts[item] : self._item_starts[item + 1]]

    def with_all(self, items: Sequence[int]) -> Ints:
        """Return the owners that have all of some items."""
        lists = sorted((self.holders(item) for item in items), key=len)
        found = lists[0] if lists else np.arange(len(self))
        for other in lists[1:]:
            place = np.minimum(np.searchsorted(other, found), max(len(other) - 1, 0))
            found = found[other[place] == found] if len(other) else found[:0]
        return found

    def similarity(self, items: Ints, weight: Floats) -> Floats:
        """Return how similar each owner's items are to some: the weight of common items over that of all."""
        own = np.bincount(self.owner, weights=weight[self.item], minlength=len(self))
        lists = [self.holders(item) for item in items.tolist()]
        if not lists:
            return np.zeros(len(self))
        common = np.bincount(
            np.concatenate(lists), weights=np.repeat(weight[items], [len(one) for one in lists]), minlength=len(self)
        )
        found: Floats = common / np.maximum(own + weight[items].sum() - common, 1e-12)
        return found
