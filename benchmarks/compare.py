"""Is the working tree slower than another revision? python -m benchmarks.compare [BASE] [--pairs N] [--only WORD ...]

Runs both trees in turns on the same data and reports new time over old time with a 95% interval
(`benchmarks.intervals`). A case is no slower if the upper end is at most 1.03; if a case is not, the exit code is 1.

- Both trees are copied to a temporary folder, each with a cache of compiled code of its own, so edits in the meantime
  change nothing. The copy of the working tree includes what is not committed. Only `src` is compared: both trees run
  the benchmark code and the data of the working tree.
- A pair is one new process of each tree. Each imports, loads compiled code and runs the case once, unmeasured. Then
  four turns are measured: new, old, old, new, or old, new, new, old, as a coin decides, so a machine that gets slower
  or faster in the meantime does so for both. The median of their ratios counts. Every pair needs new processes: where
  memory happens to lie makes a whole process faster or slower, and pairs of the same two processes would repeat that
  and call it certain.
- The clock is that of the processor, which other processes disturb little. Only two threads are measured by the wall
  clock, because it alone shows what they gain. On a busy machine that interval gets wide.
- Pairs are added until the interval is at most 3% wide, or there are three times as many as asked for. Its width
  decides that, not its position: a search that stops once the result looks good finds good results by chance.
- `first row, empty cache` compiles everything, in a new process with an empty cache: eight pairs unless --pairs asks
  otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from benchmarks import compare_worker
from benchmarks.compare_worker import CASES, Case
from benchmarks.intervals import FEWEST_PAIRS, Interval, ratio_interval
from benchmarks.measure import markdown
from benchmarks.sets_speed import synthetic_baskets
from benchmarks.sources import ROOT
from benchmarks.z_stream import make_stream
from shoal.reproduce.data.adult_imitation import imitate_adult

ALLOWED = 1.03
WIDEST = 0.03
PAIRS, FRESH_PAIRS = 20, 8
TURNS = 4
"""Of four runs each, in every pair."""
MOST = 3
"""Times as many pairs as asked for, at most."""
NEW, OLD = "new", "old"

Run = Callable[[str, str], tuple[float, int]]
"""Runs a case (second) on a tree (first): seconds, and rows published."""


@dataclass
class Progress:
    """What is known of a case."""

    least: int
    """Pairs before the interval is looked at."""
    ratios: list[float] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)

    def is_settled(self) -> bool:
        """Whether no more pairs are needed, or allowed."""
        if len(self.ratios) < self.least:
            return False
        found = ratio_interval(self.ratios)
        return found.high - found.low <= WIDEST or len(self.ratios) >= MOST * self.least

    def add(self, run: Callable[[str], tuple[float, int]], order: Iterable[Sequence[str]]) -> None:
        """Measure a pair."""
        found = []
        for turn in order:
            seconds = {NEW: 0.0, OLD: 0.0}
            for tree in turn:
                spent, self.rows[tree] = run(tree)
                seconds[tree] += spent
            found.append(seconds[NEW] / seconds[OLD])
        self.ratios.append(median(found))


def compare(names: Sequence[str], open_pair: Callable[[], Any], pairs: int | None) -> dict[str, Progress]:
    """Measure pairs of every case until each is settled. `open_pair` is a context: the two processes of a pair."""
    known = {name: Progress(pairs or (FRESH_PAIRS if CASES[name].fresh else PAIRS)) for name in names}
    while waiting := [name for name in names if not known[name].is_settled()]:
        with open_pair() as run:
            for name in waiting:
                known[name].add(lambda tree, name=name: run(tree, name), turns(CASES[name]))  # type: ignore[misc]
        print(
            f"pair {max(len(one.ratios) for one in known.values())}: {', '.join(waiting)}", file=sys.stderr, flush=True
        )
    return known


def turns(case: Case) -> list[Sequence[str]]:
    """The trees in the order in which they run."""
    if case.fresh:
        return [random.sample((NEW, OLD), 2)]
    return [random.choice(((NEW, OLD, OLD, NEW), (OLD, NEW, NEW, OLD))) for _ in range(TURNS)]


def verdict(found: Interval) -> str:
    """What the interval says, in two words."""
    if found.high <= ALLOWED:
        return "no slower"
    return "slower" if found.low > 1 else "not certain"


def row_of(name: str, known: Progress) -> list[str]:
    """A row of the table."""
    found, clock = ratio_interval(known.ratios), CASES[name].clock
    same = known.rows[NEW] == known.rows[OLD]
    note = "" if same else f" (publishes {known.rows[NEW]:,} rows, before {known.rows[OLD]:,}: is it the same work?)"
    interval = f"{found.low:.3f} to {found.high:.3f}"
    return [name, clock, str(len(known.ratios)), f"{found.ratio:.3f}", interval, verdict(found) + note]


class Worker:
    """A process that uses one of the trees."""

    def __init__(self, tree: Path, data: Path, cache: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "NUMBA_CACHE_DIR": str(cache)}
        environment.pop("SHOAL_KEY_FILE", None)
        command = [sys.executable, "-P", compare_worker.__file__, str(data), str(tree)]
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, name: str) -> tuple[float, int]:
        """Seconds of a case, and rows published."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(name, file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{name}: the process ended without a result; its error is above")
        found = json.loads(line)
        return found["seconds"], found["rows"]

    def close(self) -> None:
        """Let it end."""
        self._process.communicate()


