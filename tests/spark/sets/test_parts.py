"""Sets divided into parts, without Spark: counts of parts add up, and the search decides as on one machine."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest

from shoal import Hierarchy, KmAnonymity, KmApriori
from shoal.methods.sets.counting import Counting
from shoal.methods.sets.data import SetData
from shoal.methods.sets.km_anonymity import decide_blocks
from shoal.methods.sets.records import read_records
from shoal.methods.sets.result import KmResult
from shoal.methods.sets.sampling import make_draws, random_key
from shoal.methods.sets.search import Search
from shoal.methods.sets.supports import LocalSupports
from shoal.spark.sets import part, supports
from shoal.spark.sets.part import SetPart, combination_table, combinations_of, summed
from shoal.spark.sets.supports import DividedCounting, DividedSets, DividedSupports

pytestmark = pytest.mark.compiled

ITEMS = [f"i{number:02d}" for number in range(60)]


def records(count: int = 400, seed: int = 5) -> list[set[str]]:
    """Sets of 1 to 8 items, some items far more common than others."""
    draw = np.random.default_rng(seed)
    weights = 1 / np.arange(1, len(ITEMS) + 1)
    return [
        set(draw.choice(ITEMS, draw.integers(1, 9), replace=False, p=weights / weights.sum()).tolist())
        for _ in range(count)
    ]


class LocalParts:
    """All parts in this process."""

    def __init__(self, data: SetData, count: int) -> None:
        self.asked: Counter[str] = Counter()
        self.parts = []
        for number in range(count):
            numbers = np.arange(number, len(data), count)
            sets = [data.sets.items[data.sets.starts[one] : data.sets.starts[one + 1]] for one in numbers]
            starts = np.cumsum([0, *map(len, sets)])
            items = np.concatenate([np.empty(0, np.int32), *sets]).astype(np.int32)
            self.parts.append(SetPart(starts, items, numbers, len(data.names)))

    def tell(self, question: str, **values: Any) -> None:
        for one in self.parts:
            assert one.answer(question, values) is None

    def ask(self, question: str, **values: Any) -> list[Any]:
        self.asked[question] += 1
        return [one.answer(question, values) for one in self.parts]


def read(given: list[set[str]], names: list[str]) -> SetData:
    found = read_records(given)
    return SetData(found.starts, found.numbered(names), names)


def divided(data: SetData, count: int) -> tuple[LocalParts, DividedSets]:
    return LocalParts(data, count), DividedSets(data.names, np.bincount(data.set_sizes), data.fingerprint)


TREE = Hierarchy.balanced(ITEMS, 4)
METHODS = {
    "sampled": KmAnonymity(5, 3, 0.9, generalize=TREE, trials=2, seed=3, counted=0),
    "counted": KmApriori(4, 3, generalize=TREE),
    "both": KmAnonymity([6, 5, 4], 3, 0.95, generalize=TREE, trials=3, counted=1, adversary="both", joint=True),
    "graph": KmAnonymity(5, 2, 0.95, generalize=list(pairwise(ITEMS)), trials=1),
}


@pytest.mark.parametrize(("name", "count"), [("sampled", 3), ("counted", 16), ("both", 3), ("both", 1), ("graph", 2)])
def test_the_same_blocks_and_certificate_as_on_one_machine(name: str, count: int) -> None:
    method, given = METHODS[name], records()
    here: KmResult = method.anonymize(given)
    data = read(given, sorted(ITEMS))
    parts, known = divided(data, count)
    partition = method.partition_of(sorted(ITEMS))
    partition.start(data.weights)
    search = Search(known, partition, method.settings, supports=DividedSupports(parts, known))
    found, certificate = decide_blocks(search)
    assert certificate == here.certificate
    assert found.block_of.tolist() == here._partition.block_of.tolist()
    assert found.error == here.error
    assert 1 < found.blocks_left < len(ITEMS)


@pytest.mark.parametrize(
    ("size", "count", "dense"), [(1, 3, True), (2, 1, True), (2, 16, False), (3, 3, False), (3, 16, True)]
)
def test_counts_of_all_combinations(monkeypatch: pytest.MonkeyPatch, size: int, count: int, dense: bool) -> None:
    if not dense:  # small limits: lists in portions, counts in portions
        monkeypatch.setattr(part, "_DENSE", 0)
        monkeypatch.setattr(part, "_AT_ONCE", 50)
        monkeypatch.setattr(supports, "_COUNTS", 200)
    given = records()
    data = read(given, sorted(ITEMS))
    parts, known = divided(data, count)
    here = Counting(data.index, len(data))
    there = DividedCounting(parts, 0, len(known))
    assert there.steps(size) == here.steps(size)
    for k in (2, 5):
        ours, theirs = here.violations(size, k, 77, least=1), there.violations(size, k, 77)
        naive = Counter(one for items in given for one in combinations(sorted(items), size))
        assert theirs.total == ours.total == sum(people < k for people in naive.values())
        assert theirs.distinct == ours.distinct == len(naive)
        assert theirs.sets.tolist() == ours.sets.tolist()


@pytest.mark.parametrize("samples_only", [True, False])
@pytest.mark.parametrize("by_person", [True, False])
def test_draws_stop_where_they_stop_on_one_machine(by_person: bool, samples_only: bool) -> None:
    data = read(records(), sorted(ITEMS))
    parts, known = divided(data, 3)
    block_of = np.arange(len(ITEMS), dtype=np.int32)
    block_of[:24] = block_of[:24] // 6 * 6
    here, there = LocalSupports.of(data, block_of), DividedSupports(parts, known)
    for first in range(0, 24, 6):
        there.join(first, range(first, first + 6))
    violated = 0
    for size, k, wanted in ((2, 4, 40), (3, 6, 3), (1, 2, 500)):
        draws = make_draws(data, size, k, random_key(1, b"", size), by_person=by_person)
        assert draws is not None
        draws, first = draws._replace(samples_only=samples_only), 0
        for _ in range(40):
            ours, theirs = here.draw(draws, block_of, first, wanted), there.draw(draws, block_of, first, wanted)
            assert theirs == ours
            first, violated = ours.end, violated + (ours.violation is not None)
    assert violated > 20


def test_violations_that_are_too_many_are_thinned_out_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    from shoal.methods.sets import counting

    monkeypatch.setattr(counting, "_MOST_KEPT", 256)
    data = read(records(), sorted(ITEMS))
    parts, known = divided(data, 3)
    ours = Counting(data.index, len(data)).violations(3, 5, 9, least=1)
    theirs = DividedCounting(parts, 0, len(known)).violations(3, 5, 9)
    assert theirs.sets.tolist() == ours.sets.tolist()
    assert 0 < len(ours.sets) < ours.total / 4


def test_numbers_of_combinations_have_no_gaps() -> None:
    table = combination_table(9, 3)
    ranks = combinations_of(np.arange(84), table)
    assert sorted(map(tuple, ranks.tolist())) == list(combinations(range(9), 3))


def test_sums() -> None:
    none = np.empty(0, np.int64), np.empty(0, np.int64)
    found = summed((np.array([1, 4]), np.array([2, 3])), none, (np.array([0, 4]), np.array([1, 1])))
    assert [column.tolist() for column in found] == [[0, 1, 4], [1, 2, 4]]
    assert [column.tolist() for column in summed(none, none)] == [[], []]


def test_what_passed_is_not_asked_again() -> None:
    data = read(records(), sorted(ITEMS))
    parts, known = divided(data, 2)
    there = DividedSupports(parts, known)
    itemsets = np.array([[0], [1], [2], [59]], np.int32)
    block_of = np.arange(len(ITEMS), dtype=np.int32)
    k = int(data.weights[59]) + 1
    assert there.next_violation(block_of, itemsets, 0, k) == 3
    before = parts.asked["supports"]
    assert there.next_violation(block_of, itemsets, 0, k) == 3
    assert parts.asked["supports"] == before + 1
