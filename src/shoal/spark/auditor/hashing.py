"""Which bin rows belong to: hashes that are the same in every process. Equal rows meet."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.auditor.counting import shared_codes

Hashes = npt.NDArray[np.uint64]
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
ROWS_OF_A_BIN: Final = 2_000_000
"""A task holds the rows of a bin."""


def bins_for(rows: int, tasks: int) -> int:
    """How many bins rows are divided into: one for each task, and more if they would be too large."""
    return max(tasks, -(-rows // ROWS_OF_A_BIN), 1)


def of_text(text: str | None) -> int:
    """The hash of a text."""
    return 0 if text is None else int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def of_texts(column: Any) -> Hashes:
    """The hash of every text of an Arrow column; each different text is hashed once."""
    texts, (codes,) = shared_codes(column)
    return np.array([*map(of_text, texts), 0], np.uint64)[codes]  # code -1, null, picks the last


def of_floats(values: npt.NDArray[np.float64]) -> Hashes:
    """The hash of every number; -0 equals 0; all NaNs hash alike."""
    plain = np.where(np.isnan(values), 0.5, values) + 0.0
    return plain.view(np.uint64) * _MIX


def mixed(columns: Sequence[Hashes]) -> Hashes:
    """The hash of every row of some columns."""
    found = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        found = (found ^ column) * _MIX
        found ^= found >> np.uint64(29)
    return found
