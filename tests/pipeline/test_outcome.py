"""A run that leaves little of its input reports why and what to do, and whether it was of no use."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from shoal.methods.release import Refusal
from shoal.observe.counts import RunSummary, SetSummary
from shoal.pipeline.outcome import is_useless, outcome_words

LATE = Refusal("ts", "older than the newest event; raise lateness")


def summary(**counts: Any) -> RunSummary:
    return RunSummary(dead_letters="dead.jsonl", **counts)


def method(*, keeps_most: bool) -> Any:
    return SimpleNamespace(KEEPS_MOST=keeps_most, withheld="few are alike", advice="choose a smaller k")


def said(*, keeps_most: bool = True, **counts: Any) -> str | None:
    return outcome_words(summary(**counts), lambda _: LATE, method(keeps_most=keeps_most))


@pytest.mark.parametrize(
    "counts",
    [
        {"rows_in": 100, "released": 50, "suppressed": 50},
        {"rows_in": 100, "released": 50, "suppressed": 25, "pending": 25},
        {"rows_in": 100, "released": 50, "dead": 50, "dead_by_reason": {"late": 50}},
        {"rows_in": 100, "released": 100},
    ],
)
def test_enough_is_left(counts: dict[str, Any]) -> None:
    assert said(**counts) is None
    assert not is_useless(summary(**counts))


def test_an_input_without_records_is_a_warning_and_no_failure() -> None:
    sentence = said()
    assert sentence is not None
    assert sentence.startswith("the input has no records")
    assert not is_useless(summary())


def test_just_too_many_refused() -> None:
    counts: dict[str, Any] = {"rows_in": 100, "released": 49, "dead": 51}
    reasons = {"bad-time": 20, "late": 30, "null-person": 1}
    assert said(**counts, dead_by_reason=reasons) == (
        "51 of 100 rows (51.0%) were refused: 30 late, 20 bad-time, 1 null-person; each one is listed in dead.jsonl. "
        "Try this first: column 'ts': older than the newest event; raise lateness (late)"
    )
    assert is_useless(summary(**counts, dead_by_reason=reasons))


def test_all_refused() -> None:
    sentence = said(rows_in=1000, dead=1000, dead_by_reason={"unreadable": 1000})
    assert sentence is not None
    assert sentence.startswith("nothing was released: 1,000 of 1,000 rows (100.0%) were refused: 1,000 unreadable")
    assert "check the kind, the delimiter and the types in [source]" in sentence


def test_many_reasons_are_not_all_listed() -> None:
    sentence = said(rows_in=21, dead=21, dead_by_reason={f"unknown:c{number}": number for number in range(1, 7)})
    assert sentence is not None
    assert ": 6 unknown:c6, 5 unknown:c5, 4 unknown:c4, 3 unknown:c3 and 2 more reasons;" in sentence


@pytest.mark.parametrize(("released", "warns"), [(500, False), (499, True)])
def test_half_withheld_is_a_warning_unless_the_method_withholds_what_is_rare(released: int, *, warns: bool) -> None:
    counts: dict[str, Any] = {"rows_in": 1000, "released": released, "suppressed": 1000 - released}
    assert (said(**counts) is not None) == warns
    assert said(**counts, keeps_most=False) is None
    assert not is_useless(summary(**counts))


@pytest.mark.parametrize(("released", "warns"), [(50, False), (49, True)])
def test_every_method_warns_below_a_twentieth(released: int, *, warns: bool) -> None:
    counts: dict[str, Any] = {"rows_in": 1000, "released": released, "suppressed": 1000 - released}
    assert (said(**counts, keeps_most=False) is not None) == warns


def test_the_warning_says_how_many_and_what_to_try() -> None:
    assert said(rows_in=1000, released=49, suppressed=941, dead=10, dead_by_reason={"late": 10}) == (
        "only 49 of 1,000 rows (4.9%) were released; 941 suppressed (94.1%), 10 refused (1.0%), because few are "
        "alike. Try this first: choose a smaller k"
    )


def test_records_of_sets_have_many_rows_each() -> None:
    found = SetSummary(rows_in=10_000, records=200, released=200)
    assert outcome_words(found, lambda _: LATE, method(keeps_most=True)) is None


@pytest.mark.parametrize("kept", ["suppressed", "pending"])
def test_nothing_released_is_of_no_use(kept: str) -> None:
    counts: dict[str, Any] = {"rows_in": 10, kept: 10}
    sentence = said(**counts, keeps_most=False)
    assert sentence is not None
    assert sentence.startswith(f"nothing was released of 10 rows; 10 {kept} (100.0%), because few are alike")
    assert is_useless(summary(**counts))


@pytest.mark.parametrize(
    ("failure", "useless", "code"), [(None, False, 0), (None, True, 3), ("broke off", True, 1), ("broke off", False, 1)]
)
def test_the_exit_code_says_so_unless_the_run_failed(failure: str | None, *, useless: bool, code: int) -> None:
    found = RunSummary(failure=failure, is_useless=useless)
    assert found.exit_code == code == found.to_dict()["exit_code"]
    assert found.ok == found.to_dict()["ok"] == (code == 0)
