"""Finds values that are missing from a hierarchy only because of case or spaces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from shoal.decode.base import Decoded
from shoal.hierarchies import Hierarchy
from shoal.hierarchies.ontology.ontology import Concepts
from shoal.methods.release import Refusal

_MOST_SHOWN: Final = 3
Found = dict[str, dict[str, int]]
"""By column: labels of its hierarchy, and how many refused values would match each."""


class NearLabels:
    """Counts unlisted values that differ from a label only in case or spaces.

    Messages show labels of the hierarchy only, because a value may be personal.
    """

    def __init__(self, listed: Iterable[str]) -> None:
        self._listed = frozenset(listed)
        self._by_fold = {_folded(label): label for label in sorted(self._listed)}
        self.found: Counter[str] = Counter()
        """How many values would match each label."""

    @classmethod
    def of(cls, tree: Any) -> NearLabels | None:
        """For a hierarchy or ontology; None if it accepts any value."""
        if isinstance(tree, Concepts):
            return cls(tree.values)
        if not isinstance(tree, Hierarchy) or tree.is_open:
            return None
        inner = set(tree.parents.tolist())
        return cls(label for node, label in enumerate(tree.labels) if node not in inner)

    def count(self, column: Any) -> None:
        """Count such values of a column."""
        for entry in pc.value_counts(column.cast(pa.string())).to_pylist():
            value, count = entry["values"], entry["counts"]
            label = None if value is None or value in self._listed else self._by_fold.get(_folded(value))
            if label is not None:
                self.found[label] += count

    def words(self, *, of: str) -> str | None:
        """``12 of them would match …``; None if there are none."""
        return near_words(self.found, of=of)


def near_words(found: Counter[str], *, of: str) -> str | None:
    """The sentence about values that would match these labels; None if there are none."""
    if not found:
        return None
    labels = [f'"{label}"' for label, _ in sorted(found.items(), key=lambda item: (-item[1], item[0]))]
    more = f" and {len(labels) - _MOST_SHOWN:,} more" if len(labels) > _MOST_SHOWN else ""
    return (
        f"{found.total():,} {of} would match if case and spaces were ignored (labels {', '.join(labels[:_MOST_SHOWN])}"
        f"{more}); spell them the same in the data and the hierarchy"
    )


class NearRefused:
    """Counts such values among the refused records of a run, by column; continues the counts of a checkpoint."""

    def __init__(self, hierarchies: Mapping[str, Any], found: Found) -> None:
        self._hierarchies, self._before = hierarchies, found
        self._labels: dict[str, NearLabels | None] = {}

    @property
    def found(self) -> Found:
        """All counts, including those before the checkpoint."""
        own = {column: dict(labels.found) for column, labels in self._labels.items() if labels is not None}
        return {**self._before, **own}

    def count(self, dead: pa.RecordBatch, decoded: Decoded, first: int, explain: Callable[[str], Refusal]) -> None:
        """Count values of refused records: `dead` is their trace, `first` the number of the first decoded record."""
        reasons = dead.column("reason").cast(pa.string())
        for reason in pc.unique(reasons).to_pylist():
            column = explain(reason).column if reason.startswith("unknown") else None
            labels = self._labels_of(column) if column else None
            if labels is not None:
                rows = dead.column("row").filter(pc.equal(reasons, reason)).to_numpy() - first
                rows = rows[(rows >= 0) & (rows < decoded.rows)]
                labels.count(decoded.records(rows).column(column))

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


def _folded(text: str) -> str:
    return "".join(text.split()).casefold()
