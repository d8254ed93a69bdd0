"""Attacks on sets, on baskets made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shoal import attack
from shoal.errors import PolicyError

TREE = {"*": {group: [f"{group}{item}" for item in range(5)] for group in "abcd"}}
POLICY: dict[str, Any] = {
    "stream": {"item": "items"},
    "anonymize": {"method": "k^m", "k": 2, "m": 2, "generalize": {"hierarchy": {"kind": "nested", "tree": TREE}}},
}


def baskets(count: int = 120, size: int = 6) -> list[set[str]]:
    random = np.random.default_rng(3)
    items = [f"{group}{item}" for group in "abcd" for item in range(5)]
    return [set(random.choice(items, size=size, replace=False).tolist()) for _ in range(count)]


def under(records: list[set[str]], label: Any) -> list[set[str]]:
    return [{label(item) for item in record} for record in records]


def test_items_as_they_are_single_out():
    truth = baskets()
    found = attack(truth, truth, POLICY)
    rates = [found[name].success.value for name in ("1 known item", "2 known items", "3 known items", "5 known items")]
    assert rates == sorted(rates)
    assert rates[-1] > 0.9
    assert found["5 known items"].success.value == pytest.approx(found["5 known items"].raw)
    assert found["whole record"].success.value > 0.9
    assert "one item" in found["item behind a label"].why_not


def test_the_root_hides_everybody():
    truth = baskets()
    found = attack(under(truth, lambda item: "*"), truth, POLICY)
    for name in ("1 known item", "5 known items", "whole record"):
        assert found[name].success.value == pytest.approx(1 / len(truth))
        assert not found[name].gains
    assert found["5 known items"].raw > 0.9


def test_labels_are_in_between():
    truth = baskets()
    found = attack(under(truth, lambda item: item[0]), truth, POLICY)
    assert 1 / len(truth) < found["5 known items"].success.value < 0.2


def test_the_item_behind_a_label():
    often = [{"a0", "b0"}] * 90 + [{"a1", "b0"}] * 10
    found = attack(under(often, lambda item: item[0]), often, POLICY)
    # Label a is a0 in nine of ten records; label b has one item only, so it hides nothing.
    assert found["item behind a label"].success.value == pytest.approx(0.9)
    assert found["minimality"].success.value == pytest.approx(0.1)


def test_too_few_items_and_bad_knowledge():
    truth = [{"a0"}, {"a1"}, {"a0"}]
    assert "no record has 5 items" in attack(truth, truth, POLICY)["5 known items"].why_not
    with pytest.raises(PolicyError, match="no quasi-identifiers"):
        attack(truth, truth, POLICY, knows=["items"])


def test_nobody_outside_the_data_has_a_row():
    truth = baskets()
    found = attack(under(truth, lambda item: item[0]), truth, POLICY)
    assert found["2 known items"].control == 0
    assert found["item behind a label"].control is None
    with pytest.raises(PolicyError, match="control: nobody outside"):
        attack(truth, truth, POLICY, control=truth)
