"""The auditor reads ontologies by itself: RDF in its forms, tables, and the devices that come with the package."""

from __future__ import annotations

import sys

import pytest
from rdflib import Graph

from shoal.auditor.hierarchies.ontology import read_ontology
from shoal.errors import InputError, PolicyError, RunError
from tests.auditor.flexible.naive import DEVICES, TURTLE


def read(folder, text=TURTLE, name="devices.ttl", **spec):
    (folder / name).write_text(text)
    return read_ontology({"kind": "rdf", "path": name, **spec}, folder=folder, name="device")


def test_turtle(tmp_path):
    found = read(tmp_path)
    assert {value: set(found.path(value)) - {value, "any device"} for value in DEVICES} == DEVICES
    assert (found.root, found.tag) == ("any device", "sparse")
    assert found.leaf_counts() == {
        **dict.fromkeys(DEVICES, 1), "Galaxy": 3, "Samsung": 4, "Apple": 2, "Georgia (is a)": 2, "Android": 5, "iOS": 2,
        "System": 7, "Korea": 4, "China": 3, "Georgia (produced in)": 1, "Asia": 8, "any device": 8,
    }  # fmt: skip
    assert {value for value, is_leaf in found.is_leaf().items() if is_leaf} == set(DEVICES)
    assert found.path("i 1") == ("i 1", "Apple", "iOS", "China", "System", "Asia", "any device")
    assert found.path("Nokia") == ()


def test_rdf_xml_gives_the_same(tmp_path):
    text = Graph().parse(data=TURTLE, format="turtle").serialize(format="pretty-xml")
    found = read(tmp_path, text, "devices.owl", attribute="device")
    assert {value: set(found.path(value)) - {value, "any device"} for value in DEVICES} == DEVICES


def test_without_tags_the_top_class_is_the_attribute(tmp_path):
    text = TURTLE.replace("rdfs:subClassOf s:SparseAttribute ;", "")
    found = read(tmp_path, text)
    assert (found.root, found.tag) == ("any device", None)
    assert found.leaf_counts()["Galaxy"] == 3
    assert read(tmp_path, text, attribute="Asia").leaf_counts() == {"Korea": 1, "China": 1, "Georgia": 1, "Asia": 3}


def test_a_circle_ends(tmp_path):
    found = read(tmp_path, TURTLE + ":Samsung rdfs:subClassOf :Galaxy .")
    assert {"Galaxy", "Samsung"} <= set(found.path("G 1"))


@pytest.mark.parametrize(
    ("text", "spec", "message"),
    [
        ("this is no RDF", {}, "neither Turtle nor RDF/XML"),
        (TURTLE, {"attribute": "colour"}, "no attribute of that name"),
    ],
)
def test_rdf_that_cannot_be_used(tmp_path, text, spec, message):
    with pytest.raises(InputError, match=message):
        read(tmp_path, text, **spec)


def table(folder, text, **spec):
    (folder / "devices.csv").write_text(text)
    return read_ontology({"kind": "table", "path": "devices.csv", **spec}, folder=folder, name="device")


def test_a_table(tmp_path):
    text = "model,family,brand,os,maker\nA5,A,S,droid,S\nA7,A,S,droid,S\nP1,,P,,\nP1,,P,fruit,\nS,A,S,droid,P\n"
    found = table(
        tmp_path, text, value="model", is_a=["family", "brand"], properties=["os", "maker"], tag="sparse", root="any"
    )
    assert (found.root, found.tag) == ("any", "sparse")
    assert set(found.path("A5")) == {"A5", "A", "S (is a)", "droid", "S (maker)", "any"}
    assert set(found.path("P1")) == {"P1", "P (is a)", "fruit", "any"}
    assert set(found.path("S")) == {"S", "A", "S (is a)", "droid", "P (maker)", "any"}
    assert found.leaf_counts() == {
        "A5": 1, "A7": 1, "P1": 1, "S": 1, "A": 3, "S (is a)": 3, "droid": 3, "S (maker)": 2, "P (is a)": 1, "fruit": 1,
        "P (maker)": 1, "any": 4,
    }  # fmt: skip


def test_things_of_one_name_in_a_table(tmp_path):
    text = "model,family,brand,town,land\na,Note,S,Rome,US\nb,Note,X,Rome,IT\nc,,X,Oslo,\nc,,X,Oslo,\n,Note,S,,\n"
    found = table(
        tmp_path, text, value="model", is_a=["family", "brand"], properties=["town"], parents={"town": "land"}
    )
    assert found.root == "any device"
    assert set(found.path("a")) == {"a", "Note (S)", "S", "Rome (US)", "US", "any device"}
    assert set(found.path("b")) == {"b", "Note (X)", "X", "Rome (IT)", "IT", "any device"}
    assert set(found.path("c")) == {"c", "X", "Oslo", "any device"}


def test_things_of_one_name_and_nothing_above(tmp_path):
    text = TURTLE + ':p1 rdfs:label "Pole" . :p2 rdfs:label "Pole" . :g1 :producedIn :p1 . :g2 :producedIn :p2 .'
    found = read(tmp_path, text)
    assert "Pole (produced in) 2" in found.path("G 1")
    assert "Pole (produced in) 3" in found.path("G 2")


def test_expressions_and_ranges(tmp_path):
    text = (
        TURTLE
        + """
    :Galaxy owl:equivalentClass [ owl:intersectionOf ( :Flat [ owl:onProperty :hasForm ; owl:hasValue "bar" ] ) ] .
    :Flat rdfs:subClassOf :device .
    :hasForm s:priority 1 ; rdfs:label "has form" .
    :hasOS rdfs:range :System .
    """
    )
    found = read(tmp_path, text)
    assert set(found.path("G 1")) - {"G 1", "any device"} == (DEVICES["G 1"] - {"System"}) | {"Flat", "bar"}


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({}, PolicyError),
        ({"value": "model", "parents": "land"}, PolicyError),
        ({"value": "model", "tag": "rare"}, PolicyError),
        ({"value": "model", "properties": ["colour"]}, InputError),
    ],
)
def test_a_table_that_cannot_be_used(tmp_path, spec, error):
    with pytest.raises(error):
        table(tmp_path, "model,os\na,b\n", **spec)


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (None, PolicyError),
        ({"kind": "guess"}, PolicyError),
        ({"kind": "rdf"}, PolicyError),
        ({"kind": "rdf", "path": "nowhere.ttl"}, InputError),
        ({"kind": "table", "path": "nowhere.csv", "value": "model"}, InputError),
    ],
)
def test_an_ontology_that_is_not_there(tmp_path, spec, error):
    with pytest.raises(error):
        read_ontology(spec, folder=tmp_path, name="device")


def test_the_devices_that_come_with_the_package(tmp_path):
    try:
        found = read_ontology({"kind": "devices"}, folder=tmp_path, name="phone")
    except InputError as error:
        assert "not installed" in str(error)  # noqa: PT017
    else:
        assert found.tag == "sparse"
        assert len(found.leaf_counts()) > 10


def test_without_rdflib_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "shoal.auditor.hierarchies.rdf", raising=False)
    monkeypatch.setitem(sys.modules, "rdflib", None)
    with pytest.raises(RunError, match=r"reading RDF needs the package rdflib: pip install rdflib"):
        read(tmp_path)
