"""Contiguous blocks: items that are neighbours in a graph or on a map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from shoal.hierarchies.neighbourhood import Neighbourhood
from shoal.methods.sets.partition import ErrorChoice, IntArray, Move, Partition, Weights, cheapest_first, stale_move


class GraphPartition(Partition):
    """Contiguous blocks; a move merges two adjacent blocks.

    Names at one site are in one block from the start. A block of several items is labelled with the first name and the
    number of the others: ``T0017 +3``. The label never depends on what people have.

    Parameters
    ----------
    neighbourhood
        :class:`shoal.Places` or :class:`shoal.hierarchies.Graph`.
    error
        None means ``"distance"`` for places and ``"ncp"`` for a graph; or a function of a block's items and weights.

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
        super().__init__(neighbourhood.names, error, neighbourhood.ground)

    def label(self, block: int) -> str:
        """The first name of its items, and how many others there are."""
        number = int(self._block_of[block])
        return self._label(number, len(self._members[number]))

    def members(self, block: int) -> tuple[int, ...]:
        return tuple(self._members[self._block_of[block]].tolist())

    def start(self, weights: Weights) -> None:
        """Put every site into a block of its own again."""
        block_at, self._members = _sites(self._neighbourhood)
        self._set_blocks(block_at[self._neighbourhood.site_of])
        self._adjacent = _adjacent(len(self.names), block_at[self._neighbourhood.edges])
        self._blocks_left = len(block_at)
        self._costs = np.zeros(len(self.names))
        self.reweigh(weights)

    def reweigh(self, weights: Weights) -> None:
        self._set_weights(weights)
        self._weight = [int(self._weights[members].sum()) for members in self._members]
        for block in np.unique(self._block_of).tolist():
            self._costs[block] = self._cost(self._members[block], self._weights, self._weight[block])
        self._joins: dict[tuple[int, int], tuple[Move, float]] = {}

    def moves(self, blocks: Sequence[int]) -> list[Move]:
        """List the merges of these blocks with adjacent ones, cheapest first."""
        pairs = {
            (number, other) if number < other else (other, number)
            for number in {int(self._block_of[block]) for block in blocks}
            for other in self._adjacent[number]
        }
        return cheapest_first(self._join(pair)[0] for pair in pairs)

    def merge(self, move: Move) -> int:
        """Merge two adjacent blocks."""
        if len(move.blocks) != 2 or move.blocks[1] not in self._adjacent[move.blocks[0]]:
            raise stale_move()
        kept, gone = move.blocks
        _, self._costs[kept] = self._join((kept, gone))
        self._costs[gone] = 0.0
        for block in (kept, gone):
            for other in self._adjacent[block]:
                self._joins.pop((block, other) if block < other else (other, block), None)
        self._block_of[self._members[gone]] = kept
        self._members[kept] = self._joined_members(kept, gone)
        self._members[gone] = self._members[gone][:0]
        self._weight[kept] += self._weight[gone]
        self._join_neighbours(kept, gone)
        self._blocks_left -= 1
        return kept

    def copy(self) -> Self:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        # The entries of these lists are replaced, never changed in place, so copies may share them.
        other._members, other._adjacent = self._members.copy(), self._adjacent.copy()
        other._weight = self._weight.copy()
        other._costs, other._joins = self._costs.copy(), self._joins.copy()
        other._set_blocks(self._block_of.copy())
        return other

    def _label(self, first: int, size: int) -> str:
        label = self.names[first]
        if size > 1:
            label = f"{label} +{size - 1}"
            while label in self._taken:  # a place may be called "a +1"
                label += "'"
        return label

    def _joined_members(self, first: int, second: int) -> IntArray:
        # Sorted, so that a block's cost depends on its items and not on the order of merges.
        joined = np.concatenate([self._members[first], self._members[second]])
        joined.sort()
        return joined

    def _join(self, pair: tuple[int, int]) -> tuple[Move, float]:
        """The move that merges a pair and the cost of the new block; cached until one of the two changes."""
        if pair not in self._joins:
            first, second = pair
            members = self._joined_members(first, second)
            cost = self._cost(members, self._weights, self._weight[first] + self._weight[second])
            rise = (cost - float(self._costs[first] + self._costs[second])) / self._divisor
            self._joins[pair] = Move(rise, len(members), self._label(first, len(members)), pair), cost
        return self._joins[pair]

    def _join_neighbours(self, kept: int, gone: int) -> None:
        for other in self._adjacent[gone]:
            if other != kept:
                self._adjacent[other] = (self._adjacent[other] - {gone}) | {kept}
        self._adjacent[kept] = (self._adjacent[kept] | self._adjacent[gone]) - {kept, gone}
        self._adjacent[gone] = frozenset()


def _sites(neighbourhood: Neighbourhood) -> tuple[IntArray, list[IntArray]]:
    """Block number of every site, and the items of every block number (none where no block has that number)."""
    order = np.argsort(neighbourhood.site_of, kind="stable").astype(np.int32)
    starts = np.flatnonzero(np.diff(neighbourhood.site_of[order], prepend=-1))
    members: list[IntArray] = [order[:0]] * len(order)
    for run in np.split(order, starts[1:]):
        members[run[0]] = run
    return order[starts], members


def _adjacent(count: int, edges: IntArray) -> list[frozenset[int]]:
    adjacent: list[set[int]] = [set() for _ in range(count)]
    for first, second in edges.tolist():
        adjacent[first].add(second)
        adjacent[second].add(first)
    return [frozenset(others) for others in adjacent]
