"""Blocks that are nodes of a hierarchy: every item lies under exactly one of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from shoal.errors import PolicyError
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.hierarchies.tree import ROOT_PARENT, Tree, plant
from shoal.methods.sets.partition import ErrorChoice, IntArray, Move, Partition, Weights, cheapest_first, stale_move

NONE: Final = -1


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """A tree in preorder: the leaves below a node are one run of positions.

    Attributes
    ----------
    names
        Labels of the leaves, sorted: the items.
    labels
        Label of every node.
    item_at
        Item at each position.
    first, last
        The run of each node, `last` excluded.
    lift
        The nearest ancestor with more leaves; `NONE` at the top.
    leaf_of
        Node of every item.
    """

    names: tuple[str, ...]
    labels: tuple[str, ...]
    item_at: IntArray
    first: list[int]
    last: list[int]
    lift: list[int]
    leaf_of: IntArray


class TreePartition(Partition):
    """Any antichain cut of a hierarchy; a move lifts a block to the next node that has more items.

    Parameters
    ----------
    hierarchy
        Its leaves are the items.
    error
        None or ``"ncp"``, or a function of a block's items and weights.
    items
        Values of an open hierarchy; a closed one has its own.

    Examples
    --------
    >>> cities = Hierarchy.from_nested({"US": {"West": ["LA", "Seattle"], "East": ["New York", "Boston"]}})
    >>> partition = TreePartition(cities)
    >>> partition.names
    ('Boston', 'LA', 'New York', 'Seattle')
    >>> [move.name for move in partition.moves([0, 1])]
    ['East', 'West']
    >>> partition.merge(partition.moves([0])[0]), partition.error
    (0, 0.25)
    """

    def __init__(self, hierarchy: Hierarchy, error: ErrorChoice = None, items: Iterable[str] | None = None) -> None:
        self._layout = _layout(hierarchy, items)
        super().__init__(self._layout.names, error)

    @property
    def layout(self) -> Layout:
        """The tree."""
        return self._layout

    @property
    def nodes(self) -> IntArray:
        """Node of the block of every item."""
        return self._node_of[self._block_of]

    def label(self, block: int) -> str:
        """Label of the block's node."""
        return self._layout.labels[self._node(block)]

    def members(self, block: int) -> tuple[int, ...]:
        return tuple(np.sort(self._items(self._node(block))).tolist())

    def start(self, weights: Weights) -> None:
        """Put every item into a block of its own again."""
        self._node_of = self._layout.leaf_of.copy()
        self._set_blocks(np.arange(len(self.names), dtype=np.int32))
        self._blocks_left = len(self.names)
        self._is_first = np.ones(len(self.names), dtype=np.bool_)
        self.reweigh(weights)

    def reweigh(self, weights: Weights) -> None:
        self._set_weights(weights)
        self._weight_before = np.concatenate([[0], np.cumsum(self._weights[self._layout.item_at])])
        # The cost of a block is stored at its first position, so that the costs below a node are one run too.
        self._costs = np.zeros(len(self.names))
        for position in np.flatnonzero(self._is_first):
            self._costs[position] = self._node_cost(self._node(int(self._layout.item_at[position])))
        self._lifts: dict[int, tuple[Move, float]] = {}

    def moves(self, blocks: Sequence[int]) -> list[Move]:
        """List the lifts of these blocks, cheapest first."""
        nodes = {self._layout.lift[self._node(block)] for block in blocks} - {NONE}
        return cheapest_first(self._lift(node)[0] for node in nodes)

    def merge(self, move: Move) -> int:
        """Merge everything below the node that the move lifts to."""
        node = self._target(move)
        known, cost = self._lift(node)
        if known.blocks != move.blocks:
            raise stale_move()
        first, last = self._layout.first[node], self._layout.last[node]
        number = move.blocks[0]
        self._block_of[self._items(node)] = number
        self._node_of[number] = node
        self._is_first[first + 1 : last] = False
        self._costs[first:last] = 0.0
        self._costs[first] = cost
        self._blocks_left -= len(move.blocks) - 1
        while node != NONE:  # lifts to ancestors merge these blocks too
            self._lifts.pop(node, None)
            node = self._layout.lift[node]
        return number

    def copy(self) -> Self:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._node_of, other._costs = self._node_of.copy(), self._costs.copy()
        other._is_first, other._lifts = self._is_first.copy(), self._lifts.copy()
        other._set_blocks(self._block_of.copy())
        return other

    def _node(self, block: int) -> int:
        return int(self._node_of[self._block_of[block]])

    def _items(self, node: int) -> IntArray:
        return self._layout.item_at[self._layout.first[node] : self._layout.last[node]]

    def _node_cost(self, node: int) -> float:
        before = self._weight_before
        weight = int(before[self._layout.last[node]] - before[self._layout.first[node]])
        return self._cost(self._items(node), self._weights, weight)

    def _lift(self, node: int) -> tuple[Move, float]:
        """The move to a node and the cost of the new block; cached until something below changes."""
        if node not in self._lifts:
            first, last = self._layout.first[node], self._layout.last[node]
            numbers = self._block_of[self._items(node)[self._is_first[first:last]]]
            cost = self._node_cost(node)
            rise = (cost - float(self._costs[first:last].sum())) / self._divisor
            move = Move(rise, last - first, self._layout.labels[node], tuple(np.sort(numbers).tolist()))
            self._lifts[node] = move, cost
        return self._lifts[node]

    def _target(self, move: Move) -> int:
        """The ancestor of the first block with as many items as the merged block; sizes grow upwards."""
        node, size = self._node(move.blocks[0]), 0
        while size < move.size:
            node = self._layout.lift[node]
            if node == NONE:
                raise stale_move()
            size = self._layout.last[node] - self._layout.first[node]
        return node


