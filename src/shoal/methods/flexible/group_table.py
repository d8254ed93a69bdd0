"""The table of published groups; it grows on demand and forgets the groups used least recently."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.kernels.flexible.groups import ENTRIES, GROUPS_META, NO_ENTRY, Groups, place_groups

_FIRST: Final = 64
_COUNTS: Final = ("counts", "used", "numbers")
_ARRAYS: Final = ("keys", *_COUNTS)


class GroupTable:
    """Groups by their labels. Rows cannot join a group that was forgotten."""

    def __init__(self, width: int, seed: npt.NDArray[np.uint64], *, remember: int) -> None:
        self._remember = remember
        self._width = width
        self._seed = seed
        self.groups = self._made(_FIRST)

    def _made(self, capacity: int, meta: npt.NDArray[np.int64] | None = None) -> Groups:
        return Groups(
            slots=np.full(2 * capacity, NO_ENTRY, dtype=np.int64),
            keys=np.zeros((capacity, self._width), dtype=np.int64),
            **{name: np.zeros(capacity, dtype=np.int64) for name in _COUNTS},
            seed=self._seed,
            meta=np.zeros(GROUPS_META, dtype=np.int64) if meta is None else meta,
        )

    def __len__(self) -> int:
        return int(self.groups.meta[ENTRIES])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(int(array.nbytes) for array in self.groups)

    def reserve(self, more: int) -> None:
        """Make room for `more` further groups."""
        capacity = len(self.groups.counts)
        if len(self) + more > capacity:
            self._refill(_capacity(len(self) + more, capacity), np.arange(len(self)))

    def forget(self) -> None:
        """Once there are more groups than `remember`, keep the half of that number that was used last."""
        if len(self) <= self._remember:
            return
        used = self.groups.used[: len(self)]
        newest = np.argsort(-used, kind="stable")[: max(self._remember // 2, 1)]
        self._refill(_capacity(len(newest)), np.sort(newest))

    def _refill(self, capacity: int, kept: npt.NDArray[np.int64]) -> None:
        old = self.groups
        new = self._made(capacity, old.meta)
        for name in _ARRAYS:
            getattr(new, name)[: len(kept)] = getattr(old, name)[kept]
        new.meta[ENTRIES] = len(kept)
        place_groups(new)
        self.groups = new

    def dump(self) -> dict[str, npt.NDArray[Any]]:
        """The table as named arrays; they do not depend on its capacity."""
        count = len(self)
        found = {name: getattr(self.groups, name)[:count].copy() for name in _ARRAYS}
        return {**found, "meta": self.groups.meta.copy()}

    def load(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over what dump() returned."""
        count = len(arrays["counts"])
        self.groups = self._made(_capacity(count), arrays["meta"].copy())
        for name in _ARRAYS:
            getattr(self.groups, name)[:count] = arrays[name]
        place_groups(self.groups)


def _capacity(count: int, capacity: int = _FIRST) -> int:
    while capacity < count:
        capacity *= 2
    return capacity
