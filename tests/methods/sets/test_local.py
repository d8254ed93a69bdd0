"""Local recoding against brute force: who matches what is known of a person, and the naive way of the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import shoal
from shoal.errors import PolicyError
from shoal.methods.sets import local_recoding
from shoal.methods.sets.data import SetData
from shoal.methods.sets.km_anonymity import decide_blocks
from shoal.methods.sets.local_recoding import LocalRecoding, least_records
from shoal.methods.sets.records import read_records
from shoal.methods.sets.search import Search
from shoal.methods.sets.settings import KmSettings
from shoal.methods.sets.tree_partition import TreePartition
from tests.reference.effort import tries
from tests.reference.km_local import NaiveLocalRecoding

ITEMS = "abcdefgh"
NESTED = {"all": {"left": {"near": ["a", "b"], "far": ["c"]}, "right": {"odd": ["d", "e", "f"], "even": ["g", "h"]}}}
TREE = shoal.Hierarchy.from_nested(NESTED)
ABOVE = {label: TREE.path(label) for label in ITEMS}
LEAVES = {label: sum(label in path for path in ABOVE.values()) for path in ABOVE.values() for label in path}
RECORDS = st.lists(st.sets(st.sampled_from(ITEMS), min_size=1, max_size=6), min_size=4, max_size=40)
SKEWED = [set(one) for one in ["a", "b", "ad", "ae", "cg"] * 4 + ["bd", "be", "af", "ch", "bh", "bg", "bg", "ag"]]


def local(records: Sequence[set[str]], k: int | list[int], m: int, **more: Any) -> Any:
    return shoal.KmApriori(k=k, m=m, generalize=TREE, recoding="local", **more).anonymize(records)


def label_in(record: frozenset[str], item: str) -> str:
    """The one label of a published record that stands for an item."""
    (label,) = [label for label in record if label in ABOVE[item]]
    return label


@given(RECORDS, st.sampled_from([2, 3, 4, [4, 2, 2], [2, 3, 4]]), st.integers(1, 3))
@example(SKEWED, 3, 2)
@tries(150)
def test_k_records_match_what_is_known(records: list[set[str]], k: int | list[int], m: int) -> None:
    m, crowds = (len(k), k) if isinstance(k, list) else (m, [k] * m)
    if len(records) < max(crowds):
        return
    result = local(records, k, m)
    published = result.records
    assert len(published) == len(records)
    for record, shown in zip(records, published, strict=True):
        assert {label_in(shown, item) for item in record} == shown, "every label stands for an item, every item has one"
        for size in range(1, m + 1):
            for known in combinations(sorted(record), size):
                labels = {label_in(shown, item) for item in known}
                alike = sum(labels <= other for other in published)
                covering = sum(all(set(ABOVE[item]) & other for item in known) for other in published)
                assert covering >= alike >= crowds[size - 1]


@given(RECORDS, st.integers(2, 4), st.integers(1, 3))
@tries(60)
def test_never_worse_than_one_cut_and_the_error_is_right(records: list[set[str]], k: int, m: int) -> None:
    if len(records) < k:
        return
    result = local(records, k, m)
    cut = shoal.KmApriori(k=k, m=m, generalize=TREE).anonymize(records)
    assert result.error <= cut.error == result.global_error
    entries = [label_in(shown, item) for record, shown in zip(records, result.records, strict=True) for item in record]
    lost = sum(LEAVES[label] / len(ITEMS) for label in entries if LEAVES[label] > 1)
    assert result.error == pytest.approx(lost / len(entries))
    own = [item for record in records for item in record]
    assert result.entries_generalized == pytest.approx(sum(label not in ITEMS for label in entries) / len(own))
    assert set(result.blocks) == {label for shown in result.records for label in shown}
    assert all(set(items) == {item for item in ITEMS if label in ABOVE[item]} for label, items in result.blocks.items())


def prepared(records: Sequence[set[str]], k: int, m: int) -> tuple[LocalRecoding, NaiveLocalRecoding]:
    settings = KmSettings.checked({"k": k, "m": m, "sigma": 1.0, "counted": "all", "trials": 1, "recoding": "local"})
    read, partition = read_records(records), TreePartition(TREE)
    data = SetData(read.starts, read.numbered(partition.names), partition.names)
    partition.start(data.weights)
    decide_blocks(Search(data, partition, settings))
    made = LocalRecoding(data, partition, settings)
    return made, naive_of(made, least_records(settings, data.longest).tolist())


def naive_of(made: LocalRecoding, least: list[int]) -> NaiveLocalRecoding:
    levels, layout = made.levels, made.layout
    counts = [last - first for first, last in zip(layout.first, layout.last, strict=True)]
    return NaiveLocalRecoding(entries_of(levels), levels.lift.tolist(), counts, least)


def entries_of(levels: Any) -> list[dict[int, int]]:
    pairs = list(zip(levels.leaves.tolist(), levels.nodes.tolist(), strict=True))
    return [dict(pairs[begin:end]) for begin, end in pairwise(levels.starts.tolist())]


@given(RECORDS, st.integers(2, 4), st.integers(1, 3))
@example(SKEWED, 3, 2)
@tries(120)
def test_kernels_agree_with_the_naive_way(records: list[set[str]], k: int, m: int) -> None:
    if len(records) < k:
        return
    made, naive = prepared(records, k, m)
    made.refine()
    naive.refine()
    assert entries_of(made.levels) == naive.records
    assert made.keeps_promise()


def test_precision_differs_between_records() -> None:
    result = local(SKEWED, 3, 2)
    assert any(set(ABOVE[label][1:]) & set(result.blocks) for label in result.blocks if label in ITEMS)
    assert result.error < result.global_error
    assert result.certificate.recoding == "local"
    assert "labels of its own precision" in result.certificate.statement


def test_order_of_the_input_does_not_matter() -> None:
    there = local(SKEWED, 3, 2)
    back = local(SKEWED[::-1], 3, 2)
    assert there.records == back.records[::-1]
    assert there.published().equals(back.published())
    assert sorted(map(sorted, there.records)) == sorted(there.published().column("items").to_pylist())


def test_a_wrong_count_is_found_and_the_cut_published(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(levels: Any, label: int, holders: Any, is_refined: Any, *_: Any) -> int:
        is_refined[:] = True
        return len(holders)

    monkeypatch.setattr(local_recoding, "choose_records", wrong)
    result = local(SKEWED, 3, 2)
    assert result.error == result.global_error
    assert result.records == shoal.KmApriori(k=3, m=2, generalize=TREE).anonymize(SKEWED).records


def test_labels_with_too_many_sets_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_recoding, "_MOST_SETS", 0)
    result = local(SKEWED, 3, 2)
    assert result.error == result.global_error


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"generalize": [("a", "b")]}, "needs a shoal.Hierarchy"),
        ({"generalize": shoal.Hierarchy.by_suffix(".")}, "lists its items"),
        ({"generalize": TREE, "error": lambda items, weights: 1.0}, "leave error out"),
    ],
)
def test_what_cannot_be_recoded_locally_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(PolicyError, match=words):
        shoal.KmApriori(k=2, m=2, recoding="local", **given)


@pytest.mark.parametrize("more", [{"sigma": 0.99}, {"sigma": [1.0, 0.9]}, {"counted": 1}])
def test_sampled_sizes_are_refused(more: dict[str, Any]) -> None:
    with pytest.raises(PolicyError, match="needs every size counted"):
        shoal.KmAnonymity(k=2, m=2, generalize=TREE, recoding="local", **more)


@pytest.mark.parametrize("more", [{"sigma": 1}, {"counted": "all"}, {"counted": 2}])
def test_counting_by_the_other_method_gives_the_same(more: dict[str, Any]) -> None:
    other = shoal.KmAnonymity(k=3, m=2, generalize=TREE, recoding="local", trials=1, **more).anonymize(SKEWED)
    assert other.records == local(SKEWED, 3, 2).records


def test_other_records_are_refused() -> None:
    result = local(SKEWED, 3, 2)
    with pytest.raises(PolicyError, match="anonymize the others anew"):
        result.apply(SKEWED)
    with pytest.raises(PolicyError, match="anonymize the others anew"):
        result.without([0])
    assert result.certify() is result


def test_the_cut_itself_keeps_the_promise() -> None:
    made, _ = prepared(SKEWED, 3, 2)
    assert made.keeps_promise()
    made.levels.nodes[:] = made.levels.leaves
    assert not made.keeps_promise(), "as they are, the records of SKEWED have pairs that fewer than 3 share"
