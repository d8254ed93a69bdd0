"""What a block costs: the error of a partition is the sum over its blocks, for each occurrence of an item.

A cost is kept before it is divided. NCP counts in whole numbers that way, so equal rises are equal, to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, Self

import numpy as np
import numpy.typing as npt

from shoal.errors import PolicyError
from shoal.hierarchies.neighbourhood import Ground
from shoal.kernels.sets.errors import distance_cost

UserError = Callable[[tuple[str, ...], tuple[int, ...]], float]
ErrorChoice = Literal["distance", "ncp"] | UserError | None
Members = npt.NDArray[np.int32]
Weights = npt.NDArray[np.int64]


class BlockCost(Protocol):
    """The cost of one block, given the items in it."""

    @property
    def divisor(self) -> float:
        """What costs are divided by, besides the sum of all weights."""

    def weighted(self, weights: Weights) -> Self:
        """Make the same cost for other weights."""

    def cost(self, members: Members, weight: int) -> float:
        """Cost of a block with these items; `weight` is the sum of their weights."""


@dataclass(frozen=True, slots=True)
class NcpCost:
    """Normalized certainty penalty: an item in a block of ``n`` of all ``N`` items costs ``n / N``, alone nothing."""

    items: int

    @property
    def divisor(self) -> float:
        """All items."""
        return float(self.items)

    def weighted(self, weights: Weights) -> Self:
        """Nothing depends on single weights."""
        return self

    def cost(self, members: Members, weight: int) -> float:
        """Weight of the block times its items."""
        return float(weight * len(members)) if len(members) > 1 else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class DistanceCost:
    """Metres from each item to the centre of its block, that is the centroid of the joined cells."""

    ground: Ground
    weights: Weights

    @property
    def divisor(self) -> float:
        """Metres stay metres."""
        return 1.0

    def weighted(self, weights: Weights) -> Self:
        """The same ground under other people."""
        return type(self)(self.ground, weights)

    def cost(self, members: Members, weight: int) -> float:
        """Sum of weight times metres; a block without people costs nothing."""
        if weight == 0:
            return 0.0
        ground = self.ground
        return float(
            distance_cost(members, self.weights, ground.points, ground.centres, ground.shares, ground.radius_m)
        )


@dataclass(frozen=True, slots=True, eq=False)
class UserCost:
    """A user's function of the items of a block and their weights."""

    function: UserError
    names: tuple[str, ...]
    weights: Weights

    @property
    def divisor(self) -> float:
        """The function's answer is taken as it is."""
        return 1.0

    def weighted(self, weights: Weights) -> Self:
        """The same function for other weights."""
        return type(self)(self.function, self.names, weights)

    def cost(self, members: Members, weight: int) -> float:
        """Ask the function; items come sorted."""
        items = np.sort(members)
        given = tuple(self.names[item] for item in items), tuple(self.weights[items].tolist())
        try:
            cost: object = self.function(*given)
        except TypeError:
            raise PolicyError("error: the function must take the items of a block and their weights") from None
        if not isinstance(cost, int | float | np.number) or not math.isfinite(cost) or cost < 0:
            raise PolicyError("error: the function must give a number that is finite and not negative")
        return float(cost)


def make_cost(error: ErrorChoice, names: tuple[str, ...], ground: Ground | None = None) -> BlockCost:
    """Choose a cost.

    Parameters
    ----------
    error
        None takes the distance where there is a ground, else NCP.
    names
        Labels of all items.
    ground
        Where the items are, if they are anywhere.
    """
    none = np.zeros(len(names), dtype=np.int64)
    if callable(error):
        return UserCost(error, names, none)
    if error == "ncp" or (error is None and ground is None):
        return NcpCost(len(names))
    if error not in (None, "distance"):
        raise PolicyError('error: must be "distance", "ncp" or a function of items and weights')
    if ground is None:
        raise PolicyError('error: "distance" needs shoal.Places, which know where things are; or take "ncp"')
    return DistanceCost(ground, none)
