"""Releases of sets against brute force: every itemset up to m, on small random data."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import shoal
from shoal.models.proportions import clopper_pearson
from shoal.models.sample_size import promise, samples_needed
from tests.reference import km as naive
from tests.reference import km_partition as blocks_of
from tests.reference.effort import IS_COMPILED, tries

ITEMS = "abcdefgh"
TREE = shoal.Hierarchy.from_nested(
    {"all": {"left": {"near": ["a", "b"], "far": ["c"]}, "right": {"odd": ["d", "e", "f"], "even": ["g", "h"]}}}
)
NODES = {"abc": "left", "ab": "near", "defgh": "right", "def": "odd", "gh": "even", "abcdefgh": "all", "c": "c"}
RING = [(ITEMS[at], ITEMS[(at + 1) % 8]) for at in range(8)] + [("a", "e")]
POINTS = {"a": (1, 1), "b": (1, 1), "c": (3, 1), "d": (9, 2), "e": (2, 8), "f": (6, 6), "g": (7, 1), "h": (9, 9)}
PLACES = shoal.Places(list(POINTS), [x for x, _ in POINTS.values()], [y for _, y in POINTS.values()], geographic=False)
GENERALIZE = {"tree": TREE, "graph": RING, "table": {one: [other] for one, other in RING}, "places": PLACES}

RECORDS = st.lists(st.sets(st.sampled_from(ITEMS), min_size=1, max_size=6), min_size=2, max_size=14)
KINDS = st.sampled_from(sorted(GENERALIZE))
ALL_ALIKE = [set("abc")] * 4
ALL_APART = [{item} for item in ITEMS]
CHAIN = [set(ITEMS[:length]) for length in range(1, 7)]
PAIRED = [{"a", "c"}, {"b", "c"}, {"a", "d"}, {"b", "d"}, {"g", "h"}, {"g", "h"}]


def block_of(result) -> dict[str, str]:
    """The partition of a result; blocks share no item."""
    found = [(item, label) for label, items in result.blocks.items() for item in items]
    assert len(found) == len({item for item, _ in found})
    return dict(found)


def check_release(result, records, k, m) -> None:
    """There are no violations, every record is an image under one partition, and the certificate is right."""
    partition = block_of(result)
    assert set(partition) == set(ITEMS)
    assert result.records == naive.released(records, partition)
    crowds = [k] * m if isinstance(k, int) else k
    for size, crowd in enumerate(crowds, 1):
        assert naive.violations(records, partition, size, crowd) == set()
    longest = max(map(len, records))
    for size, one in enumerate(result.certificate, 1):
        assert (one.size, one.sigma) == (size, 1.0)
        assert one.k >= crowds[size - 1]
        assert one.how == ("counted" if size <= longest else "empty")
        assert (one.epsilon, one.delta, one.attempts, one.drawn, one.passed) == (0, 0, 0, 0, 0)
    assert len(result.certificate.sizes) == m
    assert (result.certificate.records, len(result)) == (len(records), len(records))


def check_blocks(kind, result, records) -> None:
    """The generalization allows the blocks, and the error is right."""
    groups = [tuple(items) for items in result.blocks.values()]
    if kind == "tree":
        assert all(len(items) == 1 or NODES["".join(items)] == label for label, items in result.blocks.items())
    elif kind != "places":
        twin = blocks_of.NaiveGraph(8, [(ITEMS.index(one), ITEMS.index(other)) for one, other in RING])
        assert all(twin.hangs_together(frozenset(map(ITEMS.index, items))) for items in groups)
    if kind == "places":
        assert any({"a", "b"} <= set(items) for items in groups)  # at one place
        weights = [naive.support(records, item) for item in ITEMS]
        cells = list(zip(PLACES.areas.tolist(), map(tuple, PLACES.centroids.tolist()), strict=True))
        cost = blocks_of.distance(weights, list(POINTS.values()), PLACES.site_of.tolist(), cells, math.dist)
        wanted = blocks_of.error([frozenset(map(ITEMS.index, items)) for items in groups], weights, cost)
    else:
        wanted = naive.ncp(records, groups, 8)
    assert result.error == pytest.approx(wanted, rel=1e-9, abs=1e-9)


# ---- counted


@tries(60)
@given(RECORDS, st.integers(2, 6), st.integers(1, 5), KINDS, st.booleans())
@example(ALL_ALIKE, 4, 3, "tree", True)
@example(ALL_ALIKE, 2, 5, "places", False)
@example(ALL_APART, 2, 1, "tree", False)
@example(ALL_APART, 8, 2, "graph", True)
@example(CHAIN, 3, 4, "tree", True)
@example(CHAIN, 6, 2, "places", True)
@example(PAIRED, 2, 2, "tree", False)
@example([{"a"}, {"a"}], 2, 1, "graph", True)
def test_every_counted_itemset_has_its_crowd(records, k, m, kind, by_sigma):
    assume(len(records) >= k)
    how = {"sigma": 1} if by_sigma else {"sigma": 0.9, "counted": "all"}
    result = shoal.KmAnonymity(k, m, **how, generalize=GENERALIZE[kind], trials=2).anonymize(records)
    check_release(result, records, k, m)
    check_blocks(kind, result, records)


@tries(40)
@given(RECORDS, st.integers(2, 5), st.integers(1, 4), KINDS)
@example(ALL_APART, 3, 2, "tree")
@example(CHAIN, 2, 4, "table")
def test_the_deterministic_method(records, k, m, kind):
    assume(len(records) >= k)
    method = shoal.KmApriori(k, m, generalize=GENERALIZE[kind])
    result = method.anonymize(records)
    assert method.method == "k^m-apriori"
    check_release(result, records, k, m)
    check_blocks(kind, result, records)
    assert result.certificate.statement.endswith(
        "No size was sampled.\n"
        "The guarantee covers this release only, not comparisons with other releases of the same people."
    )


@tries(40)
@given(RECORDS, st.lists(st.integers(2, 5), min_size=1, max_size=4), KINDS, st.booleans())
@example([{"a", "c"}] * 3 + [{"b", "c"}] + [{"c", "d"}] * 10 + [{"b"}] * 5, [2, 5], "tree", True)  # k rises
@example([{"a", "b"}] * 2 + [{"c"}] * 4, [2, 4], "tree", True)  # both fall into one block
@example(CHAIN, [5, 3, 2], "graph", True)
@example(ALL_APART * 2 + [{"a", "c"}] * 2, [2, 3], "tree", False)  # single items are seldom all drawn
def test_a_crowd_for_every_size(records, k, kind, all_counted):
    """Items of a set may fall into fewer blocks, which still need the crowd of the whole set."""
    assume(len(records) >= max(k))
    sigma = 1 if all_counted else [0.6] * (len(k) - 1) + [1]
    result = shoal.KmAnonymity(k, len(k), sigma, generalize=GENERALIZE[kind], trials=1, counted=0).anonymize(records)
    assert [one.k for one in result.certificate] == k
    if all_counted:
        check_release(result, records, k, len(k))
    assert naive.violations(records, block_of(result), len(k), k[-1]) == set()
    longest = max(map(len, records))
    hows = ["counted" if all_counted or size == len(k) else "sampled" for size in range(1, len(k) + 1)]
    assert [one.how for one in result.certificate] == [*hows[:longest], *["empty"] * (len(k) - longest)]


def test_a_counted_size_above_a_sampled_one():
    """A unique item is seldom drawn; a pair with it must still be found."""
    tree = shoal.Hierarchy.from_nested({"all": {f"g{i}": [f"a{i}", f"b{i}"] for i in range(60)}})
    records = [{f"a{i}", f"b{i}"} for i in range(59) for _ in range(2)] + [{"a59", "b59"}]
    for seed in range(3):
        settings = {"generalize": tree, "counted": 0, "seed": seed, "trials": 1}
        result = shoal.KmAnonymity(2, 2, [0.5, 1], **settings).anonymize(records)
        assert [one.how for one in result.certificate] == ["sampled", "counted"]
        assert naive.violations(records, block_of(result), 2, 2) == set()
        above = shoal.KmAnonymity(2, 2, [1, 0.5], **settings).anonymize(records)
        assert [one.how for one in above.certificate] == ["counted", "sampled"]
        assert naive.violations(records, block_of(above), 1, 2) == set()


def test_no_size_above_an_unaffordable_one_is_counted(monkeypatch):
    """All have four items: there are fewer sets of three and four than of two."""
    monkeypatch.setattr("shoal.methods.sets.search.AFFORDABLE", 30)
    records = [set("abcd")] * 3 + [set("defg")] * 3
    result = shoal.KmAnonymity(2, 4, 0.6, generalize=TREE, trials=2).anonymize(records)
    assert [one.how for one in result.certificate] == ["counted", "sampled", "sampled", "sampled"]
    again = result.apply(records).certify()
    assert [one.how for one in again.certificate] == ["counted", "sampled", "sampled", "sampled"]


# ---- what must play no part


@tries(25)
@given(RECORDS, st.integers(2, 4), st.integers(1, 3), KINDS, st.randoms(use_true_random=False), st.booleans())
@example(CHAIN, 2, 2, "tree", None, True)
@example(PAIRED, 2, 2, "graph", None, False)
@example(PAIRED * 2, 3, 2, "places", None, False)
def test_the_order_of_records_does_not_matter(records, k, m, kind, random, counted):
    assume(len(records) >= k)
    order = list(range(len(records)))[::-1]
    if random is not None:
        random.shuffle(order)
    method = shoal.KmAnonymity(
        k, m, 1 if counted else 0.7, generalize=GENERALIZE[kind], trials=2, counted="all" if counted else 0
    )
    result, other = method.anonymize(records), method.anonymize([records[row] for row in order])
    assert other.blocks == result.blocks
    assert other.error == result.error
    assert other.certificate == result.certificate
    assert other.records == [result.records[row] for row in order]
    assert other.published().equals(result.published())


@pytest.mark.parametrize("changes", [{"sigma": 1}, {"sigma": 0.8, "counted": 0}, {"sigma": 0.8, "adversary": "both"}])
def test_the_number_of_threads_does_not_matter(changes, monkeypatch):
    random = np.random.default_rng(4)
    records = [set(random.choice(list(ITEMS), random.integers(1, 7), replace=False).tolist()) for _ in range(40)]
    outcomes = []
    for threads in (1, 2, 3, 7):
        monkeypatch.setattr(os, "cpu_count", lambda threads=threads: threads)
        result = shoal.KmAnonymity(3, 3, **changes, generalize=TREE, trials=2, seed=5).anonymize(records)
        outcomes.append((result.blocks, result.certificate, result.published().to_pylist()))
    assert all(one == outcomes[0] for one in outcomes)


@tries(20)
@given(RECORDS, st.integers(2, 4), st.integers(1, 3), KINDS, st.integers(0, 5))
@example(CHAIN, 2, 3, "graph", 0)
@example(PAIRED + ALL_APART, 2, 2, "places", 3)
def test_more_trials_never_increase_the_error(records, k, m, kind, seed):
    assume(len(records) >= k)
    errors = [
        shoal.KmAnonymity(k, m, 1, generalize=GENERALIZE[kind], trials=trials, seed=seed).anonymize(records).error
        for trials in (1, 2, 5)
    ]
    assert errors == sorted(errors, reverse=True)


def test_more_trials_can_reduce_the_error():
    """Trials differ: over some data sets, ten have a smaller error than one."""
    gains = []
    for seed in range(6):
        random = np.random.default_rng(seed)
        records = [set(random.choice(list(ITEMS), random.integers(1, 6), replace=False).tolist()) for _ in range(25)]
        one, ten = (
            shoal.KmAnonymity(3, 2, 1, generalize=RING, trials=trials).anonymize(records).error for trials in (1, 10)
        )
        gains.append(one - ten)
    assert min(gains) >= 0
    assert max(gains) > 0


@tries(20)
@given(RECORDS, st.integers(2, 4), KINDS)
@example(CHAIN, 2, "tree")
def test_a_user_defined_error(records, k, kind):
    assume(len(records) >= k)
    asked = {}

    def spread(items, weights):
        asked[items] = weights
        return (len(items) - 1) * sum(weights) + 0.5

    result = shoal.KmAnonymity(k, 2, 1, generalize=GENERALIZE[kind], error=spread, trials=1).anonymize(records)
    check_release(result, records, k, 2)
    weights = {item: naive.support(records, item) for item in ITEMS}
    assert all(asked[items] == tuple(map(weights.get, items)) for items in asked)  # as asked last
    wanted = sum(spread(items, tuple(map(weights.get, items))) for items in result.blocks.values())
    assert result.error == pytest.approx(wanted / sum(weights.values()))


# ---- sampled


def check_sampled(result, records, *, sigma, k=2, sizes=(1,), adversaries=("itemset",), share=1, bound="exact") -> list:
    """The certificate describes what was done; return the exact violating masses of its entries."""
    entries = list(result.certificate)
    assert [(one.size, one.adversary) for one in entries] == [(size, who) for size in sizes for who in adversaries]
    masses = []
    for one in entries:
        made = promise(sigma if isinstance(sigma, float) else sigma[one.size - 1], bound)
        delta = made.delta / share
        assert (one.how, one.k, one.sigma, one.bound) == ("sampled", k, made.sigma, bound)
        assert one.epsilon == made.epsilon
        assert one.delta == pytest.approx(delta, rel=1e-12)
        assert one.enough == samples_needed(made.epsilon, delta, bound)
        assert one.attempts >= 1
        assert one.passed == samples_needed(made.epsilon, delta / (one.attempts * (one.attempts + 1)), bound)
        failed = one.drawn - one.passed  # in earlier attempts: at least what failed
        assert failed >= one.attempts - 1
        assert (failed == 0) == (one.attempts == 1)
        shares = (naive.by_person if one.adversary == "person" else naive.uniform)(records, one.size)
        masses.append(naive.mass(shares, naive.violations(records, block_of(result), one.size, one.k)))
    return masses


MANY_PAIRS = 24
PAIRS = shoal.Hierarchy.from_nested({"all": {f"g{i:02d}": [f"a{i:02d}", f"b{i:02d}"] for i in range(MANY_PAIRS)}})
ALONE = [{f"{side}{i:02d}"} for i in range(MANY_PAIRS) for side in "ab"]
"""Everybody has one unique item; each merge of two blocks repairs two of them."""


@pytest.mark.compiled
@pytest.mark.parametrize("joint", [False, True])
def test_guarantees_hold_as_often_as_promised(joint):
    """Searches often stop too early: only fresh samples afterwards make the guarantee hold."""
    made, runs = promise(0.5), 150
    kept, attempts = 0, []
    for seed in range(runs):
        method = shoal.KmAnonymity(2, 1, 0.5, generalize=PAIRS, counted=0, trials=1, seed=seed, joint=joint)
        result = method.anonymize(ALONE)
        (mass,) = check_sampled(result, ALONE, sigma=0.5)
        kept += mass <= made.epsilon
        attempts.append(result.certificate.sizes[0].attempts)
    assert clopper_pearson(kept, runs)[1] >= 1 - made.delta
    assert kept / runs >= 1 - made.delta
    assert kept < runs  # or the test could not fail: now and then the promise is broken, as it says
    assert sum(attempt > 1 for attempt in attempts) > runs // 4


@pytest.mark.compiled
@pytest.mark.parametrize("adversary", ["person", "both"])
def test_guarantees_against_all_adversaries(adversary):
    """People with many items and people with one: the two adversaries see different shares."""
    long = [{f"a{i:02d}" for i in range(step, MANY_PAIRS, 6)} for step in range(6)]
    records = long + [{f"b{i:02d}"} for i in range(MANY_PAIRS)]
    who = ("itemset", "person") if adversary == "both" else ("person",)
    made, runs = promise(0.5), 80
    kept = dict.fromkeys(who, 0)
    for seed in range(runs):
        result = shoal.KmAnonymity(
            2, 1, 0.5, generalize=PAIRS, counted=0, trials=1, seed=seed, adversary=adversary
        ).anonymize(records)
        masses = check_sampled(result, records, sigma=0.5, adversaries=who)
        for one, mass in zip(who, masses, strict=True):
            kept[one] += mass <= made.epsilon
    for one in who:
        assert clopper_pearson(kept[one], runs)[1] >= 1 - made.delta


@tries(25)
@given(RECORDS, KINDS, st.sampled_from(["itemset", "person", "both"]), st.booleans(), st.integers(0, 3))
@example(CHAIN, "tree", "both", True, 0)
@example(ALL_ALIKE, "graph", "itemset", False, 0)
@example(ALL_APART, "places", "person", True, 1)
def test_content_of_a_sampled_certificate(records, kind, adversary, joint, seed):
    sigma = [0.6, 0.7, 0.8]
    method = shoal.KmAnonymity(
        2, 3, sigma, generalize=GENERALIZE[kind], counted=0, adversary=adversary, joint=joint, seed=seed, trials=2
    )
    assume(max(map(len, records)) >= 3)
    result = method.anonymize(records)
    who = ("itemset", "person") if adversary == "both" else (adversary,)
    check_sampled(result, records, sigma=sigma, sizes=(1, 2, 3), adversaries=who, share=3 * len(who) if joint else 1)
    assert result.records == naive.released(records, block_of(result))
    certificate = result.certificate
    assert (certificate.m, certificate.seed, certificate.joint, certificate.adversary) == (3, seed, joint, adversary)
    assert ("for all sizes at once" in certificate.statement) == joint
    assert certificate.to_dict()["sizes"][0]["epsilon"] == promise(0.6).epsilon


def test_counted_sizes_use_no_share_of_delta():
    result = shoal.KmAnonymity(2, 3, [1, 0.7, 0.8], generalize=TREE, counted=1, joint=True, trials=1).anonymize(
        CHAIN * 2
    )
    first, second, third = result.certificate
    assert (first.how, first.delta) == ("counted", 0)
    assert second.delta == pytest.approx(promise(0.7).delta / 2)
    assert third.delta == pytest.approx(promise(0.8).delta / 2)
    assert "with confidence 0.9" in second.statement
    assert second.statement == (
        f"size 2, sampled: with confidence {1 - second.delta:.6g} over the random draws, at most "
        f"{second.epsilon:.4%} of all itemsets match fewer than 2 published records."
    )


@pytest.mark.parametrize("bound", ["hoeffding1", "hoeffding2"])
@pytest.mark.compiled
def test_the_bounds_of_the_paper(bound):
    result = shoal.KmAnonymity(2, 2, 0.8, generalize=TREE, counted=0, bound=bound, trials=1).anonymize(
        CHAIN * 2 + PAIRED
    )
    masses = check_sampled(result, CHAIN * 2 + PAIRED, sigma=0.8, sizes=(1, 2), bound=bound)
    assert max(masses) <= promise(0.8, bound).epsilon


@pytest.mark.parametrize("seed", range(4 if IS_COMPILED else 1))
def test_the_chain_certifies_too(seed):
    records = CHAIN + PAIRED + ALL_APART
    result = shoal.KmAnonymity(2, 3, 0.75, generalize=RING, counted=0, sampler="chain", trials=1, seed=seed).anonymize(
        records
    )
    assert result.certificate.sampler == "chain"
    check_sampled(result, records, sigma=0.75, sizes=(1, 2, 3))


def test_seeds_differ():
    outcomes = {
        tuple(shoal.KmAnonymity(2, 1, 0.5, generalize=PAIRS, counted=0, trials=1, seed=seed).anonymize(ALONE).blocks)
        for seed in range(5)
    }
    assert len(outcomes) > 1
