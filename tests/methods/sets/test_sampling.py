"""Samples have the right distribution, and false certificates are as rare as promised."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

import shoal
from shoal.hierarchies import Graph
from shoal.kernels.sets.sampling import draw_samples, follow_chain
from shoal.methods.sets.certificate import Certifier, NotCertified
from shoal.methods.sets.chain import as_chain, geweke
from shoal.methods.sets.data import SetData
from shoal.methods.sets.km_anonymity import make_partition
from shoal.methods.sets.sampling import make_draws, make_scratch, random_key
from shoal.methods.sets.search import Search
from shoal.methods.sets.settings import KmSettings
from shoal.models.proportions import clopper_pearson
from shoal.models.sample_size import promise, samples_needed
from tests.reference import km as naive
from tests.reference.effort import IS_COMPILED

SKEWED = [set(range(9)), {0, 1, 2}, {0, 1, 2}, {0, 1, 2}, {0, 1}, {0}, {0}, {3, 4, 5, 6}, {2, 5, 7, 8, 9}, {9}]
"""One long record, common items and many unique ones: any bias shows."""
DRAWN = 20_000 if IS_COMPILED else 2_500
SURPRISE = 4.0


def names_of(kinds) -> list[str]:
    return [f"i{item:02d}" for item in range(kinds)]


def data_of(records, kinds) -> SetData:
    starts = np.cumsum([0, *map(len, records)]).astype(np.int64)
    items = np.array([item for record in records for item in sorted(record)], np.int32)
    return SetData(starts, items, names_of(kinds))


def drawn_from(data, size, *, seed=0, by_person=False, chain=False, count=DRAWN):
    draws = make_draws(data, size, 2, random_key(seed, b"test", size), by_person=by_person)
    assert draws is not None
    if chain:
        draws = as_chain(data, draws)
    drawn, people = np.empty((count, size), np.int32), np.empty(count, np.int64)
    end, kept = draw_samples(data.sets, data.index.arrays, draws, 0, 1000 * count, count, make_scratch(), drawn, people)
    assert kept == count
    return Counter(map(frozenset, drawn.tolist())), end


# ---- distributions


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_the_exact_sampler_is_uniform_over_all_itemsets_that_occur(size):
    counts, proposals = drawn_from(data_of(SKEWED, 10), size)
    assert naive.chi_square_score(counts, naive.uniform(SKEWED, size)) < SURPRISE
    assert naive.is_plausible(DRAWN, proposals, float(naive.acceptance(SKEWED, size)))
    kinds = len(naive.itemsets(SKEWED, size))
    assert naive.acceptance(SKEWED, size) * sum(len(naive.itemsets([one], size)) for one in SKEWED) == kinds


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_itemsets_of_a_random_person(size):
    counts, proposals = drawn_from(data_of(SKEWED, 10), size, by_person=True)
    assert naive.chi_square_score(counts, naive.by_person(SKEWED, size)) < SURPRISE
    assert proposals == DRAWN  # none is thrown away


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.compiled
def test_the_chain_is_uniform_and_agrees_with_the_exact_sampler(size):
    data = data_of(SKEWED, 10)
    by_chain, _ = drawn_from(data, size, chain=True)
    one_by_one, _ = drawn_from(data, size, seed=1)
    assert naive.chi_square_score(by_chain, naive.uniform(SKEWED, size)) < SURPRISE
    assert naive.two_sample_score(by_chain, one_by_one) < SURPRISE


def test_the_tests_detect_a_bias():
    """Proposals without rejection, and the person's itemsets, are not uniform."""
    data = data_of(SKEWED, 10)
    counts, _ = drawn_from(data, 2, by_person=True, count=2_500)
    assert naive.chi_square_score(counts, naive.uniform(SKEWED, 2)) > 10
    other, _ = drawn_from(data, 2, count=2_500)
    assert naive.two_sample_score(counts, other) > 10


def test_samples_are_independent():
    """Pairs of neighbours are uniform over pairs."""
    records = [{0, 1}, {0, 1}, {1, 2}]
    data = data_of(records, 3)
    draws = make_draws(data, 1, 2, random_key(5, b"test"))
    drawn, people = np.empty((4000, 1), np.int32), np.empty(4000, np.int64)
    draw_samples(data.sets, data.index.arrays, draws, 0, 10**5, 4000, make_scratch(), drawn, people)
    pairs = Counter(zip(drawn[::2, 0].tolist(), drawn[1::2, 0].tolist(), strict=True))
    assert naive.chi_square_score(pairs, {(one, other): 1 / 9 for one in range(3) for other in range(3)}) < SURPRISE


