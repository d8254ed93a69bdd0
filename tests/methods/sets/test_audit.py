"""`method.audit` of sets: the auditor gets the promise and the truth in every form that `anonymize` reads."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.hierarchies.places import Places

TREE = shoal.Hierarchy.from_nested({"all": {"x": ["a", "b", "c"], "y": ["d", "e", "f"]}})
CHAIN = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "f")]
PLACES = Places(list("abcdef"), [0.0, 1, 2, 0, 1, 2], [0.0, 0, 0, 1, 1, 1], geographic=False)


@pytest.fixture(scope="module")
def records():
    random = np.random.default_rng(1)
    return [set(random.choice(list("abcdef"), size=random.integers(1, 4), replace=False).tolist()) for _ in range(60)]


def methods():
    yield shoal.KmAnonymity(k=5, m=2, sigma=1.0, generalize=TREE)
    yield shoal.KmAnonymity(k=[9, 5], m=2, sigma=1.0, generalize=CHAIN)
    yield shoal.KmAnonymity(k=5, m=2, sigma=1.0, adversary="both", generalize=PLACES)
    yield shoal.KmApriori(k=5, m=2, generalize=TREE)


@pytest.mark.parametrize("method", list(methods()), ids=["tree", "graph", "places", "apriori"])
def test_a_release_passes_and_the_raw_sets_do_not(method, records):
    result = method.anonymize(records)
    assert method.audit(records, result).ok
    assert method.audit(records, result.published()).ok
    assert shoal.audit(result, records, policy=method).ok
    assert {one.code for one in method.audit(records, records).violations} & {"below-k", "itemset-below-k"}


def test_rows_of_person_and_item(records):
    method = shoal.KmAnonymity(k=5, m=2, sigma=1.0, generalize=TREE)
    pairs = [(f"p{person:02}", item) for person, items in enumerate(records) for item in sorted(items)]
    people, items = zip(*pairs, strict=True)
    table = pa.table({"who": people, "bought": items})
    for truth in (pairs, table, table.to_pandas()):
        report = method.audit(truth, method.anonymize(pairs))
        assert report.ok
        assert report.metrics["records"] == len(records)


def test_a_changed_record_is_found(records):
    method = shoal.KmAnonymity(k=5, m=2, sigma=1.0, generalize=TREE)
    result = method.anonymize(records)
    labels = set().union(*result.records)
    forged = [frozenset(labels), *result.records[1:]]
    assert not method.audit(records, forged).ok


def test_a_hierarchy_of_other_items_is_found(records):
    made = shoal.KmAnonymity(k=5, m=2, sigma=1.0, generalize=TREE)
    other = shoal.Hierarchy.from_nested({"all": {"y": ["a", "b", "c"], "x": ["d", "e", "f"]}})
    promised = shoal.KmAnonymity(k=5, m=2, sigma=1.0, generalize=other)
    assert not promised.audit(records, made.anonymize(records)).ok
