"""The soak tells a trend from noise."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.soak import Sample, trend, trend_rows

TIMES = np.arange(0.0, 3600, 60)
NOISE = np.random.default_rng(1).normal(0, 1, len(TIMES))


@pytest.mark.parametrize(
    ("values", "slope", "is_flat"),
    [
        (300 + NOISE, 0, True),
        (300 + TIMES / 360 + NOISE, 10, True),  # 3% of the mean in an hour
        (300 + TIMES / 36 + NOISE, 100, False),
        (300 - TIMES / 36 + NOISE, -100, False),
        (30 * NOISE, 0, True),  # a lag that is often 0
    ],
)
def test_a_trend_is_told_from_noise(values, slope, is_flat):
    found, flat = trend(TIMES, values)
    assert found == pytest.approx(slope, abs=10)
    assert flat == is_flat


def test_the_first_fifth_is_left_out():
    """Memory grows until all tables have their size."""
    samples = [Sample(at, int(1000 * at), min(300.0, 100 + at), 2.0, 50, 0.1) for at in TIMES]
    rows = {name: cells for name, *cells in trend_rows(samples)}
    assert rows["resident memory, MB"] == ["300", "300", "300", rows["resident memory, MB"][3], "yes"]
    assert rows["messages read a second"][0] == "1,000"
