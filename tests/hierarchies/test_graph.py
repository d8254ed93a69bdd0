"""Graphs of names that may be merged."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import PolicyError
from shoal.hierarchies import Graph
from shoal.hierarchies.neighbourhood import components

NAMES = st.sampled_from("abcdefgh")


def named_edges(graph: Graph) -> set[tuple[str, str]]:
    return {(graph.names[first], graph.names[second]) for first, second in graph.edges.tolist()}


@pytest.mark.parametrize(
    "neighbours",
    [
        {"a": ["b"], "b": ["c"]},
        {"b": ["a", "c"], "c": []},
        {"a": {"b"}, "b": ("a", "c"), "c": ["b"]},
        [("a", "b"), ("b", "c")],
        [("b", "a"), ["c", "b"], ("b", "c"), ("a", "a")],
        iter([("a", "b"), ("c", "b")]),
    ],
)
def test_equivalent_descriptions(neighbours):
    graph = Graph(neighbours)
    assert graph.names == ("a", "b", "c")
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert graph.site_of.tolist() == [0, 1, 2]
    assert graph.ground is None
    assert graph == Graph([("a", "b"), ("b", "c")])
    assert hash(graph) == hash(Graph([("a", "b"), ("b", "c")]))
    assert len(graph) == 3


def test_components_are_connected_by_their_first_names():
    graph = Graph([("d", "b"), ("c", "e")], names=["a", "f"])
    assert named_edges(graph) == {("b", "d"), ("c", "e"), ("a", "b"), ("b", "c"), ("c", "f")}


@given(st.lists(st.tuples(NAMES, NAMES)), st.sets(NAMES, min_size=1))
def test_a_graph_is_connected_and_survives_json(pairs, names):
    graph = Graph(pairs, names)
    assert set(components(len(graph), graph.edges.tolist())) == {0}
    assert {tuple(sorted(pair)) for pair in pairs if pair[0] != pair[1]} <= named_edges(graph)
    assert set(graph.names) == names | {name for pair in pairs for name in pair}
    assert Graph.from_dict(json.loads(json.dumps(graph.to_dict()))) == graph


@pytest.mark.parametrize(
    ("neighbours", "problem"),
    [
        ([], "has no names"),
        ({}, "has no names"),
        ("ab", "not one name"),
        ({"a": "b"}, "not one name"),
        ({"a": 3}, "not one name"),
        (3, "not one name"),
        (["ab"], "pairs of names"),
        ([3], "pairs of names"),
        ([("a", "b", "c")], "joins two names"),
        ([("a", " ")], "text that is not empty"),
        ([("a", 7)], "text that is not empty"),
        ({7: ["a"]}, "text that is not empty"),
    ],
)
def test_what_it_refuses(neighbours, problem):
    with pytest.raises(PolicyError, match=problem):
        Graph(neighbours)


@pytest.mark.parametrize(
    "content", [{}, {"names": ["a"]}, {"names": ["a"], "edges": [[0, 1]]}, {"names": ["a"], "edges": [[0]]}, None]
)
def test_what_to_dict_never_wrote(content):
    with pytest.raises(PolicyError, match="write it again"):
        Graph.from_dict(content)


def test_arrays_are_read_only_and_values_stay_out_of_repr():
    graph = Graph([("secret", "b")])
    with pytest.raises(ValueError, match="read-only"):
        graph.edges[0] = 0
    assert repr(graph) == "<Graph of 2 names and 1 edges>"
