"""How a policy describes hierarchies and ontologies, and how they are built."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, PlainValidator, TypeAdapter, ValidationError

from shoal.errors import PolicyError
from shoal.hierarchies import Hierarchy
from shoal.hierarchies.ontology.ontology import Concepts, Ontology
from shoal.methods.settings import Name, Names
from shoal.policy.fields import Delimiter, FilePlace, Section


class CsvHierarchy(Section):
    """A level file, as ARX and anjana write them."""

    kind: Literal["csv"]
    path: FilePlace = Field(description="name the file with one line per leaf, from the leaf to the root")
    sep: Delimiter | None = None
    header: bool | None = None

    def build(self) -> Hierarchy:
        return Hierarchy.from_csv(self.path.path, sep=self.sep, header=self.header)


class NestedHierarchy(Section):
    """Tables within tables, in the policy or in a JSON file."""

    kind: Literal["nested"]
    tree: dict[str, Any] | None = None
    path: FilePlace | None = None

    def build(self) -> Hierarchy:
        if (self.tree is None) == (self.path is None):
            raise PolicyError("give either a tree or the path of a JSON file with one")
        tree = self.tree if self.path is None else _read_json(self.path.path)
        return Hierarchy.from_nested(tree or {})


class FlatHierarchy(Section):
    """All values under one root."""

    kind: Literal["flat"]
    values: Names = Field(description="list the values")
    root: Name = "*"

    def build(self) -> Hierarchy:
        return Hierarchy.flat(self.values, root=self.root)


class SuffixHierarchy(Section):
    """Host names and the like: ``a.b.example`` is below ``b.example``."""

    kind: Literal["suffix"]
    separator: Delimiter = "."
    root: Name = "*"

    def build(self) -> Hierarchy:
        return Hierarchy.by_suffix(self.separator, root=self.root)


class PrefixHierarchy(Section):
    """Paths and the like: ``top/leaf`` is below ``top``."""

    kind: Literal["prefix"]
    separator: Delimiter = "/"
    root: Name = "*"

    def build(self) -> Hierarchy:
        return Hierarchy.by_prefix(self.separator, root=self.root)


def _numbers(given: object) -> object:
    """A list as a tuple, with whole numbers and fractions as they are written; raises ValueError."""
    if not isinstance(given, list | tuple) or not all(
        isinstance(one, int | float) and not isinstance(one, bool) for one in given
    ):
        raise ValueError("must be a list of numbers")
    return tuple(given)


_Numbers = Annotated[tuple[Any, ...], PlainValidator(_numbers)]


class GeoHierarchy(Section):
    """Places ``latitude,longitude`` in cells of ever larger sizes in degrees."""

    kind: Literal["geo"]
    cells: _Numbers = (0.01, 0.1, 1, 10)
    root: Name = "*"

    def build(self) -> Hierarchy:
        return Hierarchy.geo(self.cells, root=self.root)


class BinsHierarchy(Section):
    """Numbers in bins of ever larger widths."""

    kind: Literal["bins"]
    widths: _Numbers = Field(description="give the widths of the bins, such as [10, 100]")
    root: Name = "*"

    def build(self) -> Hierarchy:
        return Hierarchy.bins(self.widths, root=self.root)


class IpHierarchy(Section):
    """IP addresses in networks of ever shorter prefixes."""

    kind: Literal["ip"]
    v4: _Numbers = (24, 16, 8)
    v6: _Numbers = (64, 48, 32)
    root: Name = "*"

    def build(self) -> Hierarchy:
        return Hierarchy.ip(self.v4, self.v6, root=self.root)


class HostsHierarchy(Section):
    """Host names up to their public suffix."""

    kind: Literal["hosts"]
    root: Name = "*"

    def build(self) -> Hierarchy:
        return Hierarchy.hosts(root=self.root)


def _by_name(described: object) -> object:
    """A kind alone, such as "geo", means its defaults."""
    return {"kind": described} if isinstance(described, str) else described


HierarchySection = Annotated[
    Annotated[
        CsvHierarchy | NestedHierarchy | FlatHierarchy | SuffixHierarchy | PrefixHierarchy
        | GeoHierarchy | BinsHierarchy | IpHierarchy | HostsHierarchy,
        Field(discriminator="kind"),
    ],
    BeforeValidator(_by_name),
]  # fmt: skip


_SECTION: Final[TypeAdapter[Any]] = TypeAdapter(HierarchySection)


def build_hierarchy(described: object, *, folder: Path) -> Hierarchy | None:
    """The hierarchy that a table describes; None if the table is invalid, which is reported elsewhere."""
    try:
        section = _SECTION.validate_python(described, context={"folder": folder})
    except ValidationError:
        return None
    built: Hierarchy = section.build()
    return built


def _read_json(path: Path) -> dict[str, Any]:
    try:
        tree = json.loads(path.read_bytes().decode("utf-8-sig"), object_pairs_hook=_no_repeats)
    except OSError as error:
        raise PolicyError(f"{path.name}: cannot be read ({error.strerror}); check the path") from None
    except UnicodeDecodeError:
        raise PolicyError(f"{path.name}: is not UTF-8; save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        raise PolicyError(f"{path.name}: line {error.lineno}: is not JSON; check quotes and commas") from None
    except RecursionError:
        raise PolicyError(f"{path.name}: is nested too deeply; write the hierarchy as a level file") from None
    if not isinstance(tree, dict):
        raise PolicyError(f"{path.name}: must hold an object with one root")
    return tree


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """json keeps the last of two equal keys silently; refuse them, so that no leaf is lost."""
    table = dict(pairs)
    if len(table) < len(pairs):
        raise PolicyError("hierarchy: a label occurs twice under the same parent; remove one of them")
    return table


# ---- ontologies


class RdfOntology(Section):
    """A file in Turtle, RDF/XML or OWL."""

    kind: Literal["rdf"]
    path: FilePlace = Field(description="name the file with the ontology")
    attribute: Name | None = None

    def build(self, column: str) -> Concepts:
        return _attribute(Ontology.from_rdf(self.path.path), self.attribute, column)


class TableOntology(Section):
    """A list of values with their properties."""

    kind: Literal["table"]
    path: FilePlace = Field(description="name the file with one line per value")
    value: Name = Field(description="name the column of values")
    properties: Names = ()
    is_a: Names = ()
    parents: dict[str, Names] = Field(default_factory=dict)
    tag: Literal["sparse", "normal"] | None = None
    root: Name | None = None

    def build(self, column: str) -> Concepts:
        made = Ontology.from_table(
            self.path.path, value=self.value, properties=self.properties, is_a=self.is_a, parents=self.parents,
            attribute=column, tag=self.tag, root=self.root,
        )  # fmt: skip
        return made.attribute(column)


class DeviceOntology(Section):
    """The device ontology that comes with shoal."""

    kind: Literal["devices"]

    def build(self, column: str) -> Concepts:
        return _attribute(Ontology.devices(), "device", column)


OntologySection = Annotated[RdfOntology | TableOntology | DeviceOntology, Field(discriminator="kind")]
_ONTOLOGY: Final[TypeAdapter[Any]] = TypeAdapter(OntologySection)


def _attribute(ontology: Ontology, name: str | None, column: str) -> Concepts:
    if name is None and column not in ontology.attributes:
        if len(ontology.attributes) == 1:
            return next(iter(ontology.attributes.values()))
        known = ", ".join(ontology.attributes)
        raise PolicyError(f'has several attributes and none is called "{column}"; set attribute to one of: {known}')
    return ontology.attribute(name or column)


def build_concepts(described: object, column: str, *, folder: Path) -> Concepts | None:
    """The concepts that a table describes; None if the table is invalid, which is reported elsewhere."""
    try:
        section = _ONTOLOGY.validate_python(described, context={"folder": folder})
    except ValidationError:
        return None
    built: Concepts = section.build(column)
    return built
