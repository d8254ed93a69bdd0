"""How useful a release of sets is: items that keep their names, and the support of frequent pairs."""

from __future__ import annotations

from itertools import combinations
from typing import Final

import numpy as np

from shoal.auditor.attacks.released_sets import LOCAL, SetEvidence
from shoal.auditor.utility.measure import Measure

_ITEMS: Final = 40
_PAIRS: Final = 100


def measure_sets(evidence: SetEvidence) -> list[Measure]:
    """Measure how well frequent items and pairs of items can still be counted."""
    known, shown, label_of = evidence.known, evidence.shown, evidence.label_of
    if evidence.above is not None:
        return _measure_local(evidence)
    used = np.bincount(known.items, minlength=len(known.labels))
    sizes = np.bincount(label_of[(label_of >= 0) & (used > 0)], minlength=len(shown.labels))
    alone = (label_of >= 0) & (sizes[np.maximum(label_of, 0)] == 1)
    top = np.argsort(-used, kind="stable")[: min(_ITEMS, int((used > 0).sum()))]
    pairs = sorted(combinations(top.tolist(), 2), key=lambda pair: -len(evidence.raw_lists.with_all(pair)))[:_PAIRS]
    errors = []
    for pair in pairs:
        true = len(evidence.raw_lists.with_all(pair))
        labels = [int(label_of[item]) for item in pair]
        found = 0.0
        if min(labels) >= 0 and true:
            together = len(evidence.shown_lists.with_all(sorted(set(labels))))
            found = together * float(
                np.prod([used[item] / _holders(evidence, label) for item, label in zip(pair, labels, strict=True)])
            )
        if true:
            errors.append(abs(found - true) / true)
    return [
        *_measure_names(evidence, int(alone[known.items].sum())),
        Measure("support of frequent pairs", f"Average relative error of the support of the {len(errors)} most "
                "frequent pairs of items, estimated from their labels and public counts of items.",
                float(np.mean(errors)) if errors else None, 0.0, "" if errors else "no pair of items occurs"),
    ]  # fmt: skip


def _measure_local(evidence: SetEvidence) -> list[Measure]:
    """Without a label for every item: an item that is a label itself stands for itself in its record."""
    own = np.isin(np.array(evidence.shown.labels), np.array(evidence.known.labels))
    pairs = "Average relative error of the support of frequent pairs of items."
    return [
        *_measure_names(evidence, int(own[evidence.shown.items].sum())),
        Measure("support of frequent pairs", pairs, None, 0.0, LOCAL),
    ]


def _measure_names(evidence: SetEvidence, named: int) -> list[Measure]:
    known, shown = evidence.known, evidence.shown
    return [
        Measure("released", "Share of the records that are released.", len(shown) / max(len(known), 1), 1.0),
        Measure("items with their names", "Share of all items in records that are published under their own name.",
                named / len(known.items) if len(known.items) else None, 1.0),
    ]  # fmt: skip


def _holders(evidence: SetEvidence, label: int) -> int:
    return max(len(evidence.shown_lists.holders(label)), 1)
