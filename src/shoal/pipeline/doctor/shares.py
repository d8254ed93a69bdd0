"""What the doctor says about people who own most of a class."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shoal.pipeline.doctor.remarks import Remark
from shoal.pipeline.identifying import Ints

_MOST = 0.5
_LEAST_ROWS = 10


def share_remarks(of_class: Ints, person: Ints, *, can_cap: bool) -> Iterator[Remark]:
    """Look for classes of which one person has more than half; both arguments number every published row from 0."""
    sizes = np.bincount(of_class)
    width = int(person.max()) + 1
    pair, rows = np.unique(of_class * width + person, return_counts=True)
    share = rows / sizes[pair // width]
    owned = (share > _MOST) & (sizes[pair // width] >= _LEAST_ROWS)
    if owned.any():
        yield Remark(
            "look", "share",
            f"in {np.count_nonzero(owned):,} of {len(sizes):,} classes one person has more than half of the rows, up "
            f"to {share[owned].max():.0%}: k people say little there{'; cap it with max_share' if can_cap else ''}",
        )  # fmt: skip
