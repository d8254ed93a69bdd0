"""The auditor's counts against plain loops, on small random data, for every k, m and partition."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import uniqueness
from shoal.auditor import audit
from shoal.auditor.sets import counting as sets_counting
from tests.auditor.sets.naive import ITEMS, image, itemset_share, itemsets, person_share, policy, support
from tests.reference.effort import tries

SELF = {item: item for item in ITEMS}
WEST = {**SELF, "la": "west", "sf": "west", "seattle": "west"}
REGIONS = {**WEST, "ny": "east", "boston": "east", "miami": "east"}
ALL = dict.fromkeys(ITEMS, "all")

records = st.lists(st.frozensets(st.sampled_from(ITEMS), max_size=5), min_size=1, max_size=25)
nonempty = records.map(lambda drawn: [record for record in drawn if record]).filter(bool)
cuts = st.sampled_from([SELF, WEST, REGIONS, ALL])


def shuffled(rows):
    return random.Random(1).sample([set(row) for row in rows], len(rows))


@tries(150)
@given(truth=records, label_of=cuts, k=st.integers(1, 6), m=st.integers(1, 4))
def test_a_release_is_convicted_exactly_when_brute_force_finds_a_set_below_k(truth, label_of, k, m):
    released = image(truth, label_of)
    bad = {size: itemset_share(truth, released, label_of, size, k) for size in range(1, m + 1)}
    of_labels = any(support(released, labels) < k for size in range(1, m + 1) for labels in itemsets(released, size))
    report = audit(shuffled(released), [set(record) for record in truth], policy=policy(k, m))
    assert report.ok == (not any(below for _, below in bad.values())) == (not of_labels)
    assert {found.code for found in report.violations} <= {"below-k", "itemset-below-k"}
    alone = audit(shuffled(released), policy=policy(k, m))
    assert alone.ok == (not of_labels)
    for size, (known, below) in bad.items():
        metric = report.metrics[f"risk_after_sets_of_{size}"]
        if not known:
            assert metric is None
            continue
        assert (metric["sets"], metric["below k"]) == (known, below)
        assert metric["below k by person"] == pytest.approx(float(person_share(truth, released, label_of, size, k)))


@tries(100)
@given(
    truth=records,
    label_of=cuts,
    k=st.integers(1, 6),
    m=st.integers(1, 3),
    sigma=st.sampled_from([0.3, 0.5, 0.8, 0.9, 0.95]),
    adversary=st.sampled_from(["itemset", "person", "both"]),
)
def test_below_one_sigma_decides_by_the_counted_share(truth, label_of, k, m, sigma, adversary):
    released = image(truth, label_of)
    broken = False
    for size in range(1, m + 1):
        known, below = itemset_share(truth, released, label_of, size, k)
        by_person = person_share(truth, released, label_of, size, k)
        if known and adversary != "person":
            broken |= below / known > 1 - sigma + 1e-9
        if known and adversary != "itemset":
            broken |= float(by_person) > 1 - sigma + 1e-9
    report = audit(
        shuffled(released), [set(record) for record in truth], policy=policy(k, m, sigma=sigma, adversary=adversary)
    )
    assert report.ok == (not broken)
    assert {found.code for found in report.violations} <= {"sigma-broken"}


@tries(60)
@given(truth=records, label_of=cuts, k=st.integers(1, 6), size=st.integers(1, 3))
def test_risk_before_counts_originals_and_risk_after_their_images(truth, label_of, k, size):
    released = image(truth, label_of)
    metrics = audit(shuffled(released), [set(record) for record in truth], policy=policy(k, size)).metrics
    shown = [support(released, set(chosen)) for fewer in range(1, size + 1) for chosen in itemsets(released, fewer)]
    assert metrics["smallest_k"] == min(shown, default=None)
    for side, where, labels_of in (("before", truth, SELF), ("after", released, label_of)):
        found = metrics[f"risk_{side}_sets_of_{size}"]
        supports = [support(where, {labels_of[item] for item in chosen}) for chosen in itemsets(truth, size)]
        if not supports:
            assert found is None
            continue
        assert (found["sets"], found["below k"]) == (len(supports), sum(one < k for one in supports))
        assert found["smallest support"] == min(supports)
        assert found["unique"] == pytest.approx(supports.count(1) / len(supports))
        by_person = person_share(truth, where, labels_of, size, k)
        assert found["below k by person"] == pytest.approx(float(by_person))


@tries(30)
@given(truth=nonempty, label_of=cuts, size=st.integers(1, 3))
def test_risk_before_is_what_uniqueness_says(truth, label_of, size):
    metrics = audit(shuffled(image(truth, label_of)), [set(record) for record in truth], policy=policy(2, size)).metrics
    expected = uniqueness([set(record) for record in truth], size)
    found = metrics[f"risk_before_sets_of_{size}"]
    assert (0.0 if found is None else found["unique"]) == pytest.approx(expected.share)


def test_risk_before_keeps_items_that_the_policy_does_not_know():
    """They are not published, but they are in the input."""
    truth = [{"la"}, {"la", "vilnius"}]
    report = audit([{"la"}, {"la"}], truth, policy=policy(2, 1))
    assert report.metrics["risk_before_sets_of_1"]["unique"] == 0.5
    assert report.metrics["risk_after_sets_of_1"]["unique"] == 0.0
    assert "risk before sets of 1: 2 counted, below k 1" in report.text()
    assert "risk after sets of 1: 1 counted, below k 0" in report.text()


@tries(50)
@given(truth=records, label_of=cuts, size=st.integers(1, 4))
def test_counting_in_a_table_and_by_sorting_agree(truth, label_of, size):
    released = [set(row) for row in image(truth, label_of)]
    with pytest.MonkeyPatch.context() as patch:
        in_table = audit(released, policy=policy(3, size)).to_dict()
        patch.setattr(sets_counting, "_AT_ONCE", 2)
        sorted_up = audit(released, policy=policy(3, size)).to_dict()
        patch.setattr(sets_counting, "SORTED_BUDGET", 0)
        in_pieces = audit(released, policy=policy(3, size)).to_dict()
    assert in_table == sorted_up == in_pieces


@given(records=records, data=st.data())
def test_sizes_have_their_own_k(records, data):
    k = data.draw(st.lists(st.integers(1, 5), min_size=3, max_size=3))
    rows = [set(record) for record in records]
    bad = any(support(records, labels) < k[size - 1] for size in (1, 2, 3) for labels in itemsets(records, size))
    assert audit(rows, policy=policy(k, 3)).ok == (not bad)
