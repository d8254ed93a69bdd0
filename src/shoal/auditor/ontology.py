"""What an ontology says of one attribute: for a value, every label that covers it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

IS_A: Final = "is a"
Above = tuple[str, str]
"""A property (``is a`` for classes) and the text of what it leads to."""


class Concepts:
    """The values of an attribute and the labels above each, by class or by any property."""

    def __init__(self, above: Mapping[str, Iterable[Above]], *, root: str, tag: str | None) -> None:
        found = {value: frozenset(labels) - {(IS_A, root)} for value, labels in above.items()}
        names = _names(found, root)
        self._root, self.tag = root, tag
        self._labels = {value: sorted({names[label] for label in labels}) for value, labels in found.items()}
        self._leaves = self._counted()
        for labels in self._labels.values():
            labels.sort(key=lambda label: (self._leaves[label], label))

    def _counted(self) -> dict[str, int]:
        counts = Counter(label for labels in self._labels.values() for label in labels)
        return {**counts, **dict.fromkeys(self._labels, 1), self._root: len(self._labels)}

    @property
    def root(self) -> str:
        """The label above everything."""
        return self._root

    def leaf_counts(self) -> Mapping[str, int]:
        """Return how many values every label stands for."""
        return self._leaves

    def is_leaf(self) -> Mapping[str, bool]:
        """Return, for every label, whether it is a value."""
        return {label: label in self._labels for label in self._leaves}

    def path(self, value: str) -> tuple[str, ...]:
        """Return all labels that cover a value: itself, then those of fewest values first, the root last."""
        if value in self._labels:
            return (value, *self._labels[value], self._root)
        return (value,) if value in self._leaves else ()


def _names(above: Mapping[str, frozenset[Above]], root: str) -> dict[Above, str]:
    """Return how every label is published: its plain text, with its property where that text means something else."""
    labels = {label for found in above.values() for label in found}
    used = Counter(text for _, text in labels)
    classes = {text for kind, text in labels if kind == IS_A}
    taken = {*above, root}

    def name(kind: str, text: str) -> str:
        plain = text not in taken and (kind == IS_A or (used[text] == 1 and text not in classes))
        return text if plain else f"{text} ({kind})"

    return {(kind, text): name(kind, text) for kind, text in labels}


def from_columns(
    values: Sequence[str | None],
    classes: Sequence[Sequence[str | None]],
    properties: Mapping[str, Sequence[str | None]],
    *,
    root: str,
    tag: str | None,
) -> Concepts:
    """Build from a table; a value that stands in several rows has the labels of all."""
    above: dict[str, set[Above]] = defaultdict(set)
    columns = [*((IS_A, column) for column in classes), *properties.items()]
    for value in values:
        if value:
            above[value]  # a value without any label is a value too
    for kind, column in columns:
        for value, text in zip(values, column, strict=True):
            if value and text:
                above[value].add((kind, text))
    return Concepts(above, root=root, tag=tag)
