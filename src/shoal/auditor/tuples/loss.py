"""How much of the values is lost, from 0 (nothing) to 1 (everything) for each record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.auditor.findings import Notes
from shoal.auditor.relation import Relation
from shoal.auditor.rows.quasi import Quasi


@dataclass(frozen=True, slots=True)
class Losses:
    """Sums of losses.

    ``everything``: over all attributes, 1 for null. ``own``: over the attributes a record carries (0 if it has none).
    """

    everything: float = 0.0
    released: int = 0
    own: float = 0.0
    known: int = 0
    """Released rows whose record is known."""
    has_records: bool = False
    """Whether any record is known."""

    def __add__(self, other: Losses) -> Losses:
        return Losses(
            self.everything + other.everything,
            self.released + other.released,
            self.own + other.own,
            self.known + other.known,
            self.has_records or other.has_records,
        )

    def note(self, notes: Notes, suppressed: int) -> None:
        """Note the average over released and suppressed records; a suppressed record loses 1."""
        count = self.released + suppressed
        if count:
            notes.metrics["loss"] = {"all": (self.everything + suppressed) / count}
            if self.has_records:
                notes.metrics["loss"]["own"] = (self.own + suppressed) / max(self.known + suppressed, 1)


def sum_losses(quasi: Sequence[Quasi], rows: Relation) -> Losses:
    """Sum the losses of released rows, but for those at the root."""
    released = ~rows["is_root"]
    there = rows["usable"] if "usable" in rows else np.zeros(len(rows), np.bool_)
    known = released & there
    everything, own, weights = np.zeros((3, len(rows)))
    for one in quasi:
        loss = one.weight * one.loss(rows)
        everything += loss
        if "usable" in rows:
            carried = one.is_recorded(rows)
            own += loss * carried
            weights += one.weight * carried
    total = sum(one.weight for one in quasi)
    own_share = own / np.where(weights > 0, weights, 1)
    sums = float(everything[released].sum()) / total, int(released.sum()), float(own_share[known].sum())
    return Losses(*sums, int(known.sum()), bool(there.any()))
