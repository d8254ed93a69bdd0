"""One tree from an ontology, with labels of several properties where they nest."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from shoal.hierarchies.hierarchy import Hierarchy
from shoal.hierarchies.ontology.concepts import Concepts
from shoal.hierarchies.tree import ROOT_PARENT


def nested_tree(concepts: Concepts) -> Hierarchy:
    """The attribute as a tree, for methods that need one: its classes, and every other label that nests with them.

    Classes come first, then the other labels, those that cover the fewest values first. A label is kept if it is
    disjoint from every label kept before, or one of the two covers all values of the other. Of two labels that cover
    the same values the first is kept. A value in several classes keeps those that nest.
    """
    values_of = _values_of(concepts)
    kinds = concepts.property_of
    order = sorted(values_of, key=lambda node: (kinds[node] != 0, len(values_of[node]), kinds[node], node))
    above: list[list[int]] = [[] for _ in concepts.values]
    for node in order:
        own = values_of[node]
        shared = Counter(label for value in own for label in above[value])
        sizes = {label: len(values_of[label]) for label in shared}
        nests = all(count in (sizes[label], len(own)) for label, count in shared.items())
        is_new = not any(count == sizes[label] == len(own) for label, count in shared.items())
        if nests and is_new and 1 < len(own) < len(concepts.values):
            for value in own:
                above[value].append(node)
    return _planted(concepts, above, {node: len(own) for node, own in values_of.items()})


def _values_of(concepts: Concepts) -> dict[int, list[int]]:
    """Numbers of the values under each label except the root."""
    found: dict[int, list[int]] = {}
    starts = concepts.above_starts.tolist()
    for value, (begin, end) in enumerate(pairwise(starts)):
        for node in concepts.above[begin:end].tolist():
            found.setdefault(node, []).append(value)
    return found


def _planted(concepts: Concepts, above: list[list[int]], sizes: dict[int, int]) -> Hierarchy:
    labels, parents = [concepts.root], [ROOT_PARENT]
    places: dict[int, int] = {}
    for value, nodes in enumerate(above):
        parent = 0
        for node in [*sorted(nodes, key=lambda node: -sizes[node]), value]:
            if node not in places:
                places[node] = len(labels)
                labels.append(concepts.labels[node])
                parents.append(parent)
            parent = places[node]
    return Hierarchy.from_dict({"kind": "closed", "labels": labels, "parents": parents})
