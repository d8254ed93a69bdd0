"""How tuples leave, step by step: partitions and their order, clusters that are reused, what is due, room."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shoal.hierarchies import Hierarchy
from shoal.kernels.tuples import layout as t
from shoal.kernels.tuples.fads import run_fads
from shoal.schema import Categorical, Numeric
from tests.kernels.tuples.test_kernels import arrivals, fill, make
from tests.reference.plain import plain_kernels

plain = plain_kernels(
    "tuples.queue", "tuples.generalize", "tuples.k_varp", "tuples.emit", "tuples.nearest", "tuples.reuse",
    "tuples.run", "tuples.fads", "tuples.least_loss.least_loss",
)  # fmt: skip
NAN = math.nan
TWO = [Numeric("x", low=0, high=10), Numeric("y", low=0, high=10)]


def form(s, *members):
    """The cluster of some held tuples, drafted."""
    s.pending_i[t.MEMBER, : len(members)] = members
    plain.generalize.generalize_members(s, len(members))


def noted(s):
    return s.out_i[: s.tally[t.OUT_ROWS], [t.O_ROW, t.O_VERDICT, t.O_GROUP, t.O_DELAY]].tolist()


# ---- moving


def test_a_tuple_moves_with_all_that_is_its_own():
    s = make(TWO, sensitive=1, IS_PARTED=1)
    fill(s, [(1, NAN), (2, 3)], [8, 9], sensitive=[[4, 5]])
    s.pending_i[t.LATE, 1] = 1
    own = [*range(t.KEPT), *range(t.MASKS, s.pending_i.shape[0])]
    before = s.pending_i[own, 1].tolist(), s.pending_f[t.VALUES :, 1].tolist()
    s.pending_i[t.ALIVE, 0] = 0
    plain.queue.close_gaps(s)
    assert (s.pending_i[own, 0].tolist(), s.pending_f[t.VALUES :, 0].tolist()) == before
    assert s.tally[t.TAIL] == 1
    row = np.array([3.0, 1.0, 4.0, 1.5])
    plain.queue.gather_front(row, np.array([0, 2, 3]), 3)
    assert row[:3].tolist() == [3.0, 4.0, 1.5]


# ---- distances, attribute by attribute


def test_an_attribute_is_added_to_distances():
    near, column, pairs = plain.nearest, np.array([1.0, NAN, 3.0]), np.array([9.0, 0.0, 0.5, 0.75])
    distance, mass = np.ones(3), np.ones(3)
    near.add_numeric_gaps(column, 2.0, 0.5, 0, 3, distance, mass)
    assert (distance.tolist(), mass.tolist()) == ([1.5, 1.0, 1.5], [1.5, 1.0, 1.5])
    near.add_pairs_gaps(column - 1, pairs, 1, 2.0, 0, 3, distance, mass)
    assert (distance.tolist(), mass.tolist()) == ([1.5, 1.0, 3.0], [3.5, 1.0, 3.5])
    whole = np.array([0.0, 1.0, 2.0])
    near.add_numeric(whole, 1.0, 1.0, 0, 3, distance)
    near.add_pairs(whole, pairs, 1, 1.0, 0, 3, distance)
    assert distance.tolist() == [2.5, 1.5, 4.75]


def test_labels_of_a_large_tree_are_added_to_distances():
    """The same as by the table of a small one."""
    tree = Hierarchy.from_nested({"all": {"left": ["a", "b", "c"], "right": {"far": ["d"], "near": ["e", "f"]}}})
    s = make([Categorical("c", tree)])
    fill(s, [(0,), (2,), (5,), (NAN,), (0,)])
    distance, mass = np.zeros(5), np.zeros(5)
    plain.nearest.add_meets(s, 0, 2, 10.0, 0, 5, distance)
    plain.nearest.add_mass(s.pending_f[t.VALUES], 10.0, 0, 5, mass)
    assert (distance.tolist(), mass.tolist()) == ([4.0, 0.0, 10.0, 0.0, 4.0], [10.0, 10.0, 10.0, 0.0, 10.0])


def test_distances_are_the_same_whether_gaps_are_thought_of_or_not():
    tree = Hierarchy.from_nested({"all": {"left": ["a", "b"], "right": [f"r{leaf}" for leaf in range(600)]}})
    small = Hierarchy.from_nested({"all": {"left": ["a", "b"], "right": ["c"]}})
    s = make([Numeric("x", low=0, high=1, weight=2), Categorical("c", tree), Categorical("d", small)])
    fill(s, [(0.5, 0, 0), (0.25, 1, 2), (0.5, 400, 1)])
    plain.nearest.measure_whole(s, 0, 0, 3)
    assert s.pending_f[t.DISTANCE, :3].tolist() == pytest.approx([0, (2 * 0.25 + 1 / 601 + 1) / 4, (1 + 0.5) / 4])
    found = s.pending_f[t.DISTANCE, :3].tolist()
    plain.nearest.measure_gaps(s, 0, 0, 3)
    assert s.pending_f[t.DISTANCE, :3].tolist() == found


def test_the_nearest_of_each_person_stays():
    s = make()
    fill(s, [(0,)] * 6, [1, 2, 2, 1, 3, 2])
    s.pending_i[t.ELIGIBLE, :6] = 1
    s.pending_f[t.DISTANCE, :6] = 0, 5, 4, 0, 9, 4
    plain.nearest.keep_one_per_person(s, 0, 0, 6)
    assert s.pending_i[t.ELIGIBLE, :6].tolist() == [0, 0, 1, 0, 1, 0]  # of equals the earlier


def test_one_attribute_is_settled():
    s = make([Numeric("x", low=0, high=10, grid=4)])
    plain.generalize.generalize_range(s, 0, 0, 5.0, 9.0)
    assert s.pool_f[0].tolist() == [4.0, 10.0, 0.6]


# ---- partitions


def partitions():
    """Both; x alone twice, near and far; y alone three times, far; nothing."""
    s = make(TWO, IS_PARTED=1, METHOD=t.K_VARP, MISSING_MODE=t.PAPER)
    fill(s, [(5, 5), (5, NAN), (NAN, 0), (9, NAN), (NAN, 0), (NAN, NAN), (NAN, 1)])
    s.ratios[t.RATIO] = 0.2
    plain.nearest.measure(s, 0, 0, 7)
    count = plain.k_varp.chain_parts(s, 0, 0, 7)
    part = s.pending_i[t.PART]
    return s, count, {"both": part[0], "x": part[1], "y": part[2], "none": part[5]}


def test_partitions_are_chained():
    s, count, part = partitions()
    assert count == 4
    assert [s.pending_i[t.PART_SIZE, part[name]] for name in ("both", "x", "y", "none")] == [1, 2, 3, 1]
    assert [s.pending_i[t.PART_LIKE, part[name]] for name in ("both", "x", "y", "none")] == [1, 1, 0, 0]
    assert [s.pending_f[t.PART_KEY, part[name]] for name in ("both", "x", "y", "none")] == [1.0, 0.5, 0.5, 0.0]
    s.ratios[t.RATIO] = 4.0  # as far as (9, -) is, and no further
    plain.k_varp.chain_parts(s, 0, 0, 7)
    assert s.pending_i[t.PART_LIKE, part["x"]] == 2
    chain, i = [], s.pending_i[t.CHAIN_HEAD, part["y"]]
    while i >= 0:
        chain.append(int(i))
        i = s.pending_i[t.CHAIN, i]
    assert chain == [2, 4, 6]


def test_which_partition_comes_next():
    s, count, part = partitions()
    better = plain.k_varp.is_better_part
    assert better(s, part["x"], part["y"], True)  # more tuples near
    assert better(s, part["y"], part["x"], False)  # more tuples
    assert better(s, part["y"], part["none"], True)  # more attributes alike
    s.pending_i[t.PART_LIKE, part["y"]], s.pending_i[t.PART_SIZE, part["y"]] = 1, 2
    assert better(s, part["x"], part["y"], True)  # the older of equals
    assert not better(s, part["y"], part["x"], False)
    order = []
    taken = plain.k_varp.take_part(s, plain.k_varp.place_of(s, part["both"], count), count)
    assert taken == part["both"]
    for left in range(count - 1, 0, -1):
        order.append(plain.k_varp.take_part(s, plain.k_varp.place_of_next(s, left, True), left))
    assert order == [part["x"], part["y"], part["none"]]
    assert plain.k_varp.place_of(s, part["both"], 0) == -1


def test_people_of_a_partition_are_counted_once():
    s = make(TWO, IS_PARTED=1)
    fill(s, [(5, 5), (5, 5), (5, NAN), (6, 6)], [1, 1, 2, 3])
    plain.nearest.measure(s, 0, 0, 4)
    plain.k_varp.chain_parts(s, 0, 0, 4)
    s.tally[t.STAMP] += 1
    assert plain.k_varp.join_part(s, s.pending_i[t.PART, 0]) == 2
    assert plain.k_varp.join_part(s, s.pending_i[t.PART, 2]) == 1
    assert plain.run.part_people(s, s.pending_i[t.PART, 0]) == 2


@pytest.mark.parametrize(
    ("method", "k", "members"),
    [(t.K_VARP, 2, [0, 1]), (t.K_VARP, 3, [0, 1, 3]), (t.VARIED, 3, []), (t.K_VARP, 9, []), (t.IOT, 4, [0, 2, 4, 6])],
)
def test_whom_a_partition_takes_in(method, k, members):
    s, _, _ = partitions()
    s.plan[t.METHOD], s.plan[t.K] = method, k
    assert plain.k_varp.form_partitioned(s, 0) == len(members)
    assert sorted(s.pending_i[t.MEMBER, : len(members)].tolist()) == members


# ---- clusters that may be reused


def published(s, *members):
    form(s, *members)
    plain.reuse.keep_draft(s, s.tally[t.GROUPS], plain.reuse.is_uniform(s, len(members)), len(members))
    s.tally[t.GROUPS] += 1


def test_old_clusters_are_forgotten_when_they_are_older_than_may_be():
    s = make(REUSE=5, clusters=2, MIN_CARRIERS=1)
    fill(s, [(1,), (2,)])
    for now in (0, 3):
        s.tally[t.NOW] = now
        published(s, 0, 1)
    for now, left in ((5, 2), (6, 1), (8, 1), (9, 0)):
        s.tally[t.NOW] = now
        plain.reuse.drop_old_clusters(s)
        assert s.tally[t.POOL_SIZE] == left
    for now in range(10, 40, 6):  # round and round in a ring of two
        s.tally[t.NOW] = now
        plain.reuse.drop_old_clusters(s)
        published(s, 0, 1)
        assert s.tally[t.POOL_SIZE] == 1
        assert s.pool_i[s.tally[t.POOL_HEAD], t.CREATED] == now


def test_the_best_cover_is_the_one_of_least_loss_then_the_oldest():
    s = make(REUSE=5, MIN_CARRIERS=1, clusters=8)
    fill(s, [(1,), (9,), (2,), (4,), (3,), (NAN,)])
    assert plain.reuse.best_cover(s, 4) == (-1, np.inf)
    published(s, 0, 1)
    published(s, 2, 3)
    published(s, 2, 3)
    assert plain.reuse.best_cover(s, 4) == (1, 0.2)
    assert plain.reuse.best_cover(s, 0) == (0, 0.8)
    assert plain.reuse.best_cover(s, 5) == (0, 0.0)  # carries nothing, loses nothing
    s.plan[t.MISSING_MODE] = t.HIDDEN
    assert plain.reuse.best_cover(s, 5)[0] == -1
    s.plan[t.MISSING_MODE], s.plan[t.IN_GROUPS] = t.COVERED, 1
    assert plain.reuse.best_cover(s, 4)[0] == -1


def test_clusters_of_exactly_the_same_attributes():
    s = make(TWO, REUSE=5, MIN_CARRIERS=1, clusters=8, SAME_PATTERN=1)
    fill(s, [(1, NAN), (9, NAN), (5, 5), (6, NAN)])
    published(s, 0, 1)
    published(s, 0, 2)
    has_same_pattern = plain.reuse.has_same_pattern
    assert [has_same_pattern(s, 0, at) for at in range(4)] == [True, True, False, True]
    assert [has_same_pattern(s, 1, at) for at in range(4)] == [False] * 4  # its members differ
    assert plain.reuse.best_cover(s, 3)[0] == 0
    assert plain.reuse.best_cover(s, 2)[0] == -1


# ---- leaving


def test_a_new_cluster_leaves_in_order_of_arrival():
    s = make(MIN_CARRIERS=1, clusters=8)
    fill(s, [(4,), (1,), (2,)])
    s.tally[t.NOW] = 7
    s.pending_i[t.ARRIVED, :3] = 5, 6, 7
    form(s, 2, 0)
    plain.emit.publish_draft(s, 2)
    assert noted(s) == [[0, t.IS_RELEASED, 0, 2], [2, t.IS_RELEASED, 0, 0]]
    assert [s.tally[name] for name in (t.GROUPS, t.FORMED, t.MERGED, t.RELEASED, t.LIVE)] == [1, 1, 0, 2, 1]
    assert s.group_i[0, [t.G_NUMBER, t.G_REUSED]].tolist() == [0, 0]
    assert s.group_f[0].tolist() == [2.0, 4.0]
    assert s.sums[[t.LOSS, t.LOSS_ALL]].tolist() == [0.4, 0.4]
    plain.emit.suppress(s, 1)
    assert noted(s)[-1] == [1, t.IS_SUPPRESSED, t.NO_GROUP, 1]
    assert (s.tally[t.SUPPRESSED], s.tally[t.LIVE], s.sums[t.LOSS]) == (1, 0, 1.4)


def test_what_clusters_lose_of_late_is_learned():
    s = make(TWO, MIN_CARRIERS=2)
    fill(s, [(0, NAN), (5, NAN)])
    form(s, 0, 1)
    s.sums[:] = 0.0
    for _ in range(2):
        plain.emit.learn_typical(s, plain.generalize.draft(s), 0.75)
    share = 1 - (1 - plain.emit.LEARN) ** 2
    assert s.sums[t.TYPICAL] == pytest.approx(0.75 * share)
    assert s.sums[t.TYPICAL_OF : t.TYPICAL_OF + 2].tolist() == pytest.approx([0.5 * share, share])


def test_merged_clusters_may_be_left_out_of_the_pool():
    for skip, kept in ((0, 1), (1, 0)):
        s = make(TWO, MIN_CARRIERS=1, SKIP_MERGED=skip)
        fill(s, [(4, NAN), (1, 1)])
        form(s, 0, 1)
        plain.emit.publish_draft(s, 2)
        assert (s.tally[t.POOL_SIZE], s.tally[t.MERGED]) == (kept, 1)


def test_one_more_of_an_old_cluster():
    s = make(MIN_CARRIERS=1, sensitive=1, IS_DIVERSE=1)
    s.sens_i[t.USED] = 4
    fill(s, [(4,), (1,), (2,)], sensitive=[[0, 1, 3]])
    published(s, 0, 1)
    plain.emit.reuse_cluster(s, 0, 2)
    assert noted(s) == [[2, t.IS_RELEASED, 0, 0]]
    assert s.group_i[0, [t.G_NUMBER, t.G_REUSED]].tolist() == [0, 1]
    assert s.class_f[0, t.CLASS_COUNT, 0, 3] == 1.0  # it counts in its class from now on
    assert (s.tally[t.REUSED], s.tally[t.LIVE]) == (1, 2)


@pytest.mark.parametrize("place", [t.OUT_ROWS, t.OUT_GROUPS, t.POOL_SIZE])
def test_room_for_one_more_decision(place):
    s = make(clusters=9, K=2)
    fill(s, [(number,) for number in range(5)])
    room = {t.OUT_ROWS: s.out_i.shape[0] - 5, t.OUT_GROUPS: s.group_i.shape[0] - 4, t.POOL_SIZE: 9 - 4}[place]
    s.tally[place] = room
    assert plain.emit.has_output_room(s)
    assert s.tally[t.FULL] == 0
    s.tally[place] = room + 1
    assert not plain.emit.has_output_room(s)
    assert s.tally[t.FULL] == 1


def test_late_rows_lose_more_up_to_all():
    s = make(DEADLINE=5)
    s.ratios[t.PENALTY], s.ratios[t.ALPHA] = 0.5, 1.0
    fill(s, [(1,)] * 3)
    for arrived, own in ((0, 0.2), (3, 0.2), (5, 0.2)):
        s.pending_i[t.ARRIVED, 0], s.tally[t.NOW] = 0, 10 - arrived
        before = s.sums.copy()
        plain.emit.write_decision(s, 0, t.IS_RELEASED, 0, own, 0.1)
        late = max(10 - arrived - 5, 0)
        assert s.sums[t.LOSS] - before[t.LOSS] == pytest.approx(min(1.0, own * 1.5**late))
        assert s.sums[t.LOSS_ALL] - before[t.LOSS_ALL] == pytest.approx(min(1.0, 0.1 * 1.5**late))
        assert s.sums[t.COST] - before[t.COST] == pytest.approx(min(1.0, own * 1.5**late) * 2.0 ** (10 - arrived))
    assert plain.emit.compounded(np.float64(1), 10**6) == plain.emit.LARGEST_GROWTH


# ---- when


def test_who_is_due_next():
    run, s = plain.run, make(DEADLINE=3, METHOD=t.VARIED, IS_PARTED=1)
    fill(s, [(1,), (2,), (3,)])

    def due(now):
        run.decide_by(s, now, 0)
        return run.next_due(s)

    s.pending_i[t.ARRIVED, :3] = 0, 1, 2
    assert [due(now) for now in (2, 3, 9)] == [-1, 0, 0]
    s.pending_i[t.LATE, 0] = s.tally[t.LATES] = 1
    assert [due(now) for now in (3, 4)] == [-1, 1]
    assert run.oldest_late(s, s.pending_i[t.PART, 0]) == 0
    assert run.oldest_late(s, 5) == -1
    s.tally[t.ENDING] = 1
    assert due(0) == 0
    s.tally[t.ENDING] = 0
    s.pending_i[t.LATE, :3], s.tally[t.LATES] = 1, 3
    assert due(99) == -1


def test_a_clock_that_starts_over():
    s = make(MIN_CARRIERS=1, REUSE=99)
    fill(s, [(1,), (2,), (3,)])
    published(s, 0, 1)
    s.pending_i[t.ARRIVED, :3], s.tally[t.NOW] = 50, 50
    plain.queue.begin_again(s, 7)
    assert s.pending_i[t.ARRIVED, :3].tolist() == [7] * 3
    assert (s.tally[t.NOW], s.tally[t.POOL_SIZE]) == (7, 0)


def test_an_arrival_is_numbered_and_held():
    run, s = plain.run, make(IS_PARTED=1)
    come = arrivals([(1,), (2,)])
    come.lanes[1] = 1
    run.begin_run(s, 0)
    assert [run.next_event(s, come, 2) for _ in range(2)] == [(run.HAS_ARRIVED, 0), (run.IS_OVER, -1)]
    assert (s.tally[t.NUMBER], s.tally[t.NOW], s.tally[t.LIVE]) == (2, 1, 1)  # the second is another lane's
    assert s.tally[t.LATE_PART] == 0
    assert run.accept_arrival(s, come, 0) == 1
    assert s.tally[t.LATE_PART] == s.pending_i[t.PART, 1] + 1
    assert (run.next_due(s), run.next_late(s)) == (-1, -1)
    assert s.tally[t.LATE_PART] == 0


def test_a_late_tuple_that_still_has_no_crowd_stays_late():
    run, s = plain.run, make(IS_PARTED=1, METHOD=t.VARIED, TIMED=1)
    fill(s, [(1,), (2,)])
    run.decide_by(s, 9, 0)
    run.keep_past_deadline(s, 0)
    assert (s.pending_i[t.LATE, 0], s.tally[t.LATES]) == (1, 1)
    s.tally[t.LATE_PART] = 1
    run.decide_waiting(s)
    run.keep_past_deadline(s, 0)
    assert (s.tally[t.LATE_PART], s.tally[t.LATES]) == (0, 1)


@pytest.mark.parametrize(
    ("run", "plan"),
    [
        (run_fads, {"METHOD": t.FADS}),
        (plain.fads.run_fads, {"METHOD": t.FADS}),
        (plain.k_varp.run_partitioned, {"METHOD": t.K_VARP, "IS_PARTED": 1}),
        (plain.least_loss.run_least_loss, {"METHOD": t.LEAST_LOSS, "NEAR": 2}),
    ],
    ids=["FADS, compiled", "FADS", "K-VARP", "LeastLoss"],
)
def test_a_run(run, plan):
    """Three within reach of each other: the first takes its nearest along, the third waits and is suppressed."""
    s = make(DEADLINE=2, MIN_CARRIERS=1, **plan)
    come = arrivals([(1,), (9,), (2,)])
    assert run(s, come, 0, 3) == 3
    assert noted(s) == [[0, t.IS_RELEASED, 0, 2], [2, t.IS_RELEASED, 0, 0]]
    s.tally[t.ENDING] = 1
    assert run(s, come, 3, 3) == 3
    assert noted(s)[2:] == [[1, t.IS_SUPPRESSED, t.NO_GROUP, 1]]
    assert s.tally[t.LIVE] == 0


def test_without_a_cluster_a_tuple_is_suppressed_or_late():
    for method, suppressed in ((t.K_VARP, 1), (t.VARIED, 0)):
        s = make(METHOD=method, IS_PARTED=1)
        fill(s, [(1,)])
        plain.run.publish_or_suppress(s, 0, 0)
        assert (s.tally[t.SUPPRESSED], s.tally[t.LATES]) == (suppressed, 1 - suppressed)


def test_an_arrival_lets_time_pass_first():
    run, s = plain.run, make(TIMED=1, DEADLINE=5)
    come = arrivals([(1,), (2,)], times=[3, 9])
    run.begin_run(s, 0)
    assert [run.next_event(s, come, 2) for _ in range(2)] == [(run.HAS_ARRIVED, 0), (run.IS_DUE, 0)]
    assert s.tally[t.NOW] == 8  # when it was due
    s.tally[t.NEXT] = 2
    run.expect_arrival(s, come, 2)
    assert run.next_event(s, come, 2) == (run.IS_OVER, -1)


def test_a_run_stops_where_there_is_no_room():
    s = make(held=2, DEADLINE=9)
    assert plain.fads.run_fads(s, arrivals([(1,), (9,), (2,)]), 0, 3) == 2
    assert s.tally[t.FULL] == 1
