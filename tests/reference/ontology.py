"""What an ontology says, found by walking up from one value at a time: the naive twin of the compiled arrays."""

from __future__ import annotations

from rdflib import OWL, RDF, RDFS, Graph, URIRef
from rdflib.term import Node

from shoal.hierarchies.ontology.compile import Sketch


def walk_up(links: dict[str, list[str]], start: str) -> set[str]:
    """Everything above a thing, one step after another."""
    found: set[str] = set()
    todo = list(links.get(start, ()))
    while todo:
        thing = todo.pop()
        if thing not in found:
            found.add(thing)
            todo += links.get(thing, ())
    return found


def nodes_above(sketch: Sketch, key: str) -> set[tuple[str, str]]:
    """Pairs of a property and a thing above one value."""
    classes = walk_up(dict(sketch.parents), key)
    nodes = {("is a", thing) for thing in classes}
    for name, said in sketch.statements.items():
        for subject in {key, *classes}:
            for thing in said.get(subject, ()):
                nodes |= {(name, wider) for wider in {thing, *walk_up(dict(sketch.wider), thing)}}
    return nodes


def rdf_labels_above(graph: Graph, value: Node, root: Node) -> set[tuple[str, str]]:
    """The same from the graph itself, for individuals and classes whose local names are their labels."""

    def up(thing: Node) -> set[Node]:
        above = set(graph.transitive_objects(thing, RDFS.subClassOf))
        is_class = (None, RDF.type, thing) in graph or (None, RDFS.subClassOf, thing) in graph
        for kind in () if is_class else graph.objects(thing, RDF.type):
            above |= set(graph.transitive_objects(kind, RDFS.subClassOf))
        return {found for found in above - {thing} if isinstance(found, URIRef) and found.startswith("urn:t#")}

    classes = {thing for thing in up(value) if root in graph.transitive_objects(thing, RDFS.subClassOf)} - {root}
    nodes = {("is a", name(thing)) for thing in classes}
    for prop in graph.subjects(RDF.type, OWL.ObjectProperty):
        for subject in {value, root, *classes}:
            objects = set(graph.objects(subject, prop))
            for expression in graph.objects(subject, RDFS.subClassOf):
                if (expression, OWL.onProperty, prop) in graph:
                    objects |= set(graph.objects(expression, OWL.hasValue))
                    objects |= set(graph.objects(expression, OWL.someValuesFrom))
            nodes |= {(name(prop), name(wider)) for thing in objects for wider in {thing, *up(thing)}}
    return nodes


def name(thing: Node) -> str:
    return str(thing).split("#")[1]
