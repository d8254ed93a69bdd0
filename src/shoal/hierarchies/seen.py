"""An open hierarchy as far as given values reach."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.hierarchies.hierarchy import Hierarchy
from shoal.hierarchies.tree import ROOT_PARENT, Tree, plant


def grow_seen(hierarchy: Hierarchy, values: Iterable[str]) -> Tree:
    """The tree of these values under an open hierarchy; its leaves are exactly the values.

    A value that others lie under (``b.example`` beside ``a.b.example``) stands in the tree twice: as the inner node,
    and as a leaf of its own directly below it.
    """
    distinct = sorted(set(values))
    labels, parents = [hierarchy.root], [ROOT_PARENT]
    nodes = {hierarchy.root: 0}
    for value in distinct:
        parent = 0
        for label in reversed(hierarchy.path(value)[1:]):
            if label not in nodes:
                nodes[label] = len(labels)
                labels.append(label)
                parents.append(parent)
            parent = nodes[label]
    inner = dict(nodes)
    for value in distinct:
        above = hierarchy.path(value)[1:]
        labels.append(value)
        parents.append(inner[value] if value in inner else inner[above[0]])
    return plant(labels, parents)
