"""A schema's quasi-identifiers as arrays for the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.hierarchies import Hierarchy
from shoal.kernels.tuples.layout import CATEGORICAL, NUMERIC, SMALL_TREE
from shoal.schema import Numeric, Quasi, grid_units

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Leaves:
    """A tree whose leaves are numbered in depth-first order."""

    def __init__(self, tree: Hierarchy) -> None:
        self.labels = tree.labels
        parents = tree.parents.astype(np.int64)
        is_leaf = np.ones(len(parents), dtype=np.bool_)
        is_leaf[parents[1:]] = False
        self.node = np.flatnonzero(is_leaf)
        """The node of each leaf."""
        self.first = np.searchsorted(self.node, np.arange(len(parents)))
        counts = tree.leaf_counts.astype(np.int64)
        self.last = self.first + counts - 1
        self.loss = (counts - 1) / max(int(counts[0]) - 1, 1)
        self.ranks = {self.labels[node]: rank for rank, node in enumerate(self.node.tolist())}
        self._parents = parents

    def __len__(self) -> int:
        return len(self.node)

    def meets(self) -> Ints:
        """A sparse table for lowest common ancestors: row n has the LCA of the 2^n + 1 leaves from each leaf on."""
        rows = [self._neighbours()]
        while 2 ** len(rows) < len(self):
            half = 2 ** (len(rows) - 1)
            row = rows[-1].copy()
            row[:-half] = np.minimum(rows[-1][:-half], rows[-1][half:])
            rows.append(row)
        return np.concatenate(rows)

    def _neighbours(self) -> Ints:
        """The lowest common ancestor of each leaf and the next one."""
        found = np.zeros(len(self), dtype=np.int64)
        for rank, node in enumerate(self.node[:-1].tolist()):
            while self.last[node] == rank:  # climb to the LCA of this leaf and the next
                node = int(self._parents[node])
            found[rank] = node
        return found

    def pairs(self) -> Floats:
        """The loss of generalizing two leaves to their lowest common ancestor, for every pair."""
        found = np.zeros((len(self), len(self)))
        neighbours = self._neighbours()
        for rank in range(len(self)):
            above = np.minimum.accumulate(neighbours[rank:-1]) if rank + 1 < len(self) else neighbours[:0]
            found[rank, rank + 1 :] = found[rank + 1 :, rank] = self.loss[above]
        return found.ravel()


@dataclass(frozen=True, slots=True)
class Shape:
    """Attributes and trees as the kernels read them; see shoal.kernels.tuples.layout."""

    attr_f: Floats
    attr_i: Ints
    tree_f: Floats
    tree_i: Ints


class _Concatenated:
    """Arrays one after another in one array."""

    def __init__(self) -> None:
        self._parts: list[npt.NDArray[Any]] = []
        self._end = 0

    def add(self, part: npt.NDArray[Any]) -> int:
        """Append a part; return where it begins."""
        self._parts.append(part)
        self._end += len(part)
        return self._end - len(part)

    def all(self, kind: Any) -> npt.NDArray[Any]:
        """The whole, never empty."""
        return np.concatenate([*self._parts, np.zeros(1)]).astype(kind)


def compile_shape(quasi: Sequence[Quasi], trees: Sequence[Leaves | None]) -> Shape:
    """Put the attributes' domains and trees into arrays, one after another."""
    floats, ints = _Concatenated(), _Concatenated()
    numbers = [_domain(role) if isinstance(role, Numeric) else (role.weight, 0, 1, 0, 1, 0, 0) for role in quasi]
    places = [_tree_places(tree, floats, ints) if tree else (NUMERIC, *[0] * 7) for tree in trees]
    return Shape(
        attr_f=np.ascontiguousarray(np.array(numbers, dtype=np.float64).T),
        attr_i=np.ascontiguousarray(np.array(places, dtype=np.int64).T),
        tree_f=floats.all(np.float64),
        tree_i=ints.all(np.int64),
    )


def _domain(role: Numeric) -> tuple[float, ...]:
    units = grid_units(role.low, role.high, role.grid) if role.grid else None
    return (role.weight, role.low, role.high, role.grid or 0.0, *(units or (1, 0, 0)))


def _tree_places(tree: Leaves, floats: _Concatenated, ints: _Concatenated) -> tuple[int, ...]:
    pairs = tree.pairs() if len(tree) <= SMALL_TREE else np.empty(0)
    return (
        CATEGORICAL, len(tree), floats.add(pairs), floats.add(tree.loss),
        ints.add(tree.first), ints.add(tree.last), ints.add(tree.node), ints.add(tree.meets()),
    )  # fmt: skip
