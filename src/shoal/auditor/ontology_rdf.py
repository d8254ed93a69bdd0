"""Read an attribute from RDF: classes, individuals, and what their properties lead to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from rdflib import Graph, Literal, URIRef
from rdflib.namespace import OWL, RDF, RDFS
from rdflib.term import Node

from shoal.auditor.ontology import IS_A, Above, Concepts
from shoal.errors import InputError

_OURS: Final = "urn:shoal:ontology#"
_TAGS: Final = {URIRef(_OURS + "SparseAttribute"): "sparse", URIRef(_OURS + "NormalAttribute"): "normal"}
_LANGUAGE_ITSELF: Final = (str(RDF), str(RDFS), str(OWL), _OURS)
_UP: Final = (RDFS.subClassOf, RDF.type)
_LEADS_TO: Final = (OWL.hasValue, OWL.someValuesFrom)


def parse(data: bytes, where: str) -> Graph:
    """Read Turtle or RDF/XML, whichever it is."""
    order = ("xml", "turtle") if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<?xml") else ("turtle", "xml")
    for form in order:
        graph = Graph()
        try:
            return graph.parse(data=data, format=form)
        except Exception:  # every parser of rdflib has errors of its own
            continue
    raise InputError(f"{where}: neither Turtle nor RDF/XML; check the file with shoal ontology check")


def read_attribute_of(graph: Graph, name: str, where: str, *, is_given: bool) -> Concepts:
    """Return the attribute of that name; where the policy did not give the name, the only one will do."""
    reader = _Reader(graph)
    root = reader.root(name, where, is_given=is_given)
    below = reader.below(root)
    values = [node for node in below if not reader.children[node]]
    above: dict[str, set[Above]] = defaultdict(set)
    for value in values:
        above[reader.label(value)] |= set(reader.labels_above(value, below))
    return Concepts(above, root=reader.label(root), tag=reader.tag(root))


class _Reader:
    """The named nodes of a graph, each with those right above it."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.parents: dict[Node, set[Node]] = defaultdict(set)
        self.children: dict[Node, set[Node]] = defaultdict(set)
        self._tags: dict[Node, str] = {}
        self._direct: dict[Node, set[tuple[str, Node]]] = defaultdict(set)
        for link in _UP:
            for lower, upper in graph.subject_objects(link):
                self._place(lower, upper)
        self._follow()

    def _place(self, lower: Node, upper: Node) -> None:
        if not isinstance(lower, URIRef) or lower in _TAGS:
            return
        if not isinstance(upper, URIRef):
            return
        if upper in _TAGS:
            self._tags[lower] = _TAGS[upper]
        elif not str(upper).startswith(_LANGUAGE_ITSELF):
            self.parents[lower].add(upper)
            self.children[upper].add(lower)

    def _follow(self) -> None:
        """Note what properties lead to from every node: said directly, or by a restriction it stands below."""
        graph = self._graph
        for link in graph.subjects(RDF.type, OWL.ObjectProperty):
            name = self.label(link)
            for subject, found in graph.subject_objects(link):
                self._direct[subject].add((name, found))
            for restriction in graph.subjects(OWL.onProperty, link):
                objects = [found for key in _LEADS_TO for found in graph.objects(restriction, key)]
                for up in _UP:
                    for subject in graph.subjects(up, restriction):
                        self._direct[subject] |= {(name, found) for found in objects}

    def label(self, node: Node) -> str:
        """Return what a node is called: its label (English or of no language before others), else its local name."""
        labels = [label for label in self._graph.objects(node, RDFS.label) if isinstance(label, Literal)]
        if labels:
            return str(min(labels, key=lambda label: (label.language not in (None, "en"), str(label))))
        return _local(str(node))

    def tag(self, root: Node) -> str | None:
        """Tell whether the ontology calls an attribute sparse or normal."""
        return self._tags.get(root)

    def root(self, name: str, where: str, *, is_given: bool) -> Node:
        """Return the class an attribute starts from: a tagged one, else one with nothing above it."""
        tops = {node for node in self.children if not self.parents.get(node)}
        for roots in (set(self._tags), tops - set(self._tags)):
            named = [node for node in roots if self._is_called(node, name)]
            if len(named) == 1 or (roots and len(roots) == 1 and not is_given):
                return next(iter(named or roots))
        raise InputError(f"{where}: no attribute of that name; name one of its top classes as attribute")

    def _is_called(self, node: Node, name: str) -> bool:
        return name.casefold() in (self.label(node).casefold(), _local(str(node)).casefold())

    def below(self, root: Node) -> set[Node]:
        """Return everything below a class."""
        return _reached(root, self.children) - {root}

    def labels_above(self, value: Node, below: set[Node]) -> Iterator[Above]:
        """Yield what covers a value: its classes, and what its own or an inherited property leads to."""
        nodes = _reached(value, self.parents)
        yield from ((IS_A, self.label(node)) for node in nodes & below if node != value)
        for node in nodes:
            for name, found in self._direct.get(node, ()):
                yield from ((name, text) for text in self._object_labels(found))

    def _object_labels(self, found: Node) -> Iterable[str]:
        if isinstance(found, Literal):
            return [str(found)]
        return [self.label(node) for node in _reached(found, self.parents) if isinstance(node, URIRef)]


def _local(address: str) -> str:
    return address.rstrip("#/").replace("#", "/").rpartition("/")[2].rpartition(":")[2]


def _reached(start: Node, links: dict[Node, set[Node]]) -> set[Node]:
    """Return a node and all that links lead to from it; a circle of links ends."""
    found, left = {start}, [start]
    while left:
        new = links.get(left.pop(), set()) - found
        found |= new
        left.extend(new)
    return found
