"""Ontologies in RDF: what is read, in every syntax, and what is refused with its line."""

from __future__ import annotations

import logging
import random
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import OWL, RDF, RDFS, BNode, Graph, URIRef

from shoal.errors import PolicyError
from shoal.hierarchies.ontology.ontology import Ontology
from shoal.hierarchies.ontology.rdf import read_rdf
from shoal.hierarchies.ontology.rdf_files import SHOAL
from tests.reference import ontology as naive
from tests.reference.effort import tries

PREFIXES = """\
@prefix : <urn:t#> .
@prefix s: <urn:shoal:ontology#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
"""
PHONES = (
    PREFIXES
    + """\
:Device rdfs:subClassOf s:SparseAttribute ; rdfs:label "device" .
:Network rdfs:subClassOf s:NormalAttribute ; rdfs:label "Netz"@de, "network"@en .
:LTE a :Network . :WiFi a :Network ; rdfs:label "Wi-Fi" .
:soldIn a owl:ObjectProperty ; rdfs:label "sold in" .
:producedIn a owl:ObjectProperty ; rdfs:label "produced in" ; s:priority 2 ; rdfs:range :Country .
:hasOS a owl:ObjectProperty ; rdfs:label "has OS" ; s:priority 1 .
:runs a owl:ObjectProperty .
:Asia rdfs:subClassOf :Country . :Korea rdfs:subClassOf :Asia . :China rdfs:subClassOf :Asia . :Georgia a :Asia .
:Chile rdfs:subClassOf :Country . :Lonely a owl:Class . :Forgotten rdfs:subClassOf :Lonely .
:Samsung rdfs:subClassOf :Device, [ a owl:Restriction ; owl:onProperty :producedIn ; owl:hasValue :Korea ] .
:S3 a :Samsung, owl:NamedIndividual ; rdfs:label "Galaxy S3" ; :hasOS :Android .
:Note a :Samsung ; :hasOS :Android ; :soldIn :Georgia .
:Huawei rdfs:subClassOf :Device ; :producedIn :China, :Georgia .
:P8 rdfs:subClassOf :Huawei, [ owl:onProperty :hasOS ; owl:someValuesFrom :Android ] .
:Mate owl:equivalentClass [ owl:intersectionOf ( :Huawei [ owl:onProperty :hasOS ; owl:someValuesFrom :Harmony ] ) ] .
"""
)


