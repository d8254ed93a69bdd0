"""A class that is l-diverse only because of its last row gives that row's value away; other classes do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shoal import attack
from tests.auditor.attacks.scenes import POLICY, in_classes, people, ranges, traced

K, CLASSES = 5, 60


def diverse(**settings: Any) -> dict[str, Any]:
    return {**POLICY, "anonymize": {**POLICY["anonymize"], **settings}}


def minimal(*, outliers: bool = True) -> tuple[pa.Table, pa.Table]:
    """Classes of k + 1 people, as a minimal algorithm for l = 2 forms them, and their truth, row by row.

    k people of one age and zone have the same illness; the next one, of another age and zone, has another illness, so
    the class ends. Without outliers all have the same age and zone: nothing shows who came last.
    """
    age, zone, ill, person = [], [], [], []
    for number in range(CLASSES):
        usual, other = np.random.default_rng(number).permutation(4)[:2].tolist()
        for turn in range(K + 1):
            last = turn == K and outliers
            person.append(f"p{number}-{turn}")
            age.append(30 + (9 if last else 0))
            zone.append("n2" if last else "n1")
            ill.append(f"ill {other if turn == K else usual}")
    rows = len(age)
    height = np.repeat(np.arange(CLASSES), K + 1)
    truth = pa.table({"id": person, "age": age, "height": height, "zone": zone, "ill": ill})
    release = pa.table(
        {
            "age": ranges([30] * rows, [39 if outliers else 30] * rows),
            "height": ranges(height, height),
            "zone": ["north" if outliers else "n1"] * rows,
            "ill": ill,
        }
    )
    return release, truth


@pytest.mark.parametrize("requirement", [{"l": 2}, {"entropy_l": 1.5}])
def test_the_last_row_of_a_minimal_class_gives_its_value_away(requirement):
    release, truth = minimal()
    found = attack(release, truth, diverse(**requirement), trace=traced(range(len(truth))))["minimality"]
    assert found.success.value == 1
    assert found.success.n == CLASSES
    assert found.control == 0  # the most common value of the class is that of the others
    assert found.guess < 0.6
    assert found.gains


def test_only_labels_or_only_numbers_tell_who_came_last():
    release, truth = minimal()
    for knows in (["age", "height"], ["height", "zone"]):
        found = attack(release, truth, diverse(l=2), trace=traced(range(len(truth))), knows=knows)["minimality"]
        assert found.success.value == 1


def test_classes_made_without_looking_at_illnesses_give_nothing_away():
    truth = people(count=1200)
    release, order = in_classes(truth, K + 1)
    found = attack(release, truth, diverse(l=3), trace=traced(order))["minimality"]
    assert found.success.n > 50
    assert not found.gains


@pytest.mark.parametrize(
    ("outliers", "settings", "with_trace", "why"),
    [
        (True, {}, True, "without l, how wide"),
        (True, {"t": 0.5}, True, "t alone"),
        (True, {"l": 2}, False, "trace"),
        (True, {"sensitive": []}, True, "no sensitive"),
        (True, {"l": 2, "k": K + 1}, True, "to spare"),
        (False, {"l": 2}, True, "to spare"),
    ],
)
def test_where_it_does_not_apply(outliers, settings, with_trace, why):
    release, truth = minimal(outliers=outliers)
    trace = traced(range(len(truth))) if with_trace else None
    assert why in attack(release, truth, diverse(**settings), trace=trace)["minimality"].why_not


def test_several_sensitive_columns_are_attacked_one_by_one():
    release, truth = minimal()
    blood = pa.array(["A", "B"] * (len(truth) // 2))
    release, truth = release.append_column("blood", blood), truth.append_column("blood", blood)
    found = attack(release, truth, diverse(l=2, sensitive=["ill", "blood"]), trace=traced(range(len(truth))))
    assert found["minimality: ill"].success.value == 1
    assert "to spare" in found["minimality: blood"].why_not


def test_flexible_k_promises_no_diversity():
    release, truth = minimal()
    rules = {name: value for name, value in POLICY["anonymize"].items() if name not in ("deadline", "reuse")}
    grid = {name: {**column, "grid": 1} if name != "zone" else column for name, column in rules["quasi"].items()}
    policy = {**POLICY, "anonymize": {**rules, "method": "flexible-k", "quasi": grid}}
    found = attack(release, truth, policy, trace=traced(range(len(truth))))["minimality"]
    assert "without l, how wide" in found.why_not
