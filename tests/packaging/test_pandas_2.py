"""Frames of pandas 2: the tests of frames, with pandas 2 in front of the installed version."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OFFLINE = ("No matching distribution", "Failed to establish a new connection", "Could not find a version")

pytestmark = [pytest.mark.slow, pytest.mark.compiled]


def run(*command: str | Path, **options):
    return subprocess.run([*map(str, command)], cwd=ROOT, capture_output=True, text=True, check=False, **options)


def test_frames_with_pandas_2(tmp_path):
    wanted = ("--no-deps", "--target", tmp_path, "pandas>=2.2,<3", "pytz")
    installed = run(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted)
    if any(sign in installed.stderr for sign in OFFLINE):
        pytest.skip("installing pandas 2 needs a package index, and none can be reached")
    assert installed.returncode == 0, installed.stderr
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT / "src"), str(ROOT)])}
    version = run(sys.executable, "-c", "import pandas; print(pandas.__version__)", env=env)
    assert version.stdout.startswith("2."), version.stderr
    ended = run(sys.executable, "-m", "pytest", "-q", "-x", "tests/frames", env=env)
    assert ended.returncode == 0, ended.stdout
