"""An interval for a ratio: exact for small numbers, right as often as it says, and not moved by a few extreme pairs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from benchmarks.intervals import FEWEST_PAIRS, left_out, ratio_interval, signed_rank_chances


def rank_sums(pairs):
    """The sum of ranks for every way to toss `pairs` coins."""
    ranks = np.arange(1, pairs + 1)
    return [int(ranks[list(coins)].sum()) for coins in product((False, True), repeat=pairs)]


@pytest.mark.parametrize("pairs", [1, 2, 5, 10])
def test_chances_are_those_of_all_coins(pairs):
    counts = np.bincount(rank_sums(pairs))
    assert signed_rank_chances(pairs) == pytest.approx(counts / 2**pairs)


@pytest.mark.parametrize(("pairs", "expected"), [(6, 0), (7, 2), (8, 3), (10, 8), (20, 52)])
def test_as_many_are_left_out_as_tables_of_the_signed_rank_test_say(pairs, expected):
    """The critical values of Wilcoxon's test, two-sided, 5%."""
    assert left_out(pairs, 0.025) == expected


@pytest.mark.parametrize("seed", range(5))
def test_the_interval_holds_the_ratios_that_a_signed_rank_test_by_brute_force_does_not_reject(seed):
    ratios = np.exp(np.random.default_rng(seed).normal(0.05, 0.1, 8))
    found = ratio_interval(list(ratios))
    sums = np.array(rank_sums(8))

    def p_value(ratio):
        logs = np.log(ratios) - np.log(ratio)
        ranks = np.abs(logs).argsort().argsort() + 1
        rank_sum = ranks[logs > 0].sum()
        return 2 * min((sums <= rank_sum).mean(), (sums >= rank_sum).mean())

    for bound, inward in ((found.low, 1 + 1e-6), (found.high, 1 - 1e-6)):
        assert p_value(bound * inward) > 0.05
        assert p_value(bound / inward) <= 0.05


def test_it_covers_the_true_ratio_as_often_as_it_says_whatever_the_noise():
    draw, trials, covered = np.random.default_rng(1), 1000, 0
    for _ in range(trials):
        found = ratio_interval(list(1.02 * np.exp(0.02 * draw.standard_cauchy(20))))
        covered += found.low <= 1.02 <= found.high
    assert 0.94 < covered / trials < 0.98


def test_a_few_extreme_pairs_hardly_move_it():
    ratios = list(np.exp(np.random.default_rng(2).normal(0, 0.01, 20)))
    calm, shaken = ratio_interval(ratios), ratio_interval([*ratios[:18], 5.0, 9.0])
    assert shaken.high - shaken.low < 0.03
    assert shaken.ratio == pytest.approx(calm.ratio, abs=0.01)


def test_equal_ratios_leave_no_doubt():
    found = ratio_interval([1.05] * 20)
    assert (found.low, found.ratio, found.high) == pytest.approx((1.05, 1.05, 1.05))


def test_too_few_pairs_are_refused():
    ratio_interval([1.0] * FEWEST_PAIRS)
    with pytest.raises(ValueError, match="at least 6 pairs, not 5"):
        ratio_interval([1.0] * (FEWEST_PAIRS - 1))
