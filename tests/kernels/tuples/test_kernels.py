"""Pieces of the kernels of tuple streams, one by one, against plain definitions."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.hierarchies import Hierarchy
from shoal.kernels.tuples import layout as t
from shoal.kernels.tuples.queue import clear_keys, pack_pending, restore_pending
from shoal.methods.schema_arrays import Leaves, compile_shape
from shoal.methods.tuples.decider.memory import Sizes, make_stream
from shoal.schema import Categorical, Numeric
from tests.methods.tuples.driving import grown
from tests.reference.effort import tries
from tests.reference.plain import plain_kernels

plain = plain_kernels(
    "tuples.generalize", "tuples.nearest", "tuples.diversity", "tuples.k_varp",
    "tuples.queue", "tuples.emit", "tuples.reuse", "tuples.fads",
)  # fmt: skip
TREE = {"all": {"left": ["a", "b", "c"], "right": {"far": ["d"], "near": {"e": None, "f": None}}}}


def make(quasi=None, *, held=16, clusters=4, sensitive=0, values=8, recent=0, joined=0, **plan):
    """A stream with nothing in it."""
    quasi = quasi or [Numeric("x", low=0, high=10)]
    trees = [Leaves(role.hierarchy) if isinstance(role, Categorical) else None for role in quasi]
    settings = np.zeros(t.PLAN, dtype=np.int64)
    settings[t.K], settings[t.DEADLINE], settings[t.REFERENCE] = 2, 5, recent
    for name, value in plan.items():
        settings[getattr(t, name)] = value
    ratios = np.zeros(t.RATIOS)
    ratios[t.CLOSENESS] = -1.0
    sizes = Sizes(
        attributes=len(quasi), k=int(settings[t.K]), sensitive=sensitive, values=values, recent=recent, pending=held,
        clusters=clusters, is_capped=joined > 0,
    )  # fmt: skip
    s = make_stream(sizes, compile_shape(quasi, trees), settings, ratios)
    few = {name: getattr(s, name)[:64] for name in ("out_i", "group_f", "group_i", "group_r")}
    return s._replace(joined=s.joined[:joined], **few)


def arrivals(rows, people=None, sensitive=(), *, times=None):
    """Rows of values as they come, already scaled where that matters."""
    values = np.array(rows, dtype=np.float64).T
    count, wide = values.shape[1], values.shape[0]
    masks = np.zeros((count, (wide + 62) // 63), dtype=np.int64)
    for a in range(wide):
        masks[:, a // 63] |= (~np.isnan(values[a])).astype(np.int64) << (a % 63)
    people = range(count) if people is None else people
    persons = np.array([[person, 7] for person in people], dtype=np.int64)
    numbers = np.arange(count)
    given_ = {
        "values": values, "raws": values, "masks": masks, "persons": persons, "rows": numbers,
        "times": numbers if times is None else np.array(times), "lanes": np.zeros(count, dtype=np.int64),
        "sensitive": np.array(sensitive, dtype=np.int64).reshape(len(sensitive), count),
    }  # fmt: skip
    return t.Arrivals(**{name: given_[name] for name in t.Arrivals._fields})


def fill(s, rows, people=None, sensitive=()):
    come = arrivals(rows, people, sensitive)
    return [plain.queue.add_pending(s, come, i) for i in range(len(rows))]


# ---- names


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9)), max_size=80), st.sampled_from([1, 2]))
@tries(80)
def test_names_are_those_of_a_dict(steps, words):
    """Few keys and hardly any room: the table is crowded, numbers come back, gaps are closed."""
    s, kind = make(held=10), t.PEOPLE if words == 2 else t.PATTERNS
    naming, model = plain.queue, {}
    for is_new, number in steps:
        key = np.array([(number - 5) * 2**60, 5][:words], dtype=np.int64)
        if is_new:
            found = naming.intern_key(s, kind, key)
            known = model.setdefault(number, [found, 0])
            assert found == known[0]
            known[1] += 1
            assert naming.has_key(s.slots[kind], found, key)
            assert naming.home_of(s.tables[kind], s.slots[kind], found, words) == naming.home_of_key(
                s.tables[kind], key
            )
        elif number in model:
            naming.release_key(s, kind, model[number][0], words)
            model[number][1] -= 1
            if not model[number][1]:
                del model[number]
        assert naming.count_keys(s, kind) == len(model)
        names = [known for known, _ in model.values()]
        assert len(set(names)) == len(names)
        assert sorted(s.tables[kind][s.tables[kind] != naming.NO_ONE]) == sorted(names)
    for number, (known, count) in model.items():
        assert s.slots[kind][t.COUNT, known] == count
        key = np.array([(number - 5) * 2**60, 5][:words], dtype=np.int64)
        assert naming.intern_key(s, kind, key) == known
    clear_keys(s, kind)
    assert naming.count_keys(s, kind) == 0


def test_names_at_full_room_with_one_home():
    """All keys begin their search at one place, and every number is in use."""
    s, naming = make(held=8), plain.queue
    table = s.tables[t.PEOPLE]
    keys = (np.array([first, 0], dtype=np.int64) for first in range(10_000))
    same = [key for key in keys if naming.home_of_key(table, key) == len(table) - 1][:8]
    names = [naming.intern_key(s, t.PEOPLE, key) for key in same]
    assert sorted(names) == list(range(8))
    for gone in (0, 7, 3):
        naming.release_key(s, t.PEOPLE, names[gone], 2)
        left = [at for at in range(8) if at != gone]
        assert [naming.intern_key(s, t.PEOPLE, same[at]) for at in left] == [names[at] for at in left]
        for at in left:
            naming.release_key(s, t.PEOPLE, names[at], 2)
        assert naming.intern_key(s, t.PEOPLE, same[gone]) == names[gone]  # the only number that is free
        assert naming.count_keys(s, t.PEOPLE) == 8


def test_words_are_mixed():
    naming = plain.queue
    assert naming.mixed(np.uint64(0), np.int64(0)) == 0
    found = {int(naming.mixed(np.uint64(3), np.int64(word))) & 1023 for word in range(-100, 100)}
    assert len(found) > 150  # the low bits, which a table looks at, differ


# ---- trees


@pytest.mark.parametrize(("seed", "leaves"), [(1, 3), (2, 40), (3, 200), (4, 700)])
def test_meet_is_the_lowest_common_ancestor(seed, leaves):
    draw = random.Random(seed)
    tree = Hierarchy.from_nested(grown(draw, leaves))
    role = Categorical("c", tree)
    s, labels = make([role]), Leaves(tree)
    names = [tree.labels[node] for node in labels.node]
    for _ in range(300):
        first, last = sorted((draw.randrange(len(names)), draw.randrange(len(names))))
        between = names[first : last + 1] if last - first < 20 else [names[first], names[last]]
        node = plain.generalize.meet(s, 0, first, last)
        assert tree.labels[node] == tree.lowest_common_ancestor(between)
        assert labels.first[node] <= first <= last <= labels.last[node]


# ---- numbers


@given(
    st.sampled_from([(0, 1000, 0.1), (0.1, 90, 0.3), (17, 90, 5), (-5, 20, 3), (0, 7, 100), (-1e6, 1e6, 0.7)]),
    st.floats(0, 1),
    st.booleans(),
)
@tries(200)
def test_snapping_goes_outward_to_the_grid(domain, share, on_grid):
    low, high, grid = domain
    s = make([Numeric("x", low=low, high=high, grid=grid)])
    value = low + share * (high - low)
    if on_grid:
        value = min(low + round((value - low) / grid) * grid, high)
    value = min(max(value, low), high)
    down, up = plain.generalize.snapped_down(s, 0, value), plain.generalize.snapped_up(s, 0, value)
    assert low <= down <= value <= up <= high
    assert value - down < grid * 1.001
    assert up - value < grid * 1.001
    assert math.isclose((down - low) / grid, round((down - low) / grid), abs_tol=1e-6)
    assert up == high or math.isclose((up - low) / grid, round((up - low) / grid), abs_tol=1e-6)
    if on_grid and value != high:
        assert (down, up) == (value, value) or up - down <= grid * 1.001


@pytest.mark.parametrize(
    ("low", "grid", "values"),
    [
        (0, 0.1, [1.7, 3.4, 0.9000000000000001, 1.8000000000000003]),
        (0.1, 0.3, [5.799999999999999, 9.999999999999998, 1.0, 1.9000000000000001]),
        (17, 0.7, [45.699999999999996, 62.49999999999999, 108.7, 112.2]),
    ],
)
def test_snapping_covers_what_rounding_moves(low, grid, values):
    """The quotient is rounded to a whole number that it does not reach, or that is less than it."""
    s = make([Numeric("x", low=low, high=1000, grid=grid)])
    for value in values:
        down, up = plain.generalize.snapped_down(s, 0, value), plain.generalize.snapped_up(s, 0, value)
        assert down <= value <= up
        assert up - down < 1.001 * grid


def test_without_a_grid_nothing_is_snapped():
    s = make([Numeric("x", low=0, high=10)])
    assert plain.generalize.snapped_down(s, 0, 3.3) == plain.generalize.snapped_up(s, 0, 3.3) == 3.3
    assert plain.generalize.scaled(s, 0, 5.0) == 0.5


@pytest.mark.parametrize(
    ("mode", "carriers", "shown"),
    [
        (t.COVERED, 2, False), (t.COVERED, 3, True), (t.COVERED, 5, True),
        (t.HIDDEN, 4, False), (t.HIDDEN, 5, True), (t.PAPER, 0, False), (t.PAPER, 1, True),
    ],
)  # fmt: skip
def test_what_is_shown(mode, carriers, shown):
    s = make(MISSING_MODE=mode, MIN_CARRIERS=3)
    assert plain.generalize.is_shown(s.plan, carriers, 5) == shown


def test_a_cluster_covers_its_members():
    quasi = [Numeric("x", low=0, high=10, weight=2), Categorical("c", Hierarchy.from_nested(TREE))]
    s = make(quasi, MIN_CARRIERS=1)
    hulls = plain.generalize
    fill(s, [(4, 0), (1, np.nan), (7, 1), (np.nan, np.nan)])
    s.pending_i[t.MEMBER, :3] = 0, 1, 2
    hulls.generalize_members(s, 3)
    c, wide = hulls.draft(s), hulls.width(s)
    assert s.pool_f[c, [0, 1]].tolist() == [1, 0]
    assert s.pool_f[c, [2, 3]].tolist() == [7, 2]
    assert s.pool_f[c, 4:6].tolist() == [0.6, 2 / 5]
    assert s.pool_i[c, t.FIELDS + t.C_CARRIERS * wide :][:wide].tolist() == [3, 2]
    assert hulls.own_loss(s, c, 0) == (2 * 0.6 + 2 / 5) / 3
    assert hulls.own_loss(s, c, 1) == 0.6
    assert hulls.own_loss(s, c, 3) == 0.0
    assert hulls.whole_loss(s, c, 1) == hulls.whole_loss(s, c, 0)
    s.plan[t.MISSING_MODE] = t.PAPER
    assert hulls.whole_loss(s, c, 1) == (2 * 0.6 + 1) / 3
    s.plan[t.MISSING_MODE], s.plan[t.MIN_CARRIERS] = t.COVERED, 3
    hulls.generalize_members(s, 3)
    assert hulls.own_loss(s, c, 0) == (2 * 0.6 + 1) / 3
    assert plain.reuse.covers(s, c, 1)
    assert not plain.reuse.covers(s, c, 0)  # it carries what is not shown
    assert hulls.raws(s) == t.VALUES + 2


# ---- nearest


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5), st.booleans()), min_size=1, max_size=30),
    st.integers(1, 8),
)
@tries(100)
def test_the_nearest_of_different_people(entries, wanted):
    """Few distances and few people, so that there are ties of both."""
    s = make(held=40)
    fill(s, [(0,)] * len(entries), [person for _, person, _ in entries])
    for i, (far, _, is_eligible) in enumerate(entries):
        s.pending_f[t.DISTANCE, i] = far
        s.pending_i[t.ELIGIBLE, i] = is_eligible
    chosen = plain.nearest.choose_nearest(s, 0, 0, len(entries), wanted)
    taken, expected = {entries[0][1]}, []
    for i in sorted(range(1, len(entries)), key=lambda i: (entries[i][0], i)):
        if entries[i][2] and entries[i][1] not in taken and len(expected) < wanted - 1:
            taken.add(entries[i][1])
            expected.append(i)
    assert s.pending_i[t.MEMBER, 0] == 0
    assert chosen == 1 + len(expected)
    assert sorted(s.pending_i[t.MEMBER, 1:chosen].tolist()) == sorted(expected)


@pytest.mark.parametrize(("people", "left"), [([1, 2, 3], [0, 1, 1]), ([1, 2, 2], [0, 0, 1]), ([1, 1, 2], [0, 0, 1])])
def test_one_tuple_a_person_and_not_ones_own(people, left):
    s = make()
    fill(s, [(0,)] * 3, people)
    s.pending_f[t.DISTANCE, :3], s.pending_i[t.ELIGIBLE, :3] = (0.0, 0.5, 0.4), 1
    plain.nearest.exclude_own_person(s, 0, 0, 3)
    assert s.pending_i[t.ELIGIBLE, :3].tolist() == left


@given(st.lists(st.integers(0, 3), max_size=20))
@tries(50)
def test_the_heap_has_the_last_on_top(distances):
    key, at = np.zeros(len(distances) + 1), np.zeros(len(distances) + 1, dtype=np.int64)
    for place, far in enumerate(distances):
        key[place], at[place] = far, len(distances) - place
        plain.nearest.rise_last(key, at, place)
        assert (key[0], at[0]) == max(zip(key[: place + 1].tolist(), at[: place + 1].tolist(), strict=True))
    left = sorted(zip(key[:-1].tolist(), at[:-1].tolist(), strict=True))
    for size in range(len(distances) - 1, -1, -1):
        assert (key[0], at[0]) == left.pop()
        plain.nearest.swap(key, at, 0, size)
        plain.nearest.sink_last(key, at, size, 0)
    assert not plain.nearest.is_after(np.array([1.0, 1.0]), np.array([3, 3]), 0, 1)


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_distances(missing):
    draw = random.Random(8)
    small, big = Hierarchy.from_nested(TREE), Hierarchy.from_nested(grown(random.Random(4), 600))
    quasi = [Numeric("x", low=0, high=1, weight=0.7), Categorical("c", small, weight=2), Categorical("b", big)]
    s, trees = make(quasi, held=64), [Leaves(small), Leaves(big)]
    rows = [
        [math.nan if draw.random() < missing else value
         for value in (draw.random(), draw.randrange(len(trees[0])), draw.randrange(len(trees[1])))]
        for _ in range(40)
    ]  # fmt: skip
    fill(s, rows)
    assert s.tally[t.INCOMPLETE] == sum(any(map(math.isnan, row)) for row in rows)
    for one in (0, 7, 39):
        plain.nearest.measure(s, one, 0, 40)
        for other in range(40):
            total = weights = 0.0
            for a, (left, right) in enumerate(zip(rows[one], rows[other], strict=True)):
                if math.isnan(left) or math.isnan(right):
                    continue
                apart = abs(left - right) if a == 0 else tree_distance(trees[a - 1], int(left), int(right))
                total += quasi[a].weight * apart
                weights += quasi[a].weight
            assert s.pending_f[t.DISTANCE, other] == (total / weights if weights else 1.0)


def tree_distance(leaves, one, other):
    names = [leaves.labels[leaves.node[rank]] for rank in (one, other)]
    paths = []
    for name in names:
        node, path = leaves.labels.index(name), []
        while node >= 0:
            path.append(node)
            node = int(leaves._parents[node])
        paths.append(path)
    meeting = next(node for node in paths[0] if node in paths[1])
    return (leaves.last[meeting] - leaves.first[meeting]) / (len(leaves) - 1)


def test_marking():
    s = make()
    fill(s, [(1,), (2,), (3,)])
    plain.queue.remove_pending(s, 1)
    plain.nearest.mark_all(s, t.ALLOWED, 0, 3)
    assert s.pending_i[t.ALLOWED, :3].tolist() == [1, 0, 1]
    s.plan[t.K] = 3
    assert plain.fads.form_nearest(s, 0) == 0
    s.plan[t.K] = 2
    assert plain.fads.form_nearest(s, 0) == 2


# ---- who waits


def test_gaps_are_closed_in_order():
    s, holding = make(held=8, IS_PARTED=1), plain.queue
    fill(s, [(number,) for number in range(8)])
    assert not holding.has_pending_room(s)
    for at in (0, 3, 6, 7):
        holding.remove_pending(s, at)
    assert holding.oldest(s) == 1
    assert holding.has_pending_room(s)
    assert s.pending_i[t.ROW, :4].tolist() == [1, 2, 4, 5]
    assert s.pending_i[t.ALIVE].tolist() == [1, 1, 1, 1, 0, 0, 0, 0]
    assert (s.tally[t.HEAD], s.tally[t.TAIL], s.tally[t.LIVE]) == (0, 4, 4)
    assert s.pending_f[t.VALUES, :4].tolist() == [1, 2, 4, 5]
    pack_pending(s)
    assert s.pending_i[t.ROW, :4].tolist() == [1, 2, 4, 5]


def test_narrow_gaps_stay():
    s, holding = make(held=400), plain.queue
    fill(s, [(0,)] * 200)
    for at in range(1, 65):
        holding.remove_pending(s, at)
    holding.close_wide_gaps(s)
    assert s.tally[t.TAIL] == 200
    for at in range(65, 130):
        holding.remove_pending(s, at)
    holding.close_wide_gaps(s)
    assert s.tally[t.TAIL] == 71
    assert s.pending_i[t.ROW, :71].tolist() == [0, *range(130, 200)]


def test_who_is_due():
    s, holding = make(DEADLINE=5), plain.queue
    fill(s, [(1,), (math.nan,)])
    s.pending_i[t.ARRIVED, :2] = 10, 11
    assert [holding.is_due(s, 0, now) for now in (14, 15, 16)] == [False, True, True]
    assert [holding.is_complete(s, at) for at in (0, 1)] == [True, False]
    holding.begin_again(s, 3)
    assert s.pending_i[t.ARRIVED, :2].tolist() == [3, 3]
    assert s.tally[t.NOW] == 3
    assert holding.mask_words(s) == 1


def test_taken_back_as_they_were():
    s = make(IS_PARTED=1)
    come = arrivals([(1,), (math.nan,), (2,)], [5, 5, 6])
    restore_pending(s, 3, come.persons, come.masks)
    assert (s.tally[t.LIVE], s.tally[t.HEAD], s.tally[t.TAIL]) == (3, 0, 3)
    assert s.pending_i[t.PERSON, 0] == s.pending_i[t.PERSON, 1] != s.pending_i[t.PERSON, 2]
    assert s.pending_i[t.PART, 0] == s.pending_i[t.PART, 2] != s.pending_i[t.PART, 1]
    assert s.pending_i[t.ALIVE].sum() == 3


def test_members_leave_in_order_of_arrival():
    s = make()
    s.pending_i[t.MEMBER, :5] = 4, 1, 9, 0, 3
    plain.emit.sort_members(s, 5)
    assert s.pending_i[t.MEMBER, :5].tolist() == [0, 1, 3, 4, 9]


def test_decisions_and_generalizations_are_written():
    s, emit = make(), plain.emit
    s.ratios[t.ALPHA] = 0.5
    fill(s, [(1,), (3,)])
    s.tally[t.NOW], s.tally[t.AT] = 2, 9
    s.pool_f[0, : 2 * 1], s.pool_i[0, t.FIELDS : t.FIELDS + 3] = (1.0, 3.0), (0, 1, 2)
    assert emit.write_group(s, 0, 41, 1) == 0
    assert s.group_i[0].tolist() == [41, 1, 0, 1, 2]
    assert s.group_f[0].tolist() == [1.0, 3.0]
    emit.write_decision(s, 1, t.IS_RELEASED, 0, 0.2, 0.3)
    assert s.out_i[0].tolist() == [1, t.IS_RELEASED, 0, 2, 9, 1]
    assert s.sums[: t.COST + 1].tolist() == [0.2, 0.3, pytest.approx(0.2 * 1.5**2)]
    assert (s.tally[t.RELEASED], s.tally[t.SUPPRESSED], s.tally[t.LONGEST]) == (1, 0, 2)


def test_growth_is_capped():
    assert plain.emit.compounded(0.5, 2) == 2.25
    assert plain.emit.compounded(0.0, 10**9) == 1.0
    with np.errstate(over="ignore"):
        assert 0.0 * plain.emit.compounded(np.float64(0.5), np.float64(1e9)) == 0.0


# ---- patterns


@given(st.integers(0, 2**63 - 1))
@tries(50)
def test_bits_are_counted(word):
    assert plain.k_varp.count_bits(np.int64(word)) == word.bit_count()


def test_likeness_of_patterns():
    wide = [Numeric(f"a{number}", low=0, high=1) for number in range(70)]
    s = make(wide)
    everything, nothing = [0.0] * 70, [math.nan] * 70
    half = [0.0 if a % 2 else math.nan for a in range(70)]
    last = [0.0 if a > 67 else math.nan for a in range(70)]
    fill(s, [everything, half, last, nothing])
    alike = plain.k_varp.likeness_of_masks
    assert alike(s, 0, 0) == 1.0
    assert alike(s, 0, 1) == 0.5
    assert alike(s, 1, 2) == 1 / 36
    assert alike(s, 0, 3) == 0.0
    assert alike(s, 3, 3) == 1.0
    s.pending_i[t.MEMBER, :2] = 0, 1
    assert not plain.reuse.is_uniform(s, 2)
    s.pending_i[t.MEMBER, :2] = 2, 2
    assert plain.reuse.is_uniform(s, 2)


# ---- diversity

NONE = -1
"""No value is the missing one."""


def counts_of(values, room=9):
    return np.array([Counter(values)[value] for value in range(room)], dtype=np.float64)


def test_distinct_and_entropy():
    measure = plain.diversity
    counts = counts_of([0, 0, 3, 5])
    assert measure.distinct_values(counts, 9, NONE) == 3
    assert measure.total_of(counts, 9, NONE) == 4
    assert measure.entropy_of(counts, 9, NONE) == pytest.approx(1.5 * math.log(2))
    assert measure.entropy_of(counts_of([2, 2]), 9, NONE) == 0.0


def test_a_missing_value_is_no_value():
    measure, counts = plain.diversity, counts_of([0, 0, 3, 5, 5])
    assert [measure.distinct_values(counts, 9, missing) for missing in (NONE, 0, 3, 7)] == [3, 2, 2, 3]
    assert [measure.total_of(counts, 9, missing) for missing in (NONE, 0, 3, 7)] == [5, 3, 4, 5]
    assert measure.entropy_of(counts, 9, 3) == pytest.approx(math.log(2))
    assert measure.entropy_of(counts_of([3, 3]), 9, 3) == 0.0


def test_a_distance_of_known_values_leaves_the_missing_one_out():
    distance, order = plain.diversity.distance_to, np.arange(9.0)
    ours, theirs = counts_of([0, 0, 1, 2]), counts_of([0, 1, 1, 2])
    for is_ordered in (False, True):
        expected = distance(counts_of([1, 2]), counts_of([1, 1, 2]), order, 9, is_ordered, NONE)
        assert distance(ours, theirs, order, 9, is_ordered, 0) == expected > 0
        assert distance(counts_of([0, 0]), theirs, order, 9, is_ordered, 0) == 0.0
        assert distance(ours, counts_of([0]), order, 9, is_ordered, 0) == 1.0


SALARIES = range(9)  # 3K to 11K in the paper on t-closeness


@pytest.mark.parametrize(("values", "expected"), [((0, 1, 2), 0.375), ((3, 5, 8), 1 / 6), (SALARIES, 0.0)])
def test_distance_of_numbers_as_in_the_paper_on_t_closeness(values, expected):
    order = np.arange(9.0)
    found = plain.diversity.distance_to(counts_of(values), counts_of(SALARIES), order, 9, True, NONE)
    assert found == pytest.approx(expected, abs=1e-12)
    backwards = plain.diversity.distance_to(counts_of(values)[::-1], counts_of(SALARIES), order[::-1], 9, True, NONE)
    assert backwards == pytest.approx(expected, abs=1e-12)


def test_distance_of_labels_is_half_of_what_differs():
    counts, reference, order = counts_of([0, 0, 1, 7]), counts_of([0, 1, 2, 3]), np.zeros(9)
    distance = plain.diversity.distance_to
    assert distance(counts, reference, order, 9, False, NONE) == 0.5
    assert distance(counts, counts, order, 9, False, NONE) == 0.0
    assert distance(counts_of([0]), counts_of([1]), order, 9, False, NONE) == 1.0
    assert distance(counts_of([4]), counts_of([4]), np.arange(9.0), 9, True, NONE) == 0.0


def test_the_last_arrivals_are_remembered():
    s = make(sensitive=1, recent=3)
    s.sens_i[t.USED, 0] = 8
    come = arrivals([(0,)] * 5, sensitive=[[4, 4, 1, 2, 1]])
    for i in range(5):
        plain.diversity.remember_recent(s, come, i)
    assert s.tally[t.REF_SIZE] == 3
    assert s.sens_f[t.RECENT_COUNT, 0].tolist() == [0, 2, 1, 0, 0, 0, 0, 0]
    quiet = make(sensitive=1)
    plain.diversity.remember_recent(quiet, come, 0)
    assert quiet.tally[t.REF_SIZE] == 0


def test_what_fails_and_what_helps():
    s, measure = make(sensitive=2, DISTINCT=2, IS_DIVERSE=1), plain.diversity
    s.sens_i[t.USED] = 4
    s.ratios[t.ENTROPY] = math.log(1.8)
    fill(s, [(0,)] * 6, sensitive=[[0, 0, 0, 1, 1, 2], [0, 1, 1, 1, 1, 0]])
    s.pending_i[t.MEMBER, :3] = 0, 1, 2
    measure.count_values(s, 3)
    c = plain.generalize.draft(s)
    assert measure.first_failure(s, c) == (measure.DISTINCT_FAILS, 0)
    assert measure.fails(s, c, 0, measure.DISTINCT_FAILS)
    assert not measure.fails(s, c, 1, measure.DISTINCT_FAILS)
    assert [measure.helps(s, 0, value, measure.DISTINCT_FAILS) for value in (0, 1, 2)] == [False, True, True]
    measure.add_values(s, c, 3, 1.0)
    assert measure.first_failure(s, c) == (measure.ENTROPY_FAILS, 0)
    assert [measure.helps(s, 0, value, measure.ENTROPY_FAILS) for value in (0, 1, 2)] == [False, True, True]
    assert measure.stays_diverse(s, c, 4) is False
    measure.add_values(s, c, 4, 1.0)
    measure.add_values(s, c, 5, 1.0)
    assert measure.first_failure(s, c) == (measure.ENOUGH, 0)
    assert measure.stays_diverse(s, c, 5)
    assert s.class_f[c, t.CLASS_COUNT, 0, :4].tolist() == [3, 2, 1, 0]  # left as it was
    assert measure.sensitive_columns(s) == 2
    assert s.pending_i[measure.value_row(s, 1), :6].tolist() == [0, 1, 1, 1, 1, 0]


def test_people_are_added_until_it_is_enough():
    s, measure = make(sensitive=1, DISTINCT=3, IS_DIVERSE=1), plain.diversity
    s.sens_i[t.USED] = 4
    fill(s, [(0,)] * 6, [0, 1, 2, 3, 0, 4], sensitive=[[0, 0, 1, 1, 2, 2]])
    s.pending_f[t.DISTANCE, :6] = 0, 1, 5, 5, 0, 9
    s.pending_i[t.MEMBER, :2] = 0, 1
    s.pending_i[t.ALLOWED, :6] = 1
    assert measure.diversify(s, 0, 6, 2) == 4
    assert s.pending_i[t.MEMBER, :4].tolist() == [0, 1, 2, 5]  # the earlier of equals; nobody twice
    s.pending_i[t.ALLOWED, 5] = 0
    assert measure.diversify(s, 0, 6, 2) == 0
    assert measure.next_helper(s, 0, 6, 0, measure.DISTINCT_FAILS) == -1


def test_closeness_is_held_against_what_was_noted():
    s, measure = make(sensitive=1, recent=4, IS_DIVERSE=1), plain.diversity
    s.sens_i[t.USED] = 3
    s.ratios[t.CLOSENESS] = 0.3
    come = arrivals([(0,)] * 4, sensitive=[[0, 1, 1, 1]])
    for i in range(4):
        plain.queue.add_pending(s, come, i)
        measure.remember_recent(s, come, i)
    s.pending_i[t.MEMBER, :2] = 0, 1
    measure.count_values(s, 2)
    c = plain.generalize.draft(s)
    assert measure.distance_of(s, c, 0) == 0.25
    assert measure.first_failure(s, c)[0] == measure.ENOUGH
    measure.remember_recent(s, arrivals([(0,)], sensitive=[[2]]), 0)
    assert measure.distance_of(s, c, 0) == 0.25  # what came later changes nothing
    measure.count_values(s, 2)
    assert measure.distance_of(s, c, 0) == 0.5
    assert measure.fails(s, c, 0, measure.CLOSENESS_FAILS)
    assert measure.helps(s, 0, 2, measure.CLOSENESS_FAILS)
    assert not measure.helps(s, 0, 0, measure.CLOSENESS_FAILS)


def test_closeness_holds_on_known_values_too():
    s, measure = make(sensitive=1, recent=4, IS_DIVERSE=1), plain.diversity
    s.sens_i[t.USED], s.sens_i[t.MISSING] = 3, 0
    c = plain.generalize.draft(s)
    s.class_f[c, t.CLASS_REFERENCE, 0, :3] = 3, 1, 1
    s.class_f[c, t.CLASS_COUNT, 0, :3] = 3, 2, 0
    assert measure.distance_of(s, c, 0) == 0.5, "0.2 of all values, 0.5 of the known ones"
    s.class_f[c, t.CLASS_COUNT, 0, :3] = 2, 0, 0
    assert measure.distance_of(s, c, 0) == pytest.approx(0.4), "no value is known"
    s.class_f[c, t.CLASS_COUNT, 0, :3] = 0, 1, 1
    assert measure.distance_of(s, c, 0) == pytest.approx(0.6), "all values are further away than the known ones"
    s.class_f[c, t.CLASS_REFERENCE, 0, :3] = 4, 0, 0
    assert measure.distance_of(s, c, 0) == 1.0
