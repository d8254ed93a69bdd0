"""Measure which tests run which lines of the source, without JIT: python -m tests.mutants.reach

What is measured stays in .cache/mutants; a run that was cut off continues, and files of tests that changed are measured
again. Another source is measured anew. Lines that are executed on import count for no test, nor does what other
processes run that a test starts.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sqlite3
import sys
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from coverage import Coverage
from coverage.numbits import num_in_numbits

from tests.mutants.forks import Fork, limit_cpu, prepare, run_pytest, workplace
from tests.mutants.overlay import Overlay
from tests.mutants.places import ROOT, Places

RAN = (0, 1, 5)
"""Exit codes of pytest that has run: tests passed, some failed, there were none."""
_TABLES = """
create table if not exists files (name text primary key, digest text, cpu real, is_whole integer);
create table if not exists tests (name text primary key, file text, cpu real);
create table if not exists reached (source text, test text, lines blob);
create index if not exists reached_source on reached (source);
create index if not exists reached_test on reached (test);
"""


@dataclass(frozen=True, slots=True)
class Test:
    """A test that passes, and the CPU seconds that it took while it was traced."""

    __test__ = False

    name: str
    cpu: float

    @property
    def file(self) -> str:
        return self.name.partition("::")[0]


class Reach:
    """What was measured so far."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(path)
        self._database.executescript(_TABLES)

    def close(self) -> None:
        self._database.close()

    def digests(self) -> dict[str, str]:
        """The files of tests that were measured, and the digest of their text."""
        return dict(self._database.execute("select name, digest from files"))

    def cut_off(self) -> list[str]:
        """Files of tests whose time was up before their last test."""
        return [name for (name,) in self._database.execute("select name from files where not is_whole")]

    def cpu_of_files(self) -> dict[str, float]:
        """CPU seconds to import and collect a file of tests."""
        return dict(self._database.execute("select name, cpu from files"))

    def tests_at(self, source: str, lines: Iterable[int]) -> list[Test]:
        """The tests that run one of these lines, the cheapest first."""
        wanted = tuple(lines)
        rows = self._database.execute(
            "select name, cpu, lines from reached join tests on test = name where source = ? order by cpu, name",
            (source,),
        )
        return [Test(name, cpu) for name, cpu, found in rows if any(num_in_numbits(line, found) for line in wanted)]

    def forget(self, test: str) -> None:
        """A test that fails without a defect says nothing."""
        with self._database:
            self._database.execute("delete from tests where name = ?", (test,))

    def keep(self, files: Iterable[str]) -> None:
        """Forget the files of tests that are no more."""
        for gone in {*self.digests()} - {*files}:
            with self._database:
                self._database.execute("delete from tests where file = ?", (gone,))
                self._database.execute("delete from files where name = ?", (gone,))

    def replace(self, file: str, digest: str, log: Path, data: Path, source: Path, *, is_whole: bool) -> int:
        """Keep what a file of tests has reached; return how many of its tests have passed."""
        entries = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        passed = {one["test"]: one["cpu"] for one in entries if "test" in one}
        with self._database:
            self._database.execute("delete from reached where test in (select name from tests where file = ?)", (file,))
            self._database.execute("delete from tests where file = ?", (file,))
            cpu = sum(one["collected"] for one in entries if "collected" in one)
            self._database.execute("replace into files values (?, ?, ?, ?)", (file, digest, cpu, is_whole))
            self._database.executemany("insert into tests values (?, ?, ?)", [(n, file, c) for n, c in passed.items()])
            rows = [(found, test, lines) for found, test, lines in _lines(data, source) if test in passed]
            self._database.executemany("insert into reached values (?, ?, ?)", rows)
        return len(passed)


def _lines(data: Path, source: Path) -> Iterator[tuple[str, str, bytes]]:
    """Source file, test and lines in what coverage has written."""
    if not data.exists():
        return
    with closing(sqlite3.connect(data)) as database:
        tables = "line_bits join file on file.id = file_id join context on context.id = context_id"
        for path, test, lines in database.execute(f"select path, context, numbits from {tables}"):
            yield str(Path(path).relative_to(source)), test, lines


class Recorder:
    """A pytest plugin that tells coverage which test runs, and writes down which tests pass and what they cost."""

    def __init__(self, coverage: Coverage, log: Path, seconds: float) -> None:
        self._coverage = coverage
        self._log = log
        self._seconds = seconds
        self._has_passed = False
        self._began = time.process_time()

    def _write(self, **entry: object) -> None:
        with self._log.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def pytest_collection_finish(self) -> None:
        self._write(collected=time.process_time() - self._began)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, bool, bool]:
        self._has_passed = False
        self._coverage.switch_context(item.nodeid)
        began = time.process_time()
        try:
            return (yield)
        finally:
            self._coverage.switch_context("")
            if self._has_passed:
                self._write(test=item.nodeid, cpu=time.process_time() - began)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        limit_cpu(self._seconds)
        try:
            return (yield)
        finally:
            limit_cpu(0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self._has_passed = report.passed
        elif report.failed:
            self._has_passed = False


def measure(places: Places, folder: Path, *, seconds: float) -> None:
    """Measure the files of tests that are not measured yet, for so many seconds."""
    until = time.monotonic() + seconds
    reach = Reach(places.reach)
    overlay = Overlay(places.source, folder / "source")
    files = list(places.files_of_tests())
    reach.keep(files)
    known = reach.digests()
    for number, file in enumerate(files, 1):
        digest = hashlib.sha256((places.root / file).read_bytes()).hexdigest()
        if time.monotonic() > until:
            break
        if known.get(file) == digest:
            continue
        log, data = folder / "log", folder / "data"
        for path in (log, data):
            path.unlink(missing_ok=True)
        ended = _fork(places, overlay, file, log, data, folder).wait(places.table["seconds_of_a_file"])
        if not ended.is_late and ended.code not in RAN:
            sys.stdout.write(f"{file}: could not run\n{(folder / 'output').read_text()[-500:]}\n")
            continue
        passed = reach.replace(file, digest, log, data, overlay.package, is_whole=not ended.is_late)
        late = ", cut off" if ended.is_late else ""
        sys.stdout.write(f"{number}/{len(files)} {file}: {passed} tests, {ended.seconds:.0f} s{late}\n")
        sys.stdout.flush()
    reach.close()


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.reach")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so many; the next continues")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    places = Places(given.root.resolve())
    prepare(places.cache)
    with workplace() as folder:
        measure(places, folder, seconds=given.seconds)


def _fork(places: Places, overlay: Overlay, file: str, log: Path, data: Path, folder: Path) -> Fork:
    include = [f"{overlay.package / folder}/*" for folders in places.table["packages"].values() for folder in folders]

    def run() -> int:
        coverage = Coverage(data_file=str(data), config_file=False, include=include, messages=False)
        coverage.start()
        try:
            recorder = Recorder(coverage, log, places.table["seconds_of_a_test"])
            return run_pytest([file], places.table["markers"], recorder, stops=False, temporary=folder / "t")
        finally:
            coverage.stop()
            coverage.save()

    return Fork(run, root=places.root, source=overlay.folder, output=folder / "output")


if __name__ == "__main__":
    main()
