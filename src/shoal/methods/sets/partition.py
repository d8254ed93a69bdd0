"""Items in blocks that only grow: what every partition keeps, the moves it offers, and what its blocks cost."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Self

import numpy as np
import numpy.typing as npt

from shoal.errors import PolicyError
from shoal.hierarchies.neighbourhood import Ground
from shoal.kernels.sets.errors import distance_cost

IntArray = npt.NDArray[np.int32]
Weights = npt.NDArray[np.int64]
UserError = Callable[[tuple[str, ...], tuple[int, ...]], float]
ErrorChoice = Literal["distance", "ncp"] | UserError | None
BlockCost = Callable[[IntArray, Weights, int], float]
"""The cost of a block from its items, the weights of all items, and the sum of the weights of its items."""


@dataclass(frozen=True, slots=True, order=True)
class Move:
    """Several blocks become one. Moves are ordered by cost: the search takes the smallest.

    Attributes
    ----------
    rise
        By how much the error of the whole partition grows; negative where it shrinks.
    size
        Number of items in the merged block.
    name
        Label of the merged block.
    blocks
        Numbers of the merged blocks, ascending.
    """

    rise: float
    size: int
    name: str
    blocks: tuple[int, ...]


class Partition(ABC):
    """A partition of items into blocks that only grow.

    An item's number is its position in `names`; a block's number is the smallest number of its items. The same calls
    give the same answers in every process. Every item weighs 1 until `start` is called.
    """

    def __init__(self, names: tuple[str, ...], error: ErrorChoice, ground: Ground | None = None) -> None:
        self.names = names
        """Labels of all items, sorted."""
        self._cost, self._scale = make_cost(error, names, ground)
        self._costs = np.zeros(len(names))
        self._blocks_left = len(names)
        self.start(np.ones(len(names), dtype=np.int64))

    @property
    def block_of(self) -> IntArray:
        """Block number of every item; a read-only view that follows every merge."""
        return self._block_of_view

    @property
    def blocks_left(self) -> int:
        """Number of blocks."""
        return self._blocks_left

    @property
    def error(self) -> float:
        """Sum of the costs of all blocks, divided by the sum of all weights."""
        return float(self._costs.sum()) / self._divisor

    @abstractmethod
    def start(self, weights: Weights) -> None:
        """Put every item into a block of its own again; `weights` is the number of people who have each item."""

    @abstractmethod
    def reweigh(self, weights: Weights) -> None:
        """Change the weights and keep the blocks."""

    @abstractmethod
    def moves(self, blocks: Sequence[int]) -> list[Move]:
        """List the smallest strictly coarser partitions that change one of these blocks, cheapest first."""

    @abstractmethod
    def merge(self, move: Move) -> int:
        """Apply a move listed for the current state; return the number of the merged block."""

    @abstractmethod
    def copy(self) -> Self:
        """Make an independent partition in the same state."""

    @abstractmethod
    def label(self, block: int) -> str:
        """The label the block is published as; no two blocks share one."""

    @abstractmethod
    def members(self, block: int) -> tuple[int, ...]:
        """Numbers of the items in a block, ascending."""

    def _set_weights(self, weights: npt.ArrayLike) -> None:
        checked = np.array(weights, dtype=np.int64)
        if checked.shape != (len(self.names),) or (checked < 0).any():
            raise ValueError("weights: one number that is not negative for every item")
        self._weights = checked
        self._divisor = self._scale * max(1, int(checked.sum()))

    def _set_blocks(self, block_of: IntArray) -> None:
        self._block_of = block_of
        self._block_of_view = block_of.view()
        self._block_of_view.flags.writeable = False


def cheapest_first(moves: Iterable[Move]) -> list[Move]:
    """Sort moves; comparing tuples is faster than comparing moves."""
    return sorted(moves, key=lambda move: (move.rise, move.size, move.name, move.blocks))


def stale_move() -> ValueError:
    """Make the error for a move that was listed before another merge."""
    return ValueError("the move does not fit the current partition; list the moves again")


# ---- what a block costs


def make_cost(error: ErrorChoice, names: tuple[str, ...], ground: Ground | None = None) -> tuple[BlockCost, float]:
    """The cost of a block and a constant that costs are divided by, besides the sum of all weights.

    NCP is divided late because its numerators are integers: equal rises are then equal to the last bit.

    Parameters
    ----------
    error
        None means the distance where the items have a ground, otherwise NCP.
    names
        Labels of all items.
    ground
        Where the items are, if they have positions.
    """
    if callable(error):
        return partial(_user_cost, error, names), 1.0
    if error == "ncp" or (error is None and ground is None):
        return _ncp_cost, float(len(names))
    if error not in (None, "distance"):
        raise PolicyError('error: must be "distance", "ncp" or a function of items and weights')
    if ground is None:
        raise PolicyError('error: "distance" needs shoal.Places, which have positions; or use "ncp"')
    return partial(_distance_cost, ground), 1.0


def _ncp_cost(members: IntArray, _weights: Weights, weight: int) -> float:
    """Normalized certainty penalty: an item in a block of n of all N items costs n / N; alone it costs nothing."""
    return float(weight * len(members)) if len(members) > 1 else 0.0


def _distance_cost(ground: Ground, members: IntArray, weights: Weights, weight: int) -> float:
    """Metres from each item to the centroid of the merged cells, times its weight."""
    if weight == 0:
        return 0.0
    return float(distance_cost(members, weights, ground.points, ground.centres, ground.shares, ground.radius_m))


def _user_cost(function: UserError, names: tuple[str, ...], members: IntArray, weights: Weights, _weight: int) -> float:
    items = np.sort(members)
    try:
        cost: object = function(tuple(names[item] for item in items), tuple(weights[items].tolist()))
    except TypeError:
        raise PolicyError("error: the function must take the items of a block and their weights") from None
    if not isinstance(cost, int | float | np.number) or not math.isfinite(cost) or cost < 0:
        raise PolicyError("error: the function must return a number that is finite and not negative")
    return float(cost)
