"""Attacks on z-anonymity, on streams made by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest

from shoal import attack
from shoal.errors import PolicyError
from tests.auditor.attacks.z.scenes import HOUR, POLICY, attacked, hash_of, pseudonymous, stream


@pytest.fixture(scope="module")
def weak():
    """Everybody has sites of their own, the same in every epoch."""
    return attacked(stream(lambda person, epoch, event: f"s{person}-{event % 4}"))


@pytest.fixture(scope="module")
def safe():
    """Everybody does the same at the same moment."""
    return attacked(stream(lambda person, epoch, event: f"s{event}", same_moment=True))


def test_own_values_single_out_and_link(weak):
    for name in (
        "whole released set",
        "1 known value",
        "2 known values",
        "next epoch by behaviour",
        "one value and its time",
    ):
        assert weak[name].success.value == 1, name
        assert weak[name].gains


def test_equal_behaviour_hides(safe):
    assert safe["whole released set"].success.value == 0
    for name in ("1 known value", "4 known values", "next epoch by behaviour", "one value and its time"):
        assert safe[name].success.value == pytest.approx(1 / 30), name
        assert safe[name].guess == pytest.approx(1 / 30)
        assert not safe[name].gains


def test_rows_are_linked_without_a_trace():
    truth = stream(lambda person, epoch, event: f"s{person}-{event}")
    found = attack(pseudonymous(truth), truth, POLICY)
    assert found["next epoch by behaviour"].success.value == 1


def test_more_known_values_find_more():
    found = attacked(stream(lambda person, epoch, event: f"s{(person >> event) & 1}-{event}", people=16))
    rates = [found[name].success.value for name in ("1 known value", "2 known values", "4 known values")]
    assert rates == pytest.approx([1 / 8, 1 / 4, 1])
    assert found["whole released set"].success.value == 1


def test_the_value_behind_a_label():
    tree = {"kind": "nested", "tree": {"*": {"news": ["a", "b", "rare"], "shop": ["c"]}}}
    policy = {**POLICY, "anonymize": {**POLICY["anonymize"], "on_private": "generalize", "hierarchy": tree}}
    truth = stream(lambda person, epoch, event: "rare" if person == 0 else "ab"[event % 2], people=20)
    labels = ["news" if site == "rare" else site for site in truth.column("site").to_pylist()]
    release = pseudonymous(truth).set_column(2, "site", pa.array(labels))
    found = attacked(truth, policy, release)["value behind a label"]
    # All other values of the label are released themselves, so only the rare one can be behind it.
    assert found.success.value == 1
    assert found.guess == 0
    assert "under a label" in attacked(truth)["value behind a label"].why_not


def test_quasi_identifiers_are_refused():
    truth = stream(lambda person, epoch, event: "s")
    with pytest.raises(PolicyError, match="no quasi-identifiers"):
        attack(pseudonymous(truth), truth, POLICY, knows=["site"])


def test_a_few_values_and_hours_find_a_person_whose_single_values_do_not():
    """Everybody has every value, but each in another order: only the hours differ."""
    day = {**POLICY, "anonymize": {**POLICY["anonymize"], "window": "1d", "rotation": "1d"}}
    orders = [(0, 1, 2, 3), (1, 0, 3, 2), (2, 3, 0, 1), (3, 2, 1, 0), (0, 1, 3, 2), (1, 0, 2, 3)]
    rows = [
        {"ts": hour * HOUR + person, "user": f"u{person}", "site": f"s{orders[person][hour]}"}
        for hour in range(4)
        for person in range(6)
    ]
    truth = pa.Table.from_pylist(rows)
    names = [f"{hash_of(user, 0):032x}" for user in truth.column("user").to_pylist()]
    found = attacked(truth, day, truth.set_column(1, "user", pa.array(names)))
    assert found["4 known values"].success.value == pytest.approx(1 / 6)
    assert found["trajectory of 4"].success.value == 1
    assert found["trajectory of 4"].raw == 1
    assert found["trajectory of 4"].gains
    assert found["trajectory of 2"].success.value > 1 / 6


def test_the_same_way_at_the_same_hours_hides(safe):
    assert safe["trajectory of 4"].success.value == pytest.approx(1 / 30)
    assert not safe["trajectory of 4"].gains


def test_a_trajectory_needs_steps():
    found = attacked(stream(lambda person, epoch, event: "s", events=1))
    assert "2 released values or hours" in found["trajectory of 2"].why_not
