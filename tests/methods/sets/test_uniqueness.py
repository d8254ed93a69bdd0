"""The share of itemsets that single a person out, counted and sampled."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import shoal
from shoal.errors import InputError, PolicyError
from shoal.kernels.sets.sampling import draw_combinations
from shoal.methods.sets import uniqueness
from tests.reference import km as naive
from tests.reference.effort import tries

RECORDS = st.lists(st.sets(st.sampled_from("abcdefg"), min_size=1, max_size=6), min_size=1, max_size=12)
SOME = [set("abcdef"), set("abc"), set("abc"), set("ab"), set("a"), set("defg"), set("cg")]


@tries(60)
@given(RECORDS, st.integers(1, 5))
@example([{"a"}], 1)
@example([set("abc")] * 2, 2)
@example([set("abcdef")], 3)
@example([{"a"}, {"b"}], 2)
def test_counted_is_exact(records, m):
    found = shoal.uniqueness(records, m)
    if m > max(map(len, records)):
        assert (found.how, found.share, found.low, found.high, found.samples) == ("empty", 0, 0, 0, 0)
        return
    share = float(naive.uniqueness(records, m))
    assert (found.how, found.size, found.samples) == ("counted", m, len(naive.itemsets(records, m)))
    assert found.low == found.high == found.share == pytest.approx(share, abs=1e-12)


def covered(confidence, samples, *, person, runs):
    share = float(naive.uniqueness(SOME, 2, person=person))
    found = [
        shoal.uniqueness(
            SOME, 2, adversary="person" if person else "itemset", confidence=confidence, samples=samples, seed=seed
        )
        for seed in range(runs)
    ]
    for one in found:
        assert (one.how, one.samples, one.size) == ("sampled", samples, 2)
        assert 0 <= one.low <= one.share <= one.high <= 1
    assert np.mean([one.share for one in found]) == pytest.approx(share, abs=4 * (0.25 / samples / runs) ** 0.5)
    return sum(one.low <= share <= one.high for one in found)


@pytest.mark.parametrize("person", [False, True])
def test_the_interval_covers_the_share_with_its_confidence(person):
    assert naive.uniqueness(SOME, 2) != naive.uniqueness(SOME, 2, person=True)
    runs = 120
    hits = covered(0.9, 60, person=person, runs=runs)
    assert hits >= 0.82 * runs  # at least 0.9 of them, but for chance
    assert hits < runs  # not by being wide
    assert covered(0.999, 60, person=person, runs=20) == 20


def test_combinations_that_occur_are_as_uniform_as_itemsets_of_people(monkeypatch):
    """Few items and many people: combinations are drawn, whatever they cost."""
    rounds = []

    def draw(*given):
        rounds.append(given)
        return draw_combinations(*given)

    monkeypatch.setattr(uniqueness, "draw_combinations", draw)
    monkeypatch.setattr(uniqueness, "_COMBINATION_COST", 0)
    runs = 120
    hits = covered(0.9, 60, person=False, runs=runs)
    assert 0.82 * runs <= hits < runs
    assert len(rounds) == runs
    person = shoal.uniqueness(SOME, 2, adversary="person", samples=4000)
    assert person.low <= float(naive.uniqueness(SOME, 2, person=True)) <= person.high


@pytest.mark.compiled
def test_the_default_number_of_samples():
    found = shoal.uniqueness(SOME, 2, adversary="person")
    assert (found.how, found.samples) == ("sampled", 26_492)
    assert found.high - found.low < 0.02
    assert found.low <= float(naive.uniqueness(SOME, 2, person=True)) <= found.high


@pytest.mark.compiled
def test_more_samples_than_one_round():
    found = shoal.uniqueness(SOME, 3, samples=20_000)
    assert found.samples == 20_000
    assert found.share == pytest.approx(float(naive.uniqueness(SOME, 3)), abs=0.02)


def test_seeds_and_order():
    one = shoal.uniqueness(SOME, 2, samples=50, seed=1)
    assert shoal.uniqueness(SOME[::-1], 2, samples=50, seed=1) == one
    assert len({shoal.uniqueness(SOME, 2, samples=50, seed=seed).share for seed in range(20)}) > 3


def test_before_and_after():
    tree = shoal.Hierarchy.from_nested({"all": {"left": ["a", "b", "c"], "right": ["d", "e", "f", "g"]}})
    result = shoal.KmAnonymity(2, 2, 1, generalize=tree).anonymize(SOME)
    assert shoal.uniqueness(SOME, 2).share > 0
    assert shoal.uniqueness(result.records, 2).share == 0
    assert shoal.uniqueness(result.published(), 2).share == 0


def test_input_forms_and_refusals():
    lists = pa.array([sorted(record) for record in SOME])
    assert shoal.uniqueness(lists, 2) == shoal.uniqueness(SOME, 2)
    with pytest.raises(InputError, match="record 1: is empty"):
        shoal.uniqueness([set()], 1)
    assert shoal.uniqueness([], 1).how == "empty"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"m": 0}, "m: must be a whole number from 1 to 64"),
        ({"m": 65}, "m: must be"),
        ({"m": 2.0}, "m: must be"),
        ({"m": True}, "m: must be"),
        ({"adversary": "both"}, 'adversary: must be "itemset" or "person"'),
        ({"confidence": 1.0}, "confidence: must be a number above 0 and below 1"),
        ({"confidence": 0.0}, "confidence: must be"),
        ({"confidence": float("nan")}, "confidence: must be"),
        ({"confidence": "0.9"}, "confidence: must be"),
        ({"samples": 0}, "samples: must be a whole number of at least 1"),
        ({"samples": 1.5}, "samples: must be"),
        ({"seed": -1}, r"seed: must be a whole number from 0 to 2\^63 - 1"),
        ({"seed": 2**63}, "seed: must be"),
        ({"seed": 0.5}, "seed: must be"),
    ],
)
def test_bad_parameters(settings, message):
    with pytest.raises(PolicyError, match=f"^{message}"):
        shoal.uniqueness(SOME, **settings)


def test_all_problems_at_once():
    with pytest.raises(PolicyError) as caught:
        shoal.uniqueness(SOME, 0, adversary="x", confidence=2, samples=-1, seed=-1)
    assert [problem.partition(":")[0] for problem in caught.value.problems] == [
        "m", "adversary", "confidence", "samples", "seed",
    ]  # fmt: skip


def test_long_records_of_few_items_are_counted_by_combinations():
    """More than 10^9 itemsets occur, counted once for each person, but only a million different ones."""
    random = np.random.default_rng(3)
    people, items, rare = 6000, 40, 4
    has = np.argsort(random.random((people, items)), axis=1) < 32
    has = np.hstack((has, random.random((people, rare)) < 0.001))
    found = shoal.uniqueness([{f"i{item:02}" for item in np.flatnonzero(row)} for row in has], m=5)
    bits = [int("".join(map(str, column.astype(int))), 2) for column in has.T]
    supports = [
        (three & bits[fourth] & bits[fifth]).bit_count()
        for first, second, third in combinations(range(items + rare), 3)
        for three in [bits[first] & bits[second] & bits[third]]
        for fourth, fifth in combinations(range(third + 1, items + rare), 2)
    ]
    occurring = len(supports) - supports.count(0)
    assert (found.how, found.samples) == ("counted", occurring)
    assert found.share == supports.count(1) / occurring > 0
