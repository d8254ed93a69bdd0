"""How useful a z-anonymous release is: rows, heavy hitters, and counts by window."""

from __future__ import annotations

from typing import Final

import numpy as np

from shoal.auditor.attacks.z.evidence import StreamEvidence
from shoal.auditor.utility.measure import Measure

_TOP: Final = 20


def measure_stream(evidence: StreamEvidence) -> list[Measure]:
    """Measure rows, the most common values, and how well counts per window are kept."""
    shown, raw = evidence.shown, evidence.raw
    before, after = (np.bincount(side.pairs[1], minlength=shown.width) for side in (raw, shown))
    top = np.argsort(-before, kind="stable")[: min(_TOP, int((before > 0).sum()))]
    kept = np.isin(top, np.argsort(-after, kind="stable")[: len(top)]) & (after[top] > 0)
    lost = np.abs(before[top] - after[top]) / np.maximum(before[top], 1)
    epochs = int(max(shown.epoch.max(initial=-1), raw.epoch.max(initial=-1))) + 1
    rows_before = np.bincount(raw.epoch[raw.group], minlength=epochs)
    rows_after = np.bincount(shown.epoch[shown.group], minlength=epochs)
    apart = np.abs(rows_before - rows_after)[rows_before > 0] / rows_before[rows_before > 0]
    return [
        Measure("released", "Share of the records that are released.", len(shown.group) / max(len(raw.group), 1), 1.0),
        Measure("heavy hitters", f"Share of the {len(top)} most common values that are still among the most common.",
                float(kept.mean()) if len(top) else None, 1.0, "" if len(top) else "no value was seen"),
        Measure("counts of heavy hitters", "Average relative error of their counts.",
                float(lost.mean()) if len(top) else None, 0.0, "" if len(top) else "no value was seen"),
        Measure("counts by window", "Average relative error of the number of rows in a window of pseudonyms.",
                float(apart.mean()) if len(apart) else None, 0.0, "" if len(apart) else "there is no window"),
    ]  # fmt: skip
