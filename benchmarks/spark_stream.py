"""What micro-batches cost on Spark: python -m benchmarks.spark_stream [--rows N]

z-anonymity from Parquet files to Parquet files in micro-batches of one file each, in one process. The first ones warm
up and are left out; some almost empty ones at the end show what a micro-batch costs by itself. What is written to the
state is compared with the size of the whole state. One process without Spark reads the same files with a checkpoint.
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

WARM, MEASURED, EMPTY = 3, 6, 3
EMPTY_ROWS = 100
_CHECKPOINT = '\n[checkpoint]\npath = "state-{out}"\n'
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


def policy_of(folder: Path, out: str) -> Path:
    """A policy with a checkpoint that reads the files of a folder."""
    path = folder / f"{out}.toml"
    path.write_text((POLICY + _CHECKPOINT).format(out=out))
    return path


def follow(folder: Path) -> list[dict[str, Any]]:
    """Add one file after another and read it; what each micro-batch cost and wrote."""
    from shoal.observe.observer import Observer
    from shoal.policy import load_policy
    from shoal.spark.streams.run import SparkStream

    policy, state = load_policy(policy_of(folder, "there")), folder / "state-there"
    (folder / "in").mkdir()
    found, known, before = [], set[Path](), spent_so_far()
    for path in sorted((folder / "coming").iterdir()):
        path.rename(folder / "in" / path.name)
        SparkStream(policy, Observer(), master=MASTER, once=True).execute()
        now, stored = spent_so_far(), set(state.glob("shard-*"))
        new = stored - known
        found.append({
            "spent": now.since(before), "logs": _bytes(path for path in new if path.name.endswith(".log")),
            "snapshots": _bytes(path for path in new if not path.name.endswith(".log")), "stored": _bytes(stored),
        })  # fmt: skip
        known, before = stored, now
    return found


def _bytes(paths: Any) -> int:
    return sum(path.stat().st_size for path in paths)


def _followed(folder: Path, env: dict[str, str]) -> list[dict[str, Any]]:
    """`follow` in a process and session of its own."""
    command = [sys.executable, "-m", "benchmarks.spark_stream", "--follow", str(folder)]
    env = {**env, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), env.get("PYTHONPATH", "")])}
    printed = subprocess.run(command, env=env, stdout=subprocess.PIPE, check=True, start_new_session=True).stdout
    found: list[dict[str, Any]] = json.loads(printed.splitlines()[-1])
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
            files_of(many / "coming", [*counts, *[EMPTY_ROWS] * EMPTY])
            found = _followed(many, env)
            for name, part, size in ((f"Spark, {MASTER}", found[WARM : WARM + MEASURED], rows),
                                     (f"Spark, {MASTER}", found[WARM + MEASURED :], EMPTY_ROWS)):  # fmt: skip
                java, python = (mean(one["spent"][at] for one in part) for at in (0, 1))
                rate = size / (java + python)
                lines.append([name, f"{size:,}", short(java), short(python), short(rate), f"{rate / plain_rate:.2f}"])
            state = [
                [f"{number + 1}", f"{size:,}", *(short(one[name] / 1e6) for name in ("logs", "snapshots", "stored"))]
                for number, (one, size) in enumerate(zip(found, [*counts, *[EMPTY_ROWS] * EMPTY], strict=True))
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
    asked.add_argument("--follow", help="used by itself: read the files of this folder")
    given = parse(asked, arguments)
    if given.follow:
        print(json.dumps(follow(Path(given.follow))))
        return
    report = Report(__file__, given)
    measure(report, 2_000 if given.tiny else given.rows, tiny=given.tiny)
    report.write()


if __name__ == "__main__":
    main()
