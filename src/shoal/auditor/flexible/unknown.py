"""Values that a hierarchy or an ontology does not list: one label covers them, and the root."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from shoal.auditor.hierarchies.hierarchy import Taxonomy
from shoal.auditor.tuples.values import Attribute, Labels


class WithUnknown:
    """A taxonomy that has a label of its own for values it does not list."""

    def __init__(self, listed: Taxonomy) -> None:
        self.listed = listed
        self._leaves = listed.leaf_counts()
        self._is_leaf = listed.is_leaf()
        self.label = self._free_label()

    def _free_label(self) -> str:
        """Return "unknown", or "unknown 2", "unknown 3" and so on where the taxonomy has a label of that name."""
        if "unknown" not in self._leaves:
            return "unknown"
        number = 2
        while f"unknown {number}" in self._leaves:
            number += 1
        return f"unknown {number}"

    @property
    def root(self) -> str:
        """The label above everything."""
        return self.listed.root

    def leaf_counts(self) -> Mapping[str, int]:
        """Return how many values every label stands for; values that are not listed cannot be counted."""
        return {**self._leaves, self.label: 1}

    def is_leaf(self) -> Mapping[str, bool]:
        """Return, for every label, whether it is a value."""
        return {**self._is_leaf, self.label: True}

    def path(self, value: str) -> tuple[str, ...]:
        """Return all labels that cover a value: nothing but this label and the root cover one that is not listed."""
        return self.listed.path(value) if self._is_leaf.get(value) else (self.label, self.root)


def accepting(tree: Taxonomy) -> Taxonomy:
    """Accept values that are not listed; below a single label, which is the only value, there is no room for them."""
    return WithUnknown(tree) if len(tree.leaf_counts()) > 1 else tree


def listed(tree: Taxonomy) -> Taxonomy:
    """Return a taxonomy without the label for values that are not listed."""
    return tree.listed if isinstance(tree, WithUnknown) else tree


def read_unknown(attribute: Attribute, tree: Taxonomy) -> Attribute:
    """Take every value for usable, and count the label of unlisted values as a full loss."""
    if not isinstance(tree, WithUnknown) or not isinstance(attribute, Labels):
        return attribute
    is_unknown = np.array([*(text == tree.label for text in attribute.texts), False])[attribute.code]
    return replace(attribute, usable=np.ones_like(attribute.usable), loss=np.where(is_unknown, 1.0, attribute.loss))
