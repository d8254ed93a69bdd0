"""What plain k-anonymity with suppression would have lost on the same stream, measured beside the flexible method.

It has the same trees, grids and rounds, but asks k people for the sparse labels too, knows no common criterion, and
suppresses what a round cannot publish.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.anonymizers.flexible_rounds import Grouping, as_share
from shoal.anonymizers.flexible_waiting import WaitingRows
from shoal.kernels.flexible_rounds import SCALE

Ints = npt.NDArray[np.int64]


class Rival:
    """Decides the same rows; nothing of it leaves."""

    def __init__(self, grouping: Grouping, wide: int) -> None:
        self.grouping = grouping
        self._waiting = WaitingRows(wide)
        self._released = self._suppressed = self._lost = 0

    @property
    def metrics(self) -> dict[str, float]:
        """Its loss over all rows it decided, suppressed ones included, and how many those are."""
        decided = self._released + self._suppressed
        total = self._lost + self._suppressed * SCALE
        return {"plain_loss": as_share(total, decided), "plain_suppressed": float(self._suppressed)}

    def take(self, rows: Ints, arrivals: Ints, keys: Ints, codes: Ints, crowds: Ints) -> None:
        """Let rows join what it has published, or wait."""
        joined = self.grouping.join(codes)
        self._count(joined.losses)
        stays = np.ones(len(rows), dtype=np.bool_)
        stays[joined.places] = False
        self._waiting.add(rows[stays], arrivals[stays], keys[:, stays], codes[:, stays], crowds[stays])

    def decide(self) -> None:
        """Publish what it can, suppress the rest."""
        waiting = self._waiting
        left = self.grouping.form(waiting.codes, waiting.people())
        self._count(left.losses)
        self._suppressed += len(waiting) - len(left.places)
        waiting.clear()

    def _count(self, losses: Ints) -> None:
        self._released += len(losses)
        self._lost += int(losses.sum())

    def describe(self) -> list[int]:
        """Its counts as plain values."""
        return [self._released, self._suppressed, self._lost]

    def dump(self) -> dict[str, npt.NDArray[Any]]:
        """Its groups and the rows that wait as named arrays."""
        waiting = {f"waiting-{name}": array for name, array in self._waiting.dump().items()}
        return {**self.grouping.dump(), **waiting}

    def load(self, counts: list[int], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over what describe and dump gave."""
        self._released, self._suppressed, self._lost = counts
        prefix = "waiting-"
        self._waiting.load({name.removeprefix(prefix): array for name, array in arrays.items() if prefix in name})
        self.grouping.load({name: array for name, array in arrays.items() if prefix not in name})
