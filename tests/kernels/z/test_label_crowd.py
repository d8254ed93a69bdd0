"""The tables of the strict residual rule against its definition, near capacity and with keys that collide."""

from __future__ import annotations

import random
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.kernels.z import label_rows as kernel
from shoal.methods.z.crowds import crowd as tables
from shoal.methods.z.crowds.crowd import StrictLabels
from tests.kernels.z.test_crowd import (
    NEWS_A,
    NEWS_B,
    ROOT,
    WINDOW,
    A,
    B,
    C,
    columns,
    deep_paths,
    narrow,
    same_low,
    streams,
    tree_paths,
    unusable,
    wide,
)
from tests.reference.effort import tries
from tests.reference.residual import residual

colliding_paths = st.tuples(st.integers(0, 3), st.integers(0, 1)).map(
    lambda pick: ((5, 10 + 2 * pick[0] + pick[1]), (5, pick[1]), (5, 99))
)
"""Labels that only their second word tells apart."""
path_streams = st.one_of(
    streams(narrow, tree_paths), streams(wide, tree_paths), streams(same_low, colliding_paths, most=40),
    streams(narrow, st.one_of(deep_paths, tree_paths, unusable), most=80),
)  # fmt: skip


def decide(table, events, z, *, cut=7):
    levels = []
    for start in range(0, len(events), cut):
        piece = events[start : start + cut]
        times, persons = columns(piece)
        starts = np.concatenate(([0], np.cumsum([len(event[2]) for event in piece]))).astype(np.int64)
        keys = np.array([node for event in piece for node in event[2]], dtype=np.int64).reshape(-1, 2)
        out = np.empty(len(piece), dtype=np.int32)
        table.decide_paths(persons, keys, starts, times, WINDOW, out)
        table.trim()
        check_tables(table, z)
        levels += out.tolist()
    return levels


def check_tables(table, z):
    """Everything the kernels rely on, looked at row by row."""
    s, marks = table.tables, table.tables.marks
    ring = [(int(marks[kernel.HEAD]) + step) % len(s.ring) for step in range(int(marks[kernel.USED]))]
    live = [row for row in ring if s.ring[row, kernel.PAIR] >= 0]
    assert len(live) == marks[kernel.LIVE] == table.live_pairs
    nodes = {int(found & 0xFFFF_FFFF) - 1 for found in s.names if found}
    assert len(nodes) == marks[kernel.NODE_ROWS] < len(s.names)
    counts: dict[tuple[int, int, int], int] = {}
    pairs = {int(s.ring[row, kernel.PAIR]) for row in live}
    assert len(pairs) == marks[kernel.PAIR_ROWS] == np.count_nonzero(s.pair_index)
    for pair in pairs:
        ceiling = max(int(s.ring[row, kernel.CEILING]) for row in live if s.ring[row, kernel.PAIR] == pair)
        node, top = int(s.pairs[pair, kernel.LEAF]), 0
        person = (int(s.pairs[pair, kernel.LOW]), int(s.pairs[pair, kernel.HIGH]))
        counts[(*person, node)] = counts.get((*person, node), 0) + 1
        while top < ceiling and not s.nodes[node, kernel.PASSES]:
            node, top = int(s.nodes[node, kernel.PARENT]), top + 1
            counts[(*person, node)] = counts.get((*person, node), 0) + 1
        assert s.pairs[pair, kernel.TOP] == top
    rows = [int(found & 0xFFFF_FFFF) - 1 for found in s.people_index if found]
    assert {tuple(s.people[row, :3].tolist()): int(s.people[row, 3]) for row in rows} == counts
    assert len(rows) == marks[kernel.PEOPLE_ROWS] <= marks[kernel.SPAN] <= len(s.people)
    for node in nodes:
        people = len({(low, high) for low, high, at in counts if at == node})
        assert people == s.nodes[node, kernel.PEOPLE]
        assert (people >= z) == bool(s.nodes[node, kernel.PASSES])


SEEN_PASSING = [(0, A, NEWS_A), (1, B, NEWS_A), (2, C, NEWS_B)]
PASSED_BEFORE = [(0, A, NEWS_A), (1, B, NEWS_A), (WINDOW + 1, A, NEWS_B), (WINDOW + 2, C, NEWS_B)]
CEASES_TO_PASS = [*SEEN_PASSING[:2], (2, C, NEWS_A), (WINDOW + 1, (8, 8), NEWS_B), (WINDOW + 1, (9, 9), NEWS_B)]


@given(path_streams, st.integers(1, 4), st.integers(1, 8), st.integers(1, 9))
@example(CEASES_TO_PASS, 3, 1, 9)
@example(SEEN_PASSING, 2, 1, 9)
@example(PASSED_BEFORE, 2, 1, 9)
@example([(0, A, NEWS_A), (WINDOW, B, NEWS_B)], 2, 1, 9)
@example([(0, A, NEWS_A), (WINDOW + 1, B, NEWS_B)], 2, 1, 9)
@tries(120)
def test_levels_are_those_of_the_strict_residual_rule(events, z, smallest, cut):
    with mock.patch.object(tables, "_SMALLEST", smallest):
        assert decide(StrictLabels(z), events, z, cut=cut) == residual(events, z=z, window=WINDOW, strict=True)


@pytest.mark.parametrize("z", [2, 3, 5])
def test_levels_of_a_busy_stream(z):
    """Labels of three levels begin and cease to pass again and again."""
    draw = random.Random(z)
    events = []
    for time in range(250):
        leaf, middle, upper = draw.randrange(3), draw.randrange(2), draw.randrange(2)
        path = ((100 * leaf + 10 * middle + upper, 4), (10 * middle + upper, 3), (upper, 2), ROOT)
        events.append((time // 2, (draw.randrange(7), 0), path[draw.choice([0, 0, 0, 1]) :]))
    found = decide(StrictLabels(z), events, z, cut=50)
    assert found == residual(events, z=z, window=WINDOW, strict=True)
    assert {*found} == {-1, 0, 1, 2, 3}


@given(path_streams, st.integers(1, 4), st.integers(0, 60))
@tries(60)
def test_the_dump_depends_on_what_was_seen_alone(events, z, cut):
    one, other = StrictLabels(z), StrictLabels(z)
    with mock.patch.object(tables, "_SMALLEST", 1):
        decide(one, events[:cut], z, cut=3)
        restored = StrictLabels(z)
        restored.load(*one.dump())
        rest = decide(restored, events[cut:], z, cut=2)
    assert rest == decide(other, events, z, cut=60)[cut:]
    check_tables(restored, z)
    for mine, theirs in zip(restored.dump(), other.dump(), strict=True):
        assert mine.tobytes() == theirs.tobytes()


def test_idle_tables_give_their_memory_back():
    table = StrictLabels(2)
    decide(table, [(0, (person, 0), tree) for person in range(300) for tree in (NEWS_A, NEWS_B)], 2, cut=600)
    full = table.nbytes
    table.expire(WINDOW + 1)
    table.trim()
    check_tables(table, 2)
    assert table.live_pairs == 0
    assert table.nbytes < full / 4
