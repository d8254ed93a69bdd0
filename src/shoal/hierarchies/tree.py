"""A closed tree as arrays in canonical order, with depths and leaf counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.errors import PolicyError

IntArray = NDArray[np.int32]
ROOT_PARENT = -1


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Node 0 is the root and every parent comes before its children.

    Nodes are in preorder with children sorted by label, so ids depend on the tree alone and not on the order of the
    lines or keys it was read from, and the descendants of ``n`` are one run of ids after ``n``.
    """

    labels: tuple[str, ...]
    parents: IntArray
    depths: IntArray
    leaf_counts: IntArray

    def path(self, node: int) -> tuple[str, ...]:
        """Labels from a node up to the root."""
        steps = []
        while node != ROOT_PARENT:
            steps.append(self.labels[node])
            node = int(self.parents[node])
        return tuple(steps)


def plant(labels: Sequence[str], parents: Sequence[int]) -> Tree:
    """Make a tree of distinct labels; `parents` are positions in `labels`, each before its children."""
    try:
        "\n".join(labels).encode()
    except UnicodeEncodeError:
        raise PolicyError("hierarchy: a label is not valid Unicode; write it as UTF-8") from None
    order = _preorder(labels, parents)
    place = [0] * len(order)
    for new, old in enumerate(order):
        place[old] = new
    moved = [ROOT_PARENT] + [place[parents[old]] for old in order[1:]]
    return Tree(
        labels=tuple(labels[old] for old in order),
        parents=_frozen(moved),
        depths=_frozen(_depths(moved)),
        leaf_counts=_frozen(_leaf_counts(moved)),
    )


def plant_again(labels: list[Any], parents: list[Any]) -> Tree:
    """Make a tree of labels and parents that were written out; they may have been altered since."""
    is_sound = (
        bool(labels)
        and len(labels) == len(parents) == len(set(labels))
        and all(map(is_label, labels))
        and parents[0] == ROOT_PARENT
        and all(isinstance(parent, int) and 0 <= parent < node for node, parent in enumerate(parents) if node)
    )
    if not is_sound:
        raise PolicyError("hierarchy: labels and parents do not make a tree; write it again")
    return plant(labels, parents)


def empty_tree() -> Tree:
    """The tree of an open hierarchy, which has no nodes."""
    return Tree(labels=(), parents=_frozen([]), depths=_frozen([]), leaf_counts=_frozen([]))


def is_label(label: object) -> bool:
    """Whether this is text that is not blank."""
    return isinstance(label, str) and bool(label.strip())


def _preorder(labels: Sequence[str], parents: Sequence[int]) -> list[int]:
    children: list[list[int]] = [[] for _ in labels]
    for node in range(1, len(labels)):
        children[parents[node]].append(node)
    order: list[int] = []
    stack = [0]
    while stack:  # not recursive: a chain may be deeper than Python's stack
        node = stack.pop()
        order.append(node)
        stack.extend(sorted(children[node], key=labels.__getitem__, reverse=True))
    return order


def _depths(parents: list[int]) -> list[int]:
    depths = [0] * len(parents)
    for node in range(1, len(parents)):
        depths[node] = depths[parents[node]] + 1
    return depths


def _leaf_counts(parents: list[int]) -> list[int]:
    counts = [0] * len(parents)
    for node in range(len(parents) - 1, 0, -1):
        counts[node] = counts[node] or 1
        counts[parents[node]] += counts[node]
    counts[0] = counts[0] or 1
    return counts


def _frozen(numbers: list[int]) -> IntArray:
    array = np.array(numbers, dtype=np.int32)
    array.flags.writeable = False
    return array
