"""The picture of a day: counts are right, the file is a picture, and without matplotlib it says so."""

from __future__ import annotations

import builtins
import sys

import numpy as np
import pytest

from shoal.errors import OutputError, PolicyError, RunError
from shoal.figures.z_day import count_by_verdict, draw_day

DAY = 86_400 * 10**9
MIDNIGHT = 20_514 * DAY


@pytest.fixture
def day():
    random = np.random.default_rng(3)
    times = MIDNIGHT + random.integers(DAY, size=5000)
    return times, random.choice(["released", "suppressed", "dead"], size=5000, p=(0.5, 0.4, 0.1))


def test_counts_by_ten_minutes():
    times = np.array([0, 1, 599_999_999_999, 600_000_000_000, DAY - 1, DAY, -1])
    verdicts = np.array(["released", "dead", "suppressed", "released", "released", "released", "dead"])
    counts = count_by_verdict(times, verdicts)
    assert {verdict: len(count) for verdict, count in counts.items()} == dict.fromkeys(
        ("released", "suppressed", "dead"), 144
    )
    assert counts["released"].nonzero()[0].tolist() == [0, 1, 143]
    assert counts["suppressed"].nonzero()[0].tolist() == [0]
    assert sum(count.sum() for count in counts.values()) == 5


def test_a_picture(day, tmp_path):
    times, verdicts = day
    draw_day(tmp_path / "day.png", times=times, verdicts=verdicts)
    draw_day(tmp_path / "again.png", times=times, verdicts=list(verdicts))
    picture = (tmp_path / "day.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert picture == (tmp_path / "again.png").read_bytes()


def test_a_third_panel_and_wrong_clocks(day, tmp_path):
    times, verdicts = day
    times[:2] = 0, 2**62
    epochs = MIDNIGHT + np.arange(24) * 3600 * 10**9
    draw_day(tmp_path / "day.png", times=times, verdicts=verdicts, unique_share=(epochs, np.linspace(0, 1, 24)))
    assert (tmp_path / "day.png").stat().st_size > 10_000


def test_the_legend_counts_all_events(day, tmp_path, monkeypatch):
    """Also those of other days and without a time: as the console does."""
    times, verdicts = day
    times[:2] = 0, 2**62
    drawn = []
    monkeypatch.setattr("shoal.figures.z_day.save", lambda figure, _: drawn.append(figure))
    draw_day(tmp_path / "day.png", times=times, verdicts=verdicts, timeless=240)
    dead = np.count_nonzero(verdicts == "dead")
    labels = [text.get_text() for text in drawn[0].axes[0].get_legend().get_texts()]
    assert f"refused ({dead + 240:,})" in labels
    assert f"released ({np.count_nonzero(verdicts == 'released'):,})" in labels
    assert "arrived (5,240)" in labels
    note = "not drawn: 2 events of other days, 240 refused rows without a usable time"
    assert drawn[0].axes[-1].get_xlabel() == f"hour of the day (UTC; {note})"


def test_refused_rows_that_cannot_be_drawn_are_counted(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr("shoal.figures.z_day.save", lambda figure, _: drawn.append(figure))
    draw_day(tmp_path / "day.png", times=[MIDNIGHT], verdicts=["released"], timeless=3)
    assert "refused (3)" in [text.get_text() for text in drawn[0].axes[0].get_legend().get_texts()]


def test_a_single_event(tmp_path):
    draw_day(tmp_path / "day.png", times=[MIDNIGHT], verdicts=["dead"], unique_share=([], []))
    assert (tmp_path / "day.png").exists()


@pytest.mark.parametrize(("times", "verdicts"), [([], []), ([1, 2], ["released"])])
def test_refused(tmp_path, times, verdicts):
    with pytest.raises(PolicyError, match="one entry per event"):
        draw_day(tmp_path / "day.png", times=times, verdicts=verdicts)


def test_a_place_that_cannot_be_written(day, tmp_path):
    with pytest.raises(OutputError, match="cannot be written"):
        draw_day(tmp_path / "none" / "day.png", times=day[0], verdicts=day[1])


def test_without_matplotlib(day, tmp_path, monkeypatch):
    real_import = builtins.__import__

    def no_matplotlib(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError
        return real_import(name, *rest)

    monkeypatch.setattr(builtins, "__import__", no_matplotlib)
    with pytest.raises(RunError, match=r"pip install matplotlib"):
        draw_day(tmp_path / "day.png", times=day[0], verdicts=day[1])


def test_importing_the_module_loads_no_matplotlib():
    import subprocess

    code = "import sys, shoal.figures.z_day; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