class Trees:
    """The two copies, and the data they work on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.data = folder / "data"
        self.data.mkdir()

    def copy(self, base: str) -> None:
        """Copy the working tree and a revision."""
        shutil.copytree(ROOT / "src", self._folder / NEW / "src", ignore=shutil.ignore_patterns("__pycache__"))
        (self._folder / OLD).mkdir()
        packed = subprocess.run(["git", "archive", base, "src"], cwd=ROOT, stdout=subprocess.PIPE, check=False)
        if packed.returncode:
            raise SystemExit(f"{base}: not a revision of this repository")
        subprocess.run(["tar", "-x", "-C", self._folder / OLD], input=packed.stdout, check=True)

    @contextmanager
    def pair(self) -> Iterator[Run]:
        """Two new processes, started when first used; a fresh case gets one for each run, with an empty cache."""
        workers: dict[str, Worker] = {}
        with ExitStack() as stack:

            def run(tree: str, name: str) -> tuple[float, int]:
                if CASES[name].fresh:
                    return self._run_fresh(tree, name)
                if tree not in workers:
                    workers[tree] = Worker(self._folder / tree, self.data, self._folder / f"{tree}-cache")
                    stack.callback(workers[tree].close)
                return workers[tree].run(name)

            yield run

    def _run_fresh(self, tree: str, name: str) -> tuple[float, int]:
        with tempfile.TemporaryDirectory(dir=self._folder) as cache:
            worker = Worker(self._folder / tree, self.data, Path(cache))
            try:
                return worker.run(name)
            finally:
                worker.close()


def make_data(folder: Path, *, tiny: bool = False) -> None:
    """The files that the cases read."""
    events = make_stream(5_000, 200, 50) if tiny else make_stream(1_500_000)
    pq.write_table(people := imitate_adult(500 if tiny else 40_000, seed=1).table, folder / "people.parquet")
    pq.write_table(stream := pa.Table.from_batches([events.batch]), folder / "events.parquet")
    csv.write_csv(stream.slice(0, 500_000), folder / "events.csv")
    csv.write_csv(people.slice(0, 500).select(["person", "age", "sex"]), folder / compare_worker.FIRST)
    synthetic_baskets(folder / compare_worker.BASKETS, 300 if tiny else 150_000, compare_worker.ITEMS)


def chosen(words: Sequence[str] | None) -> list[str]:
    """Cases whose name contains one of some words; all without words."""
    found = [name for name in CASES if not words or any(word.lower() in name.lower() for word in words)]
    if not found:
        raise SystemExit(f"no case contains {' or '.join(words or ())}; cases: {', '.join(CASES)}")
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare, print a table, exit with 1 if something may be slower than allowed."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("base", nargs="?", default="HEAD", help="a revision (default: HEAD, which shows the noise)")
    asked.add_argument("--pairs", type=int, help=f"pairs of each case (default: {PAIRS}; empty cache: {FRESH_PAIRS})")
    asked.add_argument("--only", nargs="+", metavar="WORD", help="only cases whose name contains one of these")
    given = asked.parse_args(arguments)
    if given.pairs is not None and given.pairs < FEWEST_PAIRS:
        asked.error(f"an interval needs at least {FEWEST_PAIRS} pairs")
    names = chosen(given.only)
    with tempfile.TemporaryDirectory() as folder:
        trees = Trees(Path(folder))
        trees.copy(given.base)
        make_data(trees.data)
        known = compare(names, trees.pair, given.pairs)
    columns = ["case", "clock", "pairs", "new / old", "95% interval", f"at most {ALLOWED}"]
    print(markdown({"columns": columns, "rows": [row_of(name, known[name]) for name in names]}))
    sys.exit(any(ratio_interval(one.ratios).high > ALLOWED for one in known.values()))


if __name__ == "__main__":
    main()
