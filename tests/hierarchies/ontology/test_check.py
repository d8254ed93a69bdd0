"""What `shoal ontology check` finds, and what of the data it may show."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shoal.errors import InputError, PolicyError
from shoal.hierarchies.ontology.check import check_ontology, read_ontology_file
from shoal.hierarchies.ontology.column_values import NearestTexts, Seen, count_values
from shoal.hierarchies.ontology.tables import table_shape
from tests.hierarchies.ontology.test_rdf import PHONES, PREFIXES


def sentences(path: Path | None, shape=None, **data) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for finding in check_ontology(read_ontology_file(path, shape), **data):
        found.setdefault(f"{finding.level} {finding.topic}", []).append(finding.sentence)
    return found


@pytest.fixture
def phones(tmp_path):
    path = tmp_path / "phones.ttl"
    path.write_text(PHONES)
    return path


def test_what_is_unreachable_ambiguous_and_bare(phones):
    found = sentences(phones)
    assert found["look unreachable"] == [
        "properties that no value has: 1 ('runs')",
        "labels that cover no value, because no statement uses them: 1 ('Chile')",
        "classes and individuals below no attribute: 2 ('Forgotten', 'Lonely')",
    ]
    assert found["good device"][0] == (
        "4 values and 11 labels, tagged sparse; properties in order: is a, has OS, produced in, sold in"
    )
    assert any("'Asia', 'Georgia'" in sentence for sentence in found["look ambiguous"])
    assert found["look device"] == [
        "labels that cover every value and say no more than the root: 1 ('Asia (produced in)')"
    ]
    assert "values that reach nothing but the root by 'sold in': 3 ('Galaxy S3', 'Mate', 'P8')" in found["look bare"]
    assert any("no label but the root" in sentence and "LTE" in sentence for sentence in found["look bare"])


def test_several_parents_and_objects(tmp_path):
    path = tmp_path / "a.ttl"
    path.write_text(
        PREFIXES
        + """:A rdfs:subClassOf s:SparseAttribute . :B rdfs:subClassOf :A . :C rdfs:subClassOf :A .
    :D rdfs:subClassOf :B, :C . :v a :D . :w a :B, :C . :x a :B ; rdfs:label "v" .
    :os a owl:ObjectProperty, owl:FunctionalProperty . :Fire rdfs:subClassOf :Android .
    :B :os :Android . :v :os :Fire . :w :os :iOS ."""
    )
    found = sentences(path)["look ambiguous"]
    assert found == [
        "names of several values, which the data cannot distinguish and which are one value here: 1 ('v')",
        "values directly below several classes: 1 ('w')",
        "classes directly below several classes: 1 ('D')",
        "values with several objects of 'os', which gives one; they have all these labels: 1 ('w')",
    ]


def test_a_table(tmp_path):
    path = tmp_path / "list.csv"
    path.write_text("model,brand,os,empty\na,X,one,\na,Y,one,\nb,X,,\nc,,,\n")
    found = sentences(path, table_shape("model", ["brand", "os", "empty"], [], None))
    assert found["look unreachable"] == ["the column 'empty' is empty and gives no label"]
    assert found["look ambiguous"] == [
        "values with several objects of 'brand', which gives one; they have all these labels: 1 ('a')"
    ]
    assert found["look bare"] == [
        "values with no label but the root, which can only be published as they are: 1 ('c')",
        "values that reach nothing but the root by 'os': 1 ('b')",
    ]
    with pytest.raises(PolicyError, match="say with --value"):
        read_ontology_file(path, None)


def test_the_shipped_ontology_has_no_problem():
    assert set(sentences(None)) == {"good device"}


def test_unknown_values_and_what_may_be_shown(phones, tmp_path):
    data = tmp_path / "data.csv"
    rows = ["Galaxy S3", "galaxy s-3", "galaxy s-3", "P8", "", "me@example.org", "me@example.org", "Notte", "Samsung"]
    data.write_text("x,device\n" + "".join(f"1,{value}\n" for value in [*rows, "Samsung"]))
    found = sentences(phones, values=data, column="device")
    assert found["wrong uncovered"] == ["unknown values of 'device': 4 of 6, in 7 of 9 rows"]
    assert found["look uncovered"] == [
        "'Samsung' (2 rows) is a label above values and not a value",
        "'galaxy s-3' (2 rows) is unknown; nearest: 'Galaxy S3'",
        "others, rare or like no known value: 2, first in rows (from 1) 6, 8",
    ]
    assert "me@example.org" not in str(found)
    assert "Notte" not in str(found)  # in one row only


def test_many_unknown_values_are_counted_and_few_shown(phones, tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("device\n" + "".join(f"Galaxy S3{letter}\n" * 2 for letter in "abcdefghijklmnop"))
    found = sentences(phones, values=data, column="device")["look uncovered"]
    assert len(found) == 11
    assert found[-1].startswith("others, rare or like no known value: 6, first in rows (from 1) 21, 23")


def test_known_values_and_an_empty_column(phones, tmp_path):
    data = tmp_path / "data.parquet"
    pq.write_table(pa.table({"network": ["LTE", None, "Wi-Fi", "LTE"], "none": [None, " ", "", None]}), data)
    found = sentences(phones, values=data, column="network")
    assert found["good uncovered"] == ["all 2 values of 'network' are known, in 3 rows"]
    assert sentences(phones, values=data, column="none", attribute="device")["look uncovered"] == [
        "the column 'none' is empty"
    ]


def test_which_attribute_a_column_holds(phones, tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("phone\nP8\n")
    assert "good uncovered" in sentences(phones, values=data, column="phone", attribute="device")
    with pytest.raises(PolicyError, match="several attributes, 'device', 'network'"):
        sentences(phones, values=data, column="phone")
    with pytest.raises(PolicyError, match="--column"):
        sentences(phones, values=data)
    with pytest.raises(PolicyError, match="are for tables"):
        read_ontology_file(phones, table_shape("a", ["b"], [], None))


def test_values_are_counted_in_every_kind_of_file(tmp_path):
    text = '\ufeffa,b\nx,1\n\n"y\nz",2\nx\n ,3\n'
    paths = [tmp_path / "a.csv", tmp_path / "a.csv.gz", tmp_path / "a.parquet"]
    paths[0].write_text(text)
    paths[1].write_bytes(gzip.compress(text.encode()))
    pq.write_table(pa.table({"a": ["x", "y\nz", "x", " "]}), paths[2])
    for path in paths:
        assert count_values(path, "a") == {"x": Seen(2, 1), "y\nz": Seen(1, 2)}
    assert count_values(paths[0], "b") == {"1": Seen(1, 1), "2": Seen(1, 2), "3": Seen(1, 4)}
    for path in paths:
        with pytest.raises(InputError, match="has no column 'c'"):
            count_values(path, "c")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.csv", b'a\n"x\n', "a quote is not closed"),
        ("a.csv", b"a\n\xff\n", "not UTF-8"),
        ("a.csv", gzip.compress(b"a\nx\n", mtime=0)[:-3], "damaged or broke off"),
        ("a.parquet", b"no", "Parquet"),
        ("missing.csv", None, "cannot be read"),
        ("missing.parquet", None, "cannot be read"),
    ],
)
def test_broken_data(tmp_path, name, content, says):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=says):
        count_values(tmp_path / name, "a")


def test_the_nearest_of_many():
    chooser = random.Random(2)
    known = sorted({"".join(chooser.choices("abcdefgh 0123", k=12)).strip() for _ in range(5000)})
    nearest = NearestTexts(known)
    for text in chooser.sample(known, 40):
        place = chooser.randrange(3, len(text) - 2)
        assert text in nearest.like(text[:place] + "#" + text[place + 1 :])
        assert nearest.like(text.upper())[0] == text
    assert nearest.like("zzzzzz") == ()
    assert nearest.like("") == ()
    assert NearestTexts([]).like("a") == ()
