"""Normal quasi-identifiers as trees of labels: fixed cells for numbers, nodes of a hierarchy for values.

A row has one code per attribute: its finest cell or its leaf. The code determines all labels above it, coarsest first,
and the loss of each.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.hierarchies import Hierarchy
from shoal.kernels.flexible.layout import MISSING, SCALE
from shoal.methods.quasi_readers import NumericReader
from shoal.methods.schema_arrays import Leaves
from shoal.schema import Numeric, as_printed, grid_units, whole_units

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_CELLS: Final = 1024
"""Number of cells of a domain without a grid."""
_HOUR: Final = 3600.0
_ROUNDING: Final = 1e-9
_USUAL: Final = (1, 5, 15, 60, 300, 900, 3600, 7200, 14400, 28800, 86400, 604800, 2419200)
"""Familiar widths of time cells, in seconds."""


class Axis(ABC):
    """One attribute: its labels at every depth, and their losses."""

    lines: int
    """Number of depths, the coarsest included."""
    floor: int
    """The coarsest depth that may be published."""

    @abstractmethod
    def paths(self, codes: Ints) -> Ints:
        """Labels of rows by depth, coarsest first; MISSING throughout where the value is missing."""

    @abstractmethod
    def finest(self, codes: Ints) -> Ints:
        """The last line of the paths."""

    @abstractmethod
    def losses(self, codes: Ints) -> Ints:
        """The loss of each of these labels, in parts of SCALE, before weights."""

    def crowds(self, paths: Ints) -> Ints:
        """Number of people that labels need; 0 where it does not depend on this attribute."""
        return np.zeros_like(paths)

    @abstractmethod
    def publish(self, labels: Ints, kind: pa.DataType) -> pa.Array:
        """Labels as they are published."""


class TreeAxis(Axis):
    """Values that are leaves of a tree; a code is the number of a leaf.

    `crowds` is the number of people each leaf needs, and last a missing value; a label needs the largest number of any
    leaf under it. `unknown` is the label of unlisted values.
    """

    def __init__(
        self, tree: Hierarchy, *, with_root: bool, crowds: Ints | None = None, unknown: str | None = None
    ) -> None:
        leaves = Leaves(tree)
        depths = tree.depths.astype(np.int64)
        self.lines = int(depths.max()) + 1
        self.floor = 0 if with_root else min(1, self.lines - 1)
        self._paths = tree_paths(tree, leaves.node, self.lines)
        self._losses = np.rint(tree_losses(tree, unknown) * SCALE).astype(np.int64)
        self._labels = pa.array(tree.labels, type=pa.string())
        self._crowds = np.zeros(len(tree) + 1, dtype=np.int64)
        if crowds is not None:
            np.maximum.at(self._crowds, self._paths, np.tile(crowds[:-1], (self.lines, 1)))
            self._crowds[-1] = crowds[-1]  # of MISSING

    def paths(self, codes: Ints) -> Ints:
        found = self._paths[:, np.maximum(codes, 0)]
        found[:, codes == MISSING] = MISSING
        return found

    def finest(self, codes: Ints) -> Ints:
        found: Ints = np.where(codes == MISSING, MISSING, self._paths[-1][codes])
        return found

    def losses(self, codes: Ints) -> Ints:
        found: Ints = self._losses[self._paths[:, np.maximum(codes, 0)]]
        found[:, codes == MISSING] = 0
        return found

    def crowds(self, paths: Ints) -> Ints:
        found: Ints = self._crowds[paths]
        return found

    def publish(self, labels: Ints, kind: pa.DataType) -> pa.Array:
        is_missing = labels == MISSING
        return self._labels.take(pa.array(np.where(is_missing, 0, labels), mask=is_missing))


def tree_losses(tree: Hierarchy, unknown: str | None) -> Floats:
    """The loss of each label: its share of the listed values; 1 for the label of unlisted values."""
    counts = tree.leaf_counts.astype(np.int64)
    counts[0] -= unknown is not None
    losses: Floats = (counts - 1) / max(int(counts[0]) - 1, 1)
    if unknown is not None:
        losses[tree.node_of(unknown)] = 1.0
    return losses


def tree_paths(tree: Hierarchy, leaf_nodes: Ints, lines: int) -> Ints:
    """Nodes above each leaf by depth; a leaf less deep than others is repeated below itself."""
    parents, depths = tree.parents.astype(np.int64), tree.depths.astype(np.int64)
    paths = np.tile(leaf_nodes, (lines, 1))
    node = leaf_nodes.copy()
    for depth in range(lines - 1, 0, -1):
        paths[depth] = np.where(depths[node] <= depth, node, paths[depth])
        node = np.where(depths[node] == depth, parents[node], node)
    paths[0] = 0
    return paths


class GridAxis(Axis):
    """Numbers and moments in cells counted from the low end of the domain; a code is the number of a finest cell."""

    def __init__(self, role: Numeric, *, is_moment: bool, with_root: bool) -> None:
        span = role.high - role.low
        self._role = role
        self._grid = float(role.grid or (min(_HOUR, span) if is_moment else span / _CELLS))
        self.cells = _cell_count(role, self._grid)
        self._end = _points(role, self._grid, self.cells)
        self._factors = _factors(self._grid, self.cells, is_moment=is_moment)
        self.lines = len(self._factors)
        self.floor = 0 if with_root else min(1, self.lines - 1)
        counts = [-(-self.cells // factor) for factor in self._factors]
        self._firsts = np.concatenate(([0], np.cumsum(counts)))[:-1].astype(np.int64)

    def cells_of(self, raws: Floats) -> Ints:
        """Numbers of the cells that contain the values, MISSING for NaN."""
        is_missing = np.isnan(raws)
        values = np.where(is_missing, self._role.low, raws)
        cells = np.floor((values - self._role.low) / self._grid).astype(np.int64)
        # The published ends of cells decide, not the quotient, which is rounded.
        cells -= values < self._end(cells)
        cells += values >= self._end(cells + 1)
        cells = np.clip(cells, 0, self.cells - 1)
        cells[is_missing] = MISSING
        return cells

    @property
    def grid(self) -> float:
        """The width of a finest cell."""
        return self._grid

    def paths(self, codes: Ints) -> Ints:
        found = np.stack([first + codes // factor for first, factor in zip(self._firsts, self._factors, strict=True)])
        found[:, codes == MISSING] = MISSING
        return found

    def finest(self, codes: Ints) -> Ints:
        found: Ints = np.where(codes == MISSING, MISSING, self._firsts[-1] + codes)
        return found

    def losses(self, codes: Ints) -> Ints:
        low, high = self._ends(self.paths(codes))
        found: Ints = np.rint((high - low) / (self._role.high - self._role.low) * SCALE).astype(np.int64)
        found[:, codes == MISSING] = 0
        return found

    def _ends(self, labels: Ints) -> tuple[Floats, Floats]:
        depth = np.searchsorted(self._firsts, np.maximum(labels, 0), side="right") - 1
        factors = np.array(self._factors, dtype=np.int64)[depth]
        first = (np.maximum(labels, 0) - self._firsts[depth]) * factors
        high: Floats = np.where(first + factors < self.cells, self._end(first + factors), np.float64(self._role.high))
        return self._end(first), high

    def publish(self, labels: Ints, kind: pa.DataType) -> pa.Array:
        low, high = self._ends(labels)
        if pa.types.is_integer(kind.field(0).type):
            # The end of a cell belongs to the next one, except at the end of the domain.
            high = np.where(high < self._role.high, np.ceil(high) - 1, high)
        reader = NumericReader(self._role)
        return reader.publish(low, high, labels, labels == MISSING, kind)


def _points(role: Numeric, grid: float, cells: int) -> Callable[[Ints], Floats]:
    """The grid point at the low end of each cell: the float nearest to the exact multiple."""
    low, high = as_printed(role.low), as_printed(role.high)
    is_cut = role.grid is None and grid == (role.high - role.low) / _CELLS
    width = (high - low) / _CELLS if is_cut else as_printed(grid)
    units = grid_units(role.low, role.high, role.grid) if role.grid else whole_units(low, width, high)
    if units is not None:
        unit, first, step = (np.float64(number) for number in units)
        return lambda numbers: (first + numbers * step) / unit
    table = np.array([float(low + number * width) for number in range(-1, cells + 2)])
    return lambda numbers: table[np.minimum(numbers, cells) + 1]


def _cell_count(role: Numeric, grid: float) -> int:
    """Number of cells of the domain; a cell as narrow as a rounding error does not count."""
    steps = (role.high - role.low) / grid
    error = _ROUNDING * max(1.0, steps) + 4 * math.ulp(max(abs(role.low), abs(role.high))) / grid
    whole = round(steps)
    return max(1, whole if abs(steps - whole) <= error else math.ceil(steps))


def _factors(grid: float, cells: int, *, is_moment: bool) -> list[int]:
    """Finest cells per cell by depth, from the whole domain down to one; each is a multiple of the next."""
    found = [1]
    for width in _USUAL if is_moment else ():
        factor = width / as_printed(grid)
        if found[-1] < factor < cells and factor % found[-1] == 0:
            found.append(int(factor))
    while found[-1] * 2 < cells:
        found.append(found[-1] * 2)
    return ([cells] if cells > 1 else []) + found[::-1]


def stacked(axes: list[Axis], codes: Ints, weights: Floats) -> tuple[Ints, Ints, Ints, Ints]:
    """Paths, weighted losses and crowds of rows by attribute and depth, and the first line of each attribute."""
    first = np.concatenate(([0], np.cumsum([axis.lines for axis in axes]))).astype(np.int64)
    paths, losses, crowds = (np.zeros((int(first[-1]), codes.shape[1]), np.int64) for _ in range(3))
    for a, axis in enumerate(axes):
        lines = slice(int(first[a]), int(first[a + 1]))
        paths[lines] = axis.paths(codes[a])
        losses[lines] = np.rint(axis.losses(codes[a]) * weights[a])
        crowds[lines] = axis.crowds(paths[lines])
    return paths, losses, crowds, first


def is_moment_type(kind: Any) -> bool:
    """Whether a column of this type holds moments."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))