@pytest.mark.compiled
def test_uniform_with_large_supports():
    """Supports from 1 to 200, so that few proposals are kept."""
    records = [{item, item + 1} for item in range(8) for _ in range(1 + item * item * 4)]
    counts, proposals = drawn_from(data_of(records, 9), 2)
    assert naive.chi_square_score(counts, naive.uniform(records, 2)) < SURPRISE
    assert naive.is_plausible(DRAWN // 50, proposals // 50, float(naive.acceptance(records, 2)))


# ---- the chain's own test


def test_geweke_against_its_twin():
    random = np.random.default_rng(3)
    for length in (128, 200, 1000):
        values = np.cumsum(random.normal(size=length)) * 0.1
        assert geweke(values) == pytest.approx(naive.geweke(values.tolist()))
    assert geweke(np.ones(128)) == 0
    assert geweke(np.repeat([1.0, 0.0], 64)) == np.inf
    drifting = np.linspace(0, 1, 500) + random.normal(size=500) * 0.01
    assert abs(geweke(drifting)) > 5
    steady = [abs(geweke(random.normal(size=400))) for _ in range(200)]
    assert sum(score > 1.96 for score in steady) < 40


def test_a_chain_gets_longer_until_it_converges(monkeypatch):
    data = data_of(SKEWED, 10)
    draws = make_draws(data, 2, 2, random_key(0, b"test"))
    lengths = []

    def never_alike(values):
        lengths.append(len(values))
        return 9.0 if len(lengths) < 4 else 0.1

    monkeypatch.setattr("shoal.methods.sets.chain.geweke", never_alike)
    assert as_chain(data, draws).steps == 512
    assert lengths == [128, 256, 512, 1024]


def test_a_chain_forgets_its_start():
    """From an unlikely start, the mean over many chains approaches the overall mean."""
    data = data_of(SKEWED, 10)
    chain = as_chain(data, make_draws(data, 2, 2, random_key(0, b"test")))
    shares = naive.by_person(SKEWED, 2)
    people = sum(len(record) >= 2 for record in SKEWED)
    wanted = float(sum(shares.values()) / len(shares)) * people
    runs, trail, ends = 400 if IS_COMPILED else 40, np.empty(64), []
    for number in range(runs):
        follow_chain(data.sets, data.index.arrays, chain._replace(steps=64), number, make_scratch(), trail, False)
        ends.append(trail[-1])
    assert abs(np.mean(ends) - wanted) < 4 * np.std(ends) / np.sqrt(runs)


# ---- how often a certificate is given


def grid(bad, *, side=10, crowd=3, few=1) -> list[set[int]]:
    """People with two items each: of side × side pairs `bad` belong to few people, the others to a crowd."""
    pairs = [(one, side + (one + step) % side) for step in range(side) for one in range(side)]
    return [{*pair} for number, pair in enumerate(pairs) for _ in range(few if number < bad else crowd)]


def settings_for(seed, **changes):
    given = {
        "k": 2, "m": 2, "sigma": 0.5, "adversary": "itemset", "bound": "exact", "sampler": "exact", "counted": 0,
        "joint": False, "trials": 1,
    }  # fmt: skip
    return KmSettings.checked(given | changes | {"seed": seed})


def certified_runs(records, runs, kinds=20, **changes) -> int:
    """Number of seeds that certify the records unchanged."""
    data = data_of(records, kinds)
    partition = make_partition(Graph([], names=names_of(kinds)))
    passed = 0
    for seed in range(runs):
        settings = settings_for(seed, **changes)
        search = Search(data, partition, settings)
        try:
            Certifier(search, settings, counted=frozenset(), may_join=False).certify()
        except NotCertified:
            continue
        passed += 1
    return passed


def chance_of(records, shares, sigma, bound="exact", parts=1, k=2) -> float:
    """Probability that all samples of a first attempt pass: it may use half of δ."""
    made = promise(sigma, bound)
    bad = naive.mass(shares, naive.rare(records, 2, k))
    return float(1 - bad) ** samples_needed(made.epsilon, made.delta / 2 / parts, bound)


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("sigma", "bad", "runs"),
    [(0.5, 34, 600), (0.75, 20, 400), (0.9, 9, 400)],
)
def test_just_above_epsilon_at_most_delta_of_all_runs_certify(sigma, bad, runs):
    records = grid(bad)
    made = promise(sigma)
    share = naive.mass(naive.uniform(records, 2), naive.rare(records, 2, 2))
    assert made.epsilon < share < made.epsilon + 0.02
    assert not naive.rare(records, 1, 2)
    passed = certified_runs(records, runs, sigma=sigma)
    assert clopper_pearson(passed, runs)[0] <= made.delta
    assert naive.is_plausible(passed, runs, chance_of(records, naive.uniform(records, 2), sigma))


@pytest.mark.compiled
def test_just_above_epsilon_where_many_proposals_are_rejected():
    """Pairs of 4 people are proposed four times for each sample, and only a sample counts."""
    records = grid(34, few=4, crowd=9)
    passed = certified_runs(records, 600, k=5)
    assert clopper_pearson(passed, 600)[0] <= promise(0.5).delta
    assert naive.is_plausible(passed, 600, chance_of(records, naive.uniform(records, 2), 0.5, k=5))


