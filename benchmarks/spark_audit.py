"""What an audit on Spark costs in processor time: python -m benchmarks.spark_audit [--rows N]

A release of z-anonymity, with its truth and trace, is audited by one process and on Spark with two tasks at a time.
Processor seconds are those of all processes, the JVM included. Start-up is measured apart, by a release of a thousand
rows, and subtracted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import Report, parse, parser, short
from benchmarks.spark_cost import run_measured, write_events
from benchmarks.spark_runs import MASTER

_TRACE = '\n[trace]\npath = "trace.parquet"\n'


def publish(folder: Path, env: dict[str, str], rows: int) -> None:
    """Write a release, its truth and its trace."""
    write_events(folder, rows)
    policy = folder / "here.toml"
    policy.write_text(policy.read_text() + _TRACE)
    subprocess.run(
        [sys.executable, "-m", "shoal.cli", "run", "here.toml", "--quiet"], cwd=folder, env=env, check=True,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the table."""
    asked = parser(__doc__)
    asked.add_argument("--rows", type=int, default=1_000_000)
    given = parse(asked, arguments)
    rows = 2_000 if given.tiny else given.rows
    report = Report(__file__, given)
    with tempfile.TemporaryDirectory() as place:
        key = Path(place) / "key"
        key.write_bytes(bytes(range(32, 64)))
        key.chmod(0o600)
        env = {**os.environ, "SHOAL_KEY_FILE": str(key)}
        few, all_rows = Path(place) / "few", Path(place) / "all"
        publish(few, env, 1_000)
        publish(all_rows, env, rows)
        words = ["audit", "here/", "--truth", "in/", "--trace", "trace.parquet", "--policy", "here.toml", "--json"]
        runs = [("one process", words), (f"Spark, {MASTER}", [*words, "--engine", "spark", "--master", MASTER])]
        lines = []
        for name, command in runs[: 1 if given.tiny else 2]:  # starting Spark takes longer than a tiny run may
            start, _ = run_measured(few, env, command)
            whole, printed = run_measured(all_rows, env, command)
            java, python = (max(more - less, 0.0) for more, less in zip(whole, start, strict=True))
            found = json.loads(printed)
            lines.append([
                name, short(sum(start)), short(java), short(python), short(rows / max(java + python, 0.01)),
                str(len(found["findings"])), str(found["metrics"]["smallest_crowd"]["site"]),
            ])  # fmt: skip
        columns = [
            "audit", "start-up, processor s", "rest in the JVM", "rest in Python", "events per processor s", "findings",
            "smallest crowd",
        ]  # fmt: skip
        report.table("z", columns, lines)
    report.write()


if __name__ == "__main__":
    main()
