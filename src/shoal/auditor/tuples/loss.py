"""How much was lost by generalizing, to hold against what a method says of itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.auditor.findings import Notes
from shoal.auditor.tuples.cover import Link
from shoal.auditor.tuples.trace import SUPPRESSED, Decisions
from shoal.auditor.tuples.values import Attribute


def measure_loss(attributes: Sequence[Attribute], link: Link, decisions: Decisions, notes: Notes) -> None:
    """Write down the average loss over released and suppressed records, from 0 (nothing) to 1 (everything).

    ``all``: over all attributes, 1 for null. ``own``: over the attributes a record carries (0 if it carries none).
    A suppressed record loses 1.
    """
    weights = np.array([attribute.weight for attribute in attributes])
    losses = np.array([attribute.loss for attribute in attributes]).reshape(len(attributes), -1)
    released = ~link.is_root
    suppressed = int((decisions.verdict == SUPPRESSED).sum())
    count = int(released.sum()) + suppressed
    if not count:
        return
    everything = weights @ losses[:, released] / weights.sum()
    found = {"all": float((everything.sum() + suppressed) / count)}
    if link.known.any():
        rows = np.flatnonzero(released & link.known)
        carried = np.array([attribute.carried[link.row[rows]] for attribute in attributes])
        total = weights @ carried
        own = (weights[:, None] * losses[:, rows] * carried).sum(axis=0) / np.where(total > 0, total, 1)
        found["own"] = float((own.sum() + suppressed) / (len(rows) + suppressed))
    notes.metrics["loss"] = found