@pytest.fixture
def write(tmp_path):
    def written(text: str | bytes, name: str = "a.ttl"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return written


def test_classes_individuals_restrictions_and_tags(write):
    ontology = Ontology.from_rdf(write(PHONES))
    assert list(ontology.attributes) == ["device", "network"]
    device, network = ontology.attributes.values()
    assert (device.tag, network.tag, device.root) == ("sparse", "normal", "device")
    assert network.labels == ("LTE", "Wi-Fi", "network")
    assert device.values == ("Galaxy S3", "Mate", "Note", "P8")
    assert device.properties == ("is a", "has OS", "produced in", "sold in")
    assert device.labels_above("Galaxy S3") == ("Samsung", "Korea", "Android", "Asia (produced in)")
    assert device.labels_above("Mate") == ("Harmony", "Huawei", "China", "Georgia (produced in)", "Asia (produced in)")
    assert device.covered("Android") == ("Galaxy S3", "Note", "P8")
    assert device.covered("Asia (sold in)") == ("Note",)
    assert "Country" not in device  # what a property ranges over says nothing


def test_unused_parts_are_found(write):
    read = read_rdf(write(PHONES))
    assert read.unused_properties == ("runs",)
    assert read.uncovering == ("Chile",)
    assert read.stray == ("Forgotten", "Lonely")


def test_three_syntaxes_and_any_order_are_one_ontology(write):
    graph = Graph().parse(data=PHONES, format="turtle")
    lines = graph.serialize(format="nt").splitlines(keepends=True)
    random.Random(3).shuffle(lines)
    paths = [
        write(PHONES),
        write("\ufeff" + PHONES, "bom.ttl"),
        write(graph.serialize(format="turtle"), "b.owl"),
        write(graph.serialize(format="xml"), "c.rdf"),
        write(graph.serialize(format="xml"), "d.owl"),
        write(graph.serialize(format="xml", encoding="utf-16"), "e.xml"),
        write("".join(lines), "f.nt"),
        write("".join(lines), "without an ending"),
    ]
    assert {Ontology.from_rdf(path) for path in paths} == {Ontology.from_rdf(paths[0])}


def test_the_type_of_a_class_is_not_above_its_values(write):
    text = PREFIXES + ":Device a s:SparseAttribute . :Samsung rdfs:subClassOf :Device ; a :Brand . :S3 a :Samsung ."
    assert Ontology.from_rdf(write(text)).attribute("Device").labels == ("S3", "Samsung", "Device")


def test_without_tags_every_top_class_is_an_attribute(write):
    text = PREFIXES + ":a rdfs:subClassOf :B . :B rdfs:subClassOf owl:Thing . :c a :D . :Empty a owl:Class ."
    ontology = Ontology.from_rdf(write(text))
    assert {name: (found.values, found.tag) for name, found in ontology.attributes.items()} == {
        "B": (("a",), None),
        "D": (("c",), None),
    }


def test_names_of_things(write):
    text = (
        PREFIXES
        + """
    <http://x.example/A/> rdfs:subClassOf s:NormalAttribute .
    <http://x.example/b%20c> a <http://x.example/A/> .
    :d a <http://x.example/A/> ; rdfs:label "zwei"@de, "two"@en-GB, "deux"@fr .
    :e a <http://x.example/A/> ; rdfs:label "  " .
    <relative> a <http://x.example/A/> .
    """
    )
    concepts = Ontology.from_rdf(write(text)).attribute("http://x.example/A/")
    assert concepts.values == ("b c", "e", "relative", "two")


def test_a_property_of_texts_needs_a_priority(write):
    text = PREFIXES + ':A rdfs:subClassOf s:NormalAttribute . :year s:priority 3 . :b a :A ; :year 2012 ; :other "x" .'
    assert Ontology.from_rdf(write(text)).attribute("A").labels == ("b", "2012", "A")


def test_statements_about_an_attribute_apply_to_all_its_values(write):
    text = PREFIXES + ":A rdfs:subClassOf s:NormalAttribute ; :p :o . :p a owl:ObjectProperty . :b a :A . :c a :A ."
    assert Ontology.from_rdf(write(text)).attribute("A").covered("o") == ("b", "c")


def test_cyclic_expressions_terminate(write):
    text = (
        PREFIXES
        + """@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
    :A rdfs:subClassOf s:NormalAttribute . :b rdfs:subClassOf :A, _:e, _:f .
    _:e owl:intersectionOf _:l . _:l rdf:first _:e ; rdf:rest rdf:nil .
    _:f owl:intersectionOf _:m . _:m rdf:first :C ; rdf:rest _:m ."""
    )
    assert Ontology.from_rdf(write(text)).attribute("A").values == ("b",)


def test_several_values_of_one_name_are_one(write):
    text = PREFIXES + ':A rdfs:subClassOf s:NormalAttribute . :b a :B ; rdfs:label "x" . :c a :C ; rdfs:label "x" .'
    concepts = Ontology.from_rdf(write(text + ":B rdfs:subClassOf :A . :C rdfs:subClassOf :A .")).attribute("A")
    assert concepts.labels == ("x", "B", "C", "A")
    assert concepts.labels_above("x") == ("B", "C")


def test_classes_of_one_name_are_distinguished(write):
    text = (
        PREFIXES
        + """:A rdfs:subClassOf s:NormalAttribute . :B rdfs:subClassOf :A . :C rdfs:subClassOf :A .
    :n1 rdfs:subClassOf :B ; rdfs:label "Note" . :n2 rdfs:subClassOf :C ; rdfs:label "Note" .
    :n3 rdfs:subClassOf :C ; rdfs:label "Note" .
    :v1 a :n1 . :v2 a :n2 . :v3 a :n3 ."""
    )
    concepts = Ontology.from_rdf(write(text)).attribute("A")
    assert concepts.covered("Note (B)") == ("v1",)
    assert {concepts.covered(f"Note (is a) {number}") for number in (2, 3)} == {("v2",), ("v3",)}


TAGGED = PREFIXES + ":A rdfs:subClassOf s:SparseAttribute . :b a :A .\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (PREFIXES + ":a rdfs:subClassOf :b .\n:b rdfs:subClassOf .\n", "line 6: is not valid Turtle"),
        (PREFIXES + ":a a :b .\n:b rdfs:lab", "line 6: ends within a statement"),
        (PREFIXES + ':a rdfs:label "op', "line 5: ends within a statement"),
        (":a :b :c .\n", "line 1: is not valid Turtle .*not bound"),
        (PREFIXES + ':a rdfs:label "open .\n', "line 5: is not valid Turtle"),
        ("<urn:a> <urn:b> <urn:c> .\n\x00", "line 2: is not valid Turtle"),
        (b"<urn:a> <urn:b> <urn:c> .\n\xff", "line 2: is not UTF-8"),
        ("", "contains no statements"),
        ("# only words\n", "contains no statements"),
        (PREFIXES + ":a a owl:Class .", "no class with something below"),
        (PREFIXES + ":a rdfs:subClassOf :b . :b rdfs:subClassOf :a .", "lies below itself"),
        (TAGGED + ":A rdfs:subClassOf :A .", "'A' lies below itself"),
        (TAGGED + ":c rdfs:subClassOf :d, :A . :d rdfs:subClassOf :c . :v a :c .", "'c' → 'd' → 'c'"),
        (TAGGED + ":x rdfs:subClassOf :y . :y rdfs:subClassOf :x . :p a owl:ObjectProperty . :b :p :x .", "themselves"),
        (TAGGED + ":A rdfs:subClassOf s:NormalAttribute .", "sparse and normal"),
        (
            TAGGED + ":B rdfs:subClassOf s:NormalAttribute . :c rdfs:subClassOf :A, :B .",
            "'c' lies below two .*'A' and 'B'",
        ),
        (TAGGED + ":B rdfs:subClassOf s:NormalAttribute .", "'B' has no values"),
        (TAGGED + ":p s:priority 1, 2 .", "priority of 'p' must be one whole number"),
        (TAGGED + ':p s:priority "high" .', "priority of 'p' must be one whole number"),
        (TAGGED + ':p a owl:ObjectProperty ; rdfs:label "is a" .', "called 'is a'"),
        (TAGGED + ':p a owl:ObjectProperty ; rdfs:label "q" . :q a owl:ObjectProperty .', "called 'q'"),
        (TAGGED + ':c a :A ; rdfs:label "A" .', "called like the root"),
    ],
)
def test_broken_files_are_reported(write, text, says):
    with pytest.raises(PolicyError, match=says) as raised:
        Ontology.from_rdf(write(text))
    assert str(raised.value).startswith("a.ttl: ")
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


