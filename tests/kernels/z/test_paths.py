"""Paths in arrays against Hierarchy.path and against splitting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.hierarchies import Hierarchy
from shoal.kernels.z import index, paths
from tests.reference.effort import tries
from tests.reference.open_paths import open_path
from tests.reference.plain import plain_kernels
from tests.reference.siphash import siphash128

KEY = bytes(range(16))
WORDS = np.frombuffer(KEY, dtype="<u8").astype(np.uint64)

texts = st.one_of(
    st.text(alphabet="ab.é*", max_size=12),
    st.text(max_size=8),
    st.integers(60, 70).map(lambda count: ".".join("x" * (count + 1))),
    st.integers(60, 70).map(lambda count: "a." * count),
)

PIECES = plain_kernels("z.paths").paths
sides = st.sampled_from(["suffix", "prefix"])
roots = st.sampled_from(["*", "b", "a.b", "é", "..."])


def key_of(text):
    return tuple(np.frombuffer(siphash128(KEY, text.encode()), dtype="<i8").tolist())


def layout(values):
    encoded = [value.encode() for value in values]
    offsets = np.cumsum([0, *map(len, encoded)])
    return offsets, np.frombuffer(b"".join(encoded) or b"\x00", dtype=np.uint8)


def how(side, root):
    cuts = np.empty((paths.MOST_ANCESTORS + 1, 2), dtype=np.int64)
    return np.uint8(ord(".")), side == "suffix", np.frombuffer(root.encode(), dtype=np.uint8), cuts


@given(st.lists(texts, max_size=4), sides, roots)
@example(["a..b", "a.b.", ".b", "", "*", "a.*", "..", "."], "suffix", "*")
@example(["a..b", "/a.b.", ".b", "", "*", "*.a", "..", "."], "prefix", "*")
@example([".".join("x" * 65), ".".join("x" * 66), ".".join("x" * 67)], "suffix", "x.x")
@tries(100)
def test_open_paths(values, side, root):
    hierarchy = Hierarchy.from_separator(".", side=side, root=root)
    expected = [hierarchy.path(value) for value in values]
    assert expected == [open_path(value, separator=".", side=side, root=root) for value in values]
    offsets, data = layout(values)
    usable = np.ones(len(values), np.bool_)
    starts = np.empty(len(values) + 1, dtype=np.int64)
    paths.count_open(offsets, data, usable, *how(side, root), starts)
    assert np.diff(starts).tolist() == [len(path) for path in expected]
    out = np.empty((int(starts[-1]), 2), dtype=np.int64)
    paths.fill_open(WORDS[0], WORDS[1], *key_of(root), offsets, data, *how(side, root), starts, out)
    assert [tuple(row) for row in out.tolist()] == [key_of(label) for path in expected for label in path]
    check_cuts(values, expected, side, root)


def check_cuts(values, expected, side, root):
    """Every level of every value as the text that leaves."""
    offsets, data = layout(values)
    wanted = [(row, level) for row, path in enumerate(expected) for level in range(len(path))]
    rows = np.array([row for row, _ in wanted], dtype=np.int64)
    levels = np.array([level for _, level in wanted], dtype=np.int32)
    parts = np.empty((len(rows), 2), dtype=np.int64)
    paths.cut_open(offsets, data, rows, levels, *how(side, root), parts)
    root_bytes = np.frombuffer(root.encode(), dtype=np.uint8)
    lengths = [len(expected[row][level].encode()) for row, level in wanted]
    ends = np.cumsum([0, *lengths])
    out = np.empty(int(ends[-1]), dtype=np.uint8)
    paths.copy_parts(data, parts, root_bytes, ends, out)
    assert out.tobytes() == b"".join(expected[row][level].encode() for row, level in wanted)


def test_rows_that_are_not_usable_have_no_path():
    offsets, data = layout(["a.b", "c"])
    starts = np.empty(3, dtype=np.int64)
    paths.count_open(offsets, data, np.array([False, True]), *how("suffix", "*"), starts)
    assert starts.tolist() == [0, 0, 2]
    out = np.empty((2, 2), dtype=np.int64)
    paths.fill_open(WORDS[0], WORDS[1], *key_of("*"), offsets, data, *how("suffix", "*"), starts, out)
    assert out.tolist() == [list(key_of("c")), list(key_of("*"))]


def test_list_cuts_is_text_is_suffix_cut_and_is_prefix_cut():
    data = np.frombuffer(b"a..b.", dtype=np.uint8)
    dot = np.uint8(ord("."))
    assert [PIECES.is_suffix_cut(data, 0, 5, at, dot) for at in range(5)] == [False, False, True, False, False]
    assert [PIECES.is_prefix_cut(data, 0, 5, at, dot) for at in range(5)] == [False, True, False, False, True]
    assert PIECES.is_text(data, 0, 1, data[:1])
    assert not PIECES.is_text(data, 0, 2, data[:1])
    assert not PIECES.is_text(data, 3, 4, data[:1])
    *_, cuts = how("suffix", "*")
    assert PIECES.list_cuts(data, 0, 5, dot, True, np.frombuffer(b"*", dtype=np.uint8), cuts) == 2
    assert cuts[:2].tolist() == [[0, 5], [3, 5]]


TREE = Hierarchy.from_nested({"all": {"news": ["a", "b"], "shop": {"food": ["c"]}, "d": None}})


def closed(hierarchy):
    keys = np.array([key_of(label) for label in hierarchy.labels], dtype=np.int64)
    names = np.zeros(32, dtype=np.int64)
    index.index_names(keys, len(hierarchy), names)
    return names, keys


def test_find_nodes_knows_listed_labels_only():
    names, keys = closed(TREE)
    wanted = ["a", "nothing", "all", "food", "a"]
    values = np.array([key_of(text) for text in wanted], dtype=np.int64)
    nodes = np.empty(5, dtype=np.int64)
    paths.find_nodes(names, keys, values, np.array([True, True, True, True, False]), nodes)
    assert nodes.tolist() == [TREE.node_of("a"), -1, 0, TREE.node_of("food"), -1]


@given(st.lists(st.sampled_from([*TREE.labels, None]), max_size=8))
@tries(40)
def test_closed_paths(values):
    _, keys = closed(TREE)
    nodes = np.array([-1 if value is None else TREE.node_of(value) for value in values], dtype=np.int64)
    starts = np.empty(len(values) + 1, dtype=np.int64)
    paths.count_closed(TREE.depths, nodes, starts)
    expected = [() if value is None else TREE.path(value) for value in values]
    assert np.diff(starts).tolist() == [len(path) for path in expected]
    out = np.empty((int(starts[-1]), 2), dtype=np.int64)
    paths.fill_closed(TREE.parents, keys, nodes, starts, out)
    assert [tuple(row) for row in out.tolist()] == [key_of(label) for path in expected for label in path]


@pytest.mark.parametrize("label", TREE.labels)
def test_climb_to_every_level(label):
    path = TREE.path(label)
    levels = np.arange(-1, len(path), dtype=np.int32)
    nodes = np.full(len(levels), TREE.node_of(label))
    out = np.empty(len(levels), dtype=np.int64)
    paths.climb(TREE.parents, nodes, levels, out)
    assert out.tolist() == [-1, *(TREE.node_of(step) for step in path)]
