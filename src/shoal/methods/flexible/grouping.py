"""Form groups among pending rows: codes to arrays, through the kernel, to labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.kernels.flexible.groups import NO_ENTRY, join_groups
from shoal.kernels.flexible.layout import Blocks, Pending, Published
from shoal.kernels.flexible.rounds import FULL, form_groups
from shoal.methods.flexible.axes import Axis, GridAxis, TreeAxis, is_moment_type, stacked
from shoal.methods.flexible.calibration import Calibration
from shoal.methods.flexible.group_table import GroupTable
from shoal.methods.flexible.reader import are_unknown
from shoal.methods.flexible.round_space import RoundSpace
from shoal.methods.flexible.settings import FlexibleSettings
from shoal.methods.flexible.sparse_labels import LabelSet, SparseLabels
from shoal.methods.schema_arrays import Leaves
from shoal.schema import Numeric

Ints = npt.NDArray[np.int64]
_SPACE: Final = 16
_FIRST_SPACE: Final = 128
_LARGEST_SPACE: Final = 1 << 23
"""Space for candidates: a multiple of the pending rows, doubled up to a limit; untouched memory costs nothing."""


@dataclass(frozen=True, slots=True)
class Grouped:
    """Rows that may be published, with their labels and groups."""

    positions: Ints
    """Where they stood among the rows considered."""
    normal: Ints
    """By normal attribute and row: the code of its label."""
    sparse: Ints
    """By sparse attribute and row: its label."""
    groups: Ints
    lost: Ints
    """By attribute of the schema: the sum of the weighted losses of these rows, in parts of SCALE."""
    crowds: Ints
    """Number of people each row's block needs."""

    def ordered(self, order: Ints) -> Grouped:
        """The same rows in another order."""
        return Grouped(
            self.positions[order], self.normal[:, order], self.sparse[:, order], self.groups[order], self.lost,
            self.crowds[order],
        )  # fmt: skip


