"""Read hierarchies from a policy: for a value, the labels from itself up to the root."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from shoal.auditor.hierarchies.computed import KINDS, read_computed
from shoal.auditor.reading.lines import csv_records
from shoal.errors import InputError, PolicyError

ROOT: Final = "*"
_MOST_NAMES: Final = 64


class Hierarchy(Protocol):
    """Returns the labels above a value."""

    def path(self, value: str) -> tuple[str, ...]:
        """Return the labels from the value to the root; nothing for an unknown value."""


class Taxonomy(Hierarchy, Protocol):
    """A hierarchy that lists its values."""

    @property
    def root(self) -> str:
        """The label above everything."""

    def leaf_counts(self) -> Mapping[str, int]:
        """Return the number of values under every label."""

    def is_leaf(self) -> Mapping[str, bool]:
        """Return, for every label, whether it is a value."""


class NoHierarchy:
    """No hierarchy: a value is published as it is or not at all."""

    def path(self, value: str) -> tuple[str, ...]:
        """Return the value alone."""
        return (value,)


class Tree:
    """A tree of labels, each with its parent."""

    def __init__(self, parents: Mapping[str, str | None]) -> None:
        self._parents = parents

    @property
    def root(self) -> str:
        """The label above everything."""
        return next(label for label, above in self._parents.items() if above is None)

    def leaf_counts(self) -> dict[str, int]:
        """Return how many leaves are at or below every label."""
        inner = set(self._parents.values())
        counts = dict.fromkeys(self._parents, 0)
        for leaf in self._parents:
            if leaf not in inner:
                for label in self._climb(leaf):
                    counts[label] += 1
        return counts

    def is_leaf(self) -> dict[str, bool]:
        """Return, for every label, whether nothing is below it."""
        inner = set(self._parents.values())
        return {label: label not in inner for label in self._parents}

    def path(self, value: str) -> tuple[str, ...]:
        """Return the labels from the value to the root."""
        return tuple(self._climb(value)) if value in self._parents else ()

    def _climb(self, value: str) -> Iterator[str]:
        label: str | None = value
        while label is not None:
            yield label
            label = self._parents[label]


class Flat:
    """Every value is directly below the root."""

    def __init__(self, values: set[str] | None, root: str = ROOT) -> None:
        self._values, self._root = values, root

    def as_tree(self) -> Tree | None:
        """Return the same labels as a tree; None when the values are not listed."""
        if self._values is None:
            return None
        return Tree({self._root: None, **dict.fromkeys(sorted(self._values - {self._root}), self._root)})

    def path(self, value: str) -> tuple[str, ...]:
        """Return the value and the root."""
        if value == self._root:
            return (self._root,)
        return (value, self._root) if self._values is None or value in self._values else ()


class Separated:
    """Names made of parts: dropping parts from the front (suffix) or the back (prefix) generalizes them.

    The rest must start (suffix) or end (prefix) with a part that is not empty; of more than 64 such names
    the shortest are kept; a name equal to the root is the root.
    """

    def __init__(self, separator: str, *, keeps_end: bool, root: str = ROOT) -> None:
        self._separator, self._keeps_end, self._root = separator, keeps_end, root

    def path(self, value: str) -> tuple[str, ...]:
        """Return the value, ever shorter names, then the root."""
        names = [value, *self._shorter(value.split(self._separator))]
        return (*itertools.takewhile(lambda name: name != self._root, names), self._root)

    def _shorter(self, parts: list[str]) -> list[str]:
        if self._keeps_end:
            kept = [parts[at:] for at in range(1, len(parts)) if parts[at]]
        else:
            kept = [parts[:at] for at in range(len(parts) - 1, 0, -1) if parts[at - 1]]
        return [self._separator.join(left) for left in kept[-_MOST_NAMES:]]


def read_hierarchy(spec: Any, *, folder: Path, name: str) -> Hierarchy:
    """Build what a policy's ``hierarchy = {kind = …}`` describes."""
    if isinstance(spec, str):
        spec = {"kind": spec}
    if not isinstance(spec, Mapping):
        raise PolicyError(f'{name}: give a table such as {{kind = "csv", path = "levels.csv"}}')
    kind = spec.get("kind")
    if kind == "csv":
        return _from_csv(spec, folder, name)
    if kind == "nested":
        return _from_nested(spec, folder, name)
    if kind == "flat":
        values = spec.get("values")
        if values is not None and (isinstance(values, str | Mapping) or not isinstance(values, Iterable)):
            raise PolicyError(f"{name}: values must be a list")
        return Flat(None if values is None else {str(value) for value in values}, str(spec.get("root", ROOT)))
    if kind in ("suffix", "prefix"):  # a tuple, not a set: a policy's value may not be hashable
        return _from_separator(spec, name)
    if kind in KINDS:
        return read_computed(spec, str(spec.get("root", ROOT)), name)
    raise PolicyError(f"{name}: kind is one of csv, nested, flat, suffix, prefix, {', '.join(KINDS)}")


