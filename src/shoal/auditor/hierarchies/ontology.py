"""Read the labels of one attribute from an ontology: for a value, every label that covers it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from shoal.auditor.reading.files import read
from shoal.auditor.reading.paths import Format
from shoal.errors import InputError, PolicyError, missing_extra

IS_A: Final = "is a"
_APART: Final = "\x1f"
Label = tuple[str, str]
"""A property (``is a`` for classes), and a key of the thing it leads to."""


@dataclass(frozen=True, slots=True)
class OntologyAttribute:
    """The values and labels of an attribute, as read."""

    root: str
    tag: str | None
    above: dict[str, set[Label]] = field(default_factory=lambda: defaultdict(set))
    """By value, all labels that cover it, except the root."""
    texts: dict[Label, str] = field(default_factory=dict)
    """The text of every label; two labels may have the same text."""
    wider: dict[Label, list[str]] = field(default_factory=dict)
    """The texts of the things directly above a label's."""


class Concepts:
    """The values of an attribute and the labels above each, by class or by property."""

    def __init__(self, outline: OntologyAttribute) -> None:
        names = _names(outline)
        self._root, self.tag = outline.root, outline.tag
        self._labels = {value: [names[label] for label in labels] for value, labels in outline.above.items()}
        self._leaves = self._counted()
        for labels in self._labels.values():
            labels.sort(key=lambda label: (self._leaves[label], label))

    def _counted(self) -> dict[str, int]:
        counts = Counter(label for labels in self._labels.values() for label in labels)
        return {**counts, **dict.fromkeys(self._labels, 1), self._root: len(self._labels)}

    @property
    def root(self) -> str:
        """The label above everything."""
        return self._root

    def leaf_counts(self) -> Mapping[str, int]:
        """Return the number of values under every label."""
        return self._leaves

    def is_leaf(self) -> Mapping[str, bool]:
        """Return, for every label, whether it is a value."""
        return {label: label in self._labels for label in self._leaves}

    def path(self, value: str) -> tuple[str, ...]:
        """Return all labels that cover a value: itself, then those of fewest values first, the root last."""
        if value in self._labels:
            return (value, *self._labels[value], self._root)
        return (value,) if value in self._leaves else ()


def _names(outline: OntologyAttribute) -> dict[Label, str]:
    """Return the published name of every label, which no other label and no value has.

    Its text if that is unique, else with the property, else with the thing directly above, else with a number.
    """
    left = sorted({label for labels in outline.above.values() for label in labels})
    taken = {*outline.above, outline.root}
    names: dict[Label, str] = {}

    def with_property(label: Label) -> str:
        return f"{outline.texts[label]} ({label[0]})"

    def with_wider(label: Label) -> str:
        wider = min(outline.wider.get(label, ()), default=label[0])
        return f"{outline.texts[label]} ({wider})"

    spellings: tuple[Callable[[Label], str], ...] = (outline.texts.__getitem__, with_property, with_wider)
    for spell in spellings:
        uses = Counter(map(spell, left))
        fitting = {label: spell(label) for label in left if uses[spell(label)] == 1 and spell(label) not in taken}
        names |= fitting
        taken.update(fitting.values())
        left = [label for label in left if label not in fitting]
    for label in left:
        number = 2
        while f"{with_property(label)} {number}" in taken:
            number += 1
        names[label] = f"{with_property(label)} {number}"
        taken.add(names[label])
    return names


Cells = Sequence[str | None]


def read_label_columns(
    values: Cells, chains: Iterable[tuple[str, Sequence[Cells]]], *, root: str, tag: str | None
) -> OntologyAttribute:
    """Read a table: a property (or ``is a``) has columns from the finest to the coarsest.

    A value in several rows has the labels of all. Things with the same name are distinguished by what is above them.
    """
    outline = OntologyAttribute(root, tag)
    for value in values:
        if value and value.strip():
            outline.above[value]  # keep a value without labels
    for kind, columns in chains:
        known: dict[tuple[str | None, ...], list[Label]] = {}
        for value, *cells in zip(values, *columns, strict=True):
            if value in outline.above:
                row = tuple(cells)
                if row not in known:
                    known[row] = _chain(kind, row, outline)
                outline.above[str(value)].update(known[row])
    return outline


