"""Brokers that are started once for all tests of a worker; a missing one skips its tests with one sentence."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.brokers.stream_scene import StreamForker

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder runs in `make test-brokers` only."""
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.brokers)


@pytest.fixture(scope="session")
def stream_forker() -> Iterator[StreamForker]:
    """Runs `shoal` on streams in forked children, with kernels loaded once."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.brokers.stream_forker"],
        cwd=_HERE.parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield StreamForker(process)
        assert process.stdin is not None
        process.stdin.close()
