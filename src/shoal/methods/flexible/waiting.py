"""Rows that wait until enough people are there: their numbers, people, codes and the k they ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


class WaitingRows:
    """Rows in the order they came."""

    def __init__(self, wide: int) -> None:
        self._parts: list[tuple[Ints, ...]] = []
        self._whole = _nothing(wide)

    def _joined(self) -> tuple[Ints, ...]:
        if self._parts:
            parts = [self._whole, *self._parts]
            self._whole = tuple(np.concatenate(columns, axis=-1) for columns in zip(*parts, strict=True))
            self._parts = []
        return self._whole

    def __len__(self) -> int:
        return len(self._whole[0]) + sum(len(part[0]) for part in self._parts)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self._joined())

    @property
    def rows(self) -> Ints:
        """Numbers of the records."""
        return self._joined()[0]

    @property
    def arrivals(self) -> Ints:
        """Numbers among the records that could be used."""
        return self._joined()[1]

    @property
    def keys(self) -> Ints:
        """Two words that stand for the person."""
        return self._joined()[2]

    @property
    def codes(self) -> Ints:
        """A code for each quasi-identifier."""
        return self._joined()[3]

    @property
    def crowds(self) -> Ints:
        """The k each row asks for."""
        return self._joined()[4]

    def people(self) -> Ints:
        """Numbers from 0 for the people, the same for the same person."""
        pairs = np.ascontiguousarray(self.keys.T).view([("a", np.int64), ("b", np.int64)]).ravel()
        return np.unique(pairs, return_inverse=True)[1].astype(np.int64)

    def add(self, rows: Ints, arrivals: Ints, keys: Ints, codes: Ints, crowds: Ints) -> None:
        """Take in rows that came after all others; keys are two lines."""
        if len(rows):
            self._parts.append((rows, arrivals, keys, codes, crowds))

    def drop(self, places: Ints) -> None:
        """Let rows go."""
        stays = np.ones(len(self), dtype=np.bool_)
        stays[places] = False
        self._whole = tuple(np.ascontiguousarray(array[..., stays]) for array in self._joined())

    def dump(self) -> dict[str, npt.NDArray[Any]]:
        """As named arrays."""
        return dict(zip(_NAMES, self._joined(), strict=True))

    def load(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over what dump gave."""
        self._parts, self._whole = [], tuple(arrays[name].copy() for name in _NAMES)


_NAMES = ("rows", "arrivals", "keys", "codes", "crowds")


def _nothing(wide: int) -> tuple[Ints, ...]:
    none = np.empty(0, np.int64)
    return none, none, np.empty((2, 0), np.int64), np.empty((wide, 0), np.int64), none
