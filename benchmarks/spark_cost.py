"""What Spark costs in processor time: python -m benchmarks.spark_cost [--rows N]

z-anonymity from Parquet files to Parquet files, by one process and on Spark with two tasks at a time, both with the
same policy. Processor seconds are those of all processes, the JVM included. Start-up is measured apart, by a run over
a thousand rows, and subtracted.
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
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import Report, parse, parser, short

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
MASTER = "local[2]"
_EVERY = 0.05
_SESSION, _USER = 3, 11
"""Places in /proc/<pid>/stat after the name: session, user time, system time."""


class Spent(NamedTuple):
    """Processor seconds."""

    java: float
    python: float


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


def run(folder: Path, env: dict[str, str], out: str, *words: str) -> tuple[Spent, int]:
    """The processor seconds of a run with all that it starts, and how many rows it released."""
    spent, printed = run_measured(folder, env, ["run", f"{out}.toml", "--quiet", "--json", *words])
    return spent, int(json.loads(printed)["released"])


def run_measured(folder: Path, env: dict[str, str], words: Sequence[str]) -> tuple[Spent, bytes]:
    """The processor seconds of a command of shoal with all that it starts, and what it printed."""
    command = [sys.executable, "-m", "shoal.cli", *words]
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=printed, start_new_session=True)
        spent: dict[tuple[int, bool], float] = {}
        while process.poll() is None:  # the JVM and its workers are not children that are waited for
            spent |= _session_seconds(process.pid)
            time.sleep(_EVERY)
        if process.returncode:
            raise SystemExit(f"the run ended with {process.returncode}")
        printed.seek(0)
        java = sum(seconds for (_, is_java), seconds in spent.items() if is_java)
        return Spent(java, sum(spent.values()) - java), printed.read()


def _session_seconds(session: int) -> dict[tuple[int, bool], float]:
    """Processor seconds so far of every process of a session, and whether it is a JVM."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().rpartition(")")
        except OSError:
            continue  # it has ended
        fields = rest.split()
        if int(fields[_SESSION]) == session:
            seconds = (int(fields[_USER]) + int(fields[_USER + 1])) / os.sysconf("SC_CLK_TCK")
            found[int(path.parent.name), name.endswith("(java")] = seconds
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the table."""
    asked = parser(__doc__)
    asked.add_argument("--rows", type=int, default=4_000_000)
    given = parse(asked, arguments)
    rows = 2_000 if given.tiny else given.rows
    report = Report(__file__, given)
    with tempfile.TemporaryDirectory() as place:
        key = Path(place) / "key"
        key.write_bytes(bytes(range(32, 64)))
        key.chmod(0o600)
        env = {**os.environ, "SHOAL_KEY_FILE": str(key)}
        few, all_rows = Path(place) / "few", Path(place) / "all"
        write_events(few, 1_000)
        write_events(all_rows, rows)
        spark = ("--engine", "spark", "--master", MASTER)
        lines, rates = [], []
        runs: list[tuple[str, str, tuple[str, ...]]] = [
            ("one process", "here", ()),
            (f"Spark, {MASTER}", "there", spark),
        ]
        for name, out, words in runs[: 1 if given.tiny else 2]:  # starting Spark takes longer than a tiny run may
            start, _ = run(few, env, out, *words)
            whole, released = run(all_rows, env, out, *words)
            java, python = (max(more - less, 0.0) for more, less in zip(whole, start, strict=True))
            rates.append(rows / max(java + python, 0.01))
            lines.append([name, short(sum(start)), short(java), short(python), short(rates[-1]),
                          f"{rates[-1] / rates[0]:.2f}", f"{released:,}"])  # fmt: skip
        same = given.tiny or _table(all_rows / "here").equals(_table(all_rows / "there"))
        columns = [
            "run", "start-up, processor s", "rest in the JVM", "rest in Python", "events per processor s", "times",
            "released",
        ]  # fmt: skip
        report.table("z", columns, lines)
        report.text("same", f"Both released the same rows in the same order: {'yes' if same else 'NO'}.")
    report.write()


def _table(folder: Path) -> pa.Table:
    return pa.concat_tables([pq.read_table(path) for path in sorted(folder.glob("part-*.parquet"))]).combine_chunks()


if __name__ == "__main__":
    main()
