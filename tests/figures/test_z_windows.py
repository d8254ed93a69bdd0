"""The picture of windows: gaps stay gaps, one window is enough, and the same numbers give the same bytes."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.errors import PolicyError
from shoal.figures.z_windows import draw_windows, stairs

HOUR = 3600 * 10**9


def test_a_gap_is_not_bridged():
    starts = np.array([0, 1, 4]) * HOUR
    places, heights = stairs(starts, HOUR, np.array([0.5, 0.7, 0.9]))
    assert places.astype("datetime64[h]").astype(int).tolist() == [0, 1, 1, 1, 2, 2, 4, 5, 5]
    assert np.isnan(heights).tolist() == [False] * 5 + [True, False, False, True]


@pytest.mark.parametrize(
    ("length", "count", "target"),
    [(10**8, 1, None), (HOUR, 30, 0.95), (40 * 24 * HOUR, 1, 0.95)],
    ids=["0.1s", "1h", "40d"],
)
def test_a_picture(tmp_path, length, count, target):
    numbers = np.arange(count)
    given = {
        "starts": (numbers + 400) * length, "length": length, "shown": numbers * 3, "anonymous": numbers, "k": 3,
        "target": target,
    }  # fmt: skip
    draw_windows(tmp_path / "one.png", **given)
    draw_windows(tmp_path / "two.png", **given)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
    assert (tmp_path / "one.png").stat().st_size > 10_000


def test_the_target_is_drawn(tmp_path):
    given = {"starts": [0, HOUR], "length": HOUR, "shown": [4, 4], "anonymous": [2, 3], "k": 2}
    draw_windows(tmp_path / "without.png", **given)
    draw_windows(tmp_path / "with.png", **given, target=0.95)
    assert (tmp_path / "with.png").read_bytes() != (tmp_path / "without.png").read_bytes()


@pytest.mark.parametrize(("starts", "shown"), [([], []), ([1, 2], [1])], ids=["none", "lengths"])
def test_refused(tmp_path, starts, shown):
    with pytest.raises(PolicyError, match="draw_windows"):
        draw_windows(tmp_path / "x.png", starts=starts, length=1, shown=shown, anonymous=shown, k=2)
