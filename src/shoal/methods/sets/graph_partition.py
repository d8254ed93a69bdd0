"""Blocks that hang together: items side by side in a graph or on a map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
import numpy.typing as npt

from shoal.hierarchies.neighbourhood import Neighbourhood
from shoal.methods.sets.blocks import Blocks, IntArray
from shoal.methods.sets.errors import ErrorChoice, make_cost
from shoal.methods.sets.merges import Move, in_order, stale_move


class GraphPartition(Blocks):
    """Contiguous blocks; see :class:`shoal.methods.sets.merges.Partition`.

    A move joins a block with one beside it. Names at one site are in one block from the start. Until `start` is
    called every item weighs 1. A block of several items is called after the first by name, and how many others
    there are: ``T0017 +3``. Nothing that people have decides what it is called.

    Parameters
    ----------
    neighbourhood
        :class:`shoal.Places` or :class:`shoal.hierarchies.Graph`.
    error
        None takes ``"distance"`` for places and ``"ncp"`` for a graph; or a function of a block's items and weights.

    Examples
    --------
    >>> from shoal.hierarchies import Graph
    >>> partition = GraphPartition(Graph([("a", "b"), ("b", "c")]))
    >>> [move.name for move in partition.moves([1])]
    ['a +1', 'b +1']
    >>> partition.merge(partition.moves([1])[0]), partition.block_of.tolist()
    (0, [0, 0, 2])
    """

    def __init__(self, neighbourhood: Neighbourhood, error: ErrorChoice = None) -> None:
        self._neighbourhood = neighbourhood
        self._taken = frozenset(neighbourhood.names)
        self._cost = make_cost(error, neighbourhood.names, neighbourhood.ground)
        self.start(np.ones(len(neighbourhood.names), dtype=np.int64))

    # ---- what it holds

    @property
    def names(self) -> tuple[str, ...]:
        """Labels of all items, sorted."""
        return self._neighbourhood.names

    def label(self, block: int) -> str:
        """The first name of its items, and how many others there are."""
        number = int(self._block_of[block])
        return self._label(number, len(self._members[number]))

    def members(self, block: int) -> tuple[int, ...]:
        """Numbers of the items in a block, rising."""
        return tuple(self._members[self._block_of[block]].tolist())

    # ---- what it does

    def start(self, weights: npt.NDArray[np.int64]) -> None:
        """Put every site into a block of its own again."""
        self._set_weights(weights, len(self.names))
        block_at, self._members = _sites(self._neighbourhood)
        self._set_blocks(block_at[self._neighbourhood.site_of])
        self._beside = _beside(len(self.names), block_at[self._neighbourhood.edges])
        self._blocks_left = len(block_at)
        self._weight = [int(self._weights[members].sum()) for members in self._members]
        self._costs = np.zeros(len(self.names))
        for block in block_at:
            self._costs[block] = self._cost.cost(self._members[block], self._weight[block])
        self._joins: dict[tuple[int, int], tuple[Move, float]] = {}

    def reweigh(self, weights: npt.NDArray[np.int64]) -> None:
        """Take other weights for the blocks as they stand."""
        self._set_weights(weights, len(self.names))
        self._weight = [int(self._weights[members].sum()) for members in self._members]
        for block in np.unique(self._block_of).tolist():
            self._costs[block] = self._cost.cost(self._members[block], self._weight[block])
        self._joins = {}

    def moves(self, blocks: Sequence[int]) -> list[Move]:
        """List the joins of these blocks with those beside them, the least first."""
        pairs = {
            (number, other) if number < other else (other, number)
            for number in {int(self._block_of[block]) for block in blocks}
            for other in self._beside[number]
        }
        return in_order(self._join(pair)[0] for pair in pairs)

    def merge(self, move: Move) -> int:
        """Join two blocks that lie side by side."""
        if len(move.blocks) != 2 or move.blocks[1] not in self._beside[move.blocks[0]]:
            raise stale_move()
        kept, gone = move.blocks
        _, self._costs[kept] = self._join((kept, gone))
        self._costs[gone] = 0.0
        self._forget_joins(kept, gone)
        self._block_of[self._members[gone]] = kept
        self._members[kept] = self._joined_members(kept, gone)
        self._members[gone] = self._members[gone][:0]
        self._weight[kept] += self._weight[gone]
        self._join_neighbours(kept, gone)
        self._blocks_left -= 1
        return kept

    def copy(self) -> Self:
        """Make a partition in the same state that goes its own way."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        # Lists of things that are never changed but replaced: the things themselves can be shared.
        other._members, other._beside = self._members.copy(), self._beside.copy()
        other._weight = self._weight.copy()
        other._costs, other._joins = self._costs.copy(), self._joins.copy()
        other._set_blocks(self._block_of.copy())
        return other

    # ---- parts

    def _label(self, first: int, size: int) -> str:
        label = self.names[first]
        if size > 1:
            label = f"{label} +{size - 1}"
            while label in self._taken:  # a place may be called "a +1"
                label += "'"
        return label

    def _joined_members(self, first: int, second: int) -> IntArray:
        # In order, so that a block's cost depends on what is in it and not on how it came about.
        joined = np.concatenate([self._members[first], self._members[second]])
        joined.sort()
        return joined

    def _join(self, pair: tuple[int, int]) -> tuple[Move, float]:
        """The move that joins a pair and the cost of the block it gives; kept until one of the two changes."""
        if pair not in self._joins:
            first, second = pair
            members = self._joined_members(first, second)
            cost = self._cost.cost(members, self._weight[first] + self._weight[second])
            rise = (cost - float(self._costs[first] + self._costs[second])) / self._divisor
            self._joins[pair] = Move(rise, len(members), self._label(first, len(members)), pair), cost
        return self._joins[pair]

    def _forget_joins(self, kept: int, gone: int) -> None:
        for block in (kept, gone):
            for other in self._beside[block]:
                self._joins.pop((block, other) if block < other else (other, block), None)

    def _join_neighbours(self, kept: int, gone: int) -> None:
        for other in self._beside[gone]:
            if other != kept:
                self._beside[other] = (self._beside[other] - {gone}) | {kept}
        self._beside[kept] = (self._beside[kept] | self._beside[gone]) - {kept, gone}
        self._beside[gone] = frozenset()


def _sites(neighbourhood: Neighbourhood) -> tuple[IntArray, list[IntArray]]:
    """Block number of every site, and the items of every block; numbers that are no block's have none."""
    order = np.argsort(neighbourhood.site_of, kind="stable").astype(np.int32)
    starts = np.flatnonzero(np.diff(neighbourhood.site_of[order], prepend=-1))
    members: list[IntArray] = [order[:0]] * len(order)
    for run in np.split(order, starts[1:]):
        members[run[0]] = run
    return order[starts], members


def _beside(count: int, edges: IntArray) -> list[frozenset[int]]:
    beside: list[set[int]] = [set() for _ in range(count)]
    for first, second in edges.tolist():
        beside[first].add(second)
        beside[second].add(first)
    return [frozenset(others) for others in beside]
