"""The paper's chain: its literal convergence test, and the bound of its Theorem 3."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

import shoal
from shoal.errors import PolicyError
from shoal.methods.sets import chain as chains
from shoal.methods.sets.chain import as_chain, mixing_bound, papers_geweke
from shoal.methods.sets.sampling import make_draws, random_key
from tests.methods.sets.test_sampling import SKEWED, data_of


def test_the_papers_score_by_its_definition():
    random = np.random.default_rng(2)
    for length in (64, 130):
        values = random.normal(size=length).cumsum()
        early, late = values[: length // 10], values[-(length // 2) :]
        expected = (np.mean(early) - np.mean(late)) / math.sqrt(np.var(early) + np.var(late))
        assert papers_geweke(values) == pytest.approx(expected)
    assert papers_geweke(np.full(64, 3.0)) == 0
    steady = [abs(papers_geweke(random.normal(size=400))) for _ in range(100)]
    assert max(steady) < 1, "independent values always pass"


def test_the_literal_chain_counts_people_up_to_a_score_of_1(monkeypatch):
    data = data_of(SKEWED, 10)
    draws = make_draws(data, 2, 2, random_key(0, b"test"))
    seen = []

    def score(values):
        seen.append(values)
        return 1.5 if len(seen) < 3 else -0.9

    monkeypatch.setattr(chains, "papers_geweke", score)
    assert as_chain(data, draws, is_literal=True).steps == 256
    assert [len(values) for values in seen] == [64, 128, 256]
    supports = {sum(set(pair) <= record for record in SKEWED) for record in SKEWED for pair in combinations(record, 2)}
    assert set(seen[-1].tolist()) <= {float(count) for count in supports}


def test_the_mixing_bound_against_all_itemsets_of_the_largest_record():
    records = [{str(item) for item in record} for record in SKEWED]
    largest = max(records, key=len)
    assert sum(len(record) == len(largest) for record in records) == 1
    for m in (2, 3):
        subsets = [set(subset) for subset in combinations(sorted(largest), m)]
        unique = sum(sum(subset <= record for record in records) == 1 for subset in subsets) / len(subsets)
        found = mixing_bound(records, m, xi=0.1)
        assert found.low <= unique <= found.high
        assert found.unique_share == pytest.approx(unique, abs=0.02)
        expected = len(records) * math.log(10) / found.unique_share if found.unique_share else math.inf
        assert found.steps == pytest.approx(expected)
    assert mixing_bound([{"a", "b"}, {"a", "b"}], 2).steps == math.inf
    assert mixing_bound([{"a"}], 2).steps == math.inf
    for wrong in ({"m": 0}, {"xi": 0.0}):
        with pytest.raises(PolicyError, match=next(iter(wrong))):
            mixing_bound(records, **wrong)


@pytest.mark.compiled
@pytest.mark.parametrize("sampler", ["chain", "paper-chain"])
def test_uniqueness_by_the_chain(sampler):
    records = [{str(item) for item in record} for record in SKEWED]
    exact = shoal.uniqueness(records, m=2)
    found = shoal.uniqueness(records, m=2, sampler=sampler, samples=4000)
    assert (exact.how, found.how) == ("counted", "sampled")
    assert found.share == pytest.approx(exact.share, abs=0.05)
    with pytest.raises(PolicyError, match="sampler"):
        shoal.uniqueness(records, m=2, sampler=sampler, adversary="person")
    with pytest.raises(PolicyError, match="sampler"):
        shoal.uniqueness(records, m=2, sampler="other")