class Grouping:
    """The normal attributes as axes, the sparse ones as labels, and the groups published so far."""

    def __init__(
        self, settings: FlexibleSettings, calibration: Calibration, types: pa.Schema, seed: npt.NDArray[np.uint64],
        *, density: Mapping[int, Ints], unknown: Mapping[int, int],
    ) -> None:  # fmt: skip
        quasi = settings.schema.quasi
        self.calibration = calibration
        self._sparse = [a for a, role in enumerate(quasi) if role.name in calibration.sparse]
        self._normal = [a for a in range(len(quasi)) if a not in self._sparse]
        weights = np.array([role.weight for role in quasi], dtype=np.float64)
        weights /= weights.sum()
        self._weights = weights[self._normal]
        self._unknown = unknown
        self._reorder = {
            a: _tree_order(settings, quasi[a].name) for a in self._normal if quasi[a].name in settings.concepts
        }
        self._axes = [self._axis(settings, a, types, density.get(a)) for a in self._normal]
        # Where k depends on a sparse column, the labels of a block do not determine it: use the largest.
        sparse = [int(table.max()) for a, table in density.items() if a in self._sparse]
        is_by_label = any(a in density for a in self._normal)
        self._least = max([*sparse, 0 if is_by_label else settings.k])
        sets = [_label_set(settings, quasi[a].name) for a in self._sparse]
        self.labels = SparseLabels(sets, weights[self._sparse], calibration.by_crowd(), with_root=settings.root)
        self.table = GroupTable(len(quasi), seed, remember=settings.remember)
        self._space = RoundSpace(len(self.labels.arrays.rank), len(self._normal), len(self._sparse))
        self._published: set[tuple[int, ...]] = set()
        """The depths of all published blocks."""

    def _axis(self, settings: FlexibleSettings, a: int, types: pa.Schema, crowds: Ints | None) -> Axis:
        role = settings.schema.quasi[a]
        if isinstance(role, Numeric):
            is_moment = is_moment_type(types.field(role.name).type)
            return GridAxis(role, is_moment=is_moment, with_root=settings.root)
        if crowds is not None and a in self._reorder:
            by_leaf = np.empty_like(crowds)
            by_leaf[self._reorder[a]] = crowds  # the last entry, for a missing value, stays last
            crowds = by_leaf
        unknown = settings.unknown_label(role.name)
        return TreeAxis(settings.tree_of(role.name), with_root=settings.root, crowds=crowds, unknown=unknown)

    # ---- rows that may be published at once

    def join(self, codes: Ints) -> Grouped:
        """Rows whose finest labels and own values are already published."""
        if not len(self.table):
            return self._nothing()
        codes = self._leaf_codes(codes)
        normal, values = self._normal_codes(codes), self.labels.values_of(codes[self._sparse])
        finest = np.empty_like(normal)
        crowds = np.full(codes.shape[1], self._least, dtype=np.int64)
        for line, axis in enumerate(self._axes):
            finest[line] = axis.finest(normal[line])
            crowds = np.maximum(crowds, axis.crowds(finest[line]))
        joined, key = np.empty(codes.shape[1], np.int64), np.empty(len(codes), np.int64)
        groups = self.table.groups
        join_groups(groups, finest, values, crowds, self.labels.arrays.k_s, key, joined)
        found = np.flatnonzero(joined != NO_ENTRY)
        if not len(found):
            return self._nothing()
        lost = np.zeros(len(codes), dtype=np.int64)
        for a, axis, one, weight in zip(self._normal, self._axes, normal, self._weights, strict=True):
            lost[a] = np.rint(axis.losses(one[found])[-1] * weight).astype(np.int64).sum()
        lost[self._sparse] = self.labels.arrays.loss[values[:, found]].sum(axis=1)
        numbers = groups.numbers[joined[found]]
        return Grouped(found, finest[:, found], values[:, found], numbers, lost, crowds[found])

    def _nothing(self) -> Grouped:
        none = np.empty(0, dtype=np.int64)
        normal, sparse = (np.empty((len(columns), 0), np.int64) for columns in (self._normal, self._sparse))
        lost = np.zeros(len(self._normal) + len(self._sparse), np.int64)
        return Grouped(none, normal, sparse, none, lost, none)

    def _leaf_codes(self, codes: Ints) -> Ints:
        """The same codes, with the code of one leaf for all unlisted values."""
        found = codes.copy()
        for a, leaf in self._unknown.items():
            found[a, are_unknown(codes[a])] = leaf
        return found

    def _normal_codes(self, codes: Ints) -> Ints:
        """Codes of the normal attributes; values of an ontology become leaves of its tree."""
        found = codes[self._normal]
        for line, a in enumerate(self._normal):
            if a in self._reorder:
                found[line] = self._reorder[a][found[line]]
        return found

    def normal_paths(self, codes: Ints) -> list[tuple[Ints, Ints]]:
        """For each normal attribute the codes of rows, along which neighbours are near, and their labels by depth."""
        lines = self._normal_codes(self._leaf_codes(codes))
        return [(line, axis.paths(line)) for line, axis in zip(lines, self._axes, strict=True)]

    # ---- a round

    def form(self, codes: Ints, persons: Ints) -> Grouped:
        """Form groups among pending rows; `persons` are numbers from 0."""
        count = codes.shape[1]
        if not count:
            return self._nothing()
        pending = self._pending(self._leaf_codes(codes), persons)
        order, tops = _tops(pending.paths[pending.first[:-1] + pending.floors])
        top_of = np.empty(count, np.int64)
        top_of[order] = np.searchsorted(tops, np.arange(count), side="right")
        self.table.reserve((1 + len(self._sparse)) * count)
        space, largest = _FIRST_SPACE * count, max(_LARGEST_SPACE, _SPACE * count)
        while space > largest:
            space //= 2
        while True:
            made = self._space.arrays(count, int(persons.max()) + 1, space)
            published = form_groups(
                self.table.groups, self.labels.arrays, pending, *made, order, tops, top_of, self._vectors(),
                2 * space <= largest,
            )  # fmt: skip
            if published != FULL:
                break
            self._space.clean(made[3])
            space *= 2
        self._space.clean(made[3])
        found = self._grouped(pending, made[1], made[-1])
        self.table.forget()
        return found

    def _pending(self, codes: Ints, persons: Ints) -> Pending:
        paths, losses, crowds, first = stacked(self._axes, self._normal_codes(codes), self._weights)
        floors = np.array([axis.floor for axis in self._axes], dtype=np.int64)
        values = self.labels.values_of(codes[self._sparse])
        least = np.array([self._least, min(self.calibration.k_s)], dtype=np.int64)
        return Pending(paths, losses, first, floors, values, persons, crowds, least)

    def _vectors(self) -> Ints:
        """The depths of all published blocks."""
        return np.array(sorted(self._published), dtype=np.int64).reshape(-1, len(self._normal))

    def _grouped(self, pending: Pending, blocks: Blocks, published: Published) -> Grouped:
        positions = np.flatnonzero(published.block_of >= 0)
        depths = blocks.depths[published.block_of[positions]]
        self._published |= set(map(tuple, np.unique(depths, axis=0).tolist()))
        lines = pending.first[:-1, None] + depths.T
        normal, sparse = pending.paths[lines, positions], published.given[:, positions]
        lost = np.zeros(len(self._normal) + len(self._sparse), np.int64)
        lost[self._normal] = pending.losses[lines, positions].sum(axis=1)
        lost[self._sparse] = self.labels.arrays.loss[sparse].sum(axis=1)
        groups = self.table.groups.numbers[published.group_of[positions]]
        crowds = np.maximum(pending.crowds[lines, positions].max(axis=0, initial=0), self._least)
        return Grouped(positions, normal, sparse, groups, lost, crowds)

    # ---- state

    def dump(self) -> dict[str, npt.NDArray[Any]]:
        """The published groups as named arrays."""
        return {**self.table.dump(), "depths": self._vectors()}

    def load(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Load the arrays that dump() returned."""
        self.table.load(arrays)
        self._published = set(map(tuple, arrays["depths"].tolist()))

    # ---- output

    def columns(self, grouped: Grouped, kinds: Sequence[pa.DataType]) -> list[pa.Array]:
        """The published quasi-identifiers of rows, in the order of the schema."""
        found: dict[int, pa.Array] = {}
        for line, a in enumerate(self._normal):
            found[a] = self._axes[line].publish(grouped.normal[line], kinds[a])
        for line, a in enumerate(self._sparse):
            found[a] = self.labels.publish(line, grouped.sparse[line])
        return [found[a] for a in range(len(found))]


def _tree_order(settings: FlexibleSettings, column: str) -> Ints:
    """The leaf of each value of an ontology in its tree; the last entry is for a missing value."""
    concepts = settings.concepts_of(column)
    ranks = Leaves(concepts.tree()).ranks
    return np.array([*(ranks[value] for value in concepts.values), -1], dtype=np.int64)


def _label_set(settings: FlexibleSettings, column: str) -> LabelSet:
    unknown = settings.unknown_label(column)
    if column in settings.concepts:
        return LabelSet.of_concepts(settings.concepts_of(column), unknown=unknown)
    return LabelSet.of_tree(settings.tree_of(column), unknown=unknown)


def _tops(coarsest: Ints) -> tuple[Ints, Ints]:
    """Rows sorted by their coarsest labels (stable), and where runs of equal labels end."""
    count = coarsest.shape[1]
    order = np.lexsort(coarsest[::-1]) if len(coarsest) else np.arange(count)
    changes = (np.diff(coarsest[:, order], axis=1) != 0).any(axis=0)
    return order.astype(np.int64), np.append(np.flatnonzero(changes) + 1, count).astype(np.int64)
