"""How a policy describes an ontology, and the attribute of it that a column uses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, TypeAdapter, ValidationError

from shoal.errors import PolicyError
from shoal.hierarchies.ontology.ontology import Concepts, Ontology
from shoal.methods.settings import Name, Names
from shoal.policy.fields import FilePlace, Section


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
    path: FilePlace = Field(description="name the file with one line a value")
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
    """The devices that come with shoal."""

    kind: Literal["devices"]

    def build(self, column: str) -> Concepts:
        return _attribute(Ontology.devices(), "device", column)


OntologySection = Annotated[RdfOntology | TableOntology | DeviceOntology, Field(discriminator="kind")]
_SECTION: Final[TypeAdapter[Any]] = TypeAdapter(OntologySection)


def _attribute(ontology: Ontology, name: str | None, column: str) -> Concepts:
    if name is None and column not in ontology.attributes:
        if len(ontology.attributes) == 1:
            return next(iter(ontology.attributes.values()))
        known = ", ".join(ontology.attributes)
        raise PolicyError(f'has several attributes and none is called "{column}"; set attribute to one of: {known}')
    return ontology.attribute(name or column)


def build_concepts(described: object, column: str, *, folder: Path) -> Concepts | None:
    """What a table describes; None where it is no description, which is told elsewhere."""
    try:
        section = _SECTION.validate_python(described, context={"folder": folder})
    except ValidationError:
        return None
    built: Concepts = section.build(column)
    return built
