"""Brokers that are started once for all tests of a worker; a missing one skips its tests with one sentence."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.brokers.forker import Forker
from tests.brokers.kafka_server import Kafka

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder runs in `make test-brokers` only."""
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.brokers)


@pytest.fixture(scope="session")
def stream_forker() -> Iterator[Forker]:
    """Runs `shoal` on streams in forked children, with kernels loaded once."""
    with _module("tests.brokers.stream_forker") as process:
        yield Forker(process)


@pytest.fixture(scope="session")
def kafka_forker() -> Iterator[Forker]:
    """Runs `shoal` on Kafka in forked children, with kernels loaded once."""
    with _module("tests.brokers.kafka_forker") as process:
        yield Forker(process)


@pytest.fixture(scope="session")
def kafka() -> Iterator[Kafka]:
    """A running Kafka."""
    missing = Kafka.missing()
    if missing:
        pytest.skip(missing)
    with Kafka() as running:
        yield running


@contextmanager
def _module(name: str) -> Iterator[subprocess.Popen[str]]:
    """A Python module as a process that answers lines."""
    command = [sys.executable, "-m", name]
    process = subprocess.Popen(command, cwd=_HERE.parents[1], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        yield process
        assert process.stdin is not None
        process.stdin.close()