def _layout(hierarchy: Hierarchy, items: Iterable[str] | None) -> Layout:
    if not hierarchy.is_open:
        labels, parents, leaf_counts = hierarchy.labels, hierarchy.parents, hierarchy.leaf_counts
    else:
        seen = list(items or ())
        if not seen:
            raise PolicyError("generalize: an open hierarchy accepts any value, so give the items that there are")
        tree = _tree_of_values(hierarchy, seen)
        labels, parents, leaf_counts = tree.labels, tree.parents, tree.leaf_counts
    is_leaf = np.ones(len(labels), dtype=np.bool_)
    is_leaf[parents[1:]] = False
    leaves = np.flatnonzero(is_leaf)
    first: npt.NDArray[np.int64] = np.cumsum(is_leaf) - is_leaf.astype(np.int64)
    names = [labels[leaf] for leaf in leaves]
    positions = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int32)
    item_at = np.empty(len(names), dtype=np.int32)
    item_at[positions] = np.arange(len(names), dtype=np.int32)
    return Layout(
        names=tuple(names[position] for position in positions),
        labels=labels,
        item_at=item_at,
        first=first.tolist(),
        last=(first + leaf_counts).tolist(),
        lift=_lifts(parents.tolist(), leaf_counts.tolist()),
        leaf_of=leaves[positions].astype(np.int32),
    )


def _lifts(parents: list[int], leaf_counts: list[int]) -> list[int]:
    lift = [NONE] * len(parents)
    for node in range(1, len(parents)):  # parents come first
        parent = parents[node]
        lift[node] = parent if leaf_counts[parent] > leaf_counts[node] else lift[parent]
    return lift


def _tree_of_values(hierarchy: Hierarchy, values: Iterable[str]) -> Tree:
    """The tree of these values under an open hierarchy; its leaves are exactly the values.

    A value with others below it (``b.example`` next to ``a.b.example``) appears twice: as the inner node, and as a leaf
    directly below it.
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
    for value in distinct:
        labels.append(value)
        parents.append(nodes[value] if value in nodes else nodes[hierarchy.path(value)[1]])
    return plant(labels, parents)
