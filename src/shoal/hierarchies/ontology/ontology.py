"""Ontologies: values, the classes they belong to, and the properties they share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self, get_args

from shoal.errors import PolicyError
from shoal.hierarchies.ontology.compile import Sketch, build_concepts
from shoal.hierarchies.ontology.concepts import Concepts, Tag
from shoal.hierarchies.ontology.tables import sketch_table, table_shape

__all__ = ["Concepts", "Ontology"]


class Ontology:
    """One or more attributes, each with its values and every label that can stand for them.

    A value lies below its classes ("is a") and shares properties with others ("has OS", "produced in"); each of
    these gives a label that covers several values. Make one with :meth:`from_table`, :meth:`from_rdf` or
    :meth:`devices`.

    Examples
    --------
    >>> phones = [
    ...     {"model": "S3", "brand": "Samsung", "os": "Android"},
    ...     {"model": "P8", "brand": "Huawei", "os": "Android"},
    ... ]
    >>> ontology = Ontology.from_table(phones, value="model", properties=["brand", "os"], tag="sparse")
    >>> ontology
    <Ontology of 'model' (2 values)>
    >>> ontology.attribute("model").labels
    ('P8', 'S3', 'Huawei', 'Samsung', 'Android', 'any model')
    """

    __slots__ = ("_attributes",)
    _attributes: Mapping[str, Concepts]

    def __init__(self, attributes: Iterable[Concepts]) -> None:
        listed = sorted(attributes, key=lambda concepts: concepts.name)
        if not listed:
            raise PolicyError("ontology: has no attribute; put at least one class with values into it")
        self._attributes = MappingProxyType({concepts.name: concepts for concepts in listed})
        if len(self._attributes) < len(listed):
            raise PolicyError("ontology: two attributes have the same name; rename one of them")

    # ---- constructors

    @classmethod
    def from_table(
        cls,
        table: Any,
        *,
        value: str,
        properties: Iterable[str] = (),
        is_a: Iterable[str] = (),
        parents: Mapping[str, Iterable[str]] | None = None,
        attribute: str | None = None,
        tag: Tag | None = None,
        root: str | None = None,
    ) -> Self:
        """One attribute from a list of values with their properties.

        Parameters
        ----------
        table
            Path of a CSV (also ``.csv.gz``) or Parquet file, an Arrow table or what gives one, or a list of rows
            (tables from column to cell).
        value
            The column of values.
        properties
            Columns of aggregation properties, the most important first.
        is_a
            Columns of classes, from the finest to the coarsest: ``["family", "brand"]``.
        parents
            Columns that stand above the objects of a property: ``{"country": ["region"]}``.
        attribute
            Name of the attribute; None takes the column of values.
        tag
            ``"sparse"``, ``"normal"``, or None to leave it to the data.
        root
            The label that covers everything; None takes "any " and the attribute's name.

        Notes
        -----
        Rows without a value and blank cells are skipped. A value in several rows has the labels of all of them, so
        where rows contradict each other it has both labels (`shoal ontology check` lists such values). Values are used
        unchanged; blanks around a label are removed. Classes of the same name are distinguished by what is above them.
        """
        shape = table_shape(value, properties, is_a, parents)
        _check_words(attribute, tag)
        return cls.from_sketches([sketch_table(table, shape, attribute=attribute, tag=tag, root=root)])

    @classmethod
    def from_rdf(cls, path: str | PathLike[str]) -> Self:
        """Every attribute of an RDF file: Turtle (``.ttl``) or RDF/XML (``.rdf``, ``.xml``, ``.owl``).

        Classes by ``rdfs:subClassOf``, individuals by ``rdf:type``, names by ``rdfs:label`` (else the last part of the
        IRI), aggregation properties by ``owl:ObjectProperty``, stated directly or as an OWL restriction. A class
        directly below ``urn:shoal:ontology#SparseAttribute`` or ``…#NormalAttribute`` is an attribute; where nothing is
        tagged, every top class is. ``…#priority`` on a property says which comes first. Nothing is fetched:
        ``owl:imports`` is not followed. How to write one: docs/howto/ontology.md.
        """
        from shoal.hierarchies.ontology.rdf import read_rdf  # rdflib is slow to import, and tables do not need it

        return cls.from_sketches(read_rdf(Path(path)).sketches)

    @classmethod
    def devices(cls) -> Self:
        """The ontology included in the package: phones and tablets by family, brand, system, country and region."""
        return cls.from_rdf(shipped_devices())

    @classmethod
    def from_sketches(cls, sketches: Iterable[Sketch]) -> Self:
        """The ontology of attributes described by sketches."""
        return cls(map(build_concepts, sketches))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """The ontology that :meth:`to_dict` wrote."""
        try:
            return cls([Concepts.from_dict(concepts) for concepts in content["attributes"]])
        except (KeyError, TypeError):
            raise PolicyError("ontology: not what Ontology.to_dict writes; write it again") from None

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and texts, the same for equal ontologies."""
        return {"kind": "ontology", "attributes": [concepts.to_dict() for concepts in self._attributes.values()]}

    # ---- questions

    @property
    def attributes(self) -> Mapping[str, Concepts]:
        """Every attribute by its name, in the order of names."""
        return self._attributes

    def attribute(self, name: str) -> Concepts:
        """The attribute of this name."""
        if name not in self._attributes:
            known = ", ".join(map(repr, self._attributes))
            raise PolicyError(f"ontology: has no attribute {name!r}; it has {known}")
        return self._attributes[name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ontology) and self._attributes == other._attributes

    def __hash__(self) -> int:
        return hash(tuple(self._attributes.values()))

    def __reduce__(self) -> tuple[Any, ...]:
        return Ontology.from_dict, (self.to_dict(),)

    def __repr__(self) -> str:
        parts = ", ".join(f"{name!r} ({len(found.values)} values)" for name, found in self._attributes.items())
        return f"<Ontology of {parts}>"


def shipped_devices() -> Path:
    """Path of the ontology of devices."""
    return Path(__file__).with_name("devices.ttl")


def _check_words(attribute: object, tag: object) -> None:
    if attribute is not None and (not isinstance(attribute, str) or not attribute.strip()):
        raise PolicyError("ontology: attribute= must be text that is not empty")
    if tag is not None and tag not in get_args(Tag):
        raise PolicyError('ontology: tag= must be "sparse", "normal" or None')
