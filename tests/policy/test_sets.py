"""Policies for sets: what is read and passed on, and every problem in one sentence of our own."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from shoal.hierarchies import Graph, Hierarchy
from shoal.hierarchies.places import Places
from shoal.methods.sets.km_anonymity import KmAnonymity, KmApriori
from shoal.policy import load_policy, parse_policy
from shoal.policy.methods import section_for
from tests.policy.test_policy import changed
from tests.policy.test_problems import problems_of

TREE = {"all": {"left": ["a", "b"], "right": ["c"]}}
TOWERS = "name,lon,lat\na,0,0\nb,0.01,0\nc,0,0.01\n"


def table(**more: Any) -> dict[str, Any]:
    """A good policy, with some keys of [anonymize] changed."""
    return {
        "stream": {"person": "user"},
        "source": {"kind": "csv", "path": "in.csv"},
        "anonymize": {"method": "k^m", "item": "site", "k": 5, "m": 2, "generalize": {"balanced": 5}, **more},
        "sink": {"kind": "parquet", "path": "out.parquet"},
    }


def test_settings_reach_the_method() -> None:
    said = {
        "k": [20, 10], "sigma": [1, 0.95], "adversary": "both", "bound": "hoeffding2", "trials": 3, "seed": 11,
        "counted": 1, "sampler": "chain", "joint": True, "error": "ncp", "recoding": "global",
    }  # fmt: skip
    parameters = parse_policy(table(**said, generalize={"hierarchy": {"kind": "nested", "tree": TREE}})).parameters()
    assert parameters == {**said, "m": 2, "generalize": Hierarchy.from_nested(TREE)}
    settings = KmAnonymity(**parameters).settings
    assert (settings.crowds, settings.confidences, settings.sampler, settings.joint) == (
        (20, 10),
        (1.0, 0.95),
        "chain",
        True,
    )


@pytest.mark.parametrize("method", [KmAnonymity, KmApriori])
def test_defaults_are_those_of_the_method(method: Any) -> None:
    section: Any = section_for(method.method)
    ours = {name: field.default for name, field in section.model_fields.items()}
    theirs = inspect.signature(method).parameters
    assert set(theirs) <= set(ours)
    for name in set(theirs) - {"k", "m", "generalize"}:
        assert ours[name] == theirs[name].default, name
    assert method.method == section.METHOD


def test_apriori_takes_what_it_needs() -> None:
    policy = parse_policy(table(method="k^m-apriori", generalize={"hierarchy": {"kind": "suffix"}}))
    assert set(policy.parameters()) == {"k", "m", "error", "recoding", "generalize"}
    KmApriori(**policy.parameters())


def test_balanced_is_made_later() -> None:
    assert "generalize" not in parse_policy(table()).parameters()


def test_files_are_read_with_the_policy(tmp_path: Path) -> None:
    (tmp_path / "towers.csv").write_text(TOWERS)
    (tmp_path / "edges.csv").write_text("from,to\na,b\nisland,\n")
    (tmp_path / "city.json").write_text(
        json.dumps({"type": "Polygon", "coordinates": [[[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]]]})
    )
    places = parse_policy(table(generalize={"places": "towers.csv", "region": "city.json"}), folder=tmp_path)
    along = places.parameters()["generalize"]
    assert isinstance(along, Places)
    assert along.names == ("a", "b", "c")
    corners = {"places": "towers.csv", "region": [[-1, -1], [1, -1], [1, 1], [-1, 1]]}
    assert (
        parse_policy(table(generalize=corners), folder=tmp_path).parameters()["generalize"].region.equals(along.region)
    )
    graph = parse_policy(table(generalize={"graph": "edges.csv"}), folder=tmp_path).parameters()["generalize"]
    assert graph == Graph([("a", "b")], ["island"])


def test_a_stream_is_not_needed(tmp_path: Path) -> None:
    lone = {name: section for name, section in table().items() if name != "stream"}
    lone["source"] = {"kind": "csv", "path": "in.csv", "separator": " "}
    assert parse_policy(lone).stream.person is None
    path = tmp_path / "policy.toml"
    path.write_text(
        '[source]\nkind = "jsonl"\npath = "in.jsonl"\n[anonymize]\nmethod = "k^m"\nitem = "apps"\nk = 2\nm = 1\n'
        '[anonymize.generalize]\nbalanced = 3\n[sink]\nkind = "csv"\npath = "out.csv"\n'
    )
    assert load_policy(path).sink.separator is None


# One change to a good policy, and the one sentence it brings about.
ONE_PROBLEM = [
    ("anonymize/item", None, "[anonymize] item: is missing; name the column that holds an item"),
    ("anonymize/item", "user", '[anonymize] item: the column "user" is already [stream] person'),
    ("anonymize/k", None, "[anonymize] k: is missing; give the number of people"),
    ("anonymize/k", 1, "[anonymize] k: must be a whole number of at least 2: with 1 no one is hidden"),
    ("anonymize/k", True, "[anonymize] k: must be a whole number"),
    ("anonymize/k", [5], "[anonymize] k: must be one number, or a list of m = 2"),
    ("anonymize/m", None, "[anonymize] m: is missing; give how many items"),
    ("anonymize/m", 65, "[anonymize] m: must be at most 64"),
    ("anonymize/m", 0, "[anonymize] m: must be at least 1"),
    ("anonymize/sigma", 0.1, "[anonymize] sigma: must be a number from 0.5 to 1"),
    ("anonymize/adversary", "me", "[anonymize] adversary: must be one of \"itemset\", \"person\", \"both\""),
    ("anonymize/bound", "loose", "[anonymize] bound: must be one of \"exact\""),
    ("anonymize/sampler", 3, "[anonymize] sampler: must be one of \"exact\", \"chain\""),
    ("anonymize/counted", 3, '[anonymize] counted: must be "auto", "all"'),
    ("anonymize/trials", 0, "[anonymize] trials: must be at least 1"),
    ("anonymize/seed", -1, "[anonymize] seed: must be at least 0"),
    ("anonymize/joint", "yes", "[anonymize] joint: must be true or false"),
    ("anonymize/error", "distance", '[anonymize] error: "distance" needs places'),
    ("anonymize/error", "mean", '[anonymize] error: must be one of "distance", "ncp"'),
    ("anonymize/column", "", "[anonymize] column: must not be empty"),
    ("anonymize/window", "1h", "[anonymize] window: unknown key"),
    ("anonymize/generalize", None, "[anonymize] generalize: is missing; add a table [anonymize.generalize]"),
    ("anonymize/generalize", {}, "[anonymize] generalize: is empty; give exactly one of hierarchy, places"),
    ("anonymize/generalize", {"balanced": 1}, "[anonymize.generalize] balanced: must be at least 2"),
    ("anonymize/generalize", {"balanced": 2, "x": "lon"}, "[anonymize.generalize] x: is only for places"),
    ("anonymize/generalize", {"graf": 2, "balanced": 2}, '.generalize] graf: unknown key; did you mean "graph"?'),
    ("anonymize/generalize", {"places": "gone.csv"}, "[anonymize] generalize: gone.csv: cannot be read"),
    ("anonymize/generalize", {"graph": "gone.csv"}, "[anonymize] generalize: gone.csv: cannot be read"),
    ("anonymize/generalize", {"hierarchy": {"kind": "csv", "path": "no"}}, ".generalize] hierarchy: no: cannot"),
    ("stream/time", "ts", "[stream] time: only the sets are published"),
    ("stream/carry", ["x"], "[stream] carry: only the sets are published"),
    ("stream/carry_identifying", True, "[stream] carry_identifying: only the sets are published"),
    ("stream", None, "[source] separator: is missing; give what separates the items"),
    ("source/separator", "", "[source] separator: must be text of at least one character"),
    ("sink/separator", "|", "[sink] separator: is only for csv"),
    ("sink/path", "-", "[sink] path: a release of sets is one file"),
    ("sink/path", "out/", "[sink] path: a release of sets is one file"),
    ("checkpoint", {"path": "state"}, "[checkpoint]: k^m decides all records at once"),
    ("trace", {"path": "out.parquet.blocks.json"}, "is the same place as [trace] path"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value", "sentence"), ONE_PROBLEM)
def test_one_problem(key: str, value: Any, sentence: str) -> None:
    (problem,) = problems_of(changed(table(), key, value))
    assert sentence in problem


def test_problems_come_all_at_once() -> None:
    wrong = table(k=1, m=99, sigma=7, adversary="me", error="distance", generalize={"balanced": 1, "graph": "x"}, z=3)
    wrong["sink"]["path"] = "-"
    problems = problems_of(wrong)
    assert len({problem.split(":")[0] for problem in problems}) == 9


def test_an_invalid_graph(tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    for content, words in (
        ("a,b\n", "has no pairs of items"),
        ("x,y\na,b,c\n", "line 2: must have two items"),
        ('x,y\n"a,b\n', "a quote is not closed"),
        (b"x,y\n\xff,b\n", "is not UTF-8"),
        ("x,y\na\0,b\n", "contains a NUL character"),
    ):
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        (problem,) = problems_of(table(generalize={"graph": "edges.csv"}), folder=tmp_path)
        assert "edges.csv" in problem
        assert words in problem


@pytest.mark.parametrize("content", ["\nx,y\na,b\n", '"x\nx",y\na,b\n'])
def test_the_header_of_a_graph_is_not_a_pair(tmp_path: Path, content: str) -> None:
    (tmp_path / "edges.csv").write_text(content)
    graph = parse_policy(table(generalize={"graph": "edges.csv"}), folder=tmp_path).parameters()["generalize"]
    assert graph == Graph([("a", "b")])


def test_an_invalid_region(tmp_path: Path) -> None:
    (tmp_path / "towers.csv").write_text(TOWERS)
    (tmp_path / "city.json").write_text("{")
    for region, words in (("city.json", "city.json: is not JSON"), ([[0, 0], [1, 1]], "region must be a polygon")):
        (problem,) = problems_of(table(generalize={"places": "towers.csv", "region": region}), folder=tmp_path)
        assert words in problem


def test_separators_are_for_sets_only() -> None:
    stream = {
        "stream": {"person": "user", "time": "ts"},
        "source": {"kind": "csv", "path": "in.csv", "separator": " "},
        "anonymize": {"method": "z-anonymity", "attribute": "site", "z": 2, "window": "1h"},
        "sink": {"kind": "csv", "path": "out.csv", "separator": "|"},
    }
    assert problems_of(stream) == (
        "[source] separator: is only for methods on sets; leave it out",
        "[sink] separator: is only for methods on sets; leave it out",
    )
