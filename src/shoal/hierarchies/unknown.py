"""Add a leaf for values that a tree or an ontology does not list."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

import numpy as np

from shoal.hierarchies.hierarchy import Hierarchy
from shoal.hierarchies.ontology.concepts import NO_PROPERTY, Concepts

UNKNOWN: Final = "unknown"


def unknown_label(labels: Container[str]) -> str:
    """The label of the leaf: "unknown", or "unknown 2", "unknown 3", … where that is taken."""
    label, number = UNKNOWN, 2
    while label in labels:
        label, number = f"{UNKNOWN} {number}", number + 1
    return label


def tree_with_unknown(tree: Hierarchy) -> Hierarchy:
    """The same tree with one more leaf directly below the root."""
    label = unknown_label(tree)
    return Hierarchy.from_dict(
        {"kind": "closed", "labels": [*tree.labels, label], "parents": [*tree.parents.tolist(), 0]}
    )


def concepts_with_unknown(concepts: Concepts) -> Concepts:
    """The same attribute with one more value at the end, which only the root covers."""
    count, content = len(concepts.values), concepts.to_dict()
    parents = np.where(concepts.tree_parents >= count, concepts.tree_parents + 1, concepts.tree_parents)
    root = len(concepts.labels)
    return Concepts.from_dict(
        {
            **content,
            "values": count + 1,
            "labels": [*concepts.values, unknown_label(concepts), *concepts.labels[count:]],
            "property_of": np.insert(concepts.property_of, count, NO_PROPERTY).tolist(),
            "above_starts": [*content["above_starts"], content["above_starts"][-1]],
            "above": (concepts.above + 1).tolist(),
            "tree_parents": np.insert(parents, count, root).tolist(),
        }
    )
