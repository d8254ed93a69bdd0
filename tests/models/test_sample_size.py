"""How many samples a promise takes, and what a share among samples says."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.errors import PolicyError
from shoal.models.proportions import at_least, clopper_pearson
from shoal.models.sample_size import BOUNDS, promise, samples_needed, uniqueness_samples
from tests.reference import km as naive
from tests.reference.effort import tries

SIGMAS = [0.5, 0.6, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999]


# ---- the table


@pytest.mark.parametrize(
    ("sigma", "bound", "samples"),
    [
        (0.9, "exact", 46),
        (0.95, "exact", 112),
        (0.99, "exact", 760),
        (0.999, "exact", 10_228),
        (0.9999, "exact", 127_557),
        (0.99, "hoeffding1", 41_917),
        (0.999, "hoeffding1", 5_485_662),
        (0.99, "hoeffding2", 45_845),
        (0.999, "hoeffding2", 5_866_617),
    ],
)
def test_the_table(sigma, bound, samples):
    made = promise(sigma, bound)
    assert made.samples == samples
    assert (made.sigma, made.bound) == (sigma, bound)


def test_samples_for_uniqueness():
    assert uniqueness_samples(0.01, 0.01) == 26_492
    assert uniqueness_samples(0.1, 0.05) == math.ceil(math.log(40) / 0.02)


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("sigma", SIGMAS)
def test_a_promise_keeps_sigma(sigma, bound):
    made = promise(sigma, bound)
    assert 0 < made.epsilon < 1 - sigma
    assert 0 < made.delta < 1 - sigma
    assert (1 - made.epsilon) * (1 - made.delta) >= sigma * (1 - 1e-12)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_no_split_takes_fewer_samples(sigma):
    """By trying: with one sample less, no ε leaves enough confidence."""
    count = promise(sigma).samples

    def best(samples):
        shares = [1 - (1 - sigma) * step / 20_000 for step in range(1, 20_000)]
        return max(share * (1 - share**samples) for share in shares)

    assert best(count - 1) < sigma
    assert best(count + 1) > sigma
    made = promise(sigma)
    good = 1 - made.epsilon
    assert good * (1 - good**count) >= sigma * (1 - 1e-12)


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("sigma", [0.5, 0.9, 0.99])
def test_no_split_takes_fewer_samples_by_hoeffding(sigma, sides):
    def cost(epsilon):
        return math.log(sides / (1 - sigma / (1 - epsilon))) / (2 * epsilon**2)

    least = min(cost((1 - sigma) * step / 20_000) for step in range(1, 20_000))
    assert promise(sigma, f"hoeffding{sides}").samples == pytest.approx(least, rel=1e-6, abs=1)


@tries(60)
@given(st.floats(1e-4, 0.5), st.floats(1e-6, 0.5))
@example(0.5, 0.5)
@example(0.25, 0.4)
@example(1e-4, 1e-6)
def test_samples_of_which_none_may_fail(epsilon, delta):
    count = samples_needed(epsilon, delta, "exact")
    assert (1 - epsilon) ** count <= delta * (1 + 1e-6)
    assert count == 1 or (1 - epsilon) ** (count - 1) > delta * (1 - 1e-6)
    for sides in (1, 2):
        wide = samples_needed(epsilon, delta, f"hoeffding{sides}")
        assert sides * math.exp(-2 * wide * epsilon**2) <= delta * (1 + 1e-6)
        assert sides * math.exp(-2 * (wide - 1) * epsilon**2) >= delta * (1 - 1e-6)
        assert wide >= count


@pytest.mark.parametrize(
    ("epsilon", "delta", "samples"), [(0.5, 0.5, 1), (0.5, 0.25, 2), (0.5, 0.24, 3), (0.75, 0.0625, 2)]
)
def test_where_the_count_steps(epsilon, delta, samples):
    assert samples_needed(epsilon, delta, "exact") == samples


@pytest.mark.parametrize("sigma", [-1, 0, 0.1, 0.4999, 1, 1.0, 1.5, math.nan, math.inf])
def test_sigmas_that_cannot_be_sampled(sigma):
    with pytest.raises(PolicyError, match=r"sigma: must be at least 0\.5 and below 1"):
        promise(sigma)


def test_the_ends_of_sigma():
    assert promise(0.5).samples == 4
    assert promise(math.nextafter(1, 0) - 1e-9).samples > 10**9


# ---- attempts


@pytest.mark.parametrize("share", [1, 3])
@pytest.mark.parametrize("bound", BOUNDS)
def test_all_attempts_together_use_delta(bound, share):
    made = promise(0.9, bound)
    assert made.delta_of(1, share=share) == pytest.approx(made.delta / share / 2)
    assert made.delta_of(3, share=share) == pytest.approx(made.delta / share / 12)
    so_far = math.fsum(made.delta_of(attempt, share=share) for attempt in range(1, 100_001))
    assert so_far == pytest.approx(made.delta / share * (1 - 1 / 100_001), rel=1e-9)
    assert so_far <= made.delta / share
    counts = [made.samples_in(attempt, share=share) for attempt in range(1, 30)]
    assert counts == sorted(counts)
    assert counts[0] > made.samples
    for attempt, count in enumerate(counts, 1):
        assert count == samples_needed(made.epsilon, made.delta / share / (attempt * (attempt + 1)), bound)
    assert made.samples_of(share) == samples_needed(made.epsilon, made.delta / share, bound)
    assert made.samples_of(1) == made.samples


def test_attempts_of_the_default():
    made = promise(0.99)
    assert made.delta == pytest.approx(1 / 761)
    assert [made.samples_in(attempt) for attempt in (1, 2, 3)] == [840, 966, 1045]


# ---- intervals


@tries(80)
@given(st.integers(1, 60), st.data(), st.integers(1, 99))
@example(1, None, 50)
@example(60, None, 1)
def test_tails_of_the_binomial(samples, data, percent):
    found = data.draw(st.integers(0, samples)) if data else samples
    share = Fraction(percent, 100)
    exact = float(naive.at_least(found, samples, share))
    assert at_least(found, samples, float(share)) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99, 0.999])
@pytest.mark.parametrize("samples", [1, 2, 7, 50])
def test_ends_of_the_interval_leave_half_of_the_doubt_on_either_side(samples, confidence):
    doubt = (1 - confidence) / 2
    for found in range(samples + 1):
        low, high = clopper_pearson(found, samples, confidence)
        assert 0 <= low <= found / samples <= high <= 1
        assert (low == 0) == (found == 0)
        assert (high == 1) == (found == samples)
        if found:
            assert float(naive.at_least(found, samples, Fraction(low))) == pytest.approx(doubt, rel=1e-6)
        if found < samples:
            assert float(naive.at_most(found, samples, Fraction(high))) == pytest.approx(doubt, rel=1e-6)


@pytest.mark.parametrize("samples", [5, 40])
@pytest.mark.parametrize("confidence", [0.9, 0.99])
def test_the_interval_covers_as_often_as_it_says(samples, confidence):
    intervals = [clopper_pearson(found, samples, confidence) for found in range(samples + 1)]
    for percent in (0, 1, 5, 20, 50, 77, 99, 100):
        share, covered = Fraction(percent, 100), Fraction(0)
        for found, (low, high) in enumerate(intervals):
            if low <= share <= high:
                covered += naive.at_least(found, samples, share) - naive.at_least(found + 1, samples, share)
        assert covered >= confidence - 1e-9


def test_known_intervals():
    assert clopper_pearson(0, 100, 0.95) == pytest.approx((0, 1 - 0.025 ** (1 / 100)), abs=1e-12)
    assert clopper_pearson(100, 100, 0.95) == pytest.approx((0.025 ** (1 / 100), 1), abs=1e-12)
    assert clopper_pearson(10, 100, 0.95) == pytest.approx((0.0490047, 0.1762226), abs=1e-6)  # R: binom.test(10, 100)
    assert clopper_pearson(1, 2) == pytest.approx((1 - math.sqrt(0.995), math.sqrt(0.995)), abs=1e-12)


@pytest.mark.parametrize("samples", [10**5, 10**6, 10**7])
@pytest.mark.parametrize("percent", [1, 30, 50, 90])
def test_intervals_of_very_many_samples_are_those_of_the_normal(samples, percent):
    share = percent / 100
    low, high = clopper_pearson(samples * percent // 100, samples, 0.95)
    width = 1.959964 * math.sqrt(share * (1 - share) / samples)
    assert (share - low, high - share) == pytest.approx((width, width), rel=0.04)
