"""Read an attribute from RDF: classes, individuals, and the values of their properties."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import unquote

from rdflib import Graph, Literal, URIRef
from rdflib.collection import Collection
from rdflib.namespace import OWL, RDF, RDFS
from rdflib.term import Node

from shoal.auditor.hierarchies.ontology import IS_A, Concepts, Label, OntologyAttribute
from shoal.errors import InputError

_OURS: Final = "urn:shoal:ontology#"
_TAGS: Final = {URIRef(_OURS + "SparseAttribute"): "sparse", URIRef(_OURS + "NormalAttribute"): "normal"}
_PRIORITY: Final = URIRef(_OURS + "priority")
_LANGUAGE_ITSELF: Final = (str(RDF), str(RDFS), str(OWL), _OURS)
_LEADS_TO: Final = (OWL.hasValue, OWL.someValuesFrom)
_TONGUES: Final = (None, "en")
_Links = dict[Node, set[Node]]


def parse(data: bytes, where: str) -> Graph:
    """Read Turtle or RDF/XML, whichever it is."""
    begins = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    order = ("xml", "turtle") if re.match(rb"<(\?xml|!|\w+:RDF)", begins) else ("turtle", "xml")
    for form in order:
        graph = Graph()
        try:
            return graph.parse(data=data.removeprefix(b"\xef\xbb\xbf"), format=form, publicID="http://file.invalid/")
        except Exception:  # every parser of rdflib raises its own errors
            continue
    raise InputError(f"{where}: neither Turtle nor RDF/XML; check the file with shoal ontology check")


def read_attribute_of(graph: Graph, name: str, where: str, *, is_given: bool) -> Concepts:
    """Return the attribute of that name; if the policy gives no name, a single attribute is taken."""
    reader = _Reader(graph)
    return Concepts(reader.outline(reader.root(name, where, is_given=is_given)))


class _Reader:
    """The named things of a graph: what is directly above each, and its properties."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._parents: _Links = defaultdict(set)
        self._children: _Links = defaultdict(set)
        self._tags: dict[Node, str] = {}
        self._said: dict[Node, set[tuple[str, Node]]] = defaultdict(set)
        declared = {*graph.subjects(RDF.type, OWL.ObjectProperty), *graph.subjects(_PRIORITY, None)}
        self._properties = {link: self.label(link) for link in declared}
        # The range of a property ("country") does not describe an object.
        self._kinds = set(graph.objects(None, RDFS.range))
        self._read_classes()
        for link, called in self._properties.items():
            for subject, found in graph.subject_objects(link):
                self._said[subject].add((called, found))

    # ---- what the graph says

    def _read_classes(self) -> None:
        """Place things below classes; the type of a class does not apply to its members."""
        graph = self._graph
        classes = {*graph.objects(None, RDFS.subClassOf), *graph.objects(None, RDF.type)}
        for link in (RDFS.subClassOf, RDF.type, OWL.equivalentClass):
            for lower, upper in graph.subject_objects(link):
                if not _is_own(lower):
                    continue
                if not isinstance(upper, URIRef):
                    self._read_expression(lower, upper)
                elif link == RDFS.subClassOf or (link == RDF.type and (lower not in classes or upper in _TAGS)):
                    self._place(lower, upper)

    def _place(self, lower: Node, upper: Node) -> None:
        if upper in _TAGS and isinstance(upper, URIRef):
            self._tags[lower] = _TAGS[upper]
        elif _is_own(upper):
            self._parents[lower].add(upper)
            self._children[upper].add(lower)

    def _read_expression(self, lower: Node, expression: Node) -> None:
        """Read a restriction, or an intersection of restrictions and classes."""
        graph, left, seen = self._graph, [expression], set()
        while left:
            part = left.pop()
            if part in seen:
                continue
            seen.add(part)
            if isinstance(part, URIRef):
                self._place(lower, part)
                continue
            links = [self._properties[link] for link in graph.objects(part, OWL.onProperty) if link in self._properties]
            objects = [found for key in _LEADS_TO for found in graph.objects(part, key)]
            self._said[lower] |= {(link, found) for link in links for found in objects}
            for members in graph.objects(part, OWL.intersectionOf):
                left.extend(_listed(graph, members))

    def label(self, node: Node) -> str:
        """Return the name of a node: its label (without a language, then English, then others), else its local name."""
        if isinstance(node, Literal):
            return str(node).strip()
        labels = [text for text in self._graph.objects(node, RDFS.label) if isinstance(text, Literal) and text.strip()]
        return str(min(labels, key=_preference)).strip() if labels else _local(str(node))

    # ---- one attribute

    def root(self, name: str, where: str, *, is_given: bool) -> Node:
        """Return the class an attribute starts from: a tagged one, else one with nothing above it."""
        tops = {node for node in self._children if not self._parents.get(node)}
        for roots in (set(self._tags), tops - set(self._tags)):
            named = [node for node in roots if self._is_called(node, name)]
            if len(named) == 1 or (len(roots) == 1 and not is_given):
                return next(iter(named or roots))
        raise InputError(f"{where}: no attribute of that name; name one of its top classes as attribute")

    def _is_called(self, node: Node, name: str) -> bool:
        return name.casefold() in (self.label(node).casefold(), _local(str(node)).casefold())

    def outline(self, root: Node) -> OntologyAttribute:
        """Collect the values of an attribute and their labels."""
        found = OntologyAttribute(self.label(root), self._tags.get(root))
        below = _reached(root, self._children) - {root}
        for value in below:
            if not self._children.get(value):
                found.above[self.label(value)] |= set(self._labels_of(value, root, below, found))
        return found

    def _labels_of(self, value: Node, root: Node, below: set[Node], found: OntologyAttribute) -> Iterator[Label]:
        """Yield the labels of a value: its classes, and the objects of its own and inherited properties."""
        inside = _reached(value, self._parents) & (below | {root})
        for node in inside - {value, root}:
            yield self._noted((IS_A, str(node)), node, self._parents[node] & below, found)
        for node in inside:
            for name, thing in self._said.get(node, ()):
                for wider in self._widened(thing, root):
                    above = self._parents.get(wider, set()) - self._kinds - {root}
                    key = f'"{str(wider).strip()}"' if isinstance(wider, Literal) else str(wider)
                    yield self._noted((name, key), wider, above, found)

    def _noted(self, label: Label, node: Node, above: Iterable[Node], found: OntologyAttribute) -> Label:
        if label not in found.texts:
            found.texts[label] = self.label(node)
            found.wider[label] = [self.label(upper) for upper in above]
        return label

    def _widened(self, thing: Node, root: Node) -> set[Node]:
        """Return an object and everything above it."""
        if isinstance(thing, Literal):
            return {thing} if thing.strip() else set()
        if not _is_own(thing):
            return set()
        return {thing} | _reached(thing, self._parents, without=self._kinds | {root})


def _is_own(node: Node) -> bool:
    """Return whether a node has a name outside RDF, OWL and the tags."""
    return isinstance(node, URIRef) and not str(node).startswith(_LANGUAGE_ITSELF)


def _preference(text: Literal) -> tuple[int, str, str]:
    tongue = text.language and text.language.partition("-")[0].lower()
    rank = _TONGUES.index(tongue) if tongue in _TONGUES else len(_TONGUES)
    return rank, text.language or "", str(text)


def _local(address: str) -> str:
    return unquote(re.split(r"[#/:]", address)[-1]).strip() or address


def _listed(graph: Graph, members: Node) -> list[Node]:
    try:
        return list(Collection(graph, members))
    except ValueError:  # a circular list
        return []


def _reached(start: Node, links: _Links, without: Iterable[Node] = ()) -> set[Node]:
    """Return a node and everything reachable from it."""
    shut = set(without)
    found, left = {start}, [start]
    while left:
        new = links.get(left.pop(), set()) - found - shut
        found |= new
        left.extend(new)
    return found
