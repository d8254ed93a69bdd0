"""What a policy for sets (k^m-anonymity) promises, read from the raw TOML."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from shoal.auditor.hierarchies.hierarchy import Flat, Hierarchy, Tree, read_hierarchy
from shoal.auditor.policy import Policy
from shoal.auditor.reading.lines import csv_records
from shoal.errors import InputError, PolicyError

_WAYS: Final = ("hierarchy", "places", "graph", "balanced")


@dataclass(frozen=True, slots=True)
class Generalization:
    """How items may be generalized."""

    way: str | None = None
    """One of hierarchy, places, graph and balanced; None if the policy gives none."""
    names: frozenset[str] | None = None
    """All items; None if any item is allowed."""
    hierarchy: Hierarchy | None = None
    """The labels above an item; None if blocks come from places, a graph or a tree built over the items."""
    edges: tuple[tuple[str, str], ...] = ()
    """Neighbours in a graph, including the edges that connect its parts."""

    @property
    def tree(self) -> Tree | None:
        """The hierarchy, if it lists its items."""
        hierarchy = self.hierarchy.as_tree() if isinstance(self.hierarchy, Flat) else self.hierarchy
        return hierarchy if isinstance(hierarchy, Tree) else None


def read_generalization(given: Any, policy: Policy) -> Generalization:
    """Read what ``[anonymize.generalize]`` describes."""
    if given is None:
        return Generalization()
    ways = [way for way in _WAYS if way in given] if isinstance(given, Mapping) else []
    if len(ways) != 1:
        raise PolicyError(f"[anonymize] generalize: give a table with exactly one of {', '.join(_WAYS)}")
    way = ways[0]
    if way == "hierarchy":
        return _of_hierarchy(read_hierarchy(given[way], folder=policy.folder, name="hierarchy of generalize"))
    if way == "balanced":
        return Generalization(way)
    records = _records(given[way], policy.folder, way)
    if way == "places":
        return Generalization(way, _named(records, given.get("name", "name")))
    pairs = _pairs(records)
    names = frozenset(name for pair in pairs for name in pair)
    # Connect separate parts: the smallest name of each with that of the next.
    links = pairwise(sorted(min(part) for part in parts(names, pairs)))
    return Generalization(way, names, edges=(*pairs, *links))


def _of_hierarchy(hierarchy: Hierarchy) -> Generalization:
    generalization = Generalization("hierarchy", hierarchy=hierarchy)
    if generalization.tree is None:
        return generalization
    leaves = frozenset(label for label, is_leaf in generalization.tree.is_leaf().items() if is_leaf)
    return Generalization("hierarchy", leaves, hierarchy)


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
    """Return the edges; an item without a neighbour has an edge to itself."""
    if not all(fields[0].strip() for fields in records[1:]):
        raise InputError("graph of generalize: every line must have two items, or one and an empty cell")
    return [(first, second if second.strip() else first) for first, second in records[1:]]


def parts(names: Iterable[str], edges: Iterable[tuple[str, str]]) -> list[set[str]]:
    """Return the connected components; edges to other names do not count."""
    neighbours: dict[str, list[str]] = {name: [] for name in names}
    for first, second in edges:
        if first in neighbours and second in neighbours:
            neighbours[first].append(second)
            neighbours[second].append(first)
    found: list[set[str]] = []
    left = dict.fromkeys(neighbours)
    while left:
        part, waiting = set[str](), [next(iter(left))]
        while waiting:
            name = waiting.pop()
            if name not in part:
                part.add(name)
                left.pop(name)
                waiting += neighbours[name]
        found.append(part)
    return found


RELEASED_COLUMN: Final = "items"
_SIGMA: Final = {"k^m": 0.99}
"""The default of sigma by method; otherwise every itemset is promised."""
_ADVERSARIES: Final = {"itemset": ("itemset",), "person": ("person",), "both": ("itemset", "person")}


@dataclass(frozen=True, slots=True)
class SetPromise:
    """The promise: of the itemsets of size l, at least sigma[l] share their image with k[l] records, for l up to m."""

    method: str
    person: str | None
    item: str
    column: str
    """The column of the released sets."""
    k: tuple[int, ...]
    """One number for every size, from size 1 on; so is ``sigma``."""
    sigma: tuple[float, ...]
    adversaries: tuple[str, ...]
    """What the share is taken over: different itemsets uniformly, or persons uniformly and then their subsets."""
    joint: bool
    """Whether the confidence is joint over all sizes."""
    generalization: Generalization
    drop_rare: int | None = None
    """Items that fewer people have are not released; None: all are."""
    is_local: bool = False
    """Whether labels may differ in precision from record to record."""

    @property
    def m(self) -> int:
        """How many items the attacker may know."""
        return len(self.k)

    @property
    def adversary(self) -> str:
        """The policy's name for the adversaries."""
        return "both" if len(self.adversaries) > 1 else self.adversaries[0]


def read_set_promise(policy: Policy) -> SetPromise:
    """Read what a method for sets promises."""
    rules = policy.section("anonymize")
    m = rules.get("m")
    if isinstance(m, bool) or not isinstance(m, int) or m < 1:
        raise PolicyError("[anonymize] m: must be a whole number from 1")
    adversary = rules.get("adversary", "itemset")
    if not isinstance(adversary, str) or adversary not in _ADVERSARIES:
        raise PolicyError(f"[anonymize] adversary: is one of {', '.join(_ADVERSARIES)}")
    person = policy.section("stream").get("person")
    return SetPromise(
        method=str(rules.get("method")),
        person=person if isinstance(person, str) else None,
        item=_name(rules, "item"),
        column=_name(rules, "column"),
        k=tuple(_people(value) for value in _per_size(rules, "k", m)),
        sigma=tuple(_share(value) for value in _per_size(rules, "sigma", m, _SIGMA.get(str(rules.get("method")), 1))),
        adversaries=_ADVERSARIES[adversary],
        joint=rules.get("joint") is True,
        generalization=read_generalization(rules.get("generalize"), policy),
        is_local=_is_local(rules),
        drop_rare=None if rules.get("drop_rare") is None else _people(rules["drop_rare"], "drop_rare"),
    )


def _is_local(rules: Mapping[str, Any]) -> bool:
    recoding = rules.get("recoding", "global")
    if recoding not in ("global", "local"):
        raise PolicyError('[anonymize] recoding: is "global" or "local"')
    return bool(recoding == "local")


def _name(rules: Mapping[str, Any], key: str) -> str:
    name = rules.get(key, RELEASED_COLUMN)
    if not isinstance(name, str):
        raise PolicyError(f"[anonymize] {key}: name the column")
    return name


def _per_size(rules: Mapping[str, Any], key: str, m: int, default: Any = None) -> list[Any]:
    given = rules.get(key, default)
    values = list(given) if isinstance(given, list | tuple) else [given] * m
    if len(values) != m:
        raise PolicyError(f"[anonymize] {key}: give one value, or one for every size from 1 to m")
    return values


def _people(value: Any, key: str = "k") -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        more = ", or one for every size" if key == "k" else ""
        raise PolicyError(f"[anonymize] {key}: must be a whole number from 1{more}")
    return value


def _share(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not 0 < value <= 1:
        raise PolicyError("[anonymize] sigma: must be a number above 0 and up to 1, or one for every size")
    return float(value)
