"""A tree over values that come without one: neighbours in order share a parent."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from shoal.errors import PolicyError
from shoal.hierarchies.tree import ROOT_PARENT, Tree, is_label, plant

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,4000}")  # Python refuses to read longer ones
_BETWEEN = "…"


@dataclass(frozen=True, slots=True)
class _Node:
    label: str
    first: str
    last: str
    children: tuple[_Node, ...] = ()


def plant_balanced(labels: Iterable[str], fanout: int, root: str) -> Tree:
    """Groups of at most `fanout`, as equal as they can be, level by level up to the root."""
    leaves = _in_order(labels)
    _check(leaves, fanout, root)
    taken = {root, *leaves}
    level = [_Node(label, label, label) for label in leaves]
    while len(level) > fanout:
        level = [_joined(group, taken) for group in _groups(level, fanout)]
    return _planted(_Node(root, root, root, tuple(level)))


def _check(leaves: list[str], fanout: object, root: object) -> None:
    if not isinstance(fanout, int) or isinstance(fanout, bool) or fanout < 2:
        raise PolicyError("hierarchy: fanout must be a whole number of at least 2")
    if not is_label(root):
        raise PolicyError("hierarchy: root must be text that is not empty")
    if not leaves:
        raise PolicyError("hierarchy: a balanced one needs at least one label")
    if root in leaves:
        raise PolicyError("hierarchy: a label is the root's as well; give the root another one")


def _in_order(labels: Iterable[str]) -> list[str]:
    """Each label once; in the order of numbers if all are whole numbers."""
    listed = list(labels)
    if not all(map(is_label, listed)):
        raise PolicyError("hierarchy: every label must be text that is not empty")
    distinct = sorted(set(listed))
    return sorted(distinct, key=int) if all(map(_WHOLE_NUMBER.fullmatch, distinct)) else distinct


def _groups(level: list[_Node], fanout: int) -> list[list[_Node]]:
    count = -(-len(level) // fanout)
    cuts = [len(level) * place // count for place in range(count + 1)]
    return [level[cuts[place] : cuts[place + 1]] for place in range(count)]


def _joined(group: list[_Node], taken: set[str]) -> _Node:
    if len(group) == 1:  # a node above it alone would say nothing new
        return group[0]
    label = f"{group[0].first}{_BETWEEN}{group[-1].last}"
    while label in taken:
        label += _BETWEEN
    taken.add(label)
    return _Node(label, group[0].first, group[-1].last, tuple(group))


def _planted(top: _Node) -> Tree:
    labels: list[str] = []
    parents: list[int] = []
    todo = [(top, ROOT_PARENT)]
    while todo:
        node, parent = todo.pop()
        todo.extend((child, len(labels)) for child in node.children)
        labels.append(node.label)
        parents.append(parent)
    return plant(labels, parents)
