"""Plant one defect and run the tests that reach it, the cheapest first, until one fails or the time is up."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.mutants.forks import Ended, Fork, limit_cpu, limit_of, run_pytest
from tests.mutants.generate import Defect, plant
from tests.mutants.overlay import Overlay
from tests.mutants.places import Places
from tests.mutants.reach import Reach, Test

KILLED, SURVIVED, NOT_REACHED, UNDECIDED = VERDICTS = ("killed", "survived", "not reached", "undecided")
MOST_SECONDS: Final = 60
"""For the tests of one defect, by the clock, and by the CPU that they took while they were traced."""
FAR_QUICKER: Final = 4
"""A time-out counts if the same tests need a quarter of the time without the defect."""
_PASSED, _NO_TESTS = 0, 5
"""Exit codes of pytest."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a defect."""

    verdict: str
    by: str | None = None
    """The test that failed."""
    ran: int = 0
    """Tests that there was time for."""
    reaching: int = 0
    seconds: float = 0
    limit: float = 0
    """CPU seconds of tests that were to be run."""


class Chosen:
    """A pytest plugin that runs chosen tests only, with a limit for each, and writes down the first that fails."""

    def __init__(self, tests: Sequence[Test], log: Path) -> None:
        self._cpu = {test.name: test.cpu for test in tests}
        self._log = log
        files: dict[str, list[float]] = {}
        for test in tests:
            files.setdefault(test.file, []).append(test.cpu)
        self._mean = {file: sum(cpu) / len(cpu) for file, cpu in files.items()}

    def _write(self, name: str) -> None:
        with self._log.open("a") as file:
            file.write(name + "\n")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Whole files in turn, so that what a file prepares is prepared once."""

        def rank(item: pytest.Item) -> tuple[float, str, float]:
            file = item.nodeid.partition("::")[0]
            return self._mean[file], file, self._cpu[item.nodeid]

        items[:] = sorted((item for item in items if item.nodeid in self._cpu), key=rank)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        limit_cpu(limit_of(self._cpu[item.nodeid]))
        try:
            return (yield)
        finally:
            limit_cpu(0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._write(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._write(report.nodeid)


def affordable(tests: Sequence[Test], cpu_of_files: Mapping[str, float], seconds: float) -> list[Test]:
    """The cheapest tests that take so many seconds together, with what it costs to collect their files."""
    chosen: list[Test] = []
    files: set[str] = set()
    for test in tests:
        cost = test.cpu + (0 if test.file in files else cpu_of_files.get(test.file, 0))
        if cost <= seconds:
            seconds -= cost
            files.add(test.file)
            chosen.append(test)
    return chosen


class Trials:
    """Tries defects one after another, in a folder of its own."""

    def __init__(self, places: Places, reach: Reach, folder: Path, *, limit: float) -> None:
        self._places = places
        self._reach = reach
        self._folder = folder
        self._limit = limit
        self._overlay = Overlay(places.source, folder / "source")
        self._sound: dict[str, bool] = {}
        """Whether tests that have failed pass without a defect, alone."""

    def try_one(self, defect: Defect) -> Verdict:
        """Run the tests that reach a defect."""
        reaching = self._reach.tests_at(defect.file, range(defect.line, defect.last_line + 1))
        chosen = affordable(reaching, self._reach.cpu_of_files(), self._limit)
        if not chosen:
            return Verdict(UNDECIDED if reaching else NOT_REACHED, reaching=len(reaching), limit=self._limit)
        source = (self._places.source / defect.file).read_text()
        with self._overlay.with_text(defect.file, plant(source, defect)):
            ended, failed = self._run(chosen)
        verdict, by = self._judge(chosen, ended, failed)
        if verdict == KILLED and by and not self._is_sound(by, chosen):
            self._reach.forget(by)
            return self.try_one(defect)
        return Verdict(verdict, by, len(chosen), len(reaching), round(ended.seconds, 1), self._limit)

    def _judge(self, chosen: Sequence[Test], ended: Ended, failed: str | None) -> tuple[str, str | None]:
        if failed is not None:
            return KILLED, failed
        if ended.code in (_PASSED, _NO_TESTS):
            return (SURVIVED if ended.code == _PASSED else UNDECIDED), None
        unchanged, _ = self._run(chosen)  # the time was up, or the process crashed
        is_quick = not ended.is_late or unchanged.seconds * FAR_QUICKER < MOST_SECONDS
        return (KILLED if unchanged.code == _PASSED and is_quick else UNDECIDED), None

    def _is_sound(self, name: str, chosen: Sequence[Test]) -> bool:
        """Whether a test passes without the defect; a file that cannot be collected has done so before."""
        alone = [test for test in chosen if test.name == name]
        if name not in self._sound and alone:
            ended, _ = self._run(alone)
            self._sound[name] = ended.code == _PASSED
        return self._sound.get(name, True)

    def _run(self, tests: Sequence[Test]) -> tuple[Ended, str | None]:
        log = self._folder / "failed"
        log.unlink(missing_ok=True)
        files = list(dict.fromkeys(test.file for test in tests))
        markers, temporary = self._places.table["markers"], self._folder / "t"

        def run() -> int:
            return run_pytest(files, markers, Chosen(tests, log), stops=True, temporary=temporary)

        fork = Fork(run, root=self._places.root, source=self._overlay.folder, output=self._folder / "output")
        ended = fork.wait(MOST_SECONDS)
        failed = log.read_text().splitlines() if log.exists() else []
        return ended, next(iter(failed), None)
