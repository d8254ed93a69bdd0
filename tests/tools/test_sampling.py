"""What `make test-ci` leaves out is drawn by a seed, the same for the same seed, and reported."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reference import effort
from tests.reference.effort import drawn, kill_points

CONFTEST = f"import sys\nsys.path.insert(0, {str(Path(__file__).parents[2])!r})\nfrom tests.conftest import *\n"
MARKERS = "[pytest]\nmarkers =\n    exhaustive: repeats a property\n"
TESTS = """
import pytest

@pytest.mark.exhaustive
@pytest.mark.parametrize("number", range(41))
def test_repeated(number): pass

def test_default(): pass
"""


def tried(folder: Path, level: str, seed: str = "1", workers: str = "0") -> tuple[list[str], str]:
    """The tests that a run tries, and what it prints."""
    for name, text in {"conftest.py": CONFTEST, "pytest.ini": MARKERS, "test_some.py": TESTS}.items():
        (folder / name).write_text(text)
    env = {**os.environ, "SHOAL_TESTS": level, "SHOAL_SEED": seed, "PYTEST_ADDOPTS": ""}
    command = [sys.executable, "-m", "pytest", "-rA", "-q", "-n", workers, str(folder)]
    ended = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=True)
    return sorted(re.findall(r"^PASSED \S*::(\S+)$", ended.stdout, re.MULTILINE)), ended.stdout


def test_one_in_ten_exhaustive_tests_is_tried(tmp_path: Path) -> None:
    found, printed = tried(tmp_path, "ci")
    assert found[0] == "test_default"
    assert len(found) == 1 + 5
    assert "SHOAL_TESTS=ci SHOAL_SEED=1 tries the same ones" in printed
    assert tried(tmp_path, "ci", workers="2")[0] == found, "the same seed"
    assert tried(tmp_path, "ci", seed="2")[0] != found


@pytest.mark.parametrize("level", ["", "all"])
def test_other_runs_leave_nothing_out(tmp_path: Path, level: str) -> None:
    found, printed = tried(tmp_path, level)
    assert len(found) == 42
    assert "SHOAL_SEED" not in printed


def test_draws_are_in_order_and_differ_by_seed() -> None:
    among = range(100, 200)
    found = drawn(among, 7, seed="1")
    assert len(set(found)) == 7
    assert found == sorted(found)
    assert set(found) <= set(among)
    assert drawn(among, 7, seed="1") == found
    assert drawn(among, 7, seed="2") != found


@pytest.mark.parametrize(("among", "count"), [("ab", 3), ("abc", 3), ("", 3)])
def test_all_are_drawn_where_there_are_no_more(among: str, count: int) -> None:
    assert "".join(drawn(among, count)) == among


def test_kills_are_drawn_in_ci_only(monkeypatch: pytest.MonkeyPatch) -> None:
    among, default = range(100), [1, 2, 3]
    monkeypatch.setattr(effort, "IS_SAMPLED", False)
    assert kill_points(among, default=default) == default
    monkeypatch.setattr(effort, "IS_SAMPLED", True)
    assert len(kill_points(among, default=default)) == 5
