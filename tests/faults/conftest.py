"""One process that forks runs of the command line, shared by all tests of a worker."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.scene import Forker

_ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def forker() -> Iterator[Forker]:
    """Runs jobs in forked children."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.forker"],
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield Forker(process)
        assert process.stdin is not None
        process.stdin.close()
