"""What micro-batches cost on Spark: python -m benchmarks.spark_stream [--rows N]

z-anonymity from Parquet files to Parquet files in micro-batches of one file each: in one run with --follow, which gets
the next file as soon as a micro-batch has ended, and in a run with --once for each file. The first ones warm up and are
left out; some almost empty ones at the end show what a micro-batch costs by itself. What is written to the state is
compared with the size of the whole state. One process without Spark reads the same files with a checkpoint.
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

WARM, MEASURED, EMPTY = 3, 6, 3
EMPTY_ROWS = 100
WAYS = ("follow", "once")
_CHECKPOINT = '\n[checkpoint]\npath = "state-{out}"\n'
_AT_ONCE = 'every = "1ms"\n'
"""A micro-batch begins as soon as the one before has ended."""
_SECONDS = 600
"""The time of a micro-batch; the window is an hour."""


def files_of(folder: Path, counts: Sequence[int]) -> list[Path]:
    """Visits of 100,000 people to 10,000 sites, a file for each micro-batch, of ten minutes each."""
    folder.mkdir(parents=True)
    draw, paths = np.random.default_rng(1), []
    for number, rows in enumerate(counts):
        times = np.sort(draw.integers(0, _SECONDS, rows)) + 1_700_000_000 + number * _SECONDS
        people, sites = draw.integers(0, 100_000, rows), draw.zipf(1.3, rows) % 10_000
        table = {"ts": pa.array(times).cast(pa.timestamp("s")), "user": pa.array(people).cast(pa.string()),
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


def measure(report: Report, rows: int, *, tiny: bool) -> None:
    """Both tables."""
    counts = [rows] * (1 if tiny else WARM + MEASURED)
    with tempfile.TemporaryDirectory() as place:
        key = Path(place) / "key"
        key.write_bytes(bytes(range(32, 64)))
        key.chmod(0o600)
        env, one, many = {**os.environ, "SHOAL_KEY_FILE": str(key)}, Path(place) / "one", Path(place) / "many"
        files_of(one / "few" / "in", [1_000])
        files_of(one / "all" / "in", counts)
        policies = [policy_of(one / name, "here") for name in ("few", "all")]
        plain = measured_runs(policies, env, on_spark=False)[1].spent
        plain_rate = sum(counts) / max(plain.total, 0.01)
        per_file = plain.python / len(counts)
        lines = [["one process", f"{rows:,}", "0", short(per_file), short(plain_rate), "1.00"]]
        state: list[list[str]] = []
        if not tiny:  # starting Spark takes longer than a tiny run may
            sizes = [*counts, *[EMPTY_ROWS] * EMPTY]
            for way in WAYS:
                files_of(many / way / "coming", sizes)
            report.figures["rows"] = rows
            for way, found in _streamed(many, env).items():
                report.figures[way] = found
                for part, size in ((found[WARM : WARM + MEASURED], rows), (found[WARM + MEASURED :], EMPTY_ROWS)):
                    java, python = (mean(one["spent"][at] for one in part) for at in (0, 1))
                    rate = size / (java + python)
                    lines.append([f"Spark, {MASTER}, --{way}", f"{size:,}", short(java), short(python), short(rate),
                                  f"{rate / plain_rate:.2f}"])  # fmt: skip
            state = [
                [f"{number + 1}", f"{size:,}", *(short(one[name] / 1e6) for name in ("logs", "snapshots", "stored"))]
                for number, (one, size) in enumerate(zip(report.figures["follow"], sizes, strict=True))
            ]
    report.table("cost", ["run", "events of a micro-batch", "in the JVM, processor s", "in Python",
                          "events per processor s", "times"], lines)  # fmt: skip
    if state:
        columns = ["micro-batch", "events", "logs written, MB", "snapshots written, MB", "stored after it, MB"]
        report.table("state", columns, state)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure both tables."""
    asked = parser(__doc__)
    asked.add_argument("--rows", type=int, default=500_000, help="events of a micro-batch")
    asked.add_argument("--folder", type=Path, help="used by itself: read the files below this folder")
    given = parse(asked, arguments)
    if given.folder:
        print(json.dumps({"follow": follow(given.folder / "follow"), "once": once(given.folder / "once")}))
        return
    report = Report(__file__, given)
    measure(report, 2_000 if given.tiny else given.rows, tiny=given.tiny)
    report.write()


if __name__ == "__main__":
    main()