@pytest.mark.parametrize(
    ("text", "line"),
    [("", 1), ("<a>\n<b></a>", 2), ("no xml", 1), ('<?xml version="1.0"?>\n<!-- x -->\n<a>\n&nope;</a>', 4)],
)
def test_broken_xml_names_its_line(write, text, line):
    with pytest.raises(PolicyError, match=f"b.rdf: line {line}: is not valid RDF/XML"):
        Ontology.from_rdf(write(text, "b.rdf"))


def test_xml_that_is_not_rdf_names_its_line(write):
    text = """<?xml version='1.0'?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description rdf:about="urn:x" rdf:ID="b"/></rdf:RDF>"""
    with pytest.raises(PolicyError, match="line 3: is not valid RDF/XML"):
        Ontology.from_rdf(write(text, "b.owl"))


def test_a_missing_file(tmp_path):
    with pytest.raises(PolicyError, match=r"^no\.ttl: cannot be read"):
        Ontology.from_rdf(tmp_path / "no.ttl")


def test_nothing_is_fetched_and_nothing_logged(write, monkeypatch, caplog, tmp_path):
    def refuse(*_args, **_kwargs):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    (tmp_path / "secret").write_text("secret words")
    xml = f"""<?xml version="1.0"?>
<!DOCTYPE rdf:RDF SYSTEM "http://dtd.example/x.dtd" [<!ENTITY e SYSTEM "{(tmp_path / "secret").as_uri()}">
 <!ENTITY owl "http://www.w3.org/2002/07/owl#">]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#"
  xmlns:owl="http://www.w3.org/2002/07/owl#">
<owl:Ontology rdf:about="urn:o"><owl:imports rdf:resource="http://imports.example/"/></owl:Ontology>
<owl:Class rdf:about="urn:t#a"><rdfs:label>A&e;</rdfs:label><rdfs:subClassOf rdf:resource="urn:t#B"/></owl:Class>
</rdf:RDF>"""
    assert Ontology.from_rdf(write(xml, "a.owl")).attribute("B").values == ("A",)
    odd = PREFIXES + ':a rdfs:subClassOf :B ; :n "x"^^<http://www.w3.org/2001/XMLSchema#integer> . <urn:b c> a :B .'
    with caplog.at_level(logging.DEBUG):
        assert Ontology.from_rdf(write(odd)).attribute("B").values == ("a", "b c")
    assert not caplog.records


