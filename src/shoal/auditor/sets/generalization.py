"""What a policy says there is: the items, and which of them are neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from shoal.auditor.hierarchies.hierarchy import Flat, Ladder, Tree, read_hierarchy
from shoal.auditor.promise import Policy
from shoal.auditor.reading.lines import csv_records
from shoal.errors import InputError, PolicyError

_WAYS: Final = ("hierarchy", "places", "graph", "balanced")


@dataclass(frozen=True, slots=True)
class Ground:
    """How items may be joined."""

    way: str | None = None
    """One of hierarchy, places, graph and balanced; None where the policy does not say."""
    names: frozenset[str] | None = None
    """The items there are; None where any item is one."""
    ladder: Ladder | None = None
    """What stands above an item; None where blocks come from places, a graph or a tree made over the items."""
    edges: tuple[tuple[str, str], ...] = ()
    """Neighbours in a graph, those that link its parts among them."""

    @property
    def tree(self) -> Tree | None:
        """The hierarchy, where it lists its items."""
        ladder = self.ladder.planted() if isinstance(self.ladder, Flat) else self.ladder
        return ladder if isinstance(ladder, Tree) else None


def read_ground(given: Any, policy: Policy) -> Ground:
    """Read what ``[anonymize.generalize]`` describes."""
    if given is None:
        return Ground()
    ways = [way for way in _WAYS if way in given] if isinstance(given, Mapping) else []
    if len(ways) != 1:
        raise PolicyError(f"[anonymize] generalize: give a table with exactly one of {', '.join(_WAYS)}")
    way = ways[0]
    if way == "hierarchy":
        return _of_hierarchy(read_hierarchy(given[way], folder=policy.folder, name="hierarchy of generalize"))
    if way == "balanced":
        return Ground(way)
    records = _records(given[way], policy.folder, way)
    if way == "places":
        return Ground(way, _named(records, given.get("name", "name")))
    pairs = _pairs(records)
    names = frozenset(name for pair in pairs for name in pair)
    return Ground(way, names, edges=(*pairs, *_links(names, pairs)))


def _of_hierarchy(ladder: Ladder) -> Ground:
    ground = Ground("hierarchy", ladder=ladder)
    if ground.tree is None:
        return ground
    leaves = frozenset(label for label, is_leaf in ground.tree.is_leaf().items() if is_leaf)
    return Ground("hierarchy", leaves, ladder)


def _records(place: Any, folder: Path, way: str) -> list[list[str]]:
    if not isinstance(place, str | Path):
        raise PolicyError(f"[anonymize.generalize] {way}: give the path of a CSV file")
    path = folder / place
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: the {way} cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8; save it as UTF-8") from None
    found = list(csv_records(text, ","))
    records = [fields for fields in found if fields is not None]
    wide = 2 if way == "graph" else len(records[0]) if records else 0
    if len(records) < 2 or len(records) < len(found) or any(len(fields) != wide for fields in records[1:]):
        raise InputError(f"{path}: give a header and then lines with as many cells each, two of them for a graph")
    return records


def _named(records: list[list[str]], column: Any) -> frozenset[str]:
    if column not in records[0]:
        raise PolicyError("[anonymize.generalize] name: the file of the places has no such column")
    place = records[0].index(column)
    return frozenset(fields[place] for fields in records[1:])


def _pairs(records: list[list[str]]) -> list[tuple[str, str]]:
    """Return the edges; an item without a neighbour is its own."""
    if not all(fields[0].strip() for fields in records[1:]):
        raise InputError("graph of generalize: every line must hold two items, or one and an empty cell")
    return [(first, second if second.strip() else first) for first, second in records[1:]]


def _links(names: Iterable[str], pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return what links parts that do not hang together: the least name of each with that of the next."""
    return list(pairwise(sorted(min(part) for part in parts(names, pairs))))


def parts(names: Iterable[str], edges: Iterable[tuple[str, str]]) -> list[set[str]]:
    """Return the sets of names that hang together; edges to other names do not count."""
    beside: dict[str, list[str]] = {name: [] for name in names}
    for first, second in edges:
        if first in beside and second in beside:
            beside[first].append(second)
            beside[second].append(first)
    found: list[set[str]] = []
    left = dict.fromkeys(beside)
    while left:
        part, waiting = set[str](), [next(iter(left))]
        while waiting:
            name = waiting.pop()
            if name not in part:
                part.add(name)
                left.pop(name)
                waiting += beside[name]
        found.append(part)
    return found
