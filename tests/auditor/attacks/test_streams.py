"""Attacks on z-anonymity, on streams made by hand."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from shoal import attack
from shoal.errors import PolicyError

HOUR = 3600
POLICY: dict[str, Any] = {
    "stream": {"person": "user", "time": "ts"},
    "anonymize": {"method": "z-anonymity", "attribute": "site", "z": 1, "window": "1h"},
}


def stream(values: Any, people: int = 30, epochs: int = 2, events: int = 4, *, same_moment: bool = False) -> pa.Table:
    """Everybody shows a few values in every epoch."""
    rows = [
        {"ts": epoch * HOUR + event * 100 + (0 if same_moment else person), "user": f"u{person}",
         "site": values(person, epoch, event)}
        for epoch in range(epochs) for event in range(events) for person in range(people)
    ]  # fmt: skip
    return pa.Table.from_pylist(sorted(rows, key=lambda row: row["ts"]))


def pseudonymous(truth: pa.Table) -> pa.Table:
    """Every row, with a pseudonym for each person and epoch."""
    users = truth.column("user").to_pylist()
    names = [
        f"{hash_of(user, ts // HOUR):032x}" for user, ts in zip(users, truth.column("ts").to_pylist(), strict=True)
    ]
    return truth.set_column(1, "user", pa.array(names))


def hash_of(user: str, epoch: int) -> int:
    return (int(user[1:]) * 7919 + epoch * 104_729 + 12_345) ** 5 % 2**128


def trace_of(rows: int) -> pa.Table:
    return pa.table({"row": range(rows), "verdict": ["released"] * rows, "reason": pa.nulls(rows, pa.string())})


def attacked(truth: pa.Table, policy: dict[str, Any] = POLICY, release: pa.Table | None = None) -> Any:
    return attack(pseudonymous(truth) if release is None else release, truth, policy, trace=trace_of(len(truth)))


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
