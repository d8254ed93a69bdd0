"""The crowd table against Algorithm 1 and the residual rule, near capacity and with keys that collide."""

from __future__ import annotations

from contextlib import contextmanager
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.kernels.z import crowd as kernel
from shoal.kernels.z import events as event_kernel
from shoal.kernels.z import index
from shoal.methods.z.crowds import crowd as tables
from shoal.methods.z.crowds.crowd import CrowdTable
from tests.reference.algorithm1 import algorithm1
from tests.reference.effort import tries
from tests.reference.keys import FIRST_SLOT, LAST_SLOT, attribute_with_tag, person_with_tag, signed
from tests.reference.plain import plain_kernels
from tests.reference.residual import residual
from tests.reference.siphash import siphash128

WINDOW = 10
A, B, C = (1, 1), (2, 2), (3, 3)

steps = st.sampled_from([0, 0, 1, 1, 2, WINDOW - 1, WINDOW, WINDOW + 1, 3 * WINDOW])
words = st.integers(-(2**63), 2**63 - 1)
narrow = st.tuples(st.integers(0, 5), st.just(0))
wide = st.tuples(words, words)
tags = st.sampled_from([LAST_SLOT, LAST_SLOT, LAST_SLOT - 1, FIRST_SLOT])
colliding_attributes = st.builds(attribute_with_tag, tags, st.integers(0, 3))
colliding_people = st.builds(person_with_tag, tags, st.integers(0, 6), colliding_attributes)


def streams(people, attributes, *, most=60):
    events = st.lists(st.tuples(steps, people, attributes), max_size=most)
    return events.map(lambda rows: timed(rows))


def timed(rows):
    time, events = 0, []
    for step, *rest in rows:
        time += step
        events.append((time, *rest))
    return events


same_low = st.tuples(st.sampled_from([0, -1]), st.integers(0, 4))
"""Keys that only their second word tells apart: every one of their tags is the same."""
any_stream = st.one_of(
    streams(same_low, same_low),
    streams(narrow, narrow),
    streams(wide, wide),
    streams(wide, narrow, most=200),
    streams(colliding_people, colliding_attributes),
)

PIECES = plain_kernels("z.crowd").crowd


@contextmanager
def tiny(smallest):
    """Tables that start with hardly any room, so that they grow, shrink and wrap round all the time."""
    with mock.patch.object(tables, "_SMALLEST", smallest):
        yield CrowdTable()


def check_table(table):
    """Everything the kernels rely on, looked at slot by slot."""
    pool, pairs, attrs, names, marks = table.arrays
    head, used = int(marks[kernel.HEAD]), int(marks[kernel.USED])
    places = [(head + step) % len(pool) for step in range(used)]
    live = [at for at in places if pool[at, kernel.ATTRIBUTE] >= 0]
    assert len(live) == marks[kernel.LIVE] <= used <= len(pool) < len(pairs) * 7 // 8
    assert marks[kernel.ATTRS] == np.count_nonzero(names) <= marks[kernel.ATTR_LIMIT] == len(attrs)
    assert pairs.ctypes.data % 64 == 0  # a line of the index is a line of the cache
    assert np.count_nonzero(names) < len(names)
    times = pool[live, kernel.TIME].tolist()
    assert times == sorted(times)
    for at in live:
        low, high, _, attribute = pool[at].tolist()
        tag = index.pair_tag(np.int64(low), attrs[attribute, kernel.KEY_LOW])
        word, is_known = find_word(table, tag, low, high, attribute)
        number = int(marks[kernel.OLDEST]) + (at - head) % len(pool)
        assert is_known
        assert int(pairs[word]) & 0xFFFF_FFFF == number <= kernel.LAST_NUMBER
    in_window = {int(pool[at, kernel.ATTRIBUTE]) for at in live}
    for row in in_window:
        low, high, people, _ = attrs[row].tolist()
        assert index.position_of(names[PIECES.find_name(names, attrs, index.fold(np.int64(low)), low, high)]) == row
        assert people == len({tuple(pool[at, :2]) for at in live if pool[at, 3] == row}) > 0
    assert len(in_window) == marks[kernel.ATTRS]
    check_free_rows(attrs, marks, in_window)


def see(table, low, high, time, row):
    return PIECES.see(table.pool, table.pairs, table.attrs, table.marks, low, high, time, row)


def find_word(table, tag, low, high, attribute):
    head, oldest, used = (int(table.marks[at]) for at in (kernel.HEAD, kernel.OLDEST, kernel.USED))
    return PIECES.find_word(table.pairs, table.pool, head, oldest, used, tag, low, high, attribute)


