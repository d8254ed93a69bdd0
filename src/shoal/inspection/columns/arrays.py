"""Columns as NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def value_codes(column: Any) -> Integers:
    """A number for every different value; a missing value is one too."""
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        return np.arange(len(column))
    encoded = pc.dictionary_encode(column, null_encoding="encode")
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)


def is_there(column: Any) -> Flags:
    """Which rows have a value."""
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def floats(column: Any) -> Floats:
    """Numbers; NaN where there is none."""
    return np.asarray(pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False), np.float64)
