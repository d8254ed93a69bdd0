"""What leaves of quasi-identifiers: made once a cluster; rows take theirs by its place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.methods.quasi_readers import Bools, Ints, Reader
from shoal.methods.tuples.state import Decided


class Shown:
    """What clusters show, attribute by attribute, and after the clusters the whole domain."""

    def __init__(self, decided: Decided, readers: Sequence[Reader], places: Ints) -> None:
        self._readers = readers
        low, high, node = zip(*(reader.root() for reader in readers), strict=True)
        self._low, self._high = _with_last(decided.low, low), _with_last(decided.high, high)
        self._node = _with_last(decided.node, node)
        self._hidden = _with_last(decided.shown == 0, [False] * len(readers))
        self._domain = len(decided.numbers)
        self._rows = np.where(places < 0, self._domain, places)

    def column(self, a: int, kind: pa.DataType, lacks: Bools | None = None) -> pa.Array:
        """An attribute as it leaves, a value a row; none where the row lacks it and is of a cluster."""
        made = self._readers[a].publish(self._low[a], self._high[a], self._node[a], self._hidden[a], kind)
        mask = None if lacks is None else lacks & (self._rows < self._domain)
        return made.take(pa.array(self._rows, mask=mask))


def _with_last(rows: npt.NDArray[np.generic], last: Sequence[object]) -> npt.NDArray[np.generic]:
    """Rows and one more, turned so that each column of theirs lies in one piece."""
    whole = np.empty((rows.shape[1], len(rows) + 1), dtype=rows.dtype)
    whole[:, :-1] = rows.T
    whole[:, -1] = last
    return whole
