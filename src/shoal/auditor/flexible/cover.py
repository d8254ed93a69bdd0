"""Check that every published label stands above the record's value, and says something."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.tuples.values import Attribute, Labels, Spans


def check_cover(attributes: Sequence[Attribute], row: Ints, known: Bools, notes: Notes) -> None:
    """Check labels and ranges against the records; null stands for a missing value and for nothing else."""
    wrong, nulls = np.zeros(len(row), np.bool_), np.zeros(len(row), np.bool_)
    rows = np.flatnonzero(known)
    for attribute in attributes:
        shown, carried = attribute.code[rows] >= 0, attribute.carried[row[rows]]
        both = rows[shown & carried]
        wrong[both] |= ~attribute.covers(both, row[both])
        nulls[rows] |= shown ^ carried
    notes.violation("not-covered", "A published value does not cover the record's value.", rows=wrong)
    notes.violation("wrong-nulls", "A null stands for a value, or a value for a missing one.", rows=nulls)


def check_root(attributes: Sequence[Attribute], notes: Notes) -> None:
    """Check that no row shows a root label; a range has no root, but may say as little."""
    nowhere = np.zeros_like(attributes[0].at_root)
    labels = [attribute.at_root for attribute in attributes if isinstance(attribute, Labels)]
    ranges = [attribute.at_root for attribute in attributes if isinstance(attribute, Spans)]
    root, whole = (np.logical_or.reduce([nowhere, *marked]) for marked in (labels, ranges))
    notes.violation("root-label", "A root label left although the policy forbids it.", rows=root)
    notes.violation("whole-domain", "A range that is the whole domain left although the policy forbids it.", rows=whole)


def measure_loss(attributes: Sequence[Attribute], judged: Bools, notes: Notes) -> None:
    """Write down the average loss, from 0 to 1: other values a label covers of all others, or the width of a range.

    By column over the rows that have a value there; over all columns a missing value has lost nothing.
    """
    if not judged.any():
        return
    weights = np.array([attribute.weight for attribute in attributes])
    losses = np.array([attribute.loss[judged] for attribute in attributes])
    notes.metrics["loss"] = {"all": float((weights @ losses).mean() / weights.sum())}
    notes.metrics["loss_by_column"] = {attribute.name: _mean(attribute, judged) for attribute in attributes}


def _mean(attribute: Attribute, judged: Bools) -> float | None:
    shown = judged & (attribute.code >= 0)
    return float(attribute.loss[shown].mean()) if shown.any() else None