def check_free_rows(attrs, marks, in_window):
    free, row = [], int(marks[kernel.FREE])
    while row >= 0:
        free.append(row)
        row = int(attrs[row, kernel.NEXT_FREE])
        assert len(free) <= len(attrs)
    assert sorted([*free, *in_window]) == list(range(int(marks[kernel.TOP])))


def columns(events):
    times = np.array([event[0] for event in events], dtype=np.int64)
    persons = np.array([event[1] for event in events], dtype=np.int64).reshape(-1, 2)
    return times, persons


def decide(table, events, z, *, cut=7, check=True):
    """Which events at least z people share, counted in pieces of `cut` rows as the method does it."""
    passed = []
    for start in range(0, len(events), cut):
        piece = events[start : start + cut]
        times, persons = columns(piece)
        values = np.array([event[2] for event in piece], dtype=np.int64).reshape(-1, 2)
        out = np.empty(len(piece), dtype=np.int64)
        usable = np.ones(len(piece), dtype=np.bool_)
        at = 0
        while at < len(piece):
            table.make_room(1)
            reached = kernel.count_values(
                *table.arrays, persons, values, times, usable, np.arange(len(piece)), WINDOW, at, out
            )
            assert reached > at
            at = reached
        table.trim()
        if check:
            check_table(table)
        passed += (out >= z).tolist()
    return passed


EDGE = [(0, A, A), (WINDOW, B, A)]
BEYOND = [(0, A, A), (WINDOW + 1, B, A)]
TWICE = [(0, A, A), (0, A, A), (0, B, A), (0, B, A), (0, C, A)]
AGAIN = [(0, A, A), (5, A, A), (WINDOW + 5, B, A), (WINDOW + 6, B, A)]
REUSED = [
    (0, A, A),
    (WINDOW + 1, A, B),
    (2 * WINDOW + 2, A, A),
    (2 * WINDOW + 2, B, A),
    (2 * WINDOW + 2, C, B),
]
OTHERS_LATER = [(0, A, A), (1, B, A), (2, A, A), (3, C, A), (WINDOW + 2, B, B), (WINDOW + 3, C, A)]
SECOND_WORDS = [(0, (5, 1), (7, 1)), (0, (5, 2), (7, 2)), (0, (5, 1), (7, 2)), (0, (5, 3), (7, 1)), (0, (5, 3), (7, 3))]
STUCK = [(0, A, A), *((n, B, A) for n in range(1, WINDOW)), (WINDOW, C, A)]  # a ring full of what was seen again
CLUSTER = timed([(1, person_with_tag(LAST_SLOT, n, A), A) for n in range(6)] * 4)
CROWDED_LINES = timed(
    [(step, person_with_tag(tag, n, A), A) for step in (0, 1) for n in range(20) for tag in (LAST_SLOT, 2**31)] * 2
)  # more pairs of one tag than a line of the index has entries, again and again
CLUSTER_OF_TWO = timed(
    [(2, person_with_tag(tag, n, A), A) for n in range(6) for tag in (LAST_SLOT, LAST_SLOT - 1, FIRST_SLOT)]
)
NAMES = timed([(2, A, attribute_with_tag(tag, n)) for n in range(8) for tag in (LAST_SLOT, FIRST_SLOT)])


@given(any_stream, st.integers(1, 4), st.integers(1, 8), st.integers(1, 9))
@example(EDGE, 2, 1, 1)
@example(BEYOND, 2, 1, 1)
@example(EDGE[:1], 1, 1, 1)
@example(TWICE, 2, 1, 2)
@example(TWICE, 3, 1, 9)
@example(AGAIN, 2, 1, 9)
@example(REUSED, 2, 1, 9)
@example(OTHERS_LATER, 2, 2, 9)
@example(OTHERS_LATER, 3, 2, 9)
@example(SECOND_WORDS, 2, 8, 9)
@example(STUCK, 3, 4, 1)
@example(STUCK, 3, 5, 20)
@example(CLUSTER, 3, 4, 5)
@example(CROWDED_LINES, 3, 8, 9)
@example(CROWDED_LINES, 20, 64, 9)
@example(CLUSTER_OF_TWO, 2, 8, 9)
@example(NAMES, 1, 8, 9)
@tries(120)
def test_decisions_are_those_of_algorithm_1(events, z, smallest, cut):
    with tiny(smallest) as table:
        assert decide(table, events, z, cut=cut) == algorithm1(events, z=z, window=WINDOW)


