"""Grids: how many values a guess from the ends of ranges finds, counted naively, and which grid is chosen."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from shoal.inspection import Wishes, look, propose
from shoal.inspection.columns.facts import Facts
from shoal.inspection.generalization.domains import domain_of
from shoal.inspection.generalization.range_ends import MOST_FOUND, _groups, _try, choose_grids, natural_step


def facts_of(values):
    (found,) = look(pa.table({"v": pa.array(values)})).values()
    return found


def naive(groups, low, high, step, natural):
    """The share of values that the best fixed guess finds, and the mean width of ranges."""
    ranges = []
    for own in groups:
        begin = low + math.floor((min(own) - low) / step + 1e-9) * step
        end = low + math.ceil((max(own) - low) / step - 1e-9) * step
        ranges.append((max(begin, low), min(end, high), own))
    people = sum(map(len, groups))
    best = 0
    for offset in range(int(step / natural) + 1):
        hits = 0
        for begin, end, own in ranges:
            if begin < end and (begin, end) != (low, high):
                guesses = {round(begin + offset * natural, 6), round(end - offset * natural, 6)}
                hits += sum(round(value, 6) in guesses for value in own)
        best = max(best, hits)
    return best / people, sum((end - begin) * len(own) for begin, end, own in ranges) / (high - low) / people


@pytest.mark.parametrize("step", [1, 2, 5, 10])
@pytest.mark.parametrize("seed", range(3))
def test_what_is_found_is_counted_as_a_naive_count_does(step, seed):
    rng = np.random.default_rng(seed)
    groups = [rng.integers(20, 90, rng.integers(1, 9)).tolist() for _ in range(40)]
    values = np.array([value for own in groups for value in own], float)
    places, at = [], 0
    for own in groups:
        places.append(np.arange(at, at + len(own)))
        at += len(own)
    tried = _try(values, places, 20.0, 90.0, float(step), 1.0)
    assert (tried.found, tried.width) == pytest.approx(naive(groups, 20, 90, step, 1))


def test_moving_all_ends_hides_nothing():
    """Ends that always lie two below the least value: no end is a value, and a guess two above it always is one."""
    values = np.array([12.0, 22.0, 32.0, 42.0, 52.0, 62.0])
    groups = [np.arange(3), np.arange(3, 6)]
    tried = _try(values, groups, 0.0, 100.0, 10.0, 1.0)
    assert tried.found == pytest.approx(2 / 6)


def test_groups_have_k_rows_and_cover_all():
    rng = np.random.default_rng(5)
    columns = [rng.normal(size=300), rng.integers(0, 3, 300).astype(float), np.full(300, np.nan)]
    groups = _groups(columns, 5)
    assert sorted(np.concatenate(groups).tolist()) == list(range(300))
    assert min(map(len, groups)) >= 5
    assert max(map(len, groups)) < 300


@pytest.mark.parametrize(
    ("values", "step"),
    [([18, 19, 44], 1), ([1200, 1300, 5700], 100), ([20, 30, 50], 10), ([1.72, 1.8], 0.01), ([0.5, 2.5], 0.1),
     ([7.123456, 1.0], 1e-6)],
)  # fmt: skip
def test_natural_steps(values, step):
    assert natural_step(np.array(values, float)) == pytest.approx(step)


def grid_of(values, k=5, kind="whole"):
    facts = facts_of(values)
    assert isinstance(facts, Facts)
    rules = {"v": domain_of(facts)}
    words = choose_grids(rules, {"v": facts}, k)
    return rules["v"], words["v"]


def test_a_grid_of_1_is_widened_where_that_hides_values():
    rng = np.random.default_rng(1)
    ages = np.clip(rng.normal(46, 16, 400), 18, 92).astype(int).tolist()
    others = {"height": rng.normal(size=400), "job": rng.integers(0, 5, 400), "rent": rng.normal(size=400)}
    facts = {"age": facts_of(ages), **{name: facts_of(values) for name, values in others.items()}}
    rules = {name: domain_of(one) for name, one in facts.items()}
    assert rules["age"]["grid"] == 1
    words = choose_grids(rules, facts, 5)
    rule = rules["age"]
    assert rule["grid"] == 5
    assert (rule["low"] % 5, rule["high"] % 5) == (0, 0)
    found = int(words["age"].split("about ")[1].split("%")[0])
    assert found < 25  # with a grid of 1: 41


def test_wages_to_the_penny_need_no_wider_grid():
    rng = np.random.default_rng(4)
    rule, words = grid_of(np.round(np.exp(rng.normal(10, 0.4, 400)), 2).tolist())
    first = domain_of(facts_of(np.round(np.exp(np.random.default_rng(4).normal(10, 0.4, 400)), 2).tolist()))
    assert rule["grid"] == first["grid"]
    assert int(words.split("about ")[1].split("%")[0]) <= 100 * MOST_FOUND


def test_a_narrow_domain_keeps_its_grid():
    rule, _ = grid_of([row % 6 for row in range(300)])
    assert rule["grid"] == 1


def test_a_grid_is_not_widened_at_any_cost():
    """One column of many rows has narrow ranges: a grid of five of its 12 values would say nothing."""
    rng = np.random.default_rng(2)
    rule, _ = grid_of(rng.integers(0, 13, 3000).tolist())
    assert rule["grid"] <= 2


def test_days_get_a_grid_of_days():
    rng = np.random.default_rng(3)
    days = np.datetime64("1950-01-01") + rng.integers(0, 20_000, 300)
    facts = look(pa.table({"born": pa.array(days.astype("datetime64[D]"))}))
    rules = {"born": domain_of(facts["born"])}
    choose_grids(rules, facts, 5)
    assert rules["born"]["grid"].endswith("d")
    assert rules["born"]["grid"] != "1d"


def test_a_proposal_and_its_policy_say_what_ends_give_away():
    rng = np.random.default_rng(1)
    ages = np.clip(rng.normal(46, 16, 400), 18, 92).astype(int).tolist()
    table = pa.table({"age": ages, "job": [f"job {row % 7}" for row in range(400)]})
    found = propose(look(table), Wishes(person="row"))
    assert found.ends["age"].startswith("a guess from the ends of its range is right for about ")


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ([17, *range(20, 80), 91], 16, 92),
        ([18, *range(20, 80), 90], 16, 92),  # the ends are one person's
        ([20] * 30 + [40] * 30, 20, 40),  # those of many
        ([0, *range(1, 60)], 0, 60),  # nothing is below 0
    ],
)
def test_the_domain_does_not_end_at_somebodys_value(values, low, high):
    rule = domain_of(facts_of(values))
    assert (rule["low"], rule["high"]) == (low, high)