def _chain(kind: str, cells: tuple[str | None, ...], outline: OntologyAttribute) -> list[Label]:
    """Return the labels that one row names, from the finest on; a name repeated directly above itself is one label."""
    filled = [cell.strip() for cell in cells if cell and cell.strip()]
    names = [name for at, name in enumerate(filled) if at == 0 or filled[at - 1] != name]
    labels = [(kind, _APART.join(names[at:])) for at in range(len(names))]
    for at, label in enumerate(labels):
        outline.texts[label] = names[at]
        outline.wider[label] = names[at + 1 : at + 2]
    return labels


_TAGS: Final = ("sparse", "normal")
_SHIPPED: Final = ("hierarchies", "ontology", "devices.ttl")
"""Where the ontology of devices is in the package; only the data is read, no code."""


def read_ontology(spec: Any, *, folder: Path, name: str) -> Concepts:
    """Read the table ``ontology`` of a quasi-identifier."""
    kind = spec.get("kind") if isinstance(spec, Mapping) else None
    if kind == "rdf":
        path = _path(spec, folder, name)
        return _attribute(_bytes(path), spec, name, str(path))
    if kind == "table":
        return _from_table(spec, folder, name)
    if kind == "devices":
        data = files("shoal").joinpath(*_SHIPPED)
        if not data.is_file():
            raise InputError("the ontology of devices is not installed; install shoal again")
        return _attribute(data.read_bytes(), spec, "device", "the ontology of devices")
    raise PolicyError(f"ontology of {name}: kind is rdf, table or devices")


def _path(spec: Mapping[str, Any], folder: Path, name: str) -> Path:
    if not isinstance(spec.get("path"), str | Path):
        raise PolicyError(f"ontology of {name}: path is missing")
    return folder / str(spec["path"])


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: the ontology cannot be read ({error.strerror})") from None


def _attribute(data: bytes, spec: Mapping[str, Any], name: str, where: str) -> Concepts:
    try:  # rdflib is heavy, and tables do without
        from shoal.auditor.hierarchies.rdf import parse, read_attribute_of
    except ImportError:
        raise missing_extra(f"{where}: reading RDF", package="rdflib", extra="ontology") from None
    wanted = str(spec.get("attribute", name))
    return read_attribute_of(parse(data, where), wanted, where, is_given="attribute" in spec)


def _from_table(spec: Mapping[str, Any], folder: Path, name: str) -> Concepts:
    value, tag = spec.get("value"), spec.get("tag")
    if not isinstance(value, str):
        raise PolicyError(f"ontology of {name}: value is missing; name the column of values")
    if tag is not None and tag not in _TAGS:
        raise PolicyError(f"ontology of {name}: tag is one of {', '.join(_TAGS)}")
    chains = _chains(spec, name)
    rows = read(_path(spec, folder, name), name=f"ontology of {name}", expected=Format.of(spec))
    rows.require(value, *(column for _, columns in chains for column in columns))
    texts = {column: rows.text(column).to_pylist() for column in rows.columns}
    root = spec.get("root")
    return Concepts(
        read_label_columns(
            texts[value],
            [(kind, [texts[column] for column in columns]) for kind, columns in chains],
            root=f"any {name}" if root is None else str(root),
            tag=tag,
        )
    )


def _chains(spec: Mapping[str, Any], name: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return, for classes and for every property, its columns from the finest to the coarsest."""
    parents = spec.get("parents", {})
    if not isinstance(parents, Mapping):
        raise PolicyError(f"ontology of {name}: parents is a table from a property to the columns above it")
    classes = _columns(spec, "is_a")
    chains = [(IS_A, classes)] if classes else []
    return chains + [(column, (column, *_columns(parents, column))) for column in _columns(spec, "properties")]


def _columns(spec: Mapping[str, Any], key: str) -> tuple[str, ...]:
    given = spec.get(key, ())
    return (given,) if isinstance(given, str) else tuple(str(column) for column in given)