@given(any_stream, st.integers(1, 4), st.integers(kernel.LAST_NUMBER - 30, kernel.LAST_NUMBER + 1))
@example(CROWDED_LINES, 3, kernel.LAST_NUMBER - 9)
@tries(40)
def test_numbers_of_sightings_start_again_after_the_last(events, z, first):
    with tiny(8) as table:
        table.marks[kernel.OLDEST] = first
        assert decide(table, events, z) == algorithm1(events, z=z, window=WINDOW)


@given(any_stream, st.integers(1, 3), st.integers(1, 64))
@tries(40)
def test_the_dump_depends_on_what_was_seen_alone(events, z, smallest):
    with tiny(smallest) as table:
        decide(table, events, z, cut=3)
        dumped = table.dump()
        loaded = CrowdTable()
        loaded.load(*dumped)
        check_table(loaded)
    roomy = CrowdTable()
    decide(roomy, events, z, cut=1000)
    for other in (roomy.dump(), loaded.dump()):
        assert all(np.array_equal(one, two) for one, two in zip(dumped, other, strict=True))


def test_only_usable_rows_are_counted():
    table = CrowdTable()
    times, persons = columns([(0, A, A), (1, B, A), (2, C, A)])
    values, out = np.array([A, A, A]), np.empty(3, dtype=np.int64)
    table.make_room(1)
    usable = np.array([True, False, True])
    kernel.count_values(*table.arrays, persons, values, times, usable, np.arange(3), WINDOW, 0, out)
    assert out.tolist() == [1, 0, 2]


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.booleans()), max_size=40), st.integers(1, 5))
@tries(40)
def test_rows_are_dealt_by_value(given_rows, shards):
    values = np.array([(0, high) for high, _ in given_rows], dtype=np.int64).reshape(-1, 2)
    present = np.array([is_present for _, is_present in given_rows], dtype=np.bool_)
    rows, bounds = np.empty(len(values) + 1, dtype=np.int64), np.empty(shards + 1, dtype=np.int64)
    kernel.deal_rows(values, present, rows, bounds)
    expected = [[] for _ in range(shards)]
    for row, (high, is_present) in enumerate(given_rows):
        if is_present:
            expected[high % 2**32 * shards // 2**32].append(row)
    assert [rows[bounds[shard] : bounds[shard + 1]].tolist() for shard in range(shards)] == expected


def test_some_rows_are_counted_and_the_others_left_alone():
    table = CrowdTable()
    times, persons = columns([(0, A, A), (1, B, A), (2, C, A)])
    out = np.full(3, -7)
    table.make_room(1)
    rest = (persons, np.array([A, A, A]), times, np.ones(3, np.bool_), np.array([0, 2]), WINDOW)
    assert kernel.count_values(*table.arrays, *rest, 0, out) == 2
    assert out.tolist() == [1, -7, 2]


def test_the_kernel_stops_where_there_is_no_room():
    with tiny(2) as table:
        times, persons = columns([(0, A, A), (0, B, A), (0, C, A)])
        out = np.empty(3, dtype=np.int64)
        rest = (persons, np.array([A, A, A]), times, np.ones(3, np.bool_), np.arange(3), WINDOW)
        assert kernel.count_values(*table.arrays, *rest, 0, out) == 2
        assert kernel.count_values(*table.arrays, *rest, 2, out) == 2
        table.make_room(1)
        assert kernel.count_values(*table.arrays, *rest, 2, out) == 3
    assert out.tolist() == [1, 2, 3]


def test_has_room_counts_what_was_seen_again():
    with tiny(4) as table:
        for time, person in ((0, A), (1, B), (2, B), (3, B)):
            row = PIECES.attribute_row(table.attrs, table.names, table.marks, *A)
            assert kernel.has_room(table.pool, table.marks, 1)
            see(table, *person, time, row)
        assert table.live_pairs == 2
        assert not kernel.has_room(table.pool, table.marks, 1)


@pytest.mark.parametrize("live", range(5))
def test_has_room_counts_to_the_last_place(live):
    with tiny(4) as table:
        decide(table, [(0, (n, 0), (n, 0)) for n in range(live)], 1)
        room = 4 - live
        assert kernel.has_room(table.pool, table.marks, room)
        assert not kernel.has_room(table.pool, table.marks, room + 1)


def test_a_table_shrinks_with_its_window():
    table = CrowdTable()
    decide(table, [(0, (1_000_003 * n, n), (7_919 * (n % 300), 0)) for n in range(600)], 1, cut=200, check=False)
    full = table.nbytes
    decide(table, [(WINDOW + 1, A, A)], 1)
    assert table.live_pairs == 1
    assert table.nbytes < full / 4


def test_superseded_sightings_do_not_make_a_table_grow():
    with tiny(8) as table:
        decide(table, [(n, (n % 3, 0), A) for n in range(400)], 2)
        assert len(table.pool) == 8


def test_stale_entries_are_overwritten_and_the_index_is_never_built_again():
    with tiny(8) as table:
        decide(table, [(n * 4, (n, n), A) for n in range(60)], 2)  # three live at a time, all others expired
        pool, pairs = table.pool, table.pairs
        decide(table, [(240 + n * 4, (n, n), A) for n in range(60)], 2)
        assert len(table.pool) == 8
        assert table.pool is pool
        assert table.pairs is pairs


def test_find_word_knows_only_the_pair_itself_while_it_is_in_the_ring():
    with tiny(4) as table:
        decide(table, [(0, A, A), (11, B, A)], 1)  # A has expired, its row and its entry are still in memory
        row = int(table.pool[1, kernel.ATTRIBUTE])
        tags = {person: index.pair_tag(np.int64(person[0]), np.int64(A[0])) for person in (A, B)}
        assert find_word(table, tags[B], *B, row)[1]
        assert not find_word(table, tags[B], *A, row)[1]
        assert not find_word(table, tags[B], *B, row + 1)[1]
        assert table.pool[0, :2].tolist() == list(A)
        assert not find_word(table, tags[A], *A, row)[1]


def test_write_entry_marks_every_line_before_it():
    pairs, tag = np.zeros(32, dtype=np.int64), np.int64(2**31)
    assert kernel.line_of(pairs, tag) == 16
    PIECES.write_entry(pairs, tag, 3, 77)  # round the end: lines 16 and 24, then 0
    written = {place: int(pairs[place]) for place in np.flatnonzero(pairs)}
    assert written == {16: 77, 24: 77, 3: signed(2**31 << 32 | 77)}
    assert [kernel.next_line(pairs, line) for line in (0, 24)] == [8, 0]


def test_expire_ring_and_see_in_ring_return_what_changed():
    with tiny(4) as table:
        row = PIECES.attribute_row(table.attrs, table.names, table.marks, *A)
        ring = table.pool, table.pairs, table.attrs, 3, 1
        assert PIECES.see_in_ring(*ring, 0, 7, 7, 1, row) == 2
        assert PIECES.see_in_ring(*ring, 1, 7, 7, 1, row) == 0
        assert PIECES.see_in_ring(*ring, 1, 7, 7, 2, row) == 1
        assert table.pool[[3, 0], kernel.ATTRIBUTE].tolist() == [-1, row]
        rest = table.attrs, table.names, table.marks, 3, 2, 1
        assert PIECES.expire_ring(table.pool, *rest, 2) == (0, 1, 1)
        assert PIECES.expire_ring(table.pool, *rest, 3) == (1, 0, 0)
        assert kernel.ring_row(table.pool, 3, 2) == 1


def test_expire_keeps_what_is_exactly_at_the_edge():
    table = CrowdTable()
    decide(table, [(5, A, A), (6, B, A), (7, C, B)], 1)
    table.expire(6)
    assert table.live_pairs == 2
    table.expire(7)
    assert table.live_pairs == 1
    check_table(table)
    table.expire(8)
    assert table.live_pairs == 0
    check_table(table)
    table.clear()
    check_table(table)


# ---- along paths

ROOT = (99, 99)


def tree_path(leaf, middle):
    return ((leaf, 1), (middle, 2), ROOT)


tree_paths = st.builds(tree_path, st.integers(0, 5), st.integers(0, 1)).map(
    lambda path: ((path[0][0] * 2 + path[1][0], 1), path[1], path[2])
)
deep_paths = st.integers(1, 9).map(lambda depth: tuple((level, 3) for level in range(depth, 0, -1)))
unusable = st.just(())
path_streams = st.one_of(
    streams(narrow, tree_paths), streams(wide, tree_paths), streams(narrow, st.one_of(deep_paths, unusable))
)


def decide_along_paths(table, events, z, *, cut=7):
    levels = []
    for start in range(0, len(events), cut):
        piece = events[start : start + cut]
        times, persons = columns(piece)
        lengths = [len(event[2]) for event in piece]
        starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        nodes = np.array([node for event in piece for node in event[2]], dtype=np.int64).reshape(-1, 2)
        out = np.empty(len(piece), dtype=np.int32)
        at = 0
        while at < len(piece):
            table.make_room(lengths[at])
            at = kernel.decide_paths(*table.arrays, persons, nodes, starts, times, z, WINDOW, at, out)
        table.trim()
        check_table(table)
        levels += out.tolist()
    return levels


NEWS_A, NEWS_B = tree_path(10, 1), tree_path(11, 1)
SUBTRACTION = [(0, A, NEWS_A), (1, B, NEWS_A), (2, C, NEWS_B)]
NOT_RELEASED_BELOW = [(0, A, NEWS_A), (1, B, NEWS_B), (2, C, NEWS_B)]


@given(path_streams, st.integers(1, 4), st.integers(1, 8), st.integers(1, 9))
@example(SUBTRACTION, 2, 1, 9)
@example(NOT_RELEASED_BELOW, 2, 1, 9)
@example([(0, A, NEWS_A), (WINDOW, B, NEWS_B)], 2, 1, 9)
@example([(0, A, NEWS_A), (WINDOW + 1, B, NEWS_B)], 2, 1, 9)
@tries(100)
def test_levels_are_those_of_the_loose_residual_rule(events, z, smallest, cut):
    with tiny(smallest) as table:
        levels = decide_along_paths(table, events, z, cut=cut)
    assert levels == residual(events, z=z, window=WINDOW, strict=False)


# ---- one event at a time


@given(st.lists(st.tuples(steps, st.sampled_from("abcdef"), st.sampled_from(["", "x", "y", "é"])), max_size=60))
@tries(50)
def test_decide_value_decides_as_the_batch_does(rows):
    key = bytes(range(16))
    words_of_key = np.frombuffer(key, dtype="<u8").astype(np.uint64)
    events = timed(rows)
    with tiny(1) as table:
        levels = []
        for time, person, value in events:
            low, high = np.frombuffer(siphash128(key, person.encode()), dtype="<i8")
            data = np.frombuffer(value.encode() or b"\x00", dtype=np.uint8)[: len(value.encode())]
            key_of_value = np.empty((1, 2), dtype=np.int64)
            assert event_kernel.hash_value(words_of_key, data, 1, key_of_value) == 0
            assert key_of_value.tobytes() == siphash128(key, value.encode())
            given_event = (np.array([[low, high]]), key_of_value, time, 2, WINDOW)
            level = event_kernel.decide_value(*table.arrays, *given_event)
            if level == event_kernel.NO_ROOM:
                table.make_room(1)
                level = event_kernel.decide_value(*table.arrays, *given_event)
            levels.append(level)
            check_table(table)
    assert [level == 0 for level in levels] == algorithm1(events, z=2, window=WINDOW)


# ---- parts of the table by themselves


def test_see_attribute_row_and_forget_attribute():
    with tiny(4) as table:
        row = PIECES.attribute_row(table.attrs, table.names, table.marks, *A)
        assert PIECES.attribute_row(table.attrs, table.names, table.marks, *A) == row == 0
        assert see(table, 7, 7, 1, row) == 1
        assert see(table, 7, 7, 1, row) == 1
        assert see(table, 7, 8, 2, row) == 2
        other = PIECES.attribute_row(table.attrs, table.names, table.marks, *B)
        PIECES.forget_attribute(table.attrs, table.names, table.marks, other)
        assert PIECES.attribute_row(table.attrs, table.names, table.marks, *C) == other


def test_pack_index_pairs_and_index_names_start_afresh():
    with tiny(4) as table:
        decide(table, [(0, A, C), (5, A, A), (12, B, B), (12, A, A)], 1)
        pool, attrs = table.dump()
        assert pool.tolist() == [[2, 2, 12, 0], [1, 1, 12, 1]]
        assert attrs[:, :3].tolist() == [[2, 2, 1], [1, 1, 1]]
        pairs, names = np.zeros(16, dtype=np.int64), np.zeros(5, dtype=np.int64)
        marks = np.zeros(kernel.MARKS, dtype=np.int64)
        marks[[kernel.USED, kernel.LIVE]], marks[kernel.OLDEST] = 2, 1
        kernel.index_pairs(pool, attrs, marks, pairs)
        index.index_names(attrs, 2, names)
        assert np.count_nonzero(pairs) == np.count_nonzero(names) == 2
        renumbered = np.full(int(table.marks[kernel.TOP]), -1, dtype=np.int32)
        assert kernel.pack(table.pool, table.attrs, table.marks, pool, attrs, renumbered) == (2, 2)


@pytest.mark.parametrize("count", [1, 11, 12, 13, 14, 40])
def test_prefetch_pair_changes_nothing(count):
    """Memory is prefetched up to the last row of a batch."""
    with tiny(16) as table:
        decide(table, [(number, (number, 0), (number % 5, 0)) for number in range(count)], 1, cut=count)
        before = [array.copy() for array in table.arrays]
        kernel.prefetch_pair(table.pairs, 3, 4)
        assert all(np.array_equal(one, two) for one, two in zip(before, table.arrays, strict=True))
