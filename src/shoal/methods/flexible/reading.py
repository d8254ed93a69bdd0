"""Columns of the flexible method as codes: leaves, values of an ontology, or numbers for cells.

A value that the tree or the ontology does not list has a negative code made of its keyed hash. All such values are
published alike, but each counts by itself when the share of rare records is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.kernels.flexible.rounds import MISSING
from shoal.methods.quasi_readers import REFUSED, Bools, CategoricalReader
from shoal.methods.single_records import key_of
from shoal.methods.text_keys import Texts, Words, as_text

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_LARGEST_UNKNOWN: Final = MISSING - 1
_DROPPED_BITS: Final = 13
"""Codes pass through floats, which hold 53 bits; 51 of the hash are kept."""


class ValueReader(CategoricalReader):
    """Values of a hierarchy or an ontology; with a key, values that are not listed are accepted too."""

    def __init__(self, name: str, values: Sequence[str], key: Words | None) -> None:
        self.name = name
        self._ranks = {value: rank for rank, value in enumerate(values)}
        self._ranked = pa.array(values, type=pa.string())
        self._key = key

    def read(self, column: pa.Array) -> tuple[Floats, Bools]:
        raws, unknown = super().read(column)
        if self._key is None or not unknown.any():
            return raws, unknown
        texts = Texts.of(column.filter(pa.array(unknown)))
        raws = raws.copy()
        raws[unknown] = _unknown_codes(texts.keys(self._key))
        return raws, np.zeros_like(unknown)

    def read_one(self, value: Any) -> Any:
        found = super().read_one(value)
        if found is not REFUSED or self._key is None or (text := as_text(value)) is None:
            return found
        return float(_unknown_codes(key_of(self._key, text))[0])


def _unknown_codes(keys: Ints) -> Floats:
    """A code below MISSING for each keyed hash."""
    kept = np.ascontiguousarray(keys[:, 0]).view(np.uint64) >> np.uint64(_DROPPED_BITS)
    return _LARGEST_UNKNOWN - kept.astype(np.float64)


def as_codes(ranks: Floats) -> Ints:
    """Ranks as codes, MISSING for NaN."""
    is_missing = np.isnan(ranks)
    codes = np.where(is_missing, 0.0, ranks).astype(np.int64)
    codes[is_missing] = MISSING
    return codes


def are_unknown(codes: Ints) -> Bools:
    """Which codes stand for values that are not listed."""
    found: Bools = codes <= _LARGEST_UNKNOWN
    return found


def is_refused(number: Any) -> bool:
    """Whether a single value cannot be used."""
    return number is REFUSED
