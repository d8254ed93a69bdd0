"""CPU by test: busy tests are found, whoever burns the time."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.tools.cpu_by_test import most_expensive

ROOT = Path(__file__).parents[2]
BURN = "import time\nwhile time.process_time() < {until}: pass\n"
BUSY = f"""
import os, subprocess, sys, time
import pytest

@pytest.mark.parametrize("number", range(76))
def test_idle(number):
    pass

def test_busy():
    until = time.process_time() + 0.3
    while time.process_time() < until: pass

def test_busy_child():
    subprocess.run([sys.executable, "-c", {BURN.format(until=0.3)!r}], check=True)

@pytest.fixture
def running():
    script = {BURN.format(until=0.3)!r} + "print(flush=True); sys.stdin.read()"
    child = subprocess.Popen([sys.executable, "-c", "import sys;" + script], stdin=-1, stdout=-1)
    child.stdout.readline()
    yield
    child.communicate()

def test_busy_fixture(running):
    pass

def test_busy_orphan():
    below = {BURN.format(until=0.3)!r} + "print(flush=True); sys.stdin.read()"
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {{'import sys;' + below!r}}])"
    child = subprocess.Popen([sys.executable, "-c", script], stdin=-1, stdout=-1, start_new_session=True)
    child.stdout.readline()
    os.killpg(child.pid, 9)
    child.communicate()
"""


@pytest.mark.parametrize("workers", ["0", "1"])
def test_busy_tests_are_the_most_expensive(tmp_path: Path, workers: str) -> None:
    (tmp_path / "test_burning.py").write_text(BUSY)
    command = [sys.executable, "-m", "tests.tools.cpu_by_test", "-n", workers, "-c", "/dev/null", "-q", str(tmp_path)]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^ +(\d+\.\d+)  \S*::(\w+)$", printed, re.MULTILINE)
    assert {name for _, name in found} == {"test_busy", "test_busy_child", "test_busy_fixture", "test_busy_orphan"}
    assert all(float(seconds) >= 0.25 for seconds, _ in found), "clock ticks of 10 ms are lost in processes that end"
    assert re.search(r"^\S+ CPU seconds in 80 tests; the most expensive 5% \(4\) took \d+%$", printed, re.MULTILINE)


def test_the_share_of_the_most_expensive() -> None:
    spent = Counter({f"t{number}": 1.0 for number in range(39)} | {"busy": 61.0})
    top, share = most_expensive(spent)
    assert [name for name, _ in top] == ["busy", "t0"]
    assert share == pytest.approx(0.62)


def test_a_single_test_takes_everything() -> None:
    assert most_expensive(Counter(only=2.0)) == ([("only", 2.0)], 1.0)


def test_no_tests() -> None:
    assert most_expensive(Counter()) == ([], 0.0)
