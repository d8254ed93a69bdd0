"""Ontologies in RDF: classes, individuals, and the object properties that values share.

Read are ``rdfs:subClassOf`` and ``rdf:type`` between named things, ``rdfs:label``, statements with an
``owl:ObjectProperty`` (or any property that has a ``shoal:priority``), and the same statements written as
``owl:Restriction`` with ``owl:hasValue`` or ``owl:someValuesFrom``, alone or in an ``owl:intersectionOf``. Nothing is
inferred beyond that, and ``owl:imports`` is not followed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from shoal.errors import PolicyError, missing_extra

try:
    from rdflib import OWL, RDF, RDFS, BNode, Graph, Literal, URIRef
    from rdflib.collection import Collection
    from rdflib.term import Node
except ImportError:
    raise missing_extra("reading RDF", package="rdflib", extra="ontology") from None

from shoal.hierarchies.ontology.compile import Key, Sketch
from shoal.hierarchies.ontology.concepts import IS_A, Tag
from shoal.hierarchies.ontology.rdf_files import SHOAL, label, read_graph

_TAGS: Final[dict[URIRef, Tag]] = {SHOAL.SparseAttribute: "sparse", SHOAL.NormalAttribute: "normal"}
_BUILT_IN: Final = (str(OWL), str(RDF), str(RDFS), str(SHOAL))
_UNDECLARED: Final = float("inf")
Pairs = dict[Node, set[Node]]


@dataclass(frozen=True, slots=True)
class RdfReading:
    """The attributes of a file, and the parts of it that no attribute uses.

    Attributes
    ----------
    sketches
        One for each attribute.
    functional
        Names of properties declared to have at most one object.
    unused_properties
        Names of properties that nothing in an attribute has.
    uncovering
        Names of possible objects of properties that no value has.
    stray
        Names of all other classes and individuals outside every attribute.
    """

    sketches: tuple[Sketch, ...]
    functional: tuple[str, ...]
    unused_properties: tuple[str, ...]
    uncovering: tuple[str, ...]
    stray: tuple[str, ...]


def read_rdf(path: Path) -> RdfReading:
    """Read the attributes of a file."""
    return _Reader(read_graph(path), path.name).read()


class _Reader:
    """Reads the graph once and makes a sketch of every attribute."""

    def __init__(self, graph: Graph, where: str) -> None:
        self.graph = graph
        self.where = where
        self.properties = self._properties()
        self.stated: dict[Node, Pairs] = {name: {} for name in self.properties}
        self.above: Pairs = {}
        self._read_classes()
        self._read_statements()
        self.below: Pairs = {}
        for child, parents in self.above.items():
            for parent in parents:
                self.below.setdefault(parent, set()).add(child)
        self.kinds = set(graph.objects(None, RDFS.range))

    def read(self) -> RdfReading:
        roots = self._attributes()
        members = {root: self._below(root) for root in roots}
        for root in roots:
            self._check_no_cycle(root)
        self._check_apart(members)
        sketches = tuple(self._sketch(root, tag, members[root]) for root, tag in roots.items())
        used = {name for sketch in sketches for name in sketch.properties}
        names = self.properties.values()
        functional = (self.properties.get(thing) for thing in self.graph.subjects(RDF.type, OWL.FunctionalProperty))
        uncovering, stray = self._outside(set().union(*members.values(), roots))
        return RdfReading(
            sketches=sketches,
            functional=tuple(sorted({name for name in functional if name is not None})),
            unused_properties=tuple(sorted(set(names) - used)),
            uncovering=uncovering,
            stray=stray,
        )

    # ---- reading

    def _properties(self) -> dict[Node, str]:
        """Aggregation properties and their names, by declared priority and then by name."""
        declared = set(self.graph.subjects(RDF.type, OWL.ObjectProperty))
        declared |= set(self.graph.subjects(SHOAL.priority, None))
        found = [(self._priority(thing), label(self.graph, thing), thing) for thing in declared if _is_own(thing)]
        names = [name for _, name, _ in found]
        twice = sorted({name for name in names if names.count(name) > 1} | ({IS_A} & set(names)))
        if twice:
            raise PolicyError(
                f"{self.where}: two properties are called {twice[0]!r} (every ontology has {IS_A!r}); relabel one"
            )
        return {thing: name for _, name, thing in sorted(found)}

    def _priority(self, thing: Node) -> float:
        given = {str(value) for value in self.graph.objects(thing, SHOAL.priority)}
        if not given:
            return _UNDECLARED
        try:
            (text,) = given
            return int(text)
        except ValueError:
            name = label(self.graph, thing)
            raise PolicyError(
                f"{self.where}: the priority of {name!r} must be one whole number; 1 comes first"
            ) from None

    def _read_classes(self) -> None:
        """Read the classes above things; the rdf:type of a class does not apply to what lies below the class."""
        classes = {*self.graph.objects(None, RDFS.subClassOf), *self.graph.objects(None, RDF.type)}
        for predicate in (RDFS.subClassOf, OWL.equivalentClass, RDF.type):
            for child, parent in self.graph.subject_objects(predicate):
                if not _is_own(child):
                    continue
                if isinstance(parent, BNode):
                    self._read_expression(child, parent, set())
                elif predicate == OWL.equivalentClass or not _is_named_class(parent):
                    continue
                elif predicate == RDFS.subClassOf or child not in classes or parent in _TAGS:
                    self.above.setdefault(child, set()).add(parent)

    def _read_expression(self, child: Node, expression: Node, seen: set[Node]) -> None:
        """Read a restriction, or each member of an intersection, as a statement about the class."""
        if expression in seen:
            return
        seen.add(expression)
        thing = self.graph.value(expression, OWL.onProperty)
        if thing in self.stated and thing is not None:
            for predicate in (OWL.hasValue, OWL.someValuesFrom):
                self._note(thing, child, self.graph.objects(expression, predicate))
        members = self.graph.value(expression, OWL.intersectionOf)
        for member in _listed(self.graph, members) if members is not None else ():
            if isinstance(member, BNode):
                self._read_expression(child, member, seen)
            elif _is_named_class(member):
                self.above.setdefault(child, set()).add(member)

    def _read_statements(self) -> None:
        for thing in self.properties:
            for subject, value in self.graph.subject_objects(thing):
                if _is_own(subject):
                    self._note(thing, subject, (value,))

    def _note(self, thing: Node, subject: Node, values: Iterable[Node]) -> None:
        kept = {value for value in values if _is_own(value) or (isinstance(value, Literal) and value.strip())}
        if kept:
            self.stated[thing].setdefault(subject, set()).update(kept)

    # ---- attributes

    def _attributes(self) -> dict[Node, Tag | None]:
        """Classes directly below a tag; without any tag, every top class with something below it."""
        tagged: dict[Node, Tag | None] = {}
        for thing, tag in _TAGS.items():
            for child in self.below.get(thing, ()):
                if child in tagged:
                    name = label(self.graph, child)
                    raise PolicyError(f"{self.where}: {name!r} is tagged sparse and normal; remove one tag")
                tagged[child] = tag
        found = tagged or dict.fromkeys(self._tops())
        if not found:
            raise PolicyError(
                f"{self.where}: has no class with something below it; write at least one rdfs:subClassOf or rdf:type"
            )
        return dict(sorted(found.items(), key=lambda entry: str(entry[0])))

    def _tops(self) -> Iterator[Node]:
        for thing in sorted(self.below, key=str):
            self._check_no_cycle(thing)
            if not self.above.get(thing):
                yield thing

    def _check_no_cycle(self, thing: Node) -> None:
        """Raise PolicyError where a thing lies below itself; otherwise no top class would be found."""
        seen, todo = set(), [thing]
        while todo:
            for parent in self.above.get(todo.pop(), ()):
                if parent == thing:
                    name = label(self.graph, thing)
                    raise PolicyError(
                        f"{self.where}: {name!r} lies below itself; remove one rdfs:subClassOf of that cycle"
                    )
                if parent not in seen:
                    seen.add(parent)
                    todo.append(parent)

    def _below(self, root: Node) -> set[Node]:
        found: set[Node] = set()
        todo = [root]
        while todo:
            for child in self.below.get(todo.pop(), ()):
                if child not in found:
                    found.add(child)
                    todo.append(child)
        return found

    def _check_apart(self, members: dict[Node, set[Node]]) -> None:
        owner: dict[Node, Node] = {}
        for root, things in members.items():
            for thing in sorted(things, key=str):
                if thing in owner:
                    one, other = sorted((label(self.graph, owner[thing]), label(self.graph, root)))
                    raise PolicyError(
                        f"{self.where}: {label(self.graph, thing)!r} lies below two attributes, {one!r} and {other!r}; "
                        "let it lie below one, or put a class tagged shoal:SparseAttribute or shoal:NormalAttribute "
                        "above both"
                    )
                owner[thing] = root

    # ---- one attribute

    def _sketch(self, root: Node, tag: Tag | None, members: set[Node]) -> Sketch:
        ordered = sorted(members, key=str)
        parents = {str(thing): self._keys(self.above[thing] & members) for thing in ordered}
        statements = {name: self._statements(thing, root, members, parents) for thing, name in self.properties.items()}
        statements = {name: stated for name, stated in statements.items() if stated}
        name = label(self.graph, root)
        return Sketch(
            name=name,
            tag=tag,
            root=name,
            texts={_key(thing): label(self.graph, thing) for thing in members | self._objects()},
            values=[str(thing) for thing in ordered if thing not in self.below],
            parents=parents,
            properties=[name for name in self.properties.values() if name in statements],
            statements=statements,
            wider=self._wider(root),
            where=self.where,
        )

    def _statements(
        self, thing: Node, root: Node, members: set[Node], parents: dict[Key, list[Key]]
    ) -> dict[Key, list[Key]]:
        """Statements about members; a statement about the attribute applies to everything directly below it."""
        stated = self.stated[thing]
        found = {}
        for member in sorted(members, key=str):
            objects = set(stated.get(member, ()))
            if not parents[str(member)]:
                objects |= stated.get(root, set())
            if objects:
                found[str(member)] = self._keys(objects)
        return found

    def _wider(self, root: Node) -> dict[Key, list[Key]]:
        """Classes above objects, without the ranges of properties ("country"), which cover every value."""
        left_out = self.kinds | {root}
        wider = {}
        for thing in sorted(self._objects(), key=str):
            above = self.above.get(thing, set()) - left_out
            if above:
                wider[_key(thing)] = self._keys(above)
        return wider

    def _objects(self) -> set[Node]:
        """Objects of every property, and everything above them."""
        found: set[Node] = set()
        todo = [thing for stated in self.stated.values() for objects in stated.values() for thing in objects]
        while todo:
            thing = todo.pop()
            if thing not in found:
                found.add(thing)
                todo.extend(self.above.get(thing, ()))
        return found

    def _keys(self, things: Iterable[Node]) -> list[Key]:
        return sorted(map(_key, things))

    def _outside(self, inside: set[Node]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of unused things: those that could be objects of properties, and all others."""
        objects = self._objects() | self.kinds
        near = set().union(*(self._below(thing) for thing in objects - inside))
        named = set(self.graph.subjects(RDF.type, OWL.Class)) | set(self.above) | set(self.below)
        left = {thing for thing in named - inside - objects - set(self.properties) if _is_own(thing)}
        uncovering, stray = left & near, left - near
        return self._labels(uncovering), self._labels(stray)

    def _labels(self, things: Iterable[Node]) -> tuple[str, ...]:
        return tuple(sorted(label(self.graph, thing) for thing in things))


def _key(thing: Node) -> Key:
    """An IRI unchanged; a text in quotes, so that it differs from every IRI."""
    return f'"{str(thing).strip()}"' if isinstance(thing, Literal) else str(thing)


def _is_own(thing: Node) -> bool:
    """Whether this is a named thing outside the vocabularies of RDF, OWL and the tags."""
    return isinstance(thing, URIRef) and not any(map(str(thing).startswith, _BUILT_IN))


def _is_named_class(thing: Node) -> bool:
    return _is_own(thing) or thing in _TAGS


def _listed(graph: Graph, members: Node) -> Sequence[Node]:
    try:
        return list(Collection(graph, members))
    except ValueError:  # a list that contains itself
        return ()