@pytest.mark.compiled
def test_just_above_epsilon_with_the_chain():
    records = grid(34)
    passed = certified_runs(records, 400, sampler="chain")
    assert clopper_pearson(passed, 400)[0] <= promise(0.5).delta
    assert naive.is_plausible(passed, 400, chance_of(records, naive.uniform(records, 2), 0.5))


@pytest.mark.compiled
@pytest.mark.parametrize("bound", ["hoeffding1", "hoeffding2"])
def test_just_above_epsilon_by_hoeffding(bound):
    """These bounds would allow failures among the samples; as none is allowed, even fewer runs certify."""
    records = grid(44)
    made = promise(0.5, bound)
    assert made.epsilon < 0.44
    passed = certified_runs(records, 300, bound=bound)
    chance = chance_of(records, naive.uniform(records, 2), 0.5, bound)
    assert chance < made.delta / 2
    assert naive.is_plausible(passed, 300, chance)


@pytest.mark.compiled
def test_just_above_epsilon_for_the_person():
    """Unique itemsets weigh less here than among all itemsets: nearly all must be unique."""
    records = grid(61)
    shares = naive.by_person(records, 2)
    share = naive.mass(shares, naive.rare(records, 2, 2))
    assert promise(0.5).epsilon < share < promise(0.5).epsilon + 0.02
    passed = certified_runs(records, 600, adversary="person")
    assert clopper_pearson(passed, 600)[0] <= promise(0.5).delta
    by_person = chance_of(records, shares, 0.5)
    assert naive.is_plausible(passed, 600, by_person)
    both = certified_runs(records, 600, adversary="both")
    assert naive.is_plausible(both, 600, by_person * chance_of(records, naive.uniform(records, 2), 0.5))


@pytest.mark.compiled
def test_jointly_fewer_runs_certify():
    records = grid(34)
    passed = certified_runs(records, 600, joint=True)
    assert clopper_pearson(passed, 600)[0] <= promise(0.5).delta / 2
    assert naive.is_plausible(passed, 600, chance_of(records, naive.uniform(records, 2), 0.5, parts=2))


@pytest.mark.compiled
@pytest.mark.parametrize("sampler", ["exact", "chain"])
def test_far_above_epsilon_no_run_certifies_and_without_violations_all_do(sampler):
    assert certified_runs(grid(95), 60, sampler=sampler) == 0
    assert certified_runs(grid(0), 60, sampler=sampler) == 60
    assert certified_runs(grid(60), 60, sigma=0.9, sampler=sampler) == 0


@pytest.mark.compiled
def test_well_below_epsilon_nearly_all_runs_certify():
    records = grid(1, side=20)
    passed = certified_runs(records, 300, kinds=40)
    assert naive.is_plausible(passed, 300, (1 - 1 / 400) ** promise(0.5).samples_in(1))
    assert passed > 280


def test_certifying_through_a_result():
    """The same through the public interface: fitted to records that pass, applied to records that do not."""
    label = names_of(20).__getitem__
    share, runs, passed, reasons = grid(34), 120 if IS_COMPILED else 12, 0, set()
    chain = [*zip(names_of(20), names_of(20)[1:], strict=False)]
    for seed in range(runs):
        method = shoal.KmAnonymity(k=2, m=2, sigma=0.5, generalize=chain, trials=1, seed=seed, counted=0)
        fitted = method.anonymize([set(map(label, record)) for record in grid(0)])
        assert len(fitted.blocks) == 20
        try:
            passed += fitted.apply([set(map(label, record)) for record in share]).certify(join=False).is_certified
        except NotCertified as error:
            reasons.add(str(error))
    assert reasons == {"size 2: a sample was found that fits fewer than 2 records"}
    assert naive.is_plausible(passed, runs, chance_of(share, naive.uniform(share, 2), 0.5), doubt=1e-4)
    assert clopper_pearson(passed, runs)[0] <= promise(0.5).delta


@pytest.mark.parametrize("seed", range(3))
def test_violations_that_the_chain_misses_are_not_certified(seed):
    """The chain hardly ever proposes one long record among many short ones, and seems to have converged."""
    items = [f"a{number}" for number in range(10)]
    records = [{items[step % 10], items[(step + 1) % 10]} for step in range(400)] + [set(items)]
    method = shoal.KmAnonymity(
        5, 2, 0.9, generalize=shoal.Hierarchy.balanced(items, 2), counted=0, sampler="chain", trials=1, seed=seed
    )
    result = method.anonymize(records)
    label = {item: name for name, block in result.blocks.items() for item in block}
    pairs = list(combinations(items, 2))
    few = [pair for pair in pairs if sum({label[item] for item in pair} <= shown for shown in result.records) < 5]
    assert len(few) / len(pairs) <= result.certificate.sizes[1].epsilon


def test_a_constant_chain_has_converged():
    assert geweke(np.log(np.full(128, 0.4))) == 0
    assert geweke(np.log(np.full(256, 0.4))) == 0
