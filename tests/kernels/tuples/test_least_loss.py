"""Forming a cluster by least loss, as plain Python."""

from __future__ import annotations

import numpy as np

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
