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
