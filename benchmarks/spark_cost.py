"""What Spark costs in processor time: python -m benchmarks.spark_cost [--rows N ...]

z-anonymity from Parquet files to Parquet files, by one process and on Spark with two tasks at a time, both with the
same policy. Processor seconds are those of all processes, the JVM included. Start-up is a run over a thousand rows; the
runs over many rows follow in the same process, in the order given.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import Report, parse, parser, short
from benchmarks.spark_runs import MASTER, Spent, measured_runs, seconds_of

POLICY = """
[stream]
person = "user"
time = "ts"
[source]
kind = "parquet"
path = "in/"
[anonymize]
method = "z-anonymity"
attribute = "site"
z = 20
window = "1h"
[sink]
kind = "parquet"
path = "{out}/"
"""
FILES = 4
_EVERY = 0.05


def write_events(folder: Path, rows: int) -> None:
    """Visits of 100,000 people to 10,000 sites in two hours, in order."""
    (folder / "in").mkdir(parents=True)
    draw = np.random.default_rng(1)
    times = np.sort(draw.integers(0, 7_200, rows)) + 1_700_000_000
    people, sites = draw.integers(0, 100_000, rows), draw.zipf(1.3, rows) % 10_000
    table = pa.table(
        {
            "ts": pa.array(times).cast(pa.timestamp("s")),
            "user": pa.array(people).cast(pa.string()),
            "site": pa.array(sites).cast(pa.string()),
        }
    )
    size = -(-rows // FILES)
    for number in range(FILES):
        pq.write_table(table.slice(number * size, size), folder / "in" / f"part-{number}.parquet")
    for out in ("here", "there"):
        (folder / f"{out}.toml").write_text(POLICY.format(out=out))


def run_measured(folder: Path, env: dict[str, str], words: Sequence[str]) -> tuple[Spent, bytes]:
    """The processor seconds of a command of shoal with all that it starts, and what it printed."""
    command = [sys.executable, "-m", "shoal.cli", *words]
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=printed, start_new_session=True)
        spent: dict[tuple[int, bool], float] = {}
        while process.poll() is None:  # the JVM and its workers are not children that are waited for
            spent |= seconds_of(process.pid)
            time.sleep(_EVERY)
        if process.returncode:
            raise SystemExit(f"the run ended with {process.returncode}")
        printed.seek(0)
        java = sum(seconds for (_, is_java), seconds in spent.items() if is_java)
        return Spent(java, sum(spent.values()) - java), printed.read()


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the table."""
    asked = parser(__doc__)
    asked.add_argument("--rows", type=int, nargs="+", default=[4_000_000, 16_000_000])
    given = parse(asked, arguments)
    sizes = [2_000] if given.tiny else given.rows
    report = Report(__file__, given)
    with tempfile.TemporaryDirectory() as place:
        key = Path(place) / "key"
        key.write_bytes(bytes(range(32, 64)))
        key.chmod(0o600)
        env = {**os.environ, "SHOAL_KEY_FILE": str(key)}
        folders = [Path(place) / str(number) for number in range(len(sizes) + 1)]
        for folder, rows in zip(folders, [1_000, *sizes], strict=True):
            write_events(folder, rows)
        here, there = (
            # starting Spark takes longer than a tiny run may
            [] if given.tiny and on_spark else measured_runs([one / name for one in folders], env, on_spark=on_spark)
            for name, on_spark in (("here.toml", False), ("there.toml", True))
        )
        lines = []
        for number, rows in enumerate(sizes, start=1):
            least = here[number].spent.total
            for name, runs in (("one process", here), (f"Spark, {MASTER}", there)):
                if runs:
                    spent = runs[number].spent
                    lines.append([name, f"{rows:,}", short(runs[0].spent.total), short(spent.java), short(spent.python),
                                  short(rows / max(spent.total, 0.01)), f"{least / spent.total:.2f}",
                                  f"{runs[number].released:,}"])  # fmt: skip
        same = given.tiny or all(released_rows(one / "here").equals(released_rows(one / "there")) for one in folders)
        columns = [
            "run", "events", "start-up, processor s", "rest in the JVM", "rest in Python", "events per processor s",
            "times", "released",
        ]  # fmt: skip
        report.table("z", columns, lines)
        report.text("same", f"Both released the same rows in the same order: {'yes' if same else 'NO'}.")
    report.write()


def released_rows(folder: Path) -> pa.Table:
    """What a run released, in order."""
    return pa.concat_tables([pq.read_table(path) for path in sorted(folder.glob("part-*.parquet"))]).combine_chunks()


if __name__ == "__main__":
    main()
