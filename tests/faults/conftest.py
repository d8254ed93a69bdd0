"""Processes that fork runs of the command line, shared by all tests of a worker."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.scene import Forker

_ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def forker() -> Iterator[Forker]:
    """Runs jobs of z-anonymity in forked children."""
    with _forker("events") as started:
        yield started


@pytest.fixture(scope="session")
def tuple_forker() -> Iterator[Forker]:
    """Runs jobs of tuple methods in forked children."""
    with _forker("tuples") as started:
        yield started


@contextmanager
def _forker(methods: str) -> Iterator[Forker]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.forker", methods],
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield Forker(process)
        assert process.stdin is not None
        process.stdin.close()
