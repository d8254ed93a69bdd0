"""Trees of labels: content, refusals, round trips."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.errors import InputError, PolicyError
from shoal.hierarchies import Hierarchy

TOPICS = {"all": {"news": {"a.example": None, "b.example": {}}, "shop": ["c.example"], "rest": None}}
LABELS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6).filter(str.strip)


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[str], list[int]]:
    labels = draw(st.lists(LABELS, min_size=1, max_size=30, unique=True))
    parents = [-1] + [draw(st.integers(0, node - 1)) for node in range(1, len(labels))]
    return labels, parents


def nested(labels: list[str], parents: list[int]) -> dict[str, dict]:
    tables: list[dict] = [{} for _ in labels]
    for node in range(1, len(labels)):
        tables[parents[node]][labels[node]] = tables[node]
    return {labels[0]: tables[0]}


def naive_path(labels: list[str], parents: list[int], node: int) -> tuple[str, ...]:
    return () if node < 0 else (labels[node], *naive_path(labels, parents, parents[node]))


@given(trees())
def test_arrays_agree_with_paths(tree):
    labels, parents = tree
    hierarchy = Hierarchy.from_nested(nested(labels, parents))
    assert sorted(hierarchy.labels) == sorted(labels)
    assert hierarchy.parents[0] == -1
    assert (hierarchy.parents[1:] < np.arange(1, len(labels))).all()
    for node, label in enumerate(labels):
        path = hierarchy.path(label)
        found = hierarchy.node_of(label)
        assert path == naive_path(labels, parents, node)
        assert hierarchy.labels[found] == label
        assert hierarchy.depths[found] == len(path) - 1
        below = [
            leaf for leaf in range(len(labels)) if leaf not in parents and label in naive_path(labels, parents, leaf)
        ]
        assert hierarchy.leaf_counts[found] == len(below)


@given(trees())
def test_subtrees_are_runs_of_ids(tree):
    hierarchy = Hierarchy.from_nested(nested(*tree))
    for node, label in enumerate(hierarchy.labels):
        below = [other for other, name in enumerate(hierarchy.labels) if label in hierarchy.path(name)]
        assert below == list(range(node, node + len(below)))


@given(trees(), st.randoms(use_true_random=False))
def test_order_of_writing_does_not_matter(tree, random):
    def shuffled(table: dict) -> dict:
        items = list(table.items())
        random.shuffle(items)
        return {label: shuffled(below) for label, below in items}

    first, second = Hierarchy.from_nested(nested(*tree)), Hierarchy.from_nested(shuffled(nested(*tree)))
    assert first == second
    assert hash(first) == hash(second)
    assert json.dumps(first.to_dict()) == json.dumps(second.to_dict())


@given(trees())
def test_round_trip_through_json(tree):
    hierarchy = Hierarchy.from_nested(nested(*tree))
    again = Hierarchy.from_dict(json.loads(json.dumps(hierarchy.to_dict())))
    assert again == hierarchy
    assert again.labels == hierarchy.labels
    assert again.parents.tolist() == hierarchy.parents.tolist()


@given(trees(), st.data())
def test_lowest_common_ancestor(tree, data):
    labels, _ = tree
    hierarchy = Hierarchy.from_nested(nested(*tree))
    chosen = data.draw(st.lists(st.sampled_from(labels), min_size=1, max_size=4))
    shared = set(labels).intersection(*(hierarchy.path(label) for label in chosen))
    deepest = max(shared, key=lambda label: hierarchy.depths[hierarchy.node_of(label)])
    assert hierarchy.lowest_common_ancestor(chosen) == deepest


def test_small_tree():
    hierarchy = Hierarchy.from_nested(TOPICS)
    assert hierarchy.root == "all"
    assert len(hierarchy) == 7
    assert not hierarchy.is_open
    assert hierarchy.separator is None
    assert hierarchy.side is None
    assert hierarchy.path("news") == ("news", "all")
    assert hierarchy.path("c.example") == ("c.example", "shop", "all")
    assert "news" in hierarchy
    assert "d.example" not in hierarchy
    assert 3 not in hierarchy
    assert hierarchy.node_of("d.example") is None
    assert "c.example" not in repr(hierarchy)


def test_arrays_are_read_only():
    hierarchy = Hierarchy.from_nested(TOPICS)
    for array in (hierarchy.parents, hierarchy.depths, hierarchy.leaf_counts):
        assert array.dtype == np.int32
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError):
        hierarchy.root = "other"


def test_an_unknown_value_is_not_in_the_error():
    hierarchy = Hierarchy.from_nested(TOPICS)
    with pytest.raises(InputError) as caught:
        hierarchy.path("secret.example")
    assert "secret" not in str(caught.value)
    with pytest.raises(InputError):
        hierarchy.lowest_common_ancestor(["news", "secret.example"])
    with pytest.raises(PolicyError):
        hierarchy.lowest_common_ancestor([])


@pytest.mark.parametrize(
    ("tree", "fragment"),
    [
        ({}, "exactly one root"),
        ({"a": None, "b": None}, "exactly one root"),
        ([], "exactly one root"),
        ({"a": {"b": None, "c": {"b": None}}}, "'b' appears in two places"),
        ({"a": {"a": None}}, "'a' appears in two places"),
        ({"a": ["b", "b"]}, "'b' appears in two places"),
        ({"a": {"": None}}, "not empty"),
        ({"a": {" ": None}}, "not empty"),
        ({"a": [3]}, "must be text"),
        ({"a": "b"}, "the label 'a' must contain"),
        ({"a": {"b": 3}}, "the label 'b' must contain"),
        ({"a": ["b\ud800"]}, "not valid Unicode"),
    ],
)
def test_refused_trees(tree, fragment):
    with pytest.raises(PolicyError, match=fragment):
        Hierarchy.from_nested(tree)


def test_flat():
    hierarchy = Hierarchy.flat(["b", "a"])
    assert hierarchy.labels == ("*", "a", "b")
    assert Hierarchy.flat([], root="all").labels == ("all",)
    with pytest.raises(PolicyError, match="two places"):
        Hierarchy.flat(["*"])


def test_a_single_node_is_a_leaf():
    assert Hierarchy.from_nested({"all": None}).leaf_counts.tolist() == [1]


def test_a_chain_deeper_than_pythons_stack():
    content: dict = {}
    for depth in range(20_000):
        content = {f"n{depth}": content}
    assert Hierarchy.from_nested(content).depths.max() == 19_999


def test_a_hundred_thousand_leaves():
    tree = {"all": {f"t{t}": [f"s{t}-{s}" for s in range(100)] for t in range(1000)}}
    hierarchy = Hierarchy.from_nested(tree)
    assert hierarchy.leaf_counts[0] == 100_000


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"kind": "closed"},
        {"kind": "closed", "labels": [], "parents": []},
        {"kind": "closed", "labels": ["a", "b"], "parents": [-1]},
        {"kind": "closed", "labels": ["a", "a"], "parents": [-1, 0]},
        {"kind": "closed", "labels": ["a", "b"], "parents": [-1, 1]},
        {"kind": "closed", "labels": ["a", "b"], "parents": [-1, -1]},
        {"kind": "closed", "labels": ["a", "b"], "parents": [0, 0]},
        {"kind": "closed", "labels": ["a", "b"], "parents": [-1, "0"]},
        {"kind": "closed", "labels": ["a", 3], "parents": [-1, 0]},
        {"kind": "open", "separator": "..", "side": "suffix", "root": "*"},
        {"kind": "open", "separator": ".", "side": "middle", "root": "*"},
        {"kind": "open", "separator": ".", "side": "suffix", "root": ""},
        3,
    ],
)
def test_from_dict_refuses_what_to_dict_does_not_write(content):
    with pytest.raises(PolicyError):
        Hierarchy.from_dict(content)


def test_there_is_no_direct_constructor():
    with pytest.raises(PolicyError, match="from_nested"):
        Hierarchy()


# ---- open hierarchies


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("a.b.example.com", ("a.b.example.com", "b.example.com", "example.com", "com", "*")),
        ("com", ("com", "*")),
        ("a..b", ("a..b", "b", "*")),
        ("a.b.", ("a.b.", "b.", "*")),
        (".b", (".b", "b", "*")),
        ("..", ("..", "*")),
        ("", ("", "*")),
        ("*", ("*",)),
        ("a.*", ("a.*", "*")),
        ("*.a", ("*.a", "a", "*")),
        ("ä.ö", ("ä.ö", "ö", "*")),
    ],
)
def test_suffix_paths(value, path):
    hierarchy = Hierarchy.by_suffix()
    assert hierarchy.path(value) == path
    assert value in hierarchy


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("top/mid/leaf", ("top/mid/leaf", "top/mid", "top", "*")),
        ("/a/b/", ("/a/b/", "/a/b", "/a", "*")),
        ("a//b", ("a//b", "a", "*")),
        ("a/", ("a/", "a", "*")),
        ("/", ("/", "*")),
        ("", ("", "*")),
        ("*/a", ("*/a", "*")),
    ],
)
def test_prefix_paths(value, path):
    assert Hierarchy.by_prefix().path(value) == path


@given(st.text("ab./*", max_size=200), st.sampled_from("./"), st.sampled_from(["suffix", "prefix"]))
@example(".".join("abcdefghij" * 10), ".", "suffix")
@example("/".join("abcdefghij" * 10), "/", "prefix")
def test_open_paths_make_a_tree(value, separator, side):
    hierarchy = Hierarchy.from_separator(separator, side=side)
    path = hierarchy.path(value)
    assert path[0] == value
    assert path[-1] == "*"
    assert len(path) == len(set(path)) <= 66
    for step, label in enumerate(path):
        assert hierarchy.path(label) == path[step:]
        assert (value.endswith(label) if side == "suffix" else value.startswith(label)) or label == "*"


def test_a_hostile_value_has_a_short_path():
    value = "a." * 500_000
    path = Hierarchy.by_suffix().path(value)
    assert len(path) == 66
    assert path[1].count("a") == 64
    assert path[-2:] == ("a.", "*")


def test_open_hierarchies_are_values():
    hierarchy = Hierarchy.by_suffix(root="web")
    assert Hierarchy.from_dict(hierarchy.to_dict()) == hierarchy
    assert hierarchy != Hierarchy.by_suffix()
    assert hierarchy != Hierarchy.by_prefix(".", root="web")
    assert (hierarchy.is_open, hierarchy.separator, hierarchy.side, hierarchy.root) == (
        True,
        ".",
        "suffix",
        "web",
    )
    assert hierarchy
    assert len(hierarchy) == 0
    assert hierarchy.labels == ()
    assert hierarchy.node_of("com") is None
    assert hierarchy.lowest_common_ancestor(["a.x.com", "b.x.com"]) == "x.com"
    assert hierarchy.lowest_common_ancestor(["a.com", "b.org"]) == "web"
    assert "suffix" in repr(hierarchy)
    assert hierarchy != "web"


@pytest.mark.parametrize("separator", ["", "::", "→", 3])
def test_a_separator_is_one_ascii_character(separator):
    with pytest.raises(PolicyError, match="one ASCII character"):
        Hierarchy.by_suffix(separator)
