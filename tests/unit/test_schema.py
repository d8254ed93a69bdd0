"""Durations in words and numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import PolicyError
from shoal.schema import NANOSECONDS, duration_ns
from tests.reference.effort import tries


@pytest.mark.parametrize(
    ("written", "nanoseconds"),
    [
        ("90s", 90 * 10**9), ("1h30min", 5400 * 10**9), (" 1 h 30 m ", 5400 * 10**9), ("1.5s", 1_500_000_000),
        ("1d", 86_400 * 10**9), ("2w", 14 * 86_400 * 10**9), ("1ns", 1), ("3us", 3000), ("3ms", 3_000_000),
        ("0s", 0), (0, 0), (1.5, 1_500_000_000), (90, 90 * 10**9), (1e-9, 1), ("1sec", 10**9),
    ],
)  # fmt: skip
def test_durations(written, nanoseconds):
    assert duration_ns(written, name="window") == nanoseconds


@pytest.mark.parametrize(
    "written",
    ["", "90", "s", "90 seconds", "-5s", "1h-30min", "1h 30", "five", None, True, -1, float("nan"), float("inf"), [1],
     "200w years", 10**10, "8000w", 4_611_686_019],
)  # fmt: skip
def test_what_is_no_duration(written):
    with pytest.raises(PolicyError, match="window"):
        duration_ns(written, name="window")


@given(st.lists(st.tuples(st.integers(0, 1000), st.sampled_from(sorted(NANOSECONDS))), min_size=1, max_size=4))
@tries(50)
def test_parts_add_up(parts):
    total = sum(number * NANOSECONDS[unit] for number, unit in parts)
    text = " ".join(f"{number}{unit}" for number, unit in parts)
    if total <= 2**62:
        assert duration_ns(text, name="window") == total
