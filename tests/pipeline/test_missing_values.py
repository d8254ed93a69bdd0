"""Runs say how many rows were suppressed for what they lack, and how many values were filled in."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import shoal
from shoal.pipeline.missing_values import missing_value_words
from shoal.policy import parse_policy
from tests.policy.test_tuples import base_table

RARE = (
    "11 of 100 rows (11.0%) were suppressed because fewer than k = 50 people lack the same columns; set [anonymize] "
    'missing = "hidden" or "covered", or method = "k-varp"'
)
FILLED = (
    "3 published values stand where the record has none, so means and shares of the release are wrong; "
    'set [anonymize] missing = "hidden", or "covered" if that is meant'
)


def said(method: str = "fads", *, rare: int = 0, filled: int = 0, **given: Any) -> list[str]:
    table = base_table(method)
    table["anonymize"] |= given
    metrics = {"rare_patterns": rare, "filled": filled}
    return missing_value_words(metrics, parse_policy(table).anonymize, decided=100)


def test_more_than_a_tenth_suppressed_for_what_they_lack() -> None:
    assert said(rare=10) == []
    assert said(rare=11) == [RARE]
    assert said(rare=11, missing="own") == [RARE]


def test_values_filled_in_by_default() -> None:
    assert said("k-varp", filled=3) == [FILLED]
    assert said("k-varp") == []


@pytest.mark.parametrize(("method", "missing"), [("k-varp", "covered"), ("iot-anonymization", "paper")])
def test_values_filled_in_as_the_policy_asks(method: str, missing: str) -> None:
    assert said(method, filled=3, missing=missing) == []


def test_other_methods_have_no_such_counts() -> None:
    policy = {
        "stream": {"person": "id", "time": "ts"}, "source": {"kind": "csv", "path": "in.csv"},
        "anonymize": {"method": "z-anonymity", "attribute": "site", "z": 3, "window": "1h"},
        "sink": {"kind": "csv", "path": "out.csv"},
    }  # fmt: skip
    assert missing_value_words({}, parse_policy(policy).anonymize, decided=100) == []


def frame(gaps: int) -> list[dict[str, Any]]:
    return [{"id": f"p{n}", "age": None if n < gaps else 20.0 + n, "ill": "x"} for n in range(20)]


def anonymized(gaps: int, method: str = "fads", **given: Any) -> Any:
    quasi = {"age": {"kind": "numeric", "low": 0, "high": 100}}
    policy = {
        "stream": {"person": "id"},
        "source": {"kind": "csv", "path": "in.csv"},
        "sink": {"kind": "csv", "path": "out.csv"},
        "anonymize": {"method": method, "k": 5, "deadline": 100, "reuse": 0, "quasi": quasi, **given},
    }
    return shoal.anonymize(pa.Table.from_pylist(frame(gaps)), policy=policy)


def test_results_of_frames_count_and_warn() -> None:
    rare = anonymized(3)
    assert (rare.metrics["rare_patterns"], rare.metrics["filled"]) == (5, 0)  # two complete rows are left over
    assert any("5 of 20 rows (25.0%) were suppressed because fewer than k = 5" in text for text in rare.warnings)
    assert "missing    5 rows suppressed: too few people lack the same columns" in repr(rare)
    filled = anonymized(2, "k-varp")
    assert filled.metrics["filled"] == 2
    assert any("2 published values stand where the record has none" in text for text in filled.warnings)
    assert "filled     2 values where the record has none" in repr(filled)
    assert not anonymized(2, "k-varp", missing="covered").warnings
