"""The paper's tree of combinations: it looks at what it should, and its bounds hold for what it left out."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import PolicyError
from shoal.models import ZModel
from shoal.models.z import probability as z_tree
from tests.reference.effort import tries

TABLE_2 = [0.2 / rank for rank in range(1, 21)]


def at_least(found, trials, share):
    return 1 - sum(math.comb(trials, j) * share**j * (1 - share) ** (trials - j) for j in range(min(found, trials + 1)))


def by_definition(published, users, k, theta1, theta2):
    """Every combination of the attributes that count, if it is likely enough: its sum and how much that covers."""
    likely = [p for p in published if p >= theta1 / users and p > 0]
    without = math.prod(1 - p for p in published if not (p >= theta1 / users and p > 0))
    total = covered = 0.0
    for shown in product((0, 1), repeat=len(likely)):
        chance = math.prod(p if one else 1 - p for one, p in zip(shown, likely, strict=True))
        root = math.prod(max(p, 1 - p) for p in likely)
        if chance >= theta2 / 2 ** len(likely) * (1 - 1e-9) or chance >= root * (1 - 1e-12):
            total += chance * without * at_least(k - 1, users - 1, chance * without)
            covered += chance * without
    return total, covered


@tries(80)
@given(
    users=st.integers(1, 40), k=st.integers(2, 4), z=st.integers(1, 8),
    theta1=st.sampled_from([0.0, 0.3, 1.0, 5.0]), theta2=st.sampled_from([0.0, 0.0137, 0.31, 0.913, 3.7]),
    rates=st.lists(st.sampled_from([0.0, 0.003, 0.041, 0.13, 0.37, 0.71, 1.3, 2.9]), min_size=1, max_size=7),
)  # fmt: skip
def test_what_is_looked_at(users, k, z, theta1, theta2, rates):
    model = ZModel(users, rates, 1)
    found = model.p_k_anonymous(z, k, method="tree", theta1=theta1, theta2=theta2)
    value, coverage = by_definition(model.p_published(z).tolist(), users, k, theta1, theta2)
    assert found.value == pytest.approx(value, abs=1e-9)
    assert found.coverage == pytest.approx(coverage, abs=1e-9)
    exact = model.p_k_anonymous(z, k, method="exact").value
    assert found.lower <= exact <= found.upper
    assert (found.method, found.confidence) == ("tree", 1.0)


@tries(60)
@given(
    users=st.integers(1, 60), k=st.integers(2, 4), z=st.integers(1, 8),
    rates=st.lists(st.floats(0, 3), min_size=1, max_size=8),
)  # fmt: skip
def test_enough_is_covered_without_theta2(users, k, z, rates):
    model = ZModel(users, rates, 1)
    found = model.p_k_anonymous(z, k, method="tree", theta1=0.0)
    assert found.coverage >= z_tree.ENOUGH
    assert found.lower <= model.p_k_anonymous(z, k, method="exact").value <= found.upper


@pytest.mark.compiled
@pytest.mark.parametrize(("z", "expected"), [(100, 0.173974), (150, 0.424692), (250, 0.930808), (350, 0.991965)])
def test_the_papers_setting(z, expected):
    """Bounds nearer than the coverage lacks, since not everything left out is shared."""
    found = ZModel(1000, TABLE_2, 12).p_k_anonymous(z, 2, method="tree")
    assert found.lower - 5e-7 <= expected <= found.upper + 5e-7
    assert 0.98 <= found.coverage < 1
    assert found.upper - found.lower < 0.9 * (1 - found.coverage)


@pytest.mark.compiled
def test_everything_looked_at_is_enumeration():
    model = ZModel(1000, TABLE_2[:16], 12)
    found = model.p_k_anonymous(1, 3, method="tree", theta1=0.0, theta2=0.0)
    assert found.coverage == pytest.approx(1.0, abs=1e-12)
    assert found.value == pytest.approx(model.p_k_anonymous(1, 3, method="exact").value, abs=1e-12)


def test_parents_are_cut_apart_and_none_is_lost(monkeypatch):
    monkeypatch.setattr(z_tree, "_AT_ONCE", 3)
    model = ZModel(30, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], 1)
    found = model.p_k_anonymous(2, 2, method="tree", theta1=0.0, theta2=0.0)
    assert found.coverage == pytest.approx(1.0, abs=1e-12)
    assert found.value == pytest.approx(model.p_k_anonymous(2, 2, method="exact").value, abs=1e-12)


def test_too_many_combinations(monkeypatch):
    """A given θ2 is refused, one that is looked for stops where it is; the bounds hold either way."""
    monkeypatch.setattr(z_tree, "_MOST", 100)
    model = ZModel(30, [0.7] * 12, 1)
    with pytest.raises(PolicyError, match="theta2: more than 100 combinations"):
        model.p_k_anonymous(1, 2, method="tree", theta2=0.0)
    found = model.p_k_anonymous(1, 2, method="tree")
    assert found.coverage < 0.5
    assert found.lower <= model.p_k_anonymous(1, 2, method="exact").value <= found.upper


def test_attributes_everybody_publishes_or_nobody():
    model = ZModel(10, [1e9, 0.0, 0.2], 1)
    assert np.isclose(model.p_published(1)[0], 1.0)
    for theta1 in (0.0, 1.0, 20.0):  # with 20 even what everybody publishes is taken as rare
        for theta2 in (None, 0.0, 0.5):
            found = model.p_k_anonymous(1, 2, method="tree", theta1=theta1, theta2=theta2)
            assert found.lower <= model.p_k_anonymous(1, 2, method="exact").value <= found.upper


def test_wrong_questions_are_told():
    model = ZModel(5, [1.0], 1)
    for wrong in ({"theta1": -1.0}, {"theta1": math.nan}, {"theta2": -0.1}, {"theta2": math.inf}):
        with pytest.raises(PolicyError, match=next(iter(wrong))):
            model.p_k_anonymous(1, 2, method="tree", **wrong)
    several = ZModel(classes=[{"users": 5, "rates": [1.0]}] * 2, window=1)
    with pytest.raises(PolicyError, match="method: must be"):
        several.p_k_anonymous(1, 2, method="tree")
