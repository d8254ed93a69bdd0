"""What micro-batches cost on Spark: python -m benchmarks.spark_stream [--rows N ...]

z-anonymity from Parquet files to Parquet files in micro-batches of one file each: in one run with --follow, which gets
the next file as soon as a micro-batch has ended, and in a run with --once for each file. The first ones warm up and are
left out: small ones until the JVM has compiled what it runs all the time, then full ones. Some almost empty ones at the
end show what a micro-batch costs by itself. What is written to the state is compared with the size of the whole state.
One process without Spark reads the same files with a checkpoint. All times are distinct, or nearly so: microseconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import Report, parse, parser, short
from benchmarks.spark_cost import POLICY
from benchmarks.spark_runs import MASTER, measured_runs, spent_so_far
from shoal.observe.observer import Observer
from shoal.pipeline.stopping import Stop
from shoal.policy import load_policy

SMALL, WARM, MEASURED, EMPTY = 15, 3, 6, 4
SMALL_ROWS, EMPTY_ROWS = 1_000, 100
WAYS = ("follow", "once")
_CHECKPOINT = '\n[checkpoint]\npath = "state-{out}"\n'
_AT_ONCE = 'every = "1ms"\n'
"""A micro-batch begins as soon as the one before has ended."""
_MICROSECONDS = 600_000_000
"""The time of a micro-batch; the window is an hour."""


def files_of(folder: Path, counts: Sequence[int]) -> list[Path]:
    """Visits of 100,000 people to 10,000 sites, a file for each micro-batch, of ten minutes each."""
    folder.mkdir(parents=True)
    draw, paths = np.random.default_rng(1), []
    for number, rows in enumerate(counts):
        times = np.sort(draw.integers(0, _MICROSECONDS, rows)) + 1_700_000_000_000_000 + number * _MICROSECONDS
        people, sites = draw.integers(0, 100_000, rows), draw.zipf(1.3, rows) % 10_000
        table = {"ts": pa.array(times).cast(pa.timestamp("us")), "user": pa.array(people).cast(pa.string()),
                 "site": pa.array(sites).cast(pa.string())}  # fmt: skip
        paths.append(folder / f"part-{number:05d}.parquet")
        pq.write_table(pa.table(table), paths[-1])
    return paths


def policy_of(folder: Path, out: str, more: str = "") -> Path:
    """A policy with a checkpoint that reads the files of a folder."""
    path = folder / f"{out}.toml"
    path.write_text((POLICY + _CHECKPOINT).format(out=out) + more)
    return path


class Arrivals:
    """Files that come one after another, and what the micro-batch of each cost and wrote."""

    def __init__(self, folder: Path) -> None:
        self._files = sorted((folder / "coming").iterdir())
        self._folder, self._known, self._before = folder, set[Path](), spent_so_far()
        self.found: list[dict[str, Any]] = []
        (folder / "in").mkdir()

    def add(self) -> bool:
        """Add the next file to the source; False if there are no more."""
        if not self._files:
            return False
        path = self._files.pop(0)
        path.rename(self._folder / "in" / path.name)
        return True

    def note(self) -> None:
        """A micro-batch has ended."""
        now, stored = spent_so_far(), set((self._folder / "state-there").glob("shard-*"))
        new = stored - self._known
        self.found.append({
            "spent": now.since(self._before), "logs": _bytes(path for path in new if path.name.endswith(".log")),
            "snapshots": _bytes(path for path in new if not path.name.endswith(".log")), "stored": _bytes(stored),
        })  # fmt: skip
        self._known, self._before = stored, now


class Feeding(Observer):
    """Adds the next file when a micro-batch has ended, so that a run that follows never waits; then stops it."""

    def __init__(self, arrivals: Arrivals) -> None:
        super().__init__()
        self.stop, self._arrivals = Stop(), arrivals

    def committed(self, commit: Any) -> None:
        """A micro-batch has ended."""
        self._arrivals.note()
        if not self._arrivals.add():
            self.stop.ask()


def follow(folder: Path) -> list[dict[str, Any]]:
    """All files in one run with --follow."""
    from shoal.spark.streams.run import SparkStream

    arrivals = Arrivals(folder)
    arrivals.add()
    feeding = Feeding(arrivals)
    policy = load_policy(policy_of(folder, "there", _AT_ONCE))
    SparkStream(policy, feeding, master=MASTER, stop=feeding.stop, follow=True).execute()
    return arrivals.found


def once(folder: Path) -> list[dict[str, Any]]:
    """A run with --once for each file."""
    from shoal.spark.streams.run import SparkStream

    arrivals, policy = Arrivals(folder), load_policy(policy_of(folder, "there"))
    while arrivals.add():
        SparkStream(policy, Observer(), master=MASTER, once=True).execute()
        arrivals.note()
    return arrivals.found


def _bytes(paths: Any) -> int:
    return sum(path.stat().st_size for path in paths)


def _streamed(folder: Path, env: dict[str, str]) -> dict[str, list[dict[str, Any]]]:
    """Both ways, one after another in a process and session of their own."""
    command = [sys.executable, "-m", "benchmarks.spark_stream", "--folder", str(folder)]
    env = {**env, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), env.get("PYTHONPATH", "")])}
    printed = subprocess.run(command, env=env, stdout=subprocess.PIPE, check=True, start_new_session=True).stdout
    found: dict[str, list[dict[str, Any]]] = json.loads(printed.splitlines()[-1])
    return found


def measure(report: Report, sizes: Sequence[int], *, tiny: bool) -> None:
    """Both tables; the state is that of the smallest micro-batches."""
    lines: list[list[str]] = []
    for rows in sizes:
        with tempfile.TemporaryDirectory() as place:
            key = Path(place) / "key"
            key.write_bytes(bytes(range(32, 64)))
            key.chmod(0o600)
            env = {**os.environ, "SHOAL_KEY_FILE": str(key)}
            plain_rate = _one_process(Path(place), env, rows, lines, files=1 if tiny else WARM + MEASURED)
            if not tiny:  # starting Spark takes longer than a tiny run may
                report.figures[str(rows)] = _on_spark(Path(place), env, rows, plain_rate, lines)
    report.table("cost", ["run", "events of a micro-batch", "in the JVM, processor s", "in Python",
                          "events per processor s", "times"], lines)  # fmt: skip
    if not tiny:
        columns = ["micro-batch", "events", "logs written, MB", "snapshots written, MB", "stored after it, MB"]
        found = report.figures[str(min(sizes))]["follow"]
        counts = [min(sizes)] * (WARM + MEASURED) + [EMPTY_ROWS] * EMPTY
        report.table("state", columns, [
            [f"{number + 1}", f"{rows:,}", *(short(one[name] / 1e6) for name in ("logs", "snapshots", "stored"))]
            for number, (one, rows) in enumerate(zip([*found["full"], *found["empty"]], counts, strict=True))
        ])  # fmt: skip


def _one_process(place: Path, env: dict[str, str], rows: int, lines: list[list[str]], *, files: int) -> float:
    """Events per processor second of one process; adds its line."""
    files_of(place / "few" / "in", [SMALL_ROWS])
    files_of(place / "all" / "in", [rows] * files)
    policies = [policy_of(place / name, "here") for name in ("few", "all")]
    spent = measured_runs(policies, env, on_spark=False)[1].spent
    rate = rows * files / max(spent.total, 0.01)
    lines.append(["one process", f"{rows:,}", "0", short(spent.python / files), short(rate), "1.00"])
    return rate


def _on_spark(
    place: Path, env: dict[str, str], rows: int, plain_rate: float, lines: list[list[str]]
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """What micro-batches cost and wrote, full ones (with those that warm up) and empty ones, by way; adds the lines."""
    for way in WAYS:
        counts = [SMALL_ROWS] * SMALL + [rows] * (WARM + MEASURED) + [EMPTY_ROWS] * EMPTY
        files_of(place / "many" / way / "coming", counts)
    found = {}
    for way, runs in _streamed(place / "many", env).items():
        full, empty = runs[SMALL:-EMPTY], runs[-EMPTY:]
        found[way] = {"full": full, "empty": empty}
        for part, size in ((full[WARM:], rows), (empty, EMPTY_ROWS)):
            java, python = (mean(one["spent"][at] for one in part) for at in (0, 1))
            rate = size / (java + python)
            lines.append([f"Spark, {MASTER}, --{way}", f"{size:,}", short(java), short(python), short(rate),
                          f"{rate / plain_rate:.2f}"])  # fmt: skip
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure both tables."""
    asked = parser(__doc__)
    asked.add_argument("--rows", type=int, nargs="+", default=[500_000, 2_000_000], help="events of a micro-batch")
    asked.add_argument("--folder", type=Path, help="used by itself: read the files below this folder")
    given = parse(asked, arguments)
    if given.folder:
        print(json.dumps({"follow": follow(given.folder / "follow"), "once": once(given.folder / "once")}))
        return
    report = Report(__file__, given)
    measure(report, [2_000] if given.tiny else given.rows, tiny=given.tiny)
    report.write()


if __name__ == "__main__":
    main()
