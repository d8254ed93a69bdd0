"""What every partition of items into blocks offers to a search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True, order=True)
class Move:
    """Several blocks become one. Moves compare by what they cost: the least one is the one to take.

    Attributes
    ----------
    rise
        By how much the error of the whole partition grows; below 0 where it shrinks.
    size
        Items in the joined block.
    name
        Label of the joined block.
    blocks
        Numbers of the blocks joined, rising.
    """

    rise: float
    size: int
    name: str
    blocks: tuple[int, ...]


class Partition(Protocol):
    """Items in blocks that can only grow.

    An item's number is its place in `names`; a block's number is the least number of its items. The same calls
    give the same answers in every process.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Labels of all items, sorted."""

    @property
    def block_of(self) -> npt.NDArray[np.int32]:
        """Block number of every item; a read-only view that follows every merge."""

    @property
    def blocks_left(self) -> int:
        """How many blocks there are."""

    @property
    def error(self) -> float:
        """Costs of all blocks over the sum of all weights."""

    def start(self, weights: npt.NDArray[np.int64]) -> None:
        """Put every item into a block of its own again; `weights` says how many people have each item."""

    def reweigh(self, weights: npt.NDArray[np.int64]) -> None:
        """Take other weights for the blocks as they stand."""

    def moves(self, blocks: Sequence[int]) -> list[Move]:
        """List the smallest strictly coarser partitions that change one of these blocks, the least first."""

    def merge(self, move: Move) -> int:
        """Do a move of this very state; return the number of the joined block, the least of those joined."""

    def copy(self) -> Self:
        """Make a partition in the same state that goes its own way."""

    def label(self, block: int) -> str:
        """What the block is published as; no two blocks share a label."""

    def members(self, block: int) -> tuple[int, ...]:
        """Numbers of the items in a block, rising."""


def in_order(moves: Iterable[Move]) -> list[Move]:
    """Sort moves, the least first; by tuples, as comparing them one by one is slow."""
    return sorted(moves, key=lambda move: (move.rise, move.size, move.name, move.blocks))


def stale_move() -> ValueError:
    """Make the error for a move that was listed before something else was merged."""
    return ValueError("the move does not fit the partition as it stands; list the moves again")
