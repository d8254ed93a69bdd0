"""Trees for the values of a column, found in the values themselves: prefixes, host names, networks, cells, words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain, count
from typing import Final

from shoal.errors import ShoalError
from shoal.hierarchies import Hierarchy
from shoal.inspection.columns.facts import Facts

ROOT: Final = "*"
FEW: Final = 6
_FANOUT: Final = 5
Path = tuple[str, ...]
"""The labels of a value, from itself to the root."""


def paths_of(facts: Facts, values: Iterable[str], common: Collection[str]) -> tuple[list[Path], str]:
    """A path for every value, and how the tree was found; no label names a value that is not common."""
    listed = sorted({value for value in values if value and value != ROOT})
    climb, words = _climb(facts, listed, common)
    return _pruned([climb(value) for value in listed]), words


def nested(paths: Iterable[Path]) -> dict[str, object]:
    """Paths as tables within tables."""
    tree: dict[str, object] = {}
    for path in paths:
        table = tree
        for label in path[::-1]:
            below = table.setdefault(label, {})
            assert isinstance(below, dict)
            table = below
    return {label: _leafed(below) for label, below in tree.items()}


def _leafed(table: object) -> object:
    assert isinstance(table, dict)
    return {label: _leafed(below) for label, below in table.items()} if table else None


def _climb(facts: Facts, listed: Sequence[str], common: Collection[str]) -> tuple[Callable[[str], Path], str]:
    if len(listed) <= FEW:
        return (lambda value: (value, ROOT)), "few values, each below the root"
    if facts.shape == "host":
        return _or_flat(Hierarchy.by_suffix(".", root=ROOT).path), "host names: a.b.example, b.example, example"
    if facts.shape == "ip":
        return _or_flat(Hierarchy.ip(root=ROOT).path), "addresses in networks of 24, 16 and 8 bits"
    if facts.shape == "place":
        return _or_flat(Hierarchy.geo(root=ROOT).path), "places in cells of 0.01, 0.1, 1 and 10 degrees"
    if facts.shape == "digits":
        return _digits, "codes by their first digits"
    if facts.shape == "path":
        return _or_flat(Hierarchy.by_prefix("/", root=ROOT).path), "paths by their first parts"
    for separator in ("-", "_", ".", ":", " "):
        if _groups(listed, separator):
            return _first_part(separator), f"values by their first part (before {separator!r})"
    words = f"blocks of {_FANOUT} neighbours in alphabetical order; a tree of your own loses less"
    return _balanced(listed, common), words


def _or_flat(path: Callable[[str], Path]) -> Callable[[str], Path]:
    """The path; a value of another shape than most is directly below the root."""

    def climb(value: str) -> Path:
        try:
            return path(value)
        except ShoalError:
            return value, ROOT

    return climb


def _digits(value: str) -> Path:
    kept = range(len(value) - 1, 0, -1) if len(value) <= 5 else range(len(value) - 2, 0, -2)
    return (value, *(value[:length] + ROOT * (len(value) - length) for length in kept), ROOT)


def _groups(listed: Sequence[str], separator: str) -> bool:
    """Whether values share their first part with others, and are not all of one."""
    first = Counter(value.partition(separator)[0] for value in listed)
    shared = sum(count for count in first.values() if count > 1)
    return len(first) > 1 and shared >= 0.6 * len(listed) and len(first) <= 0.6 * len(listed)


def _first_part(separator: str) -> Callable[[str], Path]:
    return lambda value: (value, f"{value.partition(separator)[0]}{separator}…", ROOT)


def _balanced(listed: Sequence[str], common: Collection[str]) -> Callable[[str], Path]:
    """Blocks are named after their first and last value; a rare one is counted instead: few people have it."""
    tree = Hierarchy.balanced(listed, _FANOUT, ROOT)
    order = sorted(listed, key=int) if all(value.isdecimal() for value in listed) else listed
    paths = {value: tree.path(value) for value in order}
    below: dict[str, list[str]] = {}
    for value, path in paths.items():
        for label in path[1:-1]:
            below.setdefault(label, []).append(value)
    names: dict[str, str] = {}
    taken = set(listed)
    for label, values in below.items():
        names[label] = free_label(_block_name(values, common), taken)
        taken.add(names[label])
    return lambda value: (value, *(names[label] for label in paths[value][1:-1]), ROOT)


def free_label(label: str, taken: Collection[str]) -> str:
    """The label; with a number if it is taken."""
    numbered = (f"{label} ({again})" for again in count(2))
    return next(one for one in chain([label], numbered) if one not in taken)


def _block_name(values: Sequence[str], common: Collection[str]) -> str:
    shown = [value for value in values if value in common]
    if values[0] in common and values[-1] in common:
        return f"{values[0]}…{values[-1]}"
    rare = len(values) - len(shown)
    if not shown:
        return f"{rare} rare values"
    return f"{'…'.join(dict.fromkeys((shown[0], shown[-1])))} + {rare} rare"


def _pruned(paths: list[Path]) -> list[Path]:
    """Without labels that are values themselves or stand for a single value."""
    values = {path[0] for path in paths}
    below = Counter(label for path in paths for label in path[1:-1])
    return [
        (path[0], *(label for label in path[1:-1] if below[label] > 1 and label not in values), ROOT) for path in paths
    ]
