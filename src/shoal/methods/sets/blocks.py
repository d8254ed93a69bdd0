"""What partitions of every kind keep: which block an item is in, and what the blocks cost."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shoal.methods.sets.errors import BlockCost

IntArray = npt.NDArray[np.int32]


class Blocks:
    """The state that does not depend on how blocks may be joined."""

    _cost: BlockCost
    _costs: npt.NDArray[np.float64]
    _blocks_left: int

    @property
    def block_of(self) -> IntArray:
        """Block number of every item; a read-only view that follows every merge."""
        return self._seen

    @property
    def blocks_left(self) -> int:
        """How many blocks there are."""
        return self._blocks_left

    @property
    def error(self) -> float:
        """Costs of all blocks over the sum of all weights."""
        return float(self._costs.sum()) / self._divisor

    def _set_weights(self, weights: npt.ArrayLike, count: int) -> None:
        checked = np.array(weights, dtype=np.int64)
        if checked.shape != (count,) or (checked < 0).any():
            raise ValueError("weights: one number that is not negative for every item")
        self._weights = checked
        self._cost = self._cost.weighted(checked)
        self._divisor = self._cost.divisor * max(1, int(checked.sum()))

    def _set_blocks(self, block_of: IntArray) -> None:
        self._block_of = block_of
        self._seen = block_of.view()
        self._seen.flags.writeable = False
