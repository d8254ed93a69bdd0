"""Classes of places by density: people per place in the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from shoal.reproduce.data.measurements import Measurements
from shoal.reproduce.flexible.releases import Release, Truth
from shoal.reproduce.study import Record

LOW, MEDIUM, HIGH = CLASSES = ("low", "medium", "high")
CROWDS: Final = {LOW: 10, MEDIUM: 8, HIGH: 6}
"""k of each class: where few people are, more must look alike."""


def classes_of(data: Measurements, truth: Truth) -> dict[str, str]:
    """The class of every label directly below the root: thirds of the labels, by people per place below them."""
    ranked = sorted(_people_per_place(data, truth).items(), key=lambda one: (one[1], one[0]))
    return {label: CLASSES[at * len(CLASSES) // len(ranked)] for at, (label, _) in enumerate(ranked)}


def records(
    data: Measurements, truth: Truth, classes: Mapping[str, str], release: Release, is_exact: Any
) -> list[Record]:  # fmt: skip
    """For every class: its places, how many people they have, and how devices were published."""
    tops = np.array([CLASSES.index(classes[_top(data, cell)]) for cell in truth.cells])
    of_row, of_published = tops[truth.cell], tops[truth.cell[release.row]]
    counts = _people_of_cells(truth)
    found: list[Record] = []
    for at, name in enumerate(CLASSES):
        published = of_published == at
        if not (of_row == at).any():
            continue
        found.append({
            "density": name, "labels": ", ".join(sorted(one for one, its in classes.items() if its == name)[:5]),
            "people_per_place": float(counts[tops == at].mean()), "k": CROWDS[name],
            "records": int((of_row == at).sum()), "published": int(published.sum()),
            "device_as_it_is": float(is_exact[published].mean()) if published.any() else None,
        })  # fmt: skip
    return found


def _people_per_place(data: Measurements, truth: Truth) -> dict[str, float]:
    counts = _people_of_cells(truth)
    below: dict[str, list[int]] = {}
    for cell, people in zip(truth.cells, counts.tolist(), strict=True):
        below.setdefault(_top(data, cell), []).append(people)
    return {label: float(np.mean(people)) for label, people in below.items()}


def _people_of_cells(truth: Truth) -> Any:
    pairs = np.unique(np.stack((truth.cell, truth.person)), axis=1)
    return np.bincount(pairs[0], minlength=len(truth.cells))


def _top(data: Measurements, cell: str) -> str:
    """The label directly below the root."""
    path = data.places.path(cell)
    return path[-2] if len(path) > 1 else path[0]
