"""A hot value on Spark: python -m benchmarks.spark_hot [--rows N]

z-anonymity from Parquet files to Parquet files with two tasks at a time. Values are even, or one has a tenth or half of
all events: all of these are judged by one task. The longest task of a step is read from Spark's own records; it counts
wall clock, from the first byte that the task fetches on. One process without Spark releases the same rows.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import Report, parse, parser, short
from benchmarks.spark_cost import FILES, POLICY, released_rows
from benchmarks.spark_runs import MASTER, measured_runs, spent_so_far
from shoal.observe.observer import Observer
from shoal.policy import load_policy

SHARES = (0.0, 0.1, 0.5)
VALUES = 10_000


def write_events(folder: Path, rows: int, hot: float) -> None:
    """Visits of 100,000 people in two hours: a share of them to one site, the others evenly to 10,000 sites."""
    (folder / "in").mkdir(parents=True)
    draw, size = np.random.default_rng(1), -(-rows // FILES)
    times = np.sort(draw.integers(0, 7_200_000_000, rows)) + 1_700_000_000_000_000
    sites = np.where(draw.random(rows) < hot, VALUES, draw.integers(0, VALUES, rows))
    table = pa.table(
        {
            "ts": pa.array(times).cast(pa.timestamp("us")),
            "user": pa.array(draw.integers(0, 100_000, rows)).cast(pa.string()),
            "site": pa.array(sites).cast(pa.string()),
        }
    )
    for number in range(FILES):
        pq.write_table(table.slice(number * size, size), folder / "in" / f"part-{number}.parquet")
    for out in ("here", "there"):
        (folder / f"{out}.toml").write_text(POLICY.format(out=out))


def on_spark(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """Run the policies on Spark, one after another in this process."""
    from shoal.spark.run import SparkRun

    found = []
    for folder in folders:
        before, start, stages = spent_so_far(), time.perf_counter(), _stages()
        SparkRun(load_policy(folder / "there.toml"), Observer(), master=MASTER).execute()
        wall, spent = time.perf_counter() - start, spent_so_far().since(before)
        longest = {len(seconds): max(seconds) for stage, seconds in sorted(_stages().items()) if stage not in stages}
        # one task admits, and more tasks judge shards than read files or write ranges
        found.append({
            "wall": wall, "spent": spent.total, "admission": longest[1], "shard": longest[max(longest)],
        })  # fmt: skip
    return found


def _stages() -> dict[int, list[float]]:
    """The seconds of the tasks of every stage so far, as Spark records them."""
    from pyspark.sql import SparkSession

    session: Any = SparkSession.getActiveSession()
    if session is None:
        return {}
    context = session.sparkContext
    tracker, found = context.statusTracker(), {}
    store = context._jsc.sc().statusStore()  # noqa: SLF001 - PySpark shows tasks in no other way
    for stage in {stage for job in tracker.getJobIdsForGroup() for stage in tracker.getJobInfo(job).stageIds}:
        tasks = store.taskList(stage, 0, 1_000)
        found[stage] = [tasks.apply(at).taskMetrics().get().executorRunTime() / 1_000 for at in range(tasks.size())]
    return {stage: seconds for stage, seconds in found.items() if seconds}


def _apart(folders: Sequence[Path], env: dict[str, str]) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "benchmarks.spark_hot", "--folders", *map(str, folders)]
    env = {**env, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), env.get("PYTHONPATH", "")])}
    printed = subprocess.run(command, env=env, stdout=subprocess.PIPE, check=True, start_new_session=True).stdout
    found: list[dict[str, Any]] = json.loads(printed.splitlines()[-1])
    return found


def measure(report: Report, rows: int, *, tiny: bool) -> None:
    """The table."""
    with tempfile.TemporaryDirectory() as place:
        key = Path(place) / "key"
        key.write_bytes(bytes(range(32, 64)))
        key.chmod(0o600)
        env, warm = {**os.environ, "SHOAL_KEY_FILE": str(key)}, Path(place) / "warm"
        folders = [Path(place) / str(share) for share in SHARES]
        write_events(warm, max(rows // 10, 1_000), 0.0)
        for folder, share in zip(folders, SHARES, strict=True):
            write_events(folder, rows, share)
        here = measured_runs([folder / "here.toml" for folder in (warm, *folders)], env, on_spark=False)[1:]
        # starting Spark takes longer than a tiny run may
        there = [] if tiny else _apart([warm, *folders], env)[1:]
        lines = []
        for number, (folder, share) in enumerate(zip(folders, SHARES, strict=True)):
            line = [f"{share:.0%}", f"{rows:,}", short(here[number].spent.total)]
            if there:
                run = there[number]
                same = released_rows(folder / "here").equals(released_rows(folder / "there"))
                line += [*(short(run[name]) for name in ("spent", "wall", "admission", "shard")),
                         "yes" if same else "NO"]  # fmt: skip
            lines.append(line)
    columns = ["events of one value", "events", "one process, processor s"]
    if there:
        columns += [f"Spark, {MASTER}, processor s", "Spark, wall clock s", "admission, one task: s",
                    "longest task of a shard: s", "same rows in the same order"]  # fmt: skip
        report.figures |= {"rows": rows, "runs": there}
    report.table("runs", columns, lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the table."""
    asked = parser(__doc__)
    asked.add_argument("--rows", type=int, default=2_000_000)
    asked.add_argument("--folders", type=Path, nargs="+", help="used by itself: run the policies in these folders")
    given = parse(asked, arguments)
    if given.folders:
        print(json.dumps(on_spark(given.folders)))
        return
    report = Report(__file__, given)
    measure(report, 2_000 if given.tiny else given.rows, tiny=given.tiny)
    report.write()


if __name__ == "__main__":
    main()