# ---- against the naive twin

THINGS = {kind: [URIRef(f"urn:t#{kind}{number}") for number in range(6)] for kind in "cvop"}
ROOT = URIRef("urn:t#root")


@st.composite
def graphs(draw) -> Graph:
    graph = Graph()
    graph.add((ROOT, RDFS.subClassOf, SHOAL.SparseAttribute))
    classes, values, objects = (THINGS[kind] for kind in "cvo")
    properties = THINGS["p"][:3]

    def some(of):
        return draw(st.lists(st.sampled_from(of), max_size=2, unique=True)) if of else []

    for place, thing in enumerate(classes):
        for parent in some(classes[place + 1 :]) or [ROOT]:
            graph.add((thing, RDFS.subClassOf, parent))
    for thing in values:
        for parent in some(classes) or [ROOT]:
            graph.add((thing, RDF.type, parent))
    for place, thing in enumerate(objects):
        for parent in some(objects[place + 1 :]):
            graph.add((thing, draw(st.sampled_from([RDFS.subClassOf, RDF.type])), parent))
    for thing in properties:
        graph.add((thing, RDF.type, OWL.ObjectProperty))
        for subject in some([ROOT, *classes, *values]):
            for value in some(objects):
                if draw(st.booleans()):
                    graph.add((subject, thing, value))
                else:
                    restriction = BNode()
                    graph.add((subject, RDFS.subClassOf, restriction))
                    graph.add((restriction, OWL.onProperty, thing))
                    graph.add((restriction, draw(st.sampled_from([OWL.hasValue, OWL.someValuesFrom])), value))
    return graph


@tries(40)
@given(graphs())
def test_labels_equal_a_naive_walk_over_the_graph(tmp_path_factory, graph):
    path = tmp_path_factory.mktemp("rdf") / "a.rdf"
    graph.serialize(path, format="xml")
    concepts = Ontology.from_rdf(path).attribute("root")
    expected = {}
    for value in concepts.values:
        expected[value] = naive.rdf_labels_above(graph, URIRef(f"urn:t#{value}"), ROOT)
    uses = [thing for _, thing in set().union(*expected.values())]
    for value, nodes in expected.items():
        labels = {thing if uses.count(thing) == 1 else f"{thing} ({kind})" for kind, thing in nodes}
        assert set(concepts.labels_above(value)) == labels


# ---- the one that is shipped


def test_the_shipped_devices():
    device = Ontology.devices().attribute("device")
    assert device.tag == "sparse"
    assert device.properties == ("is a", "has OS", "headquarters in")
    tree = device.tree()
    brands = [label for node, label in enumerate(tree.labels) if tree.depths[node] == 1]
    families = {tree.labels[tree.parents[tree.node_of(value)]] for value in device.values}
    assert len(brands) >= 25
    assert len(families) >= 60
    assert len(device.values) >= 250
    assert device.labels_above("Samsung Galaxy S8")[:3] == ("Samsung Galaxy S series", "Samsung", "South Korea")
    assert {"Android", "iOS", "HarmonyOS", "KaiOS", "Windows Phone"} <= set(device.labels)
    assert device.subsumes("Android", "Amazon Fire 7")
    for value in device.values:
        kinds = {device.properties[device.property_of[device.node_of(label)]] for label in device.labels_above(value)}
        assert kinds == set(device.properties), value
