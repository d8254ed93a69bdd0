"""Check that the release is the truth under one partition: nothing left out, added or treated differently."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.auditor.counting import surplus
from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.sets.mapping import Partition
from shoal.auditor.sets.records import Sets, collect


@dataclass(frozen=True, slots=True)
class Image:
    """The truth's records under the partition, numbered with the released ones: equal sets, equal numbers."""

    expected: Ints
    shown: Ints
    is_sure: Bools
    """Which expected records have no item whose label could not be told."""
    is_empty: Bools
    shown_is_empty: Bools


def read_image(truth: Sets, release: Sets, partition: Partition) -> Image:
    """Publish the truth once more."""
    label = partition.label_of[truth.items]
    expected = collect(truth.owners, label, len(truth), partition.labels, label >= 0)
    unsure = np.zeros(len(truth), np.bool_)
    if partition.is_unclear is not None:
        unsure[truth.owners[partition.is_unclear[truth.items]]] = True
    numbers: dict[bytes, int] = {}
    ours, theirs = (
        np.array([numbers.setdefault(key, len(numbers)) for key in sets.keys()], np.int64)  # noqa: SIM118
        for sets in (expected, release)
    )
    return Image(ours, theirs, ~unsure, truth.sizes == 0, release.sizes == 0)


def check_rows(image: Image, positions: Ints, notes: Notes) -> None:
    """Check row by row where the trace says as which row every record left."""
    wrong, nobody = np.zeros(len(image.shown), np.bool_), np.ones(len(image.shown), np.bool_)
    wrong[positions[(image.expected != image.shown[positions]) & image.is_sure]] = True
    nobody[positions] = False
    notes.violation("not-the-image", "A released set is not the image of its original.", rows=wrong)
    notes.violation("record-added", "Rows were released that the trace has no record for.", rows=nobody)
    notes.metrics["records_that_differ"] = int(wrong.sum())


def check_as_multisets(image: Image, notes: Notes) -> None:
    """Check that the same sets were released, each as often, in whatever order.

    Records with an item whose label could not be told are not held against it, nor are empty ones.
    """
    binding = image.is_sure & ~image.is_empty
    absent, extra = surplus(image.expected[binding], image.shown)
    unexplained = np.flatnonzero(absent | extra)
    optional = image.expected[~binding]
    none, more = surplus(optional, image.shown[unexplained])
    wrong = np.zeros(len(image.shown), np.bool_)
    wrong[unexplained[none | more]] = True
    notes.violation("not-the-image", "A released set is not the image of an original.", rows=wrong)
    missing, rarer = surplus(image.shown, image.expected[binding])
    lost, added = int((missing | rarer).sum()), int(wrong.sum())
    notes.violation("record-missing", "Records of the truth were not released.", count=max(lost - added, 0))
    notes.violation("record-added", "More records were released than the truth has.", count=max(added - lost, 0))
    notes.metrics["records_that_differ"] = max(lost, added)


def check_order(image: Image, notes: Notes) -> None:
    """Look whether rows stand in the order of the truth, which tells whose they are to whoever knows it."""
    several = len(np.unique(image.shown)) > 1
    if several and np.array_equal(image.expected, image.shown):
        notes.warning("in-input-order", "The released rows stand in the order of the input; shuffle them.", count=1)
