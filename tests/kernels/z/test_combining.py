"""The kernels that group people with alike sets, against plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.kernels.z import combining
from tests.reference.effort import tries
from tests.reference.plain import plain_kernels
from tests.reference.z_combining import as_entries, cut_by_trying, grown

plain = plain_kernels("z.combining").combining
KINDS = 5
SETS = st.lists(st.dictionaries(st.integers(0, KINDS - 1), st.integers(1, 4), min_size=1, max_size=4), max_size=9)


def laid_out(sets):
    """Starts, items, weights and totals of sets."""
    owners, items, weights = as_entries(sets)
    starts = np.searchsorted(owners, np.arange(len(sets) + 1))
    return starts, items, weights, np.array([sum(given.values()) for given in sets], np.int64)


def cut(sets, buckets, k):
    starts, items, weights, totals = laid_out(sets)
    loss, taken = np.zeros(len(sets) + 1, np.int64), np.zeros(len(sets) + 1, np.int64)
    shared, sums = np.empty(KINDS, np.int64), np.empty(KINDS, np.int64)
    order = np.arange(len(sets))
    combining.cut_sequence(
        starts, items, weights, totals, order, np.array(buckets, np.int64), k, loss, taken, shared, sums
    )
    groups = np.empty(len(sets), np.int64)
    count = combining.read_cuts(taken, groups)
    return int(loss[-1]), groups.tolist(), count


@given(SETS, st.integers(2, 4), st.integers(0, 9))
@tries(150)
@example([{0: 1}, {0: 1, 1: 1}, {1: 1}, {1: 1}], 2, 9)
def test_cut_sequence_loses_the_least_and_read_cuts_says_how(sets, k, wall):
    buckets = [int(number >= wall) for number in range(len(sets))]
    loss, groups, count = cut(sets, buckets, k)
    assert loss == cut_by_trying(sets, buckets, k)
    lost = 0
    for group in range(count):
        members = [number for number, own in enumerate(groups) if own == group]
        assert k <= len(members) < 2 * k
        assert members == list(range(members[0], members[-1] + 1))
        assert len({buckets[number] for number in members}) == 1
        shared = set.intersection(*(set(sets[number]) for number in members))
        lost += sum(weight for number in members for item, weight in sets[number].items() if item not in shared)
    lost += sum(sum(sets[number].values()) for number, own in enumerate(groups) if own == combining.NOWHERE)
    assert lost == loss


@given(SETS, st.integers(2, 4), st.integers(1, 9))
@tries(150)
@example([{0: 1}, {1: 1}, {0: 1, 1: 3}, {1: 1}], 3, 9)
def test_grow_groups_adds_the_best_partner_each_time(sets, k, reach):
    starts, items, weights, _ = laid_out(sets)
    ends = [min(place + reach, len(sets)) for place in range(len(sets))]
    groups, sum_of = np.empty(len(sets), np.int64), np.zeros(KINDS, np.int64)
    shared, sums = np.empty(KINDS, np.int64), np.empty(KINDS, np.int64)
    count = combining.grow_groups(
        starts, items, weights, np.arange(len(sets)), np.array(ends, np.int64), k, groups, shared, sums, sum_of
    )
    assert not sum_of.any()
    assert set(groups.tolist()) <= {combining.NOWHERE, *range(count)}
    assert [np.flatnonzero(groups == group).tolist() for group in range(count)] == grown(sets, ends, k)


def test_best_partner_is_the_first_of_the_best():
    starts, items, weights, _ = laid_out([{0: 9}, {0: 1}, {0: 2}, {0: 2}, {1: 5}])
    groups, sum_of = np.array([0, combining.FREE, combining.FREE, combining.FREE, combining.FREE]), np.array([9, 0])
    row = np.arange(5)
    assert plain.best_partner(starts, items, weights, row, groups, 1, 5, sum_of) == 2
    assert plain.best_partner(starts, items, weights, row, groups, 1, 2, sum_of) == 1
    assert plain.best_partner(starts, items, weights, row, groups, 4, 5, sum_of) == combining.NOWHERE


def test_meet_keeps_what_both_have():
    starts, items, weights, _ = laid_out([{1: 5, 2: 6, 4: 7}])
    shared, sums = np.array([0, 2, 4, 9]), np.array([1, 2, 3, 4])
    assert plain.meet(starts, items, weights, 0, shared, sums, 4) == 2
    assert shared[:2].tolist() == [2, 4]
    assert sums[:2].tolist() == [8, 10]


@given(SETS, st.data())
@tries(100)
def test_mark_shared_keeps_what_all_members_have(sets, data):
    starts, items, _, _ = laid_out(sets)
    groups = [data.draw(st.integers(-1, 2)) for _ in sets]
    members = [number for group in range(3) for number, own in enumerate(groups) if own == group]
    bounds = np.cumsum([0, *(groups.count(group) for group in range(3))])
    counts, kept = np.zeros(KINDS, np.int64), np.zeros(len(items), np.bool_)
    combining.mark_shared(starts, items, np.array(members, np.int64), bounds, counts, kept)
    assert not counts.any()
    for number, own in enumerate(groups):
        found = set(items[starts[number] : starts[number + 1]][kept[starts[number] : starts[number + 1]]].tolist())
        members = [set(sets[other]) for other in range(len(sets)) if groups[other] == own]
        assert found == (set.intersection(*members) if own >= 0 else set())


def test_worth_in_is_nothing_where_an_item_is_lacking():
    weight_of = np.array([3, 0, 4])
    assert plain.worth_in(weight_of, np.array([0, 2, 1]), 0, 2) == 7
    assert plain.worth_in(weight_of, np.array([0, 2, 1]), 0, 3) == 0


@given(SETS, st.lists(st.sets(st.integers(0, KINDS - 1), min_size=1), min_size=1, max_size=5), st.data())
@tries(100)
def test_find_homes_finds_the_best_group_that_shows_nothing_else(sets, groups, data):
    starts, items, weights, _ = laid_out(sets)
    people = [number for number in range(len(sets)) if data.draw(st.booleans())]
    own = [data.draw(st.integers(-1, len(groups) - 1)) for _ in people]
    least = [data.draw(st.integers(0, 4)) for _ in people]
    group_items = np.array([item for group in groups for item in sorted(group)])
    group_starts = np.cumsum([0, *map(len, groups)])
    last = np.array([max(group) for group in groups])
    listed, listed_starts = np.argsort(last, kind="stable"), np.searchsorted(np.sort(last), np.arange(KINDS + 1))
    weight_of, homes, worth = np.zeros(KINDS, np.int64), np.empty(len(people), np.int64), np.array(least, np.int64)
    combining.find_homes(
        starts, items, weights, np.array(people, np.int64), np.array(own, np.int64), group_starts, group_items,
        listed_starts, listed, 1000, weight_of, homes, worth,
    )  # fmt: skip
    assert not weight_of.any()
    for place, person in enumerate(people):
        worths = {
            number: sum(sets[person][item] for item in group)
            for number, group in enumerate(groups)
            if group <= set(sets[person]) and number != own[place]
        }
        best = max(worths.values(), default=0)
        assert worth[place] == max(best, least[place])
        assert (worths[int(homes[place])] == best) if best > least[place] else homes[place] == combining.NOWHERE
