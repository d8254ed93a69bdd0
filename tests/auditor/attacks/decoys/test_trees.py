"""Boosted trees find what is there and nothing else."""

from __future__ import annotations

import numpy as np

from shoal.auditor.attacks.decoys.trees import Trees, auc


def test_the_classifier_finds_what_is_there_and_nothing_else():
    draw = np.random.default_rng(2)
    x, y = draw.random((4000, 3)), draw.random(4000) < 0.5
    blind = auc(Trees(rounds=10).fit(x[:2000], y[:2000]).score(x[2000:]), y[2000:])
    assert 0.45 < blind < 0.55
    is_real = (x[:, 0] > 0.5) ^ (x[:, 1] > 0.5)  # only two columns together tell
    assert auc(Trees(rounds=10).fit(x[:2000], is_real[:2000]).score(x[2000:]), is_real[2000:]) > 0.95


def test_the_area_under_the_curve():
    assert auc(np.array([1.0, 2.0, 3.0]), np.array([False, False, True])) == 1.0
    assert auc(np.array([1.0, 1.0]), np.array([False, True])) == 0.5
