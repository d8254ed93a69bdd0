"""Blocks that are nodes of a hierarchy: every item lies under exactly one of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from shoal.errors import PolicyError
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.hierarchies.seen import grow_seen
from shoal.methods.sets.blocks import Blocks, IntArray
from shoal.methods.sets.errors import ErrorChoice, make_cost
from shoal.methods.sets.merges import Move, in_order, stale_move

NOWHERE = -1


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """A tree laid out for blocks; the leaves below a node are one run of places, in preorder.

    Attributes
    ----------
    names
        Labels of the leaves, sorted: the items.
    labels
        Label of every node.
    item_at
        Item at each place.
    first, last
        The run of each node, last one left out.
    lift
        The nearest node above with more leaves; `NOWHERE` at the top. A node with one child adds nothing to it.
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


class TreePartition(Blocks):
    """Any antichain cut of a hierarchy; see :class:`shoal.methods.sets.merges.Partition`.

    A move lifts a block to the next node that holds more items, with everything below it. Until `start` is called
    every item weighs 1.

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
        self._shape = _shape(hierarchy, items)
        self._cost = make_cost(error, self._shape.names)
        self.start(np.ones(len(self._shape.names), dtype=np.int64))

    # ---- what it holds

    @property
    def names(self) -> tuple[str, ...]:
        """Labels of all items, sorted."""
        return self._shape.names

    def label(self, block: int) -> str:
        """Label of the block's node."""
        return self._shape.labels[self._node(block)]

    def members(self, block: int) -> tuple[int, ...]:
        """Numbers of the items in a block, rising."""
        return tuple(np.sort(self._items(self._node(block))).tolist())

    # ---- what it does

    def start(self, weights: npt.NDArray[np.int64]) -> None:
        """Put every item into a block of its own again."""
        shape = self._shape
        self._set_weights(weights, len(shape.names))
        self._weight_before = np.concatenate([[0], np.cumsum(self._weights[shape.item_at])])
        self._node_of = shape.leaf_of.copy()
        self._set_blocks(np.arange(len(shape.names), dtype=np.int32))
        self._blocks_left = len(shape.names)
        self._is_first = np.ones(len(shape.names), dtype=np.bool_)
        # Costs stand at the first place of their block, so that those below a node are one run too.
        self._costs = np.array([self._node_cost(int(shape.leaf_of[item])) for item in shape.item_at])
        self._lifts: dict[int, tuple[Move, float]] = {}

    def reweigh(self, weights: npt.NDArray[np.int64]) -> None:
        """Take other weights for the blocks as they stand."""
        self._set_weights(weights, len(self._shape.names))
        self._weight_before = np.concatenate([[0], np.cumsum(self._weights[self._shape.item_at])])
        self._costs = np.zeros(len(self._shape.names))
        for place in np.flatnonzero(self._is_first):
            self._costs[place] = self._node_cost(self._node(int(self._shape.item_at[place])))
        self._lifts = {}

    def moves(self, blocks: Sequence[int]) -> list[Move]:
        """List the lifts of these blocks, the least first."""
        nodes = {self._shape.lift[self._node(block)] for block in blocks} - {NOWHERE}
        return in_order(self._lift(node)[0] for node in nodes)

    def merge(self, move: Move) -> int:
        """Lift everything below the node to it."""
        node = self._target(move)
        known, cost = self._lift(node)
        if known.blocks != move.blocks:
            raise stale_move()
        first, last = self._shape.first[node], self._shape.last[node]
        number = move.blocks[0]
        self._block_of[self._items(node)] = number
        self._node_of[number] = node
        self._is_first[first + 1 : last] = False
        self._costs[first:last] = 0.0
        self._costs[first] = cost
        self._blocks_left -= len(move.blocks) - 1
        while node != NOWHERE:  # what lies above holds these blocks too
            self._lifts.pop(node, None)
            node = self._shape.lift[node]
        return number

    def copy(self) -> Self:
        """Make a partition in the same state that goes its own way."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._node_of, other._costs = self._node_of.copy(), self._costs.copy()
        other._is_first, other._lifts = self._is_first.copy(), self._lifts.copy()
        other._set_blocks(self._block_of.copy())
        return other

    # ---- parts

    def _node(self, block: int) -> int:
        return int(self._node_of[self._block_of[block]])

    def _items(self, node: int) -> IntArray:
        return self._shape.item_at[self._shape.first[node] : self._shape.last[node]]

    def _node_cost(self, node: int) -> float:
        before = self._weight_before
        weight = int(before[self._shape.last[node]] - before[self._shape.first[node]])
        return self._cost.cost(self._items(node), weight)

    def _lift(self, node: int) -> tuple[Move, float]:
        """The move to a node and the cost of the block it gives; kept until something below changes."""
        if node not in self._lifts:
            first, last = self._shape.first[node], self._shape.last[node]
            numbers = self._block_of[self._items(node)[self._is_first[first:last]]]
            cost = self._node_cost(node)
            rise = (cost - float(self._costs[first:last].sum())) / self._divisor
            move = Move(rise, last - first, self._shape.labels[node], tuple(np.sort(numbers).tolist()))
            self._lifts[node] = move, cost
        return self._lifts[node]

    def _target(self, move: Move) -> int:
        """The node above the first of the blocks that holds as many items as the move says; sizes rise upwards."""
        node, size = self._node(move.blocks[0]), 0
        while size < move.size:
            node = self._shape.lift[node]
            if node == NOWHERE:
                raise stale_move()
            size = self._shape.last[node] - self._shape.first[node]
        return node


def _shape(hierarchy: Hierarchy, items: Iterable[str] | None) -> Shape:
    if not hierarchy.is_open:
        return _laid_out(hierarchy.labels, hierarchy.parents, hierarchy.leaf_counts)
    seen = list(items or ())
    if not seen:
        raise PolicyError("generalize: an open hierarchy takes any value, so give the items that there are")
    tree = grow_seen(hierarchy, seen)
    return _laid_out(tree.labels, tree.parents, tree.leaf_counts)


def _laid_out(labels: tuple[str, ...], parents: IntArray, leaf_counts: IntArray) -> Shape:
    is_leaf = np.ones(len(labels), dtype=np.bool_)
    is_leaf[parents[1:]] = False
    leaves = np.flatnonzero(is_leaf)
    first: npt.NDArray[np.int64] = np.cumsum(is_leaf) - is_leaf.astype(np.int64)
    names = [labels[leaf] for leaf in leaves]
    places = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int32)
    item_at = np.empty(len(names), dtype=np.int32)
    item_at[places] = np.arange(len(names), dtype=np.int32)
    return Shape(
        names=tuple(names[place] for place in places),
        labels=labels,
        item_at=item_at,
        first=first.tolist(),
        last=(first + leaf_counts).tolist(),
        lift=_lifts(parents.tolist(), leaf_counts.tolist()),
        leaf_of=leaves[places].astype(np.int32),
    )


def _lifts(parents: list[int], leaf_counts: list[int]) -> list[int]:
    lift = [NOWHERE] * len(parents)
    for node in range(1, len(parents)):  # parents come first
        parent = parents[node]
        lift[node] = parent if leaf_counts[parent] > leaf_counts[node] else lift[parent]
    return lift
