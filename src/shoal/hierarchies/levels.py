"""Hierarchies in level files: ``leaf;level 1;…;root`` a line, as ARX and anjana write them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shoal.errors import PolicyError
from shoal.hierarchies.tree import ROOT_PARENT, Tree, plant

Line = tuple[int, list[str]]
_MOST_PROBLEMS = 20
_LONGEST_LABEL = 100_000


def plant_levels(path: Path, *, separator: str | None = None, header: bool | None = None) -> Tree:
    """Read a level file; every problem names the file and the line."""
    lines = _lines(path, separator)
    if header or (header is None and _has_header(lines)):
        lines = lines[1:]
    if not lines:
        raise PolicyError(f"{path.name}: holds no labels; write one line a leaf, from the leaf to the root")
    grower = _Grower(path.name, root=lines[0][1][-1], first_line=lines[0][0])
    for number, cells in lines:
        grower.add(number, cells)
    if grower.problems:
        raise PolicyError(grower.problems)
    return plant(grower.labels, grower.parents)


class _Grower:
    """Adds lines one by one and remembers where each label was first seen."""

    def __init__(self, name: str, *, root: str, first_line: int) -> None:
        self.name = name
        self.labels = [root]
        self.parents = [ROOT_PARENT]
        self.problems: list[str] = []
        self._ids = {root: 0}
        self._seen_in = [first_line]
        self._walked: dict[tuple[str, ...], int] = {(): 0}

    def add(self, number: int, cells: list[str]) -> None:
        problem = self._shape_problem(cells) or self._grow(number, tuple(cells))
        if problem and len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(f"{self.name}: line {number}: {problem}")

    def _shape_problem(self, cells: list[str]) -> str | None:
        if not all(map(str.strip, cells)):
            return "a label is empty; fill it in, or repeat the label before it"
        if cells[-1] != self.labels[0]:
            return f"ends in another root than line {self._seen_in[0]}; let every line end in the same label"
        return None

    def _grow(self, number: int, cells: tuple[str, ...]) -> str | None:
        """Walk from the root down, over what is new in this line."""
        known = next(at for at in range(1, len(cells) + 1) if cells[at:] in self._walked)
        parent = self._walked[cells[known:]]
        for at in reversed(range(known)):
            node = self._ids.get(cells[at])
            if node is None:
                node = self._new(cells[at], parent, number)
            elif node != parent and self.parents[node] != parent:  # ARX pads lines by repeating a label
                return self._conflict(node, number)
            parent = node
            if at:  # leaves are many and come once
                self._walked[cells[at:]] = node
        return None

    def _new(self, label: str, parent: int, number: int) -> int:
        node = self._ids[label] = len(self.labels)
        self.labels.append(label)
        self.parents.append(parent)
        self._seen_in.append(number)
        return node

    def _conflict(self, node: int, number: int) -> str:
        label, line = self.labels[node], self._seen_in[node]
        if line == number or node == 0:
            return f"the label {label!r} lies under itself; give one of the two another name"
        return (
            f"the label {label!r} stands under another label than in line {line}; "
            "a label has one parent, so give one of the two another name"
        )


def _lines(path: Path, separator: str | None) -> list[Line]:
    text = _text(path)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator or _separator(text), strict=True)
    try:
        return list(_filled(reader))
    except csv.Error:
        raise PolicyError(
            f"{path.name}: line {reader.line_num}: a quote is not closed or stands inside a label, or a "
            'label is too long; write a quote twice ("") and put the label in quotes'
        ) from None


def _filled(reader: Any) -> Iterator[Line]:
    for cells in reader:
        if any(cell.strip() for cell in cells) or len(cells) > 1:
            yield reader.line_num, cells


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise PolicyError(f"{path.name}: cannot be read ({error.strerror}); check the path") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise PolicyError(f"{path.name}: line {line}: is not UTF-8; save the file as UTF-8") from None


def _separator(text: str) -> str:
    """The semicolon if the first line has one outside quotes, else the comma."""
    first = re.split(r"[\r\n]", text.lstrip(), maxsplit=1)[0]
    csv_cells = csv.reader([first[:_LONGEST_LABEL]], delimiter=";")
    return ";" if len(next(csv_cells, [])) > 1 else ","


def _has_header(lines: list[Line]) -> bool:
    """The first line is a header if all others end in one root and it does not."""
    roots = {cells[-1] for _, cells in lines[1:]}
    return len(roots) == 1 and lines[0][1][-1] not in roots
