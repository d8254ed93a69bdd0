"""How many people a record needs by its place: from a table of labels, or from people per cell in the first window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.hierarchies import Hierarchy
from shoal.hierarchies.ontology.ontology import Concepts
from shoal.methods.flexible.axes import tree_paths
from shoal.methods.flexible.reader import are_unknown
from shoal.methods.flexible.settings import CellClasses, Density, FlexibleSettings
from shoal.methods.schema_arrays import Leaves

Ints = npt.NDArray[np.int64]


def measure_density(settings: FlexibleSettings, codes: Ints, persons: Ints) -> dict[str, dict[str, int]]:
    """The k of cells by the people who were there, for each column of `density_from_data`.

    The root has the k of the thinnest class: it applies to every cell that is not listed, with few people or none. So
    the table is never longer than the window.
    """
    unknown, found = settings.unknown_codes(), {}
    for a, role in enumerate(settings.schema.quasi):
        if role.name in settings.density_from_data:
            rule, tree = settings.density_from_data[role.name], settings.tree_of(role.name)
            is_listed = (codes[a] >= 0) & (codes[a] != unknown.get(a, -1))
            cells = _cell_nodes(tree, rule.level)[codes[a][is_listed]]
            pairs = np.unique(np.stack((cells, persons[is_listed])), axis=1)
            nodes, people = np.unique(pairs[0], return_counts=True)
            crowded = people >= rule.classes[0].fewer_than
            found[role.name] = {tree.root: rule.classes[0].k} | {
                tree.labels[node]: _class_k(rule, count, settings.k)
                for node, count in zip(nodes[crowded].tolist(), people[crowded].tolist(), strict=True)
            }
    return found


def cells_by_k(settings: FlexibleSettings, column: str, classes: Mapping[str, int]) -> dict[int, int]:
    """Number of listed cells that need each k, the largest k first."""
    tree = settings.listed_tree(column)
    cells = np.unique(_cell_nodes(tree, settings.density_from_data[column].level)).tolist()
    needed = [classes.get(tree.labels[node], classes[tree.root]) for node in cells]
    return {k: needed.count(k) for k in sorted(set(needed), reverse=True)}


def _cell_nodes(tree: Hierarchy, level: int | None) -> Ints:
    """The cell of each leaf: its label that many steps below the root, or the leaf itself."""
    paths = tree_paths(tree, Leaves(tree).node, int(tree.depths.max()) + 1)
    found: Ints = paths[-1 if level is None else min(level, len(paths) - 1)]
    return found


def _class_k(rule: CellClasses, people: int, otherwise: int) -> int:
    return next((one.k for one in rule.classes if people < one.fewer_than), otherwise)


def density_tables(settings: FlexibleSettings, measured: Density) -> dict[int, Ints]:
    """By number of the quasi-identifier: the k of each of its values, and last of a missing one."""
    density: dict[str, Mapping[str, int]] = {**settings.density, **measured}
    return {a: _table(settings, role.name, density[role.name])
            for a, role in enumerate(settings.schema.quasi) if role.name in density}  # fmt: skip


def _table(settings: FlexibleSettings, column: str, classes: Mapping[str, int]) -> Ints:
    """The k of each value of a column by the nearest label above it; the last entry is for a missing value."""
    k = settings.k
    if column in settings.concepts:
        concepts = settings.concepts_of(column)
        found = [_nearest_k(concepts, value, classes, k) for value in concepts.values]
    else:
        tree = settings.tree_of(column)
        found = [next((classes[label] for label in tree.path(value) if label in classes), k)
                 for value in Leaves(tree).ranks]  # fmt: skip
    return np.array([*found, k], dtype=np.int64)


def _nearest_k(concepts: Concepts, value: str, table: Mapping[str, int], otherwise: int) -> int:
    """The k of the label with the fewest values above a value; the largest k where several labels are as near."""
    if value in table:
        return table[value]
    near = [(int(concepts.leaf_counts[concepts.node_of(label)]), -table[label])
             for label in concepts.labels_above(value) if label in table]  # fmt: skip
    return -min(near)[1] if near else table.get(concepts.root, otherwise)


def crowds_of(settings: FlexibleSettings, tables: Mapping[int, Ints], codes: Ints) -> Ints:
    """The k each record needs: the largest of its columns' density classes."""
    if not tables:
        return np.full(codes.shape[1], settings.k, dtype=np.int64)
    unknown: Any = settings.unknown_codes()
    needed = [table[np.where(are_unknown(codes[a]), unknown.get(a, 0), codes[a])] for a, table in tables.items()]
    found: Ints = np.maximum.reduce(needed)
    return found
