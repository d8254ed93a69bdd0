from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.auditor.hierarchies.hierarchy import read_hierarchy
from shoal.errors import InputError, PolicyError


def ladder(spec, folder=Path()):
    return read_hierarchy(spec, folder=folder, name="hierarchy of site")


@pytest.fixture
def levels(tmp_path):
    def write(text, **options):
        (tmp_path / "levels.csv").write_bytes(text.encode())
        return ladder({"kind": "csv", "path": "levels.csv", **options}, tmp_path)

    return write


def test_levels_of_a_csv_file(levels):
    tree = levels("a;news;*\nb;news;*\nc;shops;*\n")
    assert tree.path("a") == ("a", "news", "*")
    assert tree.path("news") == ("news", "*")
    assert tree.path("*") == ("*",)
    assert tree.path("unknown") == ()


def test_the_comma_is_taken_where_the_first_line_has_no_semicolon(levels):
    assert levels("a,news,*\nb;c,news,*\n").path("b;c") == ("b;c", "news", "*")


def test_a_given_separator_wins(levels):
    assert levels("a;b,*\nc,*\n", sep=",").path("a;b") == ("a;b", "*")


def test_a_header_is_found_by_its_last_cell(levels):
    assert levels("site;kind;all\na;news;*\nb;news;*\n").path("site") == ()
    assert levels("a;news;*\nb;news;*\n").path("a") == ("a", "news", "*")
    assert levels("a;news;*\n").path("a") == ("a", "news", "*")


def test_a_header_may_be_declared(levels):
    assert levels("a;news;*\nb;news;*\n", header=True).path("a") == ()
    with pytest.raises(PolicyError, match="one root"):
        levels("site;kind;all\na;news;*\n", header=False)


def test_repeated_labels_are_one_node(levels):
    tree = levels("a;a;news;*\nnews;news;news;*\nb;news;*;*\n")
    assert tree.path("a") == ("a", "news", "*")
    assert tree.path("b") == ("b", "news", "*")


def test_cells_may_be_quoted(levels):
    assert levels('"a;1";"news";*\n').path("a;1") == ("a;1", "news", "*")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a;x;*\na;y;*\n", "two others"),
        ("a;b;a;*\n", "two others"),
        ("a;x\nb;y\n", "one root"),
        ("", "one root"),
    ],
)
def test_an_invalid_tree_is_refused(levels, text, words):
    with pytest.raises(PolicyError, match=words):
        levels(text, header=False)


def test_circles_are_refused():
    with pytest.raises(PolicyError, match="two others"):
        ladder({"kind": "nested", "tree": {"*": [{"x": ["y"]}, {"y": ["x"]}]}})


def test_nested_trees(tmp_path):
    tree = {"all": {"news": ["a", "b"], "shops": {"c": {}, "d": None}}}
    (tmp_path / "tree.json").write_text(json.dumps(tree))
    for spec in ({"tree": tree}, {"path": "tree.json"}):
        found = ladder({"kind": "nested", **spec}, tmp_path)
        assert [found.path(value) for value in "acd"] == [
            ("a", "news", "all"),
            ("c", "shops", "all"),
            ("d", "shops", "all"),
        ]


def test_a_nested_tree_without_a_root_gets_one():
    assert ladder({"kind": "nested", "tree": {"x": ["a"], "y": ["b"]}}).path("a") == ("a", "x", "*")


def test_flat():
    assert ladder({"kind": "flat", "values": ["a", 1]}).path("1") == ("1", "*")
    assert ladder({"kind": "flat", "values": ["a"]}).path("b") == ()
    assert ladder({"kind": "flat"}).path("b") == ("b", "*")
    assert ladder({"kind": "flat"}).path("*") == ("*",)


def test_suffixes_and_prefixes():
    suffix = ladder({"kind": "suffix", "separator": "."})
    assert suffix.path("a.b.example.com") == ("a.b.example.com", "b.example.com", "example.com", "com", "*")
    assert ladder({"kind": "prefix", "separator": "/"}).path("top/mid/leaf") == (
        "top/mid/leaf",
        "top/mid",
        "top",
        "*",
    )
    assert suffix.path("*") == ("*",)


@pytest.mark.parametrize(
    "spec",
    [
        "levels.csv",
        {},
        {"kind": "tree"},
        {"kind": "csv"},
        {"kind": "suffix", "separator": ""},
        {"kind": "nested"},
    ],
)
def test_a_wrong_description_is_a_policy_error(spec):
    with pytest.raises(PolicyError, match="hierarchy of site"):
        ladder(spec)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        ladder({"kind": "csv", "path": "nowhere.csv"}, tmp_path)
    (tmp_path / "bad").write_bytes(b"\xff\xfe{")
    for kind in ("csv", "nested"):
        with pytest.raises(InputError, match="UTF-8"):
            ladder({"kind": kind, "path": "bad"}, tmp_path)
    (tmp_path / "bad").write_text("{")
    with pytest.raises(InputError, match="not JSON"):
        ladder({"kind": "nested", "path": "bad"}, tmp_path)


@given(
    value=st.text(alphabet="ab*.", max_size=12),
    side=st.sampled_from(["suffix", "prefix"]),
    root=st.sampled_from(["*", "a"]),
)
def test_open_paths_are_those_the_publisher_documents(value: str, side: str, root: str) -> None:
    from shoal.hierarchies import Hierarchy  # what the documentation of hierarchies says, by its own code

    spec = {"kind": side, "separator": ".", "root": root}
    read = read_hierarchy(spec, folder=Path(), name="hierarchy")
    assert read.path(value) == Hierarchy.from_separator(".", side=side, root=root).path(value)