def _from_separator(spec: Mapping[str, Any], name: str) -> Separated:
    keeps_end = spec["kind"] == "suffix"
    separator = spec.get("separator", "." if keeps_end else "/")
    if not isinstance(separator, str) or not separator:
        raise PolicyError(f"{name}: separator must be text of at least one character")
    return Separated(separator, keeps_end=keeps_end, root=str(spec.get("root", ROOT)))


def read_tree(spec: Any, *, folder: Path, name: str) -> Tree:
    """Build a hierarchy that lists its values."""
    hierarchy = read_hierarchy(spec, folder=folder, name=name)
    tree = hierarchy.as_tree() if isinstance(hierarchy, Flat) else hierarchy
    if not isinstance(tree, Tree):
        raise PolicyError(f"{name}: the hierarchy must list its values; use csv, nested or flat with values")
    return tree


def _text_of(spec: Mapping[str, Any], folder: Path, name: str) -> str:
    if not isinstance(spec.get("path"), str | Path):
        raise PolicyError(f"{name}: path is missing")
    path = folder / spec["path"]
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: the hierarchy cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: the hierarchy is not UTF-8; save it as UTF-8") from None


def _from_csv(spec: Mapping[str, Any], folder: Path, name: str) -> Tree:
    text = _text_of(spec, folder, name)
    if not isinstance(spec.get("sep", ""), str):
        raise PolicyError(f"{name}: sep must be one character")
    separator = spec.get("sep") or (";" if ";" in text.lstrip("\r\n").partition("\n")[0] else ",")
    lines = [fields for fields in csv_records(text, separator) if fields]
    header = spec.get("header")
    if header or (header is None and _starts_with_header(lines)):
        lines = lines[1:]
    links = (link for line in lines for link in _links(_merged(line)))
    return Tree(_parents(links, name))


def _starts_with_header(lines: list[list[str]]) -> bool:
    roots = {line[-1] for line in lines[1:]}
    return len(roots) == 1 and lines[0][-1] not in roots


def _merged(line: list[str]) -> list[str]:
    """Drop empty cells and a label that only repeats the one below it."""
    filled = [cell for cell in line if cell]
    return [label for i, label in enumerate(filled) if i == 0 or filled[i - 1] != label]


def _links(labels: list[str]) -> Iterator[tuple[str, str | None]]:
    yield from zip(labels, [*labels[1:], None], strict=True)


def _from_nested(spec: Mapping[str, Any], folder: Path, name: str) -> Tree:
    tree = spec.get("tree")
    if tree is None:
        try:
            tree = json.loads(_text_of(spec, folder, name))
        except (json.JSONDecodeError, RecursionError):
            raise InputError(f"{name}: the file of the hierarchy is not JSON") from None
    if isinstance(tree, Mapping) and len(tree) == 1:
        return Tree(_parents(_nested_links(tree, None), name))
    return Tree(_parents(_nested_links({ROOT: tree}, None), name))


def _nested_links(tree: Any, above: str | None) -> Iterator[tuple[str, str | None]]:
    if isinstance(tree, Mapping):
        for label, below in tree.items():
            yield str(label), above
            yield from _nested_links(below, str(label))
    elif isinstance(tree, list | tuple):
        for inner in tree:
            yield from _nested_links(inner, above)
    elif tree is not None:
        yield str(tree), above


def _parents(links: Iterator[tuple[str, str | None]], name: str) -> dict[str, str | None]:
    parents: dict[str, str | None] = {}
    # Every chain of links ends at a root, so a label above itself would have two parents.
    for label, parent in links:
        if parents.setdefault(label, parent) != parent:
            raise PolicyError(f"{name}: one label is below two others; labels must be unique")
    if sum(parent is None for parent in parents.values()) != 1:
        raise PolicyError(f"{name}: there must be one root above everything")
    return parents
