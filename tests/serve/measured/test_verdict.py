"""The verdict on what is measured of a running stream."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.serve.measured.verdict import verdict_now


def entry(name: str, promised: Any, measured: Any, holds: Any) -> dict[str, Any]:
    return {"name": name, "words": f"{name} is so", "promised": promised, "measured": measured, "holds": holds}


K, SLOW = entry("k", 5, 7, True), entry("deadline", 9, None, None)


@pytest.mark.parametrize(
    ("promise", "sentence"),
    [
        ([], "promise could not be checked: no crowd is measured yet"),
        ([entry("k", 5, None, None)], "promise could not be checked: no crowd is measured yet"),
        ([K], "promise kept in what could be checked; the smallest crowd has 7 people"),
        ([K, SLOW], "promise kept in what could be checked; the smallest crowd has 7 people"),
        (
            [entry("k", 5, 4, False), entry("deadline", 9, 8, True)],
            "promise broken: not true that k is so; the smallest crowd has 4 people",
        ),
        ([K, entry("deadline", 9, 10, False)],
         "promise broken: not true that deadline is so; the smallest crowd has 7 people"),
        ([entry("z of a", 5, 9, True), entry("z of b", 5, 6, True), entry("people", None, 0.2, None)],
         "promise kept in what could be checked; the smallest crowd has 6 people"),
        ([entry("z of a", 5, 9, True), entry("z of b", 5, None, None)],
         "promise could not be checked: no crowd is measured yet; the smallest crowd has 9 people"),
    ],
)  # fmt: skip
def test_the_words_of_an_audit(promise: list[dict[str, Any]], sentence: str) -> None:
    assert verdict_now(promise).sentence == sentence


def test_what_is_not_measured_is_listed() -> None:
    reasons = verdict_now([K, SLOW]).reasons
    assert [one.sentence for one in reasons] == [
        "Not measured yet: deadline is so.",
        "Recent rows alone are measured here; shoal audit checks the whole release.",
    ]


def test_rows_are_not_called_people() -> None:
    found = verdict_now([K], counts_rows=True)
    assert found.sentence == "promise kept for rows, not people in what could be checked; the smallest crowd has 7 rows"
