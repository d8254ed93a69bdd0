"""What it costs to require different sensitive values in every group, before anything is run."""

from __future__ import annotations

from typing import Final

import numpy as np

from shoal.inspection.columns.facts import Facts
from shoal.inspection.columns.risk import codes

_NEEDED: Final = 1.6
"""Measured with least-loss and l = 2, with 300 and 2,000 rows and k = 5 and 10: about 1 - 1.6 k q of the rows find no
row with another value, if a share q of the rows has not the most frequent one."""


def suppressed_share(one: Facts, k: int, pending: int) -> float:
    """About how many of the rows are suppressed if every group needs two different known values of a column.

    A group is made of the rows that are pending together, so a column in the order of its values costs more.
    """
    value = codes(one.values)
    known = np.asarray(one.values.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    size = max(pending, 2 * k)
    lost = 0.0
    for first in range(0, len(value), size):
        own = value[first : first + size][known[first : first + size]]
        if len(own):
            other = 1 - np.bincount(own).max() / len(own)
            lost += len(own) * max(0.0, 1 - _NEEDED * k * other)
    return lost / max(len(value), 1)
