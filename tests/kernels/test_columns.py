"""Columns read in one pass, against Python's own arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shoal.kernels.columns import mark_missing, read_numbers, read_ranks

NUMBERS = [0.0, -1.0, 3.5, 10.0, 10.1, math.nan, math.inf, -math.inf, 2.0**53, -(2.0**60)]


@pytest.mark.parametrize("clamps", [False, True])
@pytest.mark.parametrize(("low", "high"), [(0.0, 10.0), (-5.0, 2.0**61)])
def test_numbers_are_checked_and_scaled(clamps, low, high):
    raws, values, refused = np.empty(len(NUMBERS)), np.empty(len(NUMBERS)), np.empty(len(NUMBERS), dtype=np.bool_)
    read_numbers(np.array(NUMBERS), low, high, clamps, raws, values, refused)
    for at, given in enumerate(NUMBERS):
        number = math.copysign(math.inf, given) if abs(given) >= 2**53 else given
        is_outside = number < low or number > high
        expected = min(max(number, low), high) if is_outside and clamps else number
        assert refused[at] == (is_outside and not clamps)
        assert raws[at] == expected or math.isnan(number)
        assert values[at] == (expected - low) / (high - low) or math.isnan(number)
        assert math.isnan(raws[at]) == math.isnan(values[at]) == math.isnan(number)


def test_ranks_of_missing_and_unknown_texts():
    raws, values, refused = np.empty(4), np.empty(4), np.empty(4, dtype=np.bool_)
    read_ranks(np.array([2, -1, -1, 0], dtype=np.int32), np.array([True, True, False, True]), raws, values, refused)
    assert raws.tolist()[::3] == values.tolist()[::3] == [2.0, 0.0]
    assert np.isnan(raws[1:3]).all()
    assert refused.tolist() == [False, True, False, False]


def test_missing_attributes_have_no_bit():
    values = np.zeros((5, 3))
    values[0, 1] = values[4, 1] = values[3, 2] = math.nan
    masks = np.tile(np.array([7, 3], dtype=np.int64), (3, 1))
    mark_missing(values, np.isnan(values).any(axis=1), 3, masks)
    assert masks.tolist() == [[7, 3], [6, 1], [7, 2]]
