"""Kernels of sets, each against the definition in plain Python."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from itertools import combinations, pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numba import njit

from shoal.kernels.randomness import next_below, next_unit, next_word, start_coins
from shoal.kernels.sets.counting import KEPT, TOTAL, ZEROS, Found, find_violations, following
from shoal.kernels.sets.records import (
    count_items,
    drop_repeats,
    fingerprint_rows,
    gather_rows,
    generalize_rows,
    turn_over,
)
from shoal.kernels.sets.sampling import draw_samples, find_violation, follow_chain, next_violation
from shoal.kernels.sets.support import MOST, join_lists, set_bits, support_of
from shoal.methods.sets import counting as km_counting
from shoal.methods.sets import data as km_data
from shoal.methods.sets.chain import as_chain
from shoal.methods.sets.counting import Counting, Effort
from shoal.methods.sets.data import BlockIndex, SetData, inverted
from shoal.methods.sets.sampling import make_draws, make_scratch, random_key
from tests.reference import km as naive
from tests.reference.effort import IS_COMPILED, tries
from tests.reference.plain import plain_kernels

plain = plain_kernels("randomness", "sets.support", "sets.counting", "sets.sampling")
KEY = np.array([3, 2**63 + 5], np.uint64)
RECORDS = st.lists(st.sets(st.integers(0, 7), min_size=1, max_size=6), min_size=1, max_size=14)


def rows_of(records) -> tuple[np.ndarray, np.ndarray]:
    starts = np.cumsum([0, *map(len, records)]).astype(np.int64)
    return starts, np.array([item for record in records for item in record], np.int32)


def lists_of(starts, items) -> list[list[int]]:
    return [items[begin:end].tolist() for begin, end in pairwise(starts.tolist())]


def data_of(records, kinds=8) -> SetData:
    return SetData(*rows_of([sorted(record) for record in records]), [f"i{item:02d}" for item in range(kinds)])


def random_records(seed, people, kinds, most) -> list[set[int]]:
    random = np.random.default_rng(seed)
    popular = 1 / np.arange(1, kinds + 1)
    sizes = random.integers(1, most + 1, people)
    return [set(random.choice(kinds, size, replace=False, p=popular / popular.sum()).tolist()) for size in sizes]


# ---- coins


@njit
def words(key, number, out):
    coins = np.zeros(1, np.uint64)
    start_coins(coins, key, number)
    for at in range(len(out)):
        out[at] = next_word(coins)


@njit
def whole_numbers(key, number, bound, out):
    coins = np.zeros(1, np.uint64)
    start_coins(coins, key, number)
    for at in range(len(out)):
        out[at] = next_below(coins, bound)


@njit
def units(key, number, out):
    coins = np.zeros(1, np.uint64)
    start_coins(coins, key, number)
    for at in range(len(out)):
        out[at] = next_unit(coins)


def stream(number, key=KEY, count=4) -> list[int]:
    out = np.empty(count, np.uint64)
    words(key, number, out)
    return out.tolist()


def below(bound, count, number=0) -> np.ndarray:
    out = np.empty(count, np.int64)
    whole_numbers(KEY, number, bound, out)
    return out


def test_a_stream_depends_on_key_and_number_alone():
    assert stream(7) == stream(7)
    assert stream(7, count=9)[:4] == stream(7)
    others = [stream(number) for number in range(100)]
    others += [stream(7, KEY ^ np.uint64(1)), stream(7, np.array([3, 9], np.uint64)), stream(7, KEY[::-1].copy())]
    assert len({word for other in others for word in other}) == 4 * 103


def test_words_are_what_splitmix64_gives():
    """The published vectors of SplitMix64 from seed 1234567."""
    coins = np.array([1234567], np.uint64)
    found = [int(plain.randomness.next_word(coins)) for _ in range(3)]
    assert found == [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert int(plain.randomness.mixed(np.uint64(1234567) + np.uint64(0x9E3779B97F4A7C15))) == found[0]


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 8, 100, 2**31 - 1, 2**32, 2**32 + 1, 2**62 + 1, 2**63 - 1])
def test_whole_numbers_stay_below_their_bound(bound):
    drawn = below(bound, 500)
    assert drawn.min() >= 0
    assert drawn.max() < bound
    if bound > 2:
        assert drawn.max() >= bound / 2  # they get that far
        assert drawn.min() < bound / 2


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 10, 33, 64])
def test_whole_numbers_are_uniform(bound):
    counts = Counter(below(bound, 20_000, number=bound).tolist())
    assert naive.chi_square_score(counts, dict.fromkeys(range(bound), 1 / bound)) < 4


def test_large_whole_numbers_are_uniform():
    """Just above a power of two nearly half of the draws do not fit: those that do are spread evenly."""
    bound = 2**32 + 1
    counts = Counter((below(bound, 20_000) * 16 // bound).tolist())
    assert naive.chi_square_score(counts, dict.fromkeys(range(16), 1 / 16)) < 4


def test_first_draws_of_many_numbers_are_uniform():
    counts = Counter(int(below(6, 1, number)[0]) for number in range(6_000))
    assert naive.chi_square_score(counts, dict.fromkeys(range(6), 1 / 6)) < 4


def test_units_lie_above_0_and_reach_1():
    out = np.empty(20_000)
    units(KEY, 1, out)
    assert out.min() > 0
    assert out.max() <= 1
    counts = Counter(np.ceil(out * 20).astype(int).tolist())
    assert naive.chi_square_score(counts, dict.fromkeys(range(1, 21), 1 / 20)) < 4


@pytest.mark.parametrize(("word", "unit"), [(0, 2.0**-53), (2**64 - 1, 1.0), (2**63, 0.5 + 2.0**-53)])
def test_the_ends_of_units(word, unit, monkeypatch):
    monkeypatch.setattr(plain.randomness, "next_word", lambda coins: np.uint64(word))
    assert plain.randomness.next_unit(None) == unit


def test_coin_keys_differ_by_everything():
    keys = [
        random_key(1, b"data", "search", 1), random_key(2, b"data", "search", 1), random_key(1, b"date", "search", 1),
        random_key(1, b"data", "certify", 1), random_key(1, b"data", "search", 2), random_key(1, b"data", "search", 11),
        random_key(1, b"data", "search", 1, 1), random_key(1, b"data", "search"),
    ]  # fmt: skip
    assert len({tuple(key.tolist()) for key in keys}) == len(keys)
    assert all(key.shape == (2,) and key.dtype == np.uint64 for key in keys)
    assert random_key(1, b"data", "search", 1).tolist() == keys[0].tolist()


# ---- rows


@tries(60)
@given(st.lists(st.lists(st.integers(0, 5), max_size=7), max_size=6))
@example([])
@example([[], [3, 3], []])
@example([[5], [5, 0, 5], [0]])
def test_rows_turned_over_and_repeats_dropped(records):
    starts, items = rows_of(records)
    counts = np.zeros(6, np.int64)
    count_items(items, counts)
    assert counts.tolist() == [sum(record.count(item) for record in records) for item in range(6)]
    ends = np.concatenate(([0], np.cumsum(counts)))
    owners, filled = np.empty(len(items), np.int32), ends[:-1].copy()
    turn_over(starts, items, filled, owners)
    assert filled.tolist() == ends[1:].tolist()
    wanted = [[row for row, record in enumerate(records) for one in record if one == item] for item in range(6)]
    assert lists_of(ends, owners) == wanted
    assert lists_of(*inverted(starts, items, 6)) == wanted
    fewer = np.empty_like(ends)
    kept = drop_repeats(ends, owners, fewer)
    assert lists_of(fewer, owners[:kept]) == [sorted(set(rows)) for rows in wanted]
    assert kept == fewer[-1]


def test_rows_in_another_order():
    starts, items = rows_of([[1, 2], [], [3], [4, 5, 6]])
    order = np.array([3, 0, 0, 1])
    new_starts, new_items = np.empty(5, np.int64), np.empty(7, np.int32)
    gather_rows(starts, items, order, new_starts, new_items)
    assert lists_of(new_starts, new_items) == [[4, 5, 6], [1, 2], [1, 2], []]


@tries(60)
@given(st.lists(st.lists(st.integers(0, 5)), max_size=6), st.lists(st.integers(0, 5), min_size=6, max_size=6))
@example([[0, 1, 2, 3, 4, 5], [5, 4], []], [5, 4, 3, 3, 0, 0])
@example([[0], [0], [0]], [0] * 6)
def test_generalized_rows_have_each_block_once_in_order(records, block_of):
    starts, items = rows_of(records)
    new_starts, new_items = np.empty_like(starts), np.empty_like(items)
    seen = np.full(6, -1, np.int64)
    count = generalize_rows(starts, items, np.array(block_of, np.int32), seen, new_starts, new_items)
    assert count == new_starts[-1]
    wanted = [sorted({block_of[item] for item in record}) for record in records]
    assert lists_of(new_starts, new_items[:count]) == wanted


def fingerprints(records) -> list[tuple[int, int]]:
    starts, items = rows_of(records)
    first, second = np.empty(len(records), np.uint64), np.empty(len(records), np.uint64)
    fingerprint_rows(starts, items, first, second)
    return list(zip(first.tolist(), second.tolist(), strict=True))


def test_fingerprints_tell_sets_apart_by_both_words():
    subsets = [list(chosen) for size in range(5) for chosen in combinations(range(12), size)]
    found = fingerprints(subsets)
    assert len({first for first, _ in found}) == len({second for _, second in found}) == len(subsets)
    assert found == fingerprints(subsets)
    assert fingerprints(subsets[5:7]) == found[5:7]  # where a set stands plays no part


# ---- data


@tries(60)
@given(RECORDS, st.randoms(use_true_random=False))
@example([{1}], None)
@example([{0, 7}, {0, 7}, {7}], None)
def test_data_are_the_same_in_any_order(records, random):
    data = data_of(records)
    assert lists_of(*data.sets) == [sorted(records[row]) for row in data.order]
    assert data.set_sizes.tolist() == sorted(map(len, records))
    assert data.weights.tolist() == [naive.support(records, [item]) for item in range(8)]
    assert (len(data), data.longest) == (len(records), max(map(len, records)))
    mixed = records[::-1] if random is None else random.sample(records, len(records))
    doubled = [[*record, *sorted(record, reverse=True)] for record in mixed]
    other = SetData(*rows_of(doubled), data.names)
    assert lists_of(*other.sets) == lists_of(*data.sets)
    assert other.fingerprint == data.fingerprint
    assert data_of([*records, {1}]).fingerprint != data.fingerprint
    assert SetData(*rows_of(doubled), [*data.names[:-1], "other"]).fingerprint != data.fingerprint


def test_how_likely_sets_of_a_size_are_picked():
    data = data_of([{1}, {1, 2, 3}, {2, 3, 4}, {1, 2, 3, 4}])
    sizes = data.sizes(2, by_person=False)  # 3 + 3 of 12, then 6
    assert sizes.upto.tolist() == [2**63, 2**64 - 1]
    assert (sizes.first.tolist(), sizes.people.tolist()) == ([1, 3], [2, 1])
    assert data.sizes(2, by_person=True).upto.tolist() == [2**65 // 3, 2**64 - 1]
    assert data.sizes(4, by_person=False).first.tolist() == [3]
    assert data.sizes(5, by_person=False) is None
    assert [data.itemsets(size) for size in range(1, 6)] == [11, 12, 6, 1, 0]
    wide = data_of([set(range(64)), set(range(64))], 64)
    assert wide.itemsets(32) == 2 * 1832624140942590534  # more than fits into 64 bits, signed
    assert wide.sizes(32, by_person=False).people.tolist() == [2]


# ---- support


def common_and_rare(rows) -> list[set[int]]:
    """Items 0 and 1 are in many sets, from 2 on in fewer than one in 32."""
    return [
        {item for item, has in enumerate((1, row % 2, row % 40 == 3, row % 99 in (3, 7), row in (3, rows - 1))) if has}
        for row in range(rows)
    ]


@pytest.mark.parametrize("rows", [63, 64, 65, 127, 128, 129, 700])
@pytest.mark.parametrize("bits_from", [0, 1, 32, 512])
def test_support_by_lists_and_by_bits(rows, bits_from, monkeypatch):
    """No bits at all, for what everybody has, for what is common, for everything."""
    monkeypatch.setattr(km_data, "_BITS_FROM", bits_from)
    records = common_and_rare(rows)
    starts, items = rows_of([sorted(record) for record in records])
    index = BlockIndex.of(starts, items, 5)
    slots = index.arrays.slots.tolist()
    common = [bits_from * naive.support(records, [item]) >= rows for item in range(5)]
    assert [slot >= 0 for slot in slots] == common
    if rows == 700:
        assert sum(common) == {0: 0, 1: 1, 32: 2, 512: 5}[bits_from]
    for size in range(1, 5):
        for chosen in combinations(range(5), size):
            people = naive.support(records, chosen)
            for wanted in {1, 2, people - 1, people, people + 1, 10**9} - {0, -1}:
                assert index.support(chosen, wanted) == min(people, wanted)
                assert index.support(chosen[::-1], wanted) == min(people, wanted)


def test_the_rarest_block_comes_first_and_cursors_begin_at_their_lists():
    joins = Joins([range(9), [1, 4], range(0, 9, 2), [4]], 9)
    arrays, cursors = joins.index.arrays, np.full(MOST, -1)
    blocks = np.array([0, 1, 2, 3, 99], np.int32)
    plain.support.sort_by_length(arrays, blocks, 4)
    assert blocks.tolist() == [3, 1, 2, 0, 99]
    blocks = np.array([2, 0, 1], np.int32)
    plain.support.begin_lists(arrays, blocks, 3, cursors)
    assert blocks.tolist() == [1, 2, 0]
    assert cursors[:4].tolist() == [*arrays.starts[[1, 2, 0]].tolist(), -1]
    assert support_of(arrays, blocks, cursors, 9) == 1  # the set 4
    assert support_of(arrays, np.array([2], np.int32), cursors, 3) == 3


@pytest.mark.parametrize("bits_from", [0, 512])
def test_whether_a_set_has_the_other_blocks(bits_from, monkeypatch):
    monkeypatch.setattr(km_data, "_BITS_FROM", bits_from)
    arrays = Joins([range(9), [4, 7], range(0, 9, 2)], 9).index.arrays
    answers, cursors = [], np.zeros(MOST, np.int64)
    blocks = np.array([0, 2, 1], np.int32)
    cursors[:3] = arrays.starts[blocks]
    for row in range(9):
        answers.append(plain.support.has_rest(arrays, blocks, 3, cursors, row))
    # By lists it is over once one of them is through: no set after the last that has block 1.
    assert answers == [0, 0, 0, 0, 1, *([0, -1, 0, -1] if bits_from == 0 else [0, 0, 0, 0])]


def test_whether_words_of_bits_are_looked_at():
    """Only where all blocks have bits, and the rarest is longer than a row of bits."""
    have_bits = plain.support.have_bits
    everybody, few = range(200), range(3)
    joins = Joins([everybody, everybody, few, range(0, 200, 50)], 200)
    arrays = joins.index.arrays
    arrays.slots[3] = -1
    assert arrays.bits.shape[1] == 4
    assert have_bits(arrays, [0, 1], 2)
    assert not have_bits(arrays, [2, 0, 1], 3)  # three are fewer than four words
    assert not have_bits(arrays, [3, 0], 2)
    assert have_bits(arrays, [0, 3], 1)
    for wanted in (1, 63, 64, 65, 200, 201):
        assert plain.support.count_bits(arrays, [0, 1], 2, wanted) == min(200, wanted)


@tries(60)
@given(st.lists(st.integers(0, 30), max_size=20, unique=True), st.integers(0, 31), st.data())
@example([], 5, None)
@example([1, 2, 3], 4, None)
@example([1, 2, 3], 0, None)
def test_leaps_find_the_first_place(numbers, row, data):
    lists = np.array([99, *sorted(numbers), -7], np.int32)
    end = len(numbers) + 1
    for at in range(1, end + 1):
        wanted = next((place for place in range(at, end) if lists[place] >= row), end)
        assert plain.support.leap(lists, at, end, row) == wanted


def test_bits_are_set_and_found_beyond_the_first_word():
    lists = np.array([0, 5, 63, 64, 127, 128, 190], np.int32)
    bits = np.zeros((2, 3), np.uint64)
    set_bits(lists, 1, 5, bits, 1)
    assert bits[0].tolist() == [0, 0, 0]
    assert [row for row in range(192) if plain.support.has_bit(bits, 1, row)] == [5, 63, 64, 127, 128]


@tries(60)
@given(st.sets(st.integers(0, 20)), st.sets(st.integers(0, 20)))
@example(set(), set())
@example({1, 2}, {1, 2})
@example({1, 2}, {3})
@example({3}, {1, 2})
def test_lists_joined(left, right):
    lists = np.full(100, -1, np.int32)
    lists[1 : 1 + len(left)], lists[25 : 25 + len(right)] = sorted(left), sorted(right)
    before = lists.copy()
    length = join_lists(lists, 1, len(left), 25, len(right), 50)
    assert lists[50 : 50 + length].tolist() == sorted(left | right)
    assert lists[:50].tolist() == before[:50].tolist()
    assert set(lists[50 + length :].tolist()) == {-1}


def test_weights_are_summed_over_all_who_have_the_blocks():
    records = common_and_rare(700)
    data = data_of(records, 5)
    weights = np.array([0, 1, 10, 100, 1000, 10_000], np.float64)
    for chosen in ([0], [0, 1], [3, 2], [4, 1, 0], [2, 3, 4]):
        cursors, blocks = np.zeros(MOST, np.int64), np.array(chosen, np.int32)
        found = plain.support.weigh(data.index.arrays, blocks, len(blocks), cursors, data.sets.starts, weights)
        assert found == sum(weights[len(record)] for record in records if set(chosen) <= record)


class Joins:
    """An index and the sets it stands for."""

    def __init__(self, owners, rows, *, is_short=False):
        self.is_short = is_short  # of room for bits
        self.owners = [{rows - 1 - row for row in some} for some in owners]  # numbered from the last on
        self.rows = rows
        starts, lists = rows_of([sorted(some) for some in owners])
        self.index = BlockIndex.of(*inverted(starts, lists, rows), len(owners)).copy()

    def join(self, kept, *gone):
        self.index.join(kept, [kept, *gone])
        for block in gone:
            self.owners[kept] |= self.owners[block]
            self.owners[block] = set()
        self.check()

    def check(self):
        arrays = self.index.arrays
        assert arrays.lengths.tolist() == [len(some) for some in self.owners]
        slots = [slot for slot in arrays.slots.tolist() if slot >= 0]
        assert len(slots) == len(set(slots))
        for block, owners in enumerate(self.owners):
            begin = arrays.starts[block]
            assert arrays.lists[begin : begin + len(owners)].tolist() == sorted(owners)
            slot = arrays.slots[block]
            assert self.is_short or (slot >= 0) == (len(owners) > 0 and km_data._BITS_FROM * len(owners) >= self.rows)
            if slot >= 0:
                bits = [row for row in range(self.rows) if plain.support.has_bit(arrays.bits, slot, row)]
                assert bits == sorted(owners)
        alive = [block for block, owners in enumerate(self.owners) if owners]
        for size in (1, 2, 3):
            for chosen in combinations(alive, size):
                people = len(set.intersection(*(self.owners[block] for block in chosen)))
                assert self.index.support(chosen, 10**6) == people
                assert self.index.support(chosen, 2) == min(people, 2)


@pytest.fixture
def bits_from_32(monkeypatch):
    """What one in 32 has gets bits: then small data have both kinds."""
    monkeypatch.setattr(km_data, "_BITS_FROM", 32)


@pytest.mark.usefixtures("bits_from_32")
@pytest.mark.parametrize("kept_has_bits", [True, False])
@pytest.mark.parametrize("gone_has_bits", [True, False])
def test_joining_blocks_with_and_without_bits(kept_has_bits, gone_has_bits):
    rows = 320  # what ten sets have and more gets bits
    kept = range(0, 320, 20) if kept_has_bits else range(0, 320, 60)
    gone = range(0, 320, 8) if gone_has_bits else [0, 1, 319]
    joins = Joins([kept, gone, [5], range(0, 320, 2), [3, 63, 64, 319]], rows)
    assert [slot >= 0 for slot in joins.index.arrays.slots[:2]] == [kept_has_bits, gone_has_bits]
    joins.join(0, 1)
    joins.join(0, 2, 3)
    joins.join(0, 4)


@pytest.mark.parametrize("slots", [0, 1, 2])
def test_joining_where_there_is_little_room_for_bits(slots, monkeypatch):
    """The most common blocks get the bits there are; a slot that falls free is used again."""
    monkeypatch.setattr(km_data, "BITS_ROOM", slots * 8 * 6)
    joins = Joins([[1, 2], range(300), range(0, 320, 2), [5, 319], [7], [63, 64]], 320, is_short=True)
    with_bits = [block for block, slot in enumerate(joins.index.arrays.slots.tolist()) if slot >= 0]
    assert with_bits == [1, 2][:slots]
    joins.join(0, 3)
    joins.join(1, 2)
    joins.join(4, 5)
    assert sum(slot >= 0 for slot in joins.index.arrays.slots.tolist()) == slots
    joins.join(4, 1)
    joins.join(0, 4)


@pytest.mark.usefixtures("bits_from_32")
def test_joining_rare_blocks_until_they_get_bits():
    joins = Joins([range(part, 320, 64) for part in range(12)], 320)
    assert set(joins.index.arrays.slots.tolist()) == {-1}
    joins.join(0, 1)
    assert joins.index.arrays.slots[0] >= 0
    joins.join(2, 3)
    joins.join(2, 0)  # the other way round, and both have bits
    for block in range(4, 12):
        joins.join(2, block)


@tries(30)
@given(
    st.lists(st.sets(st.integers(0, 69), min_size=1), min_size=3, max_size=7),
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=8),
)
@example([{0}, {69}, {1, 2, 64}], [(0, 1), (0, 2)])
@example([set(range(70))] * 7, [(3, 0), (3, 1), (3, 2), (3, 4), (3, 5), (3, 6)])  # lists run out of room
def test_random_joins(owners, steps):
    joins = Joins(owners, 70)
    joins.check()
    before = joins.index
    copied = before.copy()
    lengths = copied.arrays.lengths.tolist()
    for kept, gone in steps:
        kept, gone = kept % len(owners), gone % len(owners)
        if kept != gone and joins.owners[kept] and joins.owners[gone]:
            joins.join(kept, gone)
    assert copied.arrays.lengths.tolist() == lengths  # a copy goes its own way
    assert copied.support([0, 1], 99) == len(owners[0] & owners[1])


def test_room_is_made_when_lists_run_out(monkeypatch):
    made = []
    room = BlockIndex._make_room
    monkeypatch.setattr(BlockIndex, "_make_room", lambda self, count: made.append(count) or room(self, count))
    joins = Joins([range(10 * part, 10 * part + 10) for part in range(9)], 90)
    for block in range(1, 9):
        joins.join(0, block)
    assert made


# ---- counting


def plain_counting(records):
    data = data_of(records, 40)
    return Counting(data.index, len(data))


@contextmanager
def counted(by_bitmaps: bool):
    """Count by bitmaps, or by walking, whatever would be cheaper."""
    with patch.object(Effort, "by_bitmaps", lambda _self, _size: 0 if by_bitmaps else 1 << 62):
        yield


BOTH_WAYS = pytest.mark.parametrize("by_bitmaps", [False, True])


def as_sets(found) -> list[frozenset[int]]:
    return [frozenset(one) for one in found.tolist()]


@tries(60)
@given(RECORDS, st.integers(1, 6))
@example([{0}], 2)
@example([{0, 1, 2, 3}] * 3, 3)
@example([{0, 1, 2, 3}] * 3, 4)
@example([{0, 1, 2, 3}, {0, 1, 2}, {0, 1}, {0}], 2)
@BOTH_WAYS
def test_all_violations_of_all_sizes(by_bitmaps, records, k):
    counting = plain_counting(records)
    for size in range(1, 5):
        with counted(by_bitmaps):
            found = counting.violations(size, k, least=1)
        wanted = naive.rare(records, size, k)
        assert sorted(map(sorted, as_sets(found.sets))) == sorted(map(sorted, wanted))
        assert found.total == len(wanted)
        assert found.distinct == len(naive.itemsets(records, size))
        assert counting._effort.by_walk(size) == sum(len(naive.itemsets([record], size)) for record in records)


@tries(40)
@given(RECORDS, st.integers(1, 4), st.integers(1, 6))
@example([{0, 1, 2}, {0, 1, 2}, {1, 2}], 3, 2)
@BOTH_WAYS
def test_prefixes_of_too_few_are_skipped(by_bitmaps, records, least, k):
    """The prefix is all but the most common block; every shorter prefix has more people anyhow."""
    counting = plain_counting(records)
    rank = {int(block): place for place, block in enumerate(counting.names)}
    weight = {item: naive.support(records, [item]) for item in range(8)}
    assert [(weight[int(block)], int(block)) for block in counting.names] == sorted(
        (count, item) for item, count in weight.items() if count
    )
    for size in (2, 3, 4):
        with counted(by_bitmaps):
            found = counting.violations(size, k, least=least)
        wanted = {
            one for one in naive.rare(records, size, k)
            if naive.support(records, sorted(one, key=rank.__getitem__)[:-1]) >= least
        }  # fmt: skip
        assert set(as_sets(found.sets)) == wanted
        assert len(found.sets) == found.total == len(wanted)
    if least == k:
        assert plain_counting(records).violations(2, k).total == counting.violations(2, k, least=k).total


@BOTH_WAYS
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_counting_does_not_depend_on_threads(threads, by_bitmaps, monkeypatch):
    records = random_records(1, 150, 30, 8)
    counting = plain_counting(records)
    monkeypatch.setattr(km_counting.os, "cpu_count", lambda: threads)
    for size in (2, 3):
        wanted = naive.rare(records, size, 3)
        with counted(by_bitmaps):
            found = counting.violations(size, 3, 77, least=1)
        assert found.total == len(wanted) == len(found.sets)
        assert set(as_sets(found.sets)) == wanted
        hashes = [int(plain.counting.hash_of(one, size, np.uint64(77))) for one in found.sets]
        assert hashes == sorted(hashes)  # the order is the key's
    assert counting.violations(3, 3, 78, least=1).sets.tolist() != found.sets.tolist()


@pytest.mark.parametrize("room", [1, 2, 16, 64, 1000])
def test_what_is_kept_when_there_is_little_room(room, monkeypatch):
    """Whichever thread does what, the same violations are kept: all whose hash ends in enough zeros."""
    records = random_records(2, 120, 30, 7)
    counting = plain_counting(records)
    wanted = naive.rare(records, 3, 3)
    monkeypatch.setattr(km_counting, "_MOST_KEPT", room)
    seen = []
    for threads, tasks in ((1, 32), (2, 32), (2, 1), (4, 2)):
        monkeypatch.setattr(km_counting.os, "cpu_count", lambda threads=threads: threads)
        monkeypatch.setattr(km_counting, "_TASKS_A_THREAD", tasks)
        found = counting.violations(3, 3, 5, least=1)
        assert found.total == len(wanted)
        assert set(as_sets(found.sets)) <= wanted
        assert len(found.sets) < max(room, 2)
        seen.append(found.sets.tolist())
    if room >= 64:
        assert seen[0]
        assert all(one == seen[0] for one in seen)
    hashes = {one: int(plain.counting.hash_of(sorted_by_rank(counting, one), 3, np.uint64(5))) for one in wanted}
    zeros = min((trailing_zeros(hashes[frozenset(one)]) for one in seen[0]), default=64)
    assert {frozenset(one) for one in seen[0]} == {one for one in wanted if trailing_zeros(hashes[one]) >= zeros}


def sorted_by_rank(counting, one) -> np.ndarray:
    rank = {int(block): place for place, block in enumerate(counting.names)}
    return np.array(sorted(one, key=rank.__getitem__), np.int32)


def trailing_zeros(word) -> int:
    return (word & -word).bit_length() - 1 if word else 64


def test_thinning_out_keeps_whole_classes_of_hashes():
    hashes = np.array([8, 4, 6, 1, 16, 12, 3, 2], np.uint64)
    found = Found(np.arange(16, dtype=np.int32).reshape(8, 2), hashes.copy(), np.array([8, 8, 0, 8]))
    plain.counting.thin_out(found, 2)
    assert found.tally[KEPT] == 6
    assert found.tally[ZEROS] == 1
    assert found.hashes[:6].tolist() == [8, 4, 6, 16, 12, 2]
    assert found.sets[:6, 0].tolist() == [0, 2, 4, 8, 10, 14]
    plain.counting.thin_out(found, 2)  # there is room again
    assert found.tally[KEPT] == 6
    same = Found(found.sets[:4].copy(), np.array([8, 8, 8, 16], np.uint64), np.array([4, 4, 0, 4]))
    plain.counting.thin_out(same, 2)
    assert same.hashes[: same.tally[KEPT]].tolist() == [16]
    assert same.tally[ZEROS] == 4


def test_room_for_what_follows_a_block():
    counting = plain_counting([{0, 1, 2}, {1, 2}, {2}, {0, 2}])
    assert counting.names.tolist() == [0, 1, 2]
    assert [following(counting._sets, rank) for rank in range(3)] == [3, 2, 0]
    assert [plain.counting.place_of(counting._sets, row, 2) for row in range(4)] == [
        place for place in range(len(counting._sets.ranks)) if counting._sets.ranks[place] == 2
    ]


def test_one_walk_finds_what_begins_with_its_ranks():
    """Walks over some ranks leave their room clean for the next; tallies add up."""
    records = random_records(3, 60, 12, 6)
    counting = plain_counting(records)
    wanted = naive.rare(records, 3, 4)
    rank = {int(block): place for place, block in enumerate(counting.names)}
    (walk,), found = counting._walks(3, 1), km_counting._room(3)
    seen = 0
    for first in range(len(counting.names)):
        ranks = np.array([first])
        find_violations(counting._sets, walk, ranks, 3, 4, 1, counting.names, np.uint64(0), found)
        mine = set(as_sets(found.sets[seen : found.tally[KEPT]]))
        assert mine == {one for one in wanted if min(rank[item] for item in one) == first}
        seen = int(found.tally[KEPT])
        assert not walk.counts.any()
    assert found.tally[TOTAL] == len(wanted)


@pytest.mark.parametrize("head", [1, 2, 64])
def test_bitmaps_of_more_words_than_are_kept(head, monkeypatch):
    """Rare and common blocks over many words: what the first words do not decide is counted in all of them."""
    records = random_records(5, 300, 9, 8) + [{0, 7}] * 3 + [{7, 8}]
    monkeypatch.setattr(km_counting, "_HEAD", head)
    counting, total = plain_counting(records), 0
    for size, k, least in ((2, 60, 1), (2, 60, 150), (3, 40, 1), (3, 5, 60), (4, 20, 1), (4, 20, 20), (5, 9, 2)):
        with counted(by_bitmaps=False):
            walked = counting.violations(size, k, 7, least=least)
        with counted(by_bitmaps=True):
            found = counting.violations(size, k, 7, least=least)
        assert (found.total, found.distinct) == (walked.total, walked.distinct)
        assert found.sets.tolist() == walked.sets.tolist()
        total += found.total
    assert total > 50


def test_the_cheaper_way_is_taken(monkeypatch):
    dense = plain_counting([set(range(12))] * 300)
    assert dense.steps(4) == dense._effort.by_walk(4), "too little to compile another kernel for"
    monkeypatch.setattr(km_counting, "_MANY_STEPS", 0)
    assert dense.steps(4) == dense._effort.by_bitmaps(4) < dense._effort.by_walk(4)
    sparse = plain_counting([{one, one + 1, one + 2} for one in range(30)])
    assert sparse.steps(3) == sparse._effort.by_walk(3) < sparse._effort.by_bitmaps(3)


def test_counting_on_joined_blocks():
    records = random_records(4, 80, 12, 6)
    data = data_of(records, 12)
    index = data.index.copy()
    block_of = dict(enumerate(range(12)))
    for kept, gone in ((2, 5), (2, 11), (0, 1), (7, 8)):
        index.join(kept, [kept, gone])
        block_of = {item: kept if block == gone else block for item, block in block_of.items()}
    counting = Counting(index, len(data))
    shown = naive.released(records, block_of)
    for size in (1, 2, 3, 4):
        found = counting.violations(size, 5, least=1)
        assert set(as_sets(found.sets)) == naive.rare(shown, size, 5)
        assert found.distinct == len(naive.itemsets(shown, size))


WALKED = [{0, 1, 2}, {1, 2}, {2}, {0, 2, 3}, {2, 3}, {2, 3}]
"""By rank, the rarest first: 0 (two people), 1 (two), 3 (three), 2 (six)."""


def walking(size=3):
    counting = plain_counting(WALKED)
    assert counting.names.tolist() == [0, 1, 3, 2]
    (walk,), found = counting._walks(size, 1), km_counting._room(size)
    return plain.counting, counting, walk, found


def test_a_walk_step_by_step():
    """Who has block 0: {0, 1, 2} and {0, 2, 3}. After it come 1 (once), 3 (once) and 2 (twice)."""
    steps, counting, walk, _ = walking()
    sets = counting._sets
    people = sets.owners[sets.owner_starts[0] : sets.owner_starts[1]].tolist()
    assert len(people) == 2
    walk.prefix[0] = 0
    walk.rows[0, :2] = people
    walk.places[0, :2] = [steps.place_of(sets, row, 0) for row in people]
    walk.state[0] = [0, 0, 0, 2]
    steps.count_following(sets, walk, 0)
    assert walk.counts[0].tolist() == [0, 1, 1, 2]
    assert sorted(walk.touched[0, : walk.state[0, 0]].tolist()) == [1, 2, 3]
    steps.split_following(sets, walk, 0, 2)  # those of one person are left out
    assert (walk.ends[0, 1], walk.ends[0, 2]) == (-1, -1)
    assert walk.rows[1, :2].tolist() == people
    assert sets.ranks[walk.places[1, :2]].tolist() == [3, 3]
    assert steps.go_deeper(walk, 0)
    assert walk.prefix[:2].tolist() == [0, 3]
    assert walk.state[1, 2:].tolist() == [0, 2]
    assert not steps.go_deeper(walk, 0)
    steps.forget_counts(walk, 0)
    assert not walk.counts.any()


def test_the_last_step_of_a_walk_judges():
    steps, counting, walk, found = walking(2)
    sets, key = counting._sets, np.uint64(1)
    owners = sets.owners[sets.owner_starts[2] : sets.owner_starts[3]]  # of block 3: all three have 2 as well
    walk.prefix[0] = 2
    walk.rows[0, :3] = owners
    walk.places[0, :3] = [steps.place_of(sets, row, 2) for row in owners]
    walk.state[0] = [0, 0, 0, 3]
    steps.enter(sets, walk, 0, 2, 4, 1, counting.names, key, found)
    assert found.tally.tolist() == [1, 1, 0, 1]
    assert found.sets[0].tolist() == [3, 2]
    assert not walk.counts.any()
    steps.count_following(sets, walk, 0)
    steps.judge_following(walk, 0, 2, 3, counting.names, key, found)  # three are enough for three
    assert found.tally.tolist() == [1, 1, 0, 2]
    steps.walk_from(sets, walk, 0, 2, 2, 3, counting.names, key, found)  # block 0 has fewer than the least
    assert found.tally[TOTAL] == 1


def test_violations_are_noted_by_the_numbers_of_their_blocks():
    steps, counting, walk, _ = walking(2)
    found = Found(np.zeros((3, 2), np.int32), np.zeros(3, np.uint64), np.array([0, 0, 1, 0]))
    for first in range(4):
        walk.prefix[:2] = [first, 3]
        word = int(steps.hash_of(counting.names[[first, 3]], 2, np.uint64(7)))
        before = int(found.tally[KEPT])
        zeros = int(found.tally[ZEROS])
        steps.note_violation(found, walk.prefix, 2, counting.names, np.uint64(7))
        if trailing_zeros(word) >= zeros and before + 1 < 3:
            assert found.tally[KEPT] == before + 1
            assert found.hashes[before] == word
            assert found.sets[before].tolist() == counting.names[[first, 3]].tolist()
        elif trailing_zeros(word) < zeros:
            assert found.tally[KEPT] == before
    assert found.tally[TOTAL] == 4


# ---- mending


@tries(40)
@given(RECORDS, st.lists(st.integers(0, 7), min_size=8, max_size=8), st.integers(1, 5))
@example([{0, 1}, {2}], [0] * 8, 2)
@example([{0, 1}, {2}], list(range(8)), 1)
def test_the_next_violation(records, labels, k):
    least = {label: labels.index(label) for label in labels}
    block_of = {item: least[label] for item, label in enumerate(labels)}
    data = data_of(records)
    index = data.index.copy()
    for item, block in block_of.items():
        if item != block:
            index.join(block, [block, item])
    pairs = sorted(map(sorted, naive.itemsets(records, 2)))
    found = np.array(pairs, np.int32).reshape(-1, 2)
    shown = naive.released(records, block_of)
    violating = [at for at, pair in enumerate(pairs) if naive.support(shown, naive.image(pair, block_of)) < k]
    numbers = np.array([block_of[item] for item in range(8)], np.int32)
    for first in range(len(pairs) + 1):
        wanted = next((at for at in violating if at >= first), len(pairs))
        assert next_violation(index.arrays, numbers, found, first, k, make_scratch()) == wanted


# ---- drawing


def draws_of(data, size, k=2, *, by_person=False, key=KEY):
    draws = make_draws(data, size, k, key, by_person=by_person)
    assert draws is not None
    return draws


SOME = [{0, 1, 2}, {0, 1}, {1, 2, 3}, {3}, {0, 1, 2, 3, 4}]


def sample(data, draws, count, first=0):
    drawn, people = np.full((count, draws.size), -1, np.int32), np.zeros(count, np.int64)
    end, kept = draw_samples(
        data.sets, data.index.arrays, draws, first, first + 100 * count, count, make_scratch(), drawn, people
    )
    assert kept == count
    return end, drawn, people


def test_nothing_can_be_drawn_where_nobody_has_so_many_items():
    assert make_draws(data_of(SOME), 6, 2, KEY) is None
    assert make_draws(data_of(SOME), 5, 2, KEY) is not None


@pytest.mark.parametrize("by_person", [False, True])
def test_samples_are_itemsets_with_their_people(by_person):
    data = data_of(SOME)
    for size in (1, 2, 3):
        _, drawn, people = sample(data, draws_of(data, size, 99, by_person=by_person), 60)
        for itemset, count in zip(drawn.tolist(), people.tolist(), strict=True):
            assert len(set(itemset)) == size
            assert count == naive.support(SOME, itemset)


def test_where_drawing_stops():
    data = data_of(SOME)
    draws = draws_of(data, 2)
    end, drawn, _ = sample(data, draws, 30)
    again_end, again, _ = sample(data, draws, 20)
    assert again.tolist() == drawn[:20].tolist()
    _, rest, _ = sample(data, draws, 10, first=again_end)
    assert rest.tolist() == drawn[20:].tolist()
    room = np.empty((30, 2), np.int32), np.empty(30, np.int64)
    last, kept = draw_samples(data.sets, data.index.arrays, draws, 0, end - 1, 30, make_scratch(), *room)
    assert (last, kept) == (end - 1, 29)  # the last one came last


def find(data, draws, k, last, wanted, first=0):
    scratch = make_scratch()
    same = np.arange(len(data.names), dtype=np.int32)
    own = data.index.arrays
    answer = find_violation(data.sets, own, own, same, draws._replace(k=k), first, last, wanted, scratch)
    return *answer, scratch.itemset[: draws.size].tolist()


@pytest.mark.parametrize("samples_only", [False, True])
def test_drawing_until_something_violates(samples_only):
    data = data_of(SOME)
    draws = draws_of(data, 2)._replace(samples_only=samples_only)
    for k in range(1, 6):
        first, violating, proposals = 0, [], 300 if IS_COMPILED else 60
        while first < proposals:
            end, passed, violates, itemset = find(data, draws, k, proposals, 10**9, first)
            assert end > first or end == proposals
            assert violates == (naive.support(SOME, itemset) < k) or not violates
            if violates:
                violating.append(tuple(itemset))
                alone = find(data, draws, k, end, 10**9, end - 1)
                assert alone[2]
            else:
                assert end == proposals
            assert passed <= end - first
            first = end
        assert {frozenset(one) for one in violating} == naive.rare(SOME, 2, k)
    # Nothing violates: 7 samples are drawn and no more.
    end, passed, violates, _ = find(data, draws, 1, 10**4, 7)
    assert (passed, violates) == (7, False)
    assert find(data, draws, 1, end - 1, 7)[:3] == (end - 1, 6, False)


def test_only_samples_violate_when_so_asked():
    """Everything has two people: half of the proposals are samples, and only those may violate."""
    data = data_of([{0, 1, 2}] * 2)
    draws = draws_of(data, 2)
    ends = {}
    for samples_only in (False, True):
        chosen = draws._replace(samples_only=samples_only)
        first, ends[samples_only] = 0, []
        while first < 400:
            end, passed, violates, _ = find(data, chosen, 3, 400, 10**9, first)
            assert passed == 0  # nothing passes
            if violates:
                ends[samples_only].append(end)
            first = end
    assert ends[False] == list(range(1, 401))
    assert naive.is_plausible(len(ends[True]), 400, 0.5)


@pytest.mark.parametrize("people", [1, 2, 3])
def test_what_is_judged_is_the_image(people):
    """Items 0 and 1 are one block: several have it with 2, though each pair has one person alone."""
    data = data_of([{0, 2}, {1, 2}, {0, 1, 2}][:people] + [{3}] * 3)
    index = data.index.copy()
    index.join(0, [0, 1])
    block_of = np.array([0, 0, 2, 3, 4, 5, 6, 7], np.int32)
    for k in range(1, 5):
        draws = draws_of(data, 2, k)
        answer = find_violation(data.sets, data.index.arrays, index.arrays, block_of, draws, 0, 50, 50, make_scratch())
        assert answer[2] == (people < k)


def test_sets_are_picked_by_their_weight():
    data = data_of(SOME)
    drawing, coins = plain.sampling, np.zeros(1, np.uint64)
    plain.randomness.start_coins(coins, KEY, 0)
    for by_person in (False, True):
        sizes = data.sizes(2, by_person=by_person)
        picked = Counter(int(drawing.pick_set(sizes, coins)) for _ in range(4000))
        weights = {row: 1 if by_person else int(n * (n - 1) // 2) for row, n in enumerate(data.set_sizes) if n >= 2}
        shares = {row: weight / sum(weights.values()) for row, weight in weights.items()}
        assert naive.chi_square_score(picked, shares) < 4


@pytest.mark.parametrize("size", [1, 2, 4, 5])
def test_itemsets_of_a_set_are_uniform(size):
    data = data_of(SOME)
    drawing, coins, itemset = plain.sampling, np.zeros(1, np.uint64), np.zeros(MOST, np.int32)
    plain.randomness.start_coins(coins, KEY, size)
    found = Counter()
    for _ in range(2000):
        drawing.pick_itemset(data.sets, len(SOME) - 1, size, coins, itemset)  # the longest comes last
        found[frozenset(itemset[:size].tolist())] += 1
    assert naive.chi_square_score(found, naive.uniform([SOME[4]], size)) < 4


def test_a_proposal_and_what_becomes_of_it():
    """Drawn by the number's own coins: proposed, then kept with one over its support."""
    data = data_of(SOME)
    drawing, draws, scratch = plain.sampling, draws_of(data, 2), make_scratch()
    own, kept, proposed = data.index.arrays, Counter(), Counter()
    for number in range(3000):
        is_sample, people = drawing.draw_one(data.sets, own, draws, number, scratch, 9)
        itemset = frozenset(scratch.itemset[:2].tolist())
        assert people == naive.support(SOME, itemset)
        plain.randomness.start_coins(scratch.coins, KEY, number)
        drawing.propose(data.sets, draws, scratch.coins, scratch.other)
        assert frozenset(scratch.other[:2].tolist()) == itemset
        proposed[itemset] += 1
        kept[itemset] += is_sample
    assert naive.chi_square_score(proposed, naive.proposals(SOME, 2)) < 4
    for itemset, count in proposed.items():
        assert naive.is_plausible(kept[itemset], count, 1 / naive.support(SOME, itemset))


