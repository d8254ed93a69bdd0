"""Form groups among pending rows: codes to arrays, through the kernel, to labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.kernels.flexible.groups import NO_ENTRY, NONE, join_groups
from shoal.kernels.flexible.labels import END, Desk
from shoal.kernels.flexible.rounds import FULL, Nodes, Parting, Pending, form_groups
from shoal.methods.flexible.axes import Axis, GridAxis, TreeAxis, is_moment_type, stacked
from shoal.methods.flexible.calibration import Calibration
from shoal.methods.flexible.group_table import GroupTable
from shoal.methods.flexible.reader import are_unknown
from shoal.methods.flexible.settings import FlexibleSettings
from shoal.methods.flexible.sparse_labels import LabelSet, SparseLabels
from shoal.methods.schema_arrays import Leaves
from shoal.schema import Numeric

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Grouped:
    """Rows that may be published, with their labels, group and loss."""

    positions: Ints
    """Where they stood among the rows considered."""
    normal: Ints
    """By normal attribute and row: the code of its label."""
    sparse: Ints
    """By sparse attribute and row: its label."""
    groups: Ints
    losses: Ints
    crowds: Ints
    """Number of people each row's block needs."""

    def ordered(self, order: Ints) -> Grouped:
        """The same rows in another order."""
        return Grouped(
            self.positions[order], self.normal[:, order], self.sparse[:, order], self.groups[order],
            self.losses[order], self.crowds[order],
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
        self._criteria = settings.criteria
        self.table = GroupTable(len(quasi), seed, remember=settings.remember, criteria=settings.criteria)

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
        losses = np.zeros(len(found), dtype=np.int64)
        for axis, one, weight in zip(self._axes, normal, self._weights, strict=True):
            losses += np.rint(axis.losses(one[found])[-1] * weight).astype(np.int64)
        numbers = groups.numbers[joined[found]]
        return Grouped(found, finest[:, found], values[:, found], numbers, losses, crowds[found])

    def _nothing(self) -> Grouped:
        none = np.empty(0, dtype=np.int64)
        normal, sparse = (np.empty((len(columns), 0), np.int64) for columns in (self._normal, self._sparse))
        return Grouped(none, normal, sparse, none, none, none)

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

    # ---- a round

    def form(self, codes: Ints, persons: Ints) -> Grouped:
        """Form groups among pending rows; `persons` are numbers from 0."""
        count = codes.shape[1]
        if not count:
            return self._nothing()
        pending = self._pending(self._leaf_codes(codes), persons)
        order, tops = _tops(pending.paths[pending.first[:-1] + pending.floors])
        self.table.reserve((1 + len(self._sparse)) * count)
        desk, room = self._desk(count, int(persons.max()) + 1), np.empty(count, np.int64)
        capacity = 2 * count + len(tops)
        while True:
            nodes, parting = _nodes(capacity, len(self._normal)), _parting(order, len(self._normal))
            left = form_groups(
                self.table.groups, self.labels.arrays, pending, desk, nodes, parting, room, tops, self._criteria
            )
            if left != FULL:
                break
            capacity *= 2
        found = self._grouped(pending, desk, nodes, parting)
        self.table.forget()
        return found

    def _pending(self, codes: Ints, persons: Ints) -> Pending:
        paths, losses, crowds, first = stacked(self._axes, self._normal_codes(codes), self._weights)
        floors = np.array([axis.floor for axis in self._axes], dtype=np.int64)
        values = self.labels.values_of(codes[self._sparse])
        least = np.array([self._least], dtype=np.int64)
        return Pending(paths, losses, first, floors, values, persons, crowds, least)

    def _desk(self, count: int, people: int) -> Desk:
        labels, deep = len(self.labels.arrays.rank), len(self._sparse)
        pairs = count * self.labels.widest
        longest = max(count, labels)
        return Desk(
            block=np.empty(count, np.int64), seen=np.zeros(people, np.int64), tick=np.zeros(1, np.int64),
            heads=np.full(labels, END, np.int64), pair_rows=np.empty(pairs, np.int64),
            pair_next=np.empty(pairs, np.int64), present=np.empty(labels, np.int64),
            given=np.full((deep, count), NONE, np.int64), common=np.zeros((deep, count), np.int64),
            sort_keys=np.empty((2, longest), np.int64), sort_rows=np.empty((2, longest), np.int64),
            shown=np.empty(self._criteria, np.int64), bounds=np.empty((2, count + 1), np.int64),
            key=np.full(len(self._normal) + deep, NONE, np.int64),
        )  # fmt: skip

    def _grouped(self, pending: Pending, desk: Desk, nodes: Nodes, parting: Parting) -> Grouped:
        positions = np.flatnonzero(parting.node_of >= 0)
        lines = pending.first[:-1, None] + nodes.depths[parting.node_of[positions]].T
        normal, sparse = pending.paths[lines, positions], desk.given[:, positions]
        losses = pending.losses[lines, positions].sum(axis=0) + self.labels.arrays.loss[sparse].sum(axis=0)
        groups = self.table.groups.numbers[parting.group_of[positions]]
        crowds = np.maximum(pending.crowds[lines, positions].max(axis=0, initial=0), self._least)
        return Grouped(positions, normal, sparse, groups, losses, crowds)

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


def _nodes(capacity: int, wide: int) -> Nodes:
    ints = [np.empty(capacity, np.int64) for _ in range(4)]
    return Nodes(np.empty((capacity, wide), np.int64), *ints)


def _parting(order: Ints, wide: int) -> Parting:
    count = len(order)
    return Parting(
        order=order.copy(), ends=np.empty(count, np.int64), fits=np.empty(count, np.bool_),
        rest=np.empty(count, np.int64), done=np.empty(wide, np.bool_), next_passed=np.full(count, END, np.int64),
        node_of=np.full(count, -1, np.int64), group_of=np.full(count, NO_ENTRY, np.int64),
        depth=np.empty(wide, np.int64),
    )  # fmt: skip
