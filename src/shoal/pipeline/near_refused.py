"""Over a whole run: refused values that a hierarchy would list in another case or with other spaces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shoal.methods.base import Refusal
from shoal.pipeline.near_labels import NearLabels, near_words

Found = dict[str, dict[str, int]]
"""By column: labels of its hierarchy, and how many refused values would match each."""


class NearRefused:
    """Counts such values column by column, going on from what a checkpoint has."""

    def __init__(self, hierarchies: Mapping[str, Any], found: Found) -> None:
        self._hierarchies, self._before = hierarchies, found
        self._labels: dict[str, NearLabels | None] = {}

    @property
    def found(self) -> Found:
        """What was counted so far, in columns that were not looked at since the checkpoint too."""
        own = {column: dict(labels.found) for column, labels in self._labels.items() if labels is not None}
        return {**self._before, **own}

    def count(self, dead: pa.RecordBatch, batch: pa.RecordBatch, first: int, explain: Callable[[str], Refusal]) -> None:
        """Count values of refused records: `dead` is their trace, `first` the number of the batch's first record."""
        reasons = dead.column("reason").cast(pa.string())
        for reason in pc.unique(reasons).to_pylist():
            column = explain(reason).column if reason.startswith("unknown") else None
            labels = self._labels_of(column) if column else None
            if labels is not None:
                rows = dead.column("row").filter(pc.equal(reasons, reason)).to_numpy() - first
                rows = rows[(rows >= 0) & (rows < batch.num_rows)]
                labels.count(batch.column(column).take(pa.array(rows)))

    def _labels_of(self, column: str) -> NearLabels | None:
        if column not in self._labels:
            labels = NearLabels.of(self._hierarchies.get(column))
            if labels is not None:
                labels.found.update(self._before.get(column, {}))
            self._labels[column] = labels
        return self._labels[column]

    def warnings(self) -> Iterator[str]:
        """A sentence for each column with such values."""
        for column, found in self.found.items():
            words = near_words(Counter(found), of="refused values")
            if words:
                yield f"column {column!r}: {words}"
