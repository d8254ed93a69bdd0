"""A run that releases hardly anything reports why and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.methods.release import Refusal
from shoal.observe.counts import RunSummary
from shoal.pipeline.summary import outcome_warning

LATE = Refusal("ts", "older than the newest event; raise lateness")


def said(**counts: Any) -> str | None:
    return outcome_warning(RunSummary(dead_letters="dead.jsonl", **counts), lambda _: LATE, "choose a smaller k")


@pytest.mark.parametrize(
    "counts",
    [
        {},
        {"rows_in": 100, "released": 5, "suppressed": 95},
        {"rows_in": 100, "released": 50, "dead": 50, "dead_by_reason": {"late": 50}},
        {"rows_in": 100, "released": 100},
    ],
)
def test_enough_was_released(counts: dict[str, Any]) -> None:
    assert said(**counts) is None


def test_just_too_many_refused() -> None:
    sentence = said(rows_in=100, released=49, dead=51, dead_by_reason={"bad-time": 20, "late": 30, "null-person": 1})
    assert sentence == (
        "51 of 100 rows (51.0%) were refused, 30 of them as late (column 'ts': older than the newest event; raise "
        "lateness); each one is listed in dead.jsonl"
    )


def test_all_refused() -> None:
    sentence = said(rows_in=1000, dead=1000, dead_by_reason={"unreadable": 1000})
    assert sentence is not None
    assert sentence.startswith("nothing was released: 1,000 of 1,000 rows (100.0%) were refused, 1,000 of them as unre")
    assert "check the kind, the delimiter and the types in [source]" in sentence


def test_just_too_few_released() -> None:
    sentence = said(rows_in=1000, released=49, suppressed=941, dead=10, dead_by_reason={"late": 10})
    assert sentence is not None
    assert sentence.startswith(
        "only 49 of 1,000 rows (4.9%) were released; 94.1% were suppressed, because too few people"
    )
    assert sentence.endswith("diverse enough: choose a smaller k; shoal doctor tries a policy on a sample")


def test_nothing_released() -> None:
    sentence = said(rows_in=10, suppressed=10)
    assert sentence is not None
    assert sentence.startswith("nothing was released of 10 rows; 100.0% were suppressed")


def test_pending() -> None:
    sentence = said(rows_in=10, pending=10)
    assert sentence is not None
    assert sentence.startswith(
        "nothing was released of 10 rows; 100.0% are pending, because too few people have similar values:"
    )
