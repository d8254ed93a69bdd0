"""CPU seconds of every test, its setup, teardown and all processes it started included.

python -m tests.tools.cpu_by_test [PYTEST ARGS]
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest

_SPENT: Counter[str] = Counter()
_STARTED = pytest.StashKey[float]()
_TOP = 0.05
_PR_SET_CHILD_SUBREAPER = 36


def cpu_seconds() -> float:
    """CPU time of this process and all its descendants; of running ones only where there is /proc."""
    own = os.times()
    return own.user + own.system + own.children_user + own.children_system + _running_descendants()


def most_expensive(spent: Counter[str]) -> tuple[list[tuple[str, float]], float]:
    """The most expensive 5% of the tests, at least one, and their share of all CPU time."""
    top = spent.most_common(max(1, round(_TOP * len(spent))))
    return top, sum(seconds for _, seconds in top) / max(spent.total(), 1e-9)


def pytest_configure() -> None:
    """Become the parent of processes whose own is killed, so that what they took can be read in /proc."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_STARTED] = cpu_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "teardown":  # properties reach the process that prints, from xdist's workers too
        report.user_properties.append(("cpu", cpu_seconds() - item.stash[_STARTED]))
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "teardown":
        _SPENT[report.nodeid] += dict(report.user_properties)["cpu"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    top, share = most_expensive(_SPENT)
    terminalreporter.section("CPU seconds by test")
    for name, seconds in top:
        terminalreporter.write_line(f"{seconds:8.2f}  {name}")
    total = f"{_SPENT.total():.1f} CPU seconds in {len(_SPENT):,} tests"
    terminalreporter.write_line(f"{total}; the most expensive 5% ({len(top):,}) took {share:.0%}")


def _running_descendants() -> float:
    """CPU seconds of descendants that nobody has waited for, and of the processes that they waited for, by /proc."""
    parent, ticks = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text().rpartition(")")[2].split()
        except OSError:  # ended meanwhile
            continue
        number = int(path.parent.name)
        parent[number], ticks[number] = int(words[1]), sum(map(int, words[11:15]))
    found, generation = 0, {os.getpid()}
    while generation := {number for number in parent if parent[number] in generation}:
        found += sum(ticks[number] for number in generation)
    return found / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(pytest.main(["-p", "tests.tools.cpu_by_test", *sys.argv[1:]]))
