"""Labels of sparse quasi-identifiers: all classes and other properties that a value has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.hierarchies import Hierarchy
from shoal.hierarchies.ontology.ontology import Concepts
from shoal.kernels.flexible.layout import MISSING, SCALE, Labels
from shoal.methods.schema_arrays import Leaves

Ints = npt.NDArray[np.int64]
_VALUE, _IS_A = -1, 0


@dataclass(frozen=True, slots=True)
class LabelSet:
    """Labels of one attribute: the values first, in the order of their codes, the root last."""

    names: tuple[str, ...]
    values: int
    kinds: Ints
    leaf_counts: Ints
    starts: Ints
    above: Ints
    unknown: str | None = None
    """The value that stands for all unlisted ones."""

    @classmethod
    def of_concepts(cls, concepts: Concepts, *, unknown: str | None = None) -> LabelSet:
        """Labels of an ontology's attribute; codes number its values."""
        return cls(
            names=concepts.labels, values=len(concepts.values), kinds=concepts.property_of.astype(np.int64),
            leaf_counts=concepts.leaf_counts.astype(np.int64), starts=concepts.above_starts.astype(np.int64),
            above=concepts.above.astype(np.int64), unknown=unknown,
        )  # fmt: skip

    @classmethod
    def of_tree(cls, tree: Hierarchy, *, unknown: str | None = None) -> LabelSet:
        """Labels of a hierarchy; codes number its leaves."""
        leaves = Leaves(tree)
        number = {int(node): rank for rank, node in enumerate(leaves.node)}
        inner = [node for node in range(1, len(tree)) if node not in number]
        number |= {node: len(leaves) + place for place, node in enumerate(inner)}
        above = [[number[node] for node in _above(tree, int(leaf))] for leaf in leaves.node]
        order = [*leaves.node.tolist(), *inner, 0]
        return cls(
            names=tuple(tree.labels[node] for node in order), values=len(leaves),
            kinds=np.array([_VALUE] * len(leaves) + [_IS_A] * (len(inner) + 1), dtype=np.int64),
            leaf_counts=tree.leaf_counts.astype(np.int64)[order],
            starts=np.concatenate(([0], np.cumsum([len(nodes) for nodes in above]))).astype(np.int64),
            above=np.array([node for nodes in above for node in nodes], dtype=np.int64), unknown=unknown,
        )  # fmt: skip

    def losses(self) -> Ints:
        """The loss of each label, in parts of SCALE: its share of the listed values; SCALE for unlisted values."""
        leaves, listed = self.leaf_counts.copy(), self.values - (self.unknown is not None)
        leaves[-1] = listed
        losses = (leaves - 1) / max(listed - 1, 1)
        if self.unknown is not None:
            losses[self.names.index(self.unknown)] = 1.0
        return np.rint(losses * SCALE).astype(np.int64)

    def preferred(self) -> Ints:
        """Labels in the order of preference: values, then fewest leaves, then the property, then the name."""
        names = np.argsort(np.argsort(np.array(self.names, dtype=object), kind="stable"), kind="stable")
        is_value = np.arange(len(self.names)) >= self.values
        return np.lexsort((names, self.kinds, self.leaf_counts, is_value)).astype(np.int64)


def _above(tree: Hierarchy, leaf: int) -> list[int]:
    """Nodes above a leaf, nearest first, without the root."""
    found, node = [], int(tree.parents[leaf])
    while node > 0:
        found.append(node)
        node = int(tree.parents[node])
    return found


@dataclass(frozen=True, slots=True)
class _Covers:
    """Labels that cover each value."""

    starts: Ints
    above: Ints


def _with_own_and_root(labels: LabelSet, root: int | None) -> _Covers:
    """For each value: itself, the labels above it, and the root if it may be published."""
    first = labels.starts[:-1]
    own = np.insert(labels.above, first, np.arange(labels.values))
    step = 1 if root is None else 2
    starts = labels.starts + step * np.arange(labels.values + 1)
    if root is not None:
        own = np.insert(own, (labels.starts + np.arange(labels.values + 1))[1:], root)
    return _Covers(starts, own.astype(np.int64))


class SparseLabels:
    """The labels of all sparse attributes, numbered together; each attribute ends with a label for a missing value."""

    def __init__(
        self, sets: Sequence[LabelSet], weights: npt.NDArray[np.float64], k_s: Ints, *, with_root: bool
    ) -> None:
        sizes = [len(labels.names) + 1 for labels in sets]
        self._bases = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        self._sets = list(sets)
        self._names = [pa.array([*labels.names, None], type=pa.string()) for labels in sets]
        self.arrays = self._laid(weights, k_s, with_root=with_root)

    def _laid(self, weights: npt.NDArray[np.float64], k_s: Ints, *, with_root: bool) -> Labels:
        total = int(self._bases[-1])
        loss, sizes = np.zeros(total, np.int64), np.zeros(total, np.int64)
        above, order = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for s, (labels, weight) in enumerate(zip(self._sets, weights, strict=True)):
            base, size = int(self._bases[s]), len(labels.names)
            own = _with_own_and_root(labels, size - 1 if with_root else None)
            above += [base + own.above, np.array([base + size])]  # a missing value has its own label only
            sizes[base : base + labels.values] = np.diff(own.starts)
            sizes[base + size] = 1
            loss[base : base + size] = np.rint(labels.losses() * weight)
            order.append(np.concatenate(([base + size], base + labels.preferred())))
        by_rank = np.concatenate(order)
        rank = np.empty(total, np.int64)
        rank[by_rank] = np.arange(total)
        starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        return Labels(starts=starts, above=np.concatenate(above), rank=rank, by_rank=by_rank, loss=loss, k_s=k_s)

    def values_of(self, codes: Ints) -> Ints:
        """Codes of rows, attribute by attribute, as labels."""
        found = codes + self._bases[:-1, None]
        for s, labels in enumerate(self._sets):
            found[s, codes[s] == MISSING] = self._bases[s] + len(labels.names)
        return found

    def publish(self, s: int, labels: Ints) -> pa.Array:
        """Names of one attribute's labels."""
        return self._names[s].take(pa.array(labels - self._bases[s]))
