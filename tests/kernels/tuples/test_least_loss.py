"""Forming a cluster by least loss, as plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.kernels.tuples import layout as t
from tests.kernels.tuples.least_loss_streams import held, plain

least_loss = plain.least_loss


def test_a_cluster_is_formed_only_of_enough_people():
    s = held([(0.5,), (0.6,), (0.9,)], K=2, MIN_CARRIERS=1)
    assert least_loss.form_least(s, 0) == 2
    assert s.pending_i[t.MEMBER, :2].tolist() == [0, 1]
    s.plan[t.K] = 4
    assert least_loss.form_least(s, 0) == 0
    assert np.isfinite(np.delete(s.pending_f, t.SPARE, axis=0)).all()  # scores of those that are out are infinite


@pytest.mark.parametrize(("cap", "expected"), [(0.0, [0, 1, 2]), (0.5, [0, 1])])
def test_further_tuples_of_the_same_people_join_if_covered(cap, expected):
    s = held([(0.5,), (0.6,), (0.55,), (0.9,)], people=[1, 2, 1, 2], K=2, MIN_CARRIERS=1)
    s.ratios[t.MAX_SHARE] = cap
    members = least_loss.form_least(s, 0)
    assert sorted(s.pending_i[t.MEMBER, :members].tolist()) == expected
    assert s.pool_i[-1, t.FIELDS + t.C_CARRIERS] == 2


def ending(rows, people=None, **plan):
    s = held(rows, people, MIN_CARRIERS=1, **plan)
    s.tally[t.ENDING] = 1
    return s


def test_at_the_end_all_are_published_if_the_rest_would_be_too_few():
    s = ending([(0.1,), (0.2,), (0.9,)], K=2)
    assert least_loss.form_least(s, 0) == 3
    s = ending([(0.1,), (0.2,), (0.9,), (0.8,)], K=2)
    assert least_loss.form_least(s, 0) == 2
    s = ending([(0.1,), (0.2,), (0.9,)], [1, 2, 1], K=2)  # the second of one person is not covered
    assert least_loss.form_least(s, 0) == 3


def test_at_the_end_nobody_leaves_alone_who_is_needed():
    s = ending([(0.1,), (0.2,), (0.9,)], K=2)
    assert least_loss.may_leave_alone(s, 0)
    s.plan[t.K] = 3
    assert not least_loss.may_leave_alone(s, 0)


def test_with_a_cap_it_counts_how_many_more_are_published_if_one_leaves_alone():
    s = ending([(0.1,)] * 4, [1, 1, 1, 2], K=2)
    s.ratios[t.MAX_SHARE] = 0.5
    assert [least_loss.more_without(s, i) for i in range(4)] == [1, 1, 1, -1]
    s.plan[t.K] = 3
    assert least_loss.more_without(s, 3) == 1  # there are too few people for a new cluster


def test_what_could_be_one_class():
    s = ending([(0.1,), (0.2,), (0.9,)], [1, 2, 1], K=2)
    s.pending_i[t.MEMBER, :3] = 0, 2, 1
    assert [least_loss.is_publishable(s, members) for members in range(4)] == [True, False, False, True]
    s.ratios[t.MAX_SHARE] = 0.5
    assert not least_loss.is_publishable(s, 3)
    least_loss.mark_alike(s, t.ELIGIBLE, 0, 0, 3)
    assert least_loss.list_marked(s, 1) == 3
    assert least_loss.settle_end(s, 0, 0) == 2  # one row of each; the second of the first person stays behind
    assert s.pending_i[t.MEMBER, :2].tolist() == [0, 1]
    assert least_loss.generalize_again(s, 2) == 2


@pytest.mark.parametrize(
    ("people", "share", "kept"),
    [
        ([1, 1, 1, 2], 0.5, [0, 3]),
        ([1, 1, 1, 2, 3], 0.5, [0, 1, 3, 4]),
        ([1, 1, 1, 2, 2, 3], 0.4, [0, 1, 3, 4, 5]),
        ([1, 1, 2], 0.4, []),
        ([1, 2, 3], 0.34, [0, 1, 2]),
    ],
)
def test_the_most_that_a_cap_allows(people, share, kept):
    s = ending([(0.1,)] * len(people), people, K=2)
    s.ratios[t.MAX_SHARE] = share
    s.pending_i[t.MEMBER, : len(people)] = range(len(people))
    assert least_loss.keep_within_share(s, len(people), least_loss.EARLIEST_STAY) == len(kept)
    listed = s.pending_i[t.MEMBER, : len(people)].tolist()
    assert listed[: len(kept)] == kept
    assert sorted(listed) == list(range(len(people)))  # the dropped ones follow
    s.pending_i[t.MEMBER, : len(people)] = range(len(people))
    assert least_loss.most_publishable(s, len(people), least_loss.EARLIEST_STAY) == len(kept)
    s.plan[t.K] = 4
    s.pending_i[t.MEMBER, : len(people)] = range(len(people))
    assert least_loss.most_publishable(s, len(people), least_loss.EARLIEST_STAY) == 0


@pytest.mark.parametrize(("share", "expected"), [(0.5, (2, 3)), (0.0, (4, 4))])
def test_rows_that_can_be_reused_count_as_published_where_shares_are_capped(share, expected, monkeypatch):
    s = ending([(0.1,)] * 4, [1, 1, 1, 2], K=2)
    s.ratios[t.MAX_SHARE] = share
    s.pending_i[t.MEMBER, :4] = range(4)
    monkeypatch.setattr(least_loss, "best_cover", lambda s, i: (0 if i == 2 else -1, 0.0))  # only the third is accepted
    assert least_loss.most_saved(s, 4, least_loss.EARLIEST_STAY) == expected
    s.plan[t.K] = 3
    s.pending_i[t.MEMBER, :4] = range(4)
    assert least_loss.most_saved(s, 4, least_loss.EARLIEST_STAY) == (0, 1 if share else 0)
