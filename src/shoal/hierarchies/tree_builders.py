"""Build trees from nested tables, from level files, and from values that come without a tree."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from shoal.errors import PolicyError
from shoal.hierarchies.text_files import csv_lines, decode, read_bytes
from shoal.hierarchies.tree import ROOT_PARENT, Tree, is_label, plant

_NO_LABEL: Final = "hierarchy: every label must be text that is not empty"

# ---- nested tables


def plant_nested(nested: Mapping[str, Any]) -> Tree:
    """Read ``{"all": {"news": {"a.example": None}, "shop": ["b.example"]}}``."""
    if not isinstance(nested, Mapping) or len(nested) != 1:
        raise PolicyError("hierarchy: a nested one has exactly one root; put everything under one label")
    labels: list[str] = []
    parents: list[int] = []
    known: set[str] = set()
    todo: list[tuple[str, Any, int]] = [(*entry, ROOT_PARENT) for entry in nested.items()]
    while todo:
        label, below, parent = todo.pop()
        if not is_label(label):
            raise PolicyError(_NO_LABEL)
        if label in known:
            raise PolicyError(f"hierarchy: the label {label!r} appears in two places; rename one of them")
        known.add(label)
        labels.append(label)
        parents.append(parent)
        todo.extend((child, content, len(labels) - 1) for child, content in _children(label, below))
    return plant(labels, parents)


def _children(label: str, below: Any) -> Iterator[tuple[Any, Any]]:
    if below is None:
        return iter(())
    if isinstance(below, Mapping):
        return iter(below.items())
    if isinstance(below, list | tuple):
        return ((leaf, None) for leaf in below)
    raise PolicyError(f"hierarchy: the label {label!r} must contain a table of labels, a list of leaves, or nothing")


# ---- values without a tree

_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,4000}")  # Python refuses to read longer ones
_BETWEEN: Final = "…"


class _Node(NamedTuple):
    label: str
    first: str
    last: str
    children: tuple[_Node, ...] = ()


def plant_balanced(labels: Iterable[str], fanout: int, root: str) -> Tree:
    """Groups of at most `fanout`, as equal as possible, level by level up to the root."""
    leaves = _sorted_labels(labels)
    if not isinstance(fanout, int) or isinstance(fanout, bool) or fanout < 2:
        raise PolicyError("hierarchy: fanout must be a whole number of at least 2")
    if not is_label(root):
        raise PolicyError("hierarchy: root must be text that is not empty")
    if not leaves:
        raise PolicyError("hierarchy: a balanced one needs at least one label")
    if root in leaves:
        raise PolicyError("hierarchy: a label equals the root; give the root another label")
    taken = {root, *leaves}
    level = [_Node(label, label, label) for label in leaves]
    while len(level) > fanout:
        count = -(-len(level) // fanout)
        cuts = [len(level) * group // count for group in range(count + 1)]
        level = [_grouped(level[cuts[group] : cuts[group + 1]], taken) for group in range(count)]
    found: list[str] = []
    parents: list[int] = []
    todo = [(_Node(root, root, root, tuple(level)), ROOT_PARENT)]
    while todo:
        node, parent = todo.pop()
        todo.extend((child, len(found)) for child in node.children)
        found.append(node.label)
        parents.append(parent)
    return plant(found, parents)


def _sorted_labels(labels: Iterable[str]) -> list[str]:
    """Each label once; in numeric order if all are whole numbers."""
    listed = list(labels)
    if not all(map(is_label, listed)):
        raise PolicyError(_NO_LABEL)
    distinct = sorted(set(listed))
    return sorted(distinct, key=int) if all(map(_WHOLE_NUMBER.fullmatch, distinct)) else distinct


def _grouped(group: list[_Node], taken: set[str]) -> _Node:
    if len(group) == 1:  # a parent with a single child adds nothing
        return group[0]
    label = f"{group[0].first}{_BETWEEN}{group[-1].last}"
    while label in taken:
        label += _BETWEEN
    taken.add(label)
    return _Node(label, group[0].first, group[-1].last, tuple(group))


# ---- level files: ``leaf;level 1;…;root`` per line, as ARX and anjana write them

Line = tuple[int, list[str]]
_MOST_PROBLEMS: Final = 20
_LONGEST_LABEL: Final = 100_000


def plant_levels(path: Path, *, separator: str | None = None, header: bool | None = None) -> Tree:
    """Read a level file; every problem names the file and the line."""
    if separator is not None and (not isinstance(separator, str) or len(separator) != 1):
        raise PolicyError("hierarchy: sep must be one character")
    text = decode(read_bytes(path), path.name)
    found = csv_lines(text, path.name, separator or _separator(text))
    lines = [(number, cells) for number, cells in found if len(cells) > 1 or cells[0].strip()]
    if header or (header is None and _has_header(lines)):
        lines = lines[1:]
    if not lines:
        raise PolicyError(f"{path.name}: has no labels; write one line per leaf, from the leaf to the root")
    tree = _LevelTree(path.name, root=lines[0][1][-1], first_line=lines[0][0])
    for number, cells in lines:
        tree.add(number, cells)
    if tree.problems:
        raise PolicyError(tree.problems)
    return plant(tree.labels, tree.parents)


class _LevelTree:
    """A tree that grows line by line and remembers the line in which each label first appeared."""

    def __init__(self, name: str, *, root: str, first_line: int) -> None:
        self.name = name
        self.labels = [root]
        self.parents = [ROOT_PARENT]
        self.problems: list[str] = []
        self._ids = {root: 0}
        self._first_lines = [first_line]
        self._node_of_path: dict[tuple[str, ...], int] = {(): 0}

    def add(self, number: int, cells: list[str]) -> None:
        problem = self._shape_problem(cells) or self._grow(number, tuple(cells))
        if problem and len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(f"{self.name}: line {number}: {problem}")

    def _shape_problem(self, cells: list[str]) -> str | None:
        if not all(map(str.strip, cells)):
            return "a label is empty; fill it in, or repeat the label before it"
        if cells[-1] != self.labels[0]:
            return f"ends in another root than line {self._first_lines[0]}; let every line end in the same label"
        return None

    def _grow(self, number: int, cells: tuple[str, ...]) -> str | None:
        """Add the new part of a line, from the root down."""
        known = next(at for at in range(1, len(cells) + 1) if cells[at:] in self._node_of_path)
        parent = self._node_of_path[cells[known:]]
        for at in reversed(range(known)):
            node = self._ids.get(cells[at])
            if node is None:
                node = self._ids[cells[at]] = len(self.labels)
                self.labels.append(cells[at])
                self.parents.append(parent)
                self._first_lines.append(number)
            elif node != parent and self.parents[node] != parent:  # ARX pads lines by repeating a label
                return self._conflict(node, number)
            parent = node
            if at:  # leaves are many and appear once
                self._node_of_path[cells[at:]] = node
        return None

    def _conflict(self, node: int, number: int) -> str:
        label, line = self.labels[node], self._first_lines[node]
        if line == number or node == 0:
            return f"the label {label!r} is its own ancestor; rename one of the two"
        return (
            f"the label {label!r} has another parent in line {line}; a label has one parent, so rename one of the two"
        )


def _separator(text: str) -> str:
    """The semicolon if the first line has one outside quotes, otherwise the comma."""
    first = re.split(r"[\r\n]", text.lstrip(), maxsplit=1)[0]
    cells = csv.reader([first[:_LONGEST_LABEL]], delimiter=";")
    return ";" if len(next(cells, [])) > 1 else ","


def _has_header(lines: list[Line]) -> bool:
    """Whether all lines but the first end in one root."""
    roots = {cells[-1] for _, cells in lines[1:]}
    return len(roots) == 1 and lines[0][1][-1] not in roots