def test_likelihoods_and_a_walk():
    data = data_of(SOME)
    drawing, scratch = plain.sampling, make_scratch()
    chain = as_chain(data, draws_of(data, 2))
    people = sum(len(record) >= 2 for record in SOME)
    for itemset, share in naive.by_person(SOME, 2).items():
        found = drawing.likelihood(data.sets, data.index.arrays, chain, np.array(sorted(itemset), np.int32), scratch)
        assert found == pytest.approx(float(share) * people)
    trails = np.zeros((2, 30))
    plain.randomness.start_coins(scratch.coins, KEY, 4)
    drawing.walk_chain(data.sets, data.index.arrays, chain._replace(steps=30), scratch, trails[0], False)
    follow_chain(data.sets, data.index.arrays, chain._replace(steps=30), 4, make_scratch(), trails[1], False)
    assert trails[0].tolist() == trails[1].tolist()
    assert len(set(trails[0].tolist())) > 1  # it moves


def test_images_and_people():
    blocks = np.zeros(MOST, np.int32)
    block_of = np.array([0, 0, 2, 2, 4], np.int32)
    itemset = np.array([3, 1, 0, 2], np.int32)
    assert plain.sampling.image(itemset, 4, block_of, blocks) == 2
    assert blocks[:2].tolist() == [2, 0]
    assert plain.sampling.image(itemset, 1, block_of, blocks) == 1
    data = data_of(SOME)
    for wanted in (1, 2, 9):
        people = plain.sampling.people_with(data.index.arrays, itemset, 2, make_scratch(), wanted)
        assert people == min(naive.support(SOME, [1, 3]), wanted)


def test_the_chain_notes_the_likelihood_of_where_it_is():
    data = data_of(SOME)
    shares = naive.by_person(SOME, 2)
    people = sum(len(record) >= 2 for record in SOME)
    chain = as_chain(data, draws_of(data, 2))
    assert chain.steps >= 64
    trail = np.zeros(50)
    scratch = make_scratch()
    follow_chain(data.sets, data.index.arrays, chain._replace(steps=50), 3, scratch, trail, False)
    known = {round(float(share) * people, 9) for share in shares.values()}
    assert {round(value, 9) for value in trail.tolist()} <= known
    assert trail[-1] == pytest.approx(float(shares[frozenset(scratch.itemset[:2].tolist())]) * people)
    again = np.zeros(20)
    follow_chain(data.sets, data.index.arrays, chain._replace(steps=50), 3, make_scratch(), again, False)
    assert again.tolist() == trail[:20].tolist()
    counted = np.zeros(50)
    follow_chain(data.sets, data.index.arrays, chain._replace(steps=50), 3, scratch, counted, True)
    assert counted[-1] == naive.support(SOME, scratch.itemset[:2].tolist())
    assert set(counted.tolist()) <= {naive.support(SOME, one) for one in shares}
    assert len(set(counted.tolist())) > 1
