"""Speed of the auditor of z-anonymity, with truth and trace: python -m benchmarks.audit_z [--old CHECKOUT]

A checkout of another version of shoal audits the same files in turn with this one, each time in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import Report, parse, parser, short
from benchmarks.sources import ROOT
from shoal import ZAnonymity

POLICY: dict[str, Any] = {
    "stream": {"person": "user", "time": "ts"},
    "anonymize": {"method": "z-anonymity", "attribute": "site", "z": 20, "window": "1h"},
}
PARTS = ("release", "truth", "trace")
_AUDIT = """
import json, resource, sys, time
import pyarrow.parquet as pq
import shoal
folder, policy = sys.argv[1], json.loads(sys.argv[2])
tables = [pq.read_table(f"{folder}/{name}.parquet", use_threads=False) for name in sys.argv[3:]]
shoal.audit(tables[0].slice(0, 100), policy=policy)  # loads what an audit needs
begin = time.process_time()
found = shoal.audit(*tables, policy=policy)
spent = time.process_time() - begin
assert found.ok, found.text()
print(json.dumps([spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


def events(rows: int) -> pa.Table:
    """Visits of 100,000 people to 10,000 sites in two hours, in order."""
    draw = np.random.default_rng(1)
    times = np.sort(draw.integers(0, 7_200, rows)) + 1_700_000_000
    return pa.table({
        "user": pa.array(draw.integers(0, 100_000, rows)).cast(pa.string()),
        "ts": pa.array(times).cast(pa.timestamp("s")),
        "site": pa.array(draw.zipf(1.3, rows) % 10_000).cast(pa.string()),
    })  # fmt: skip


def write(folder: Path, rows: int) -> int:
    """Publish events, and write what an audit looks at; return how many rows were released."""
    method = ZAnonymity(z=20, window="1h", person="user", time="ts", attribute="site", key=bytes(16))
    truth = events(rows)
    parts = [method.push_batch(truth), method.flush()]
    release, trace = (pa.concat_tables([pa.table(getattr(part, name)) for part in parts]) for name in ("rows", "trace"))
    for name, table in zip(PARTS, (release, truth, trace), strict=True):
        pq.write_table(table, folder / f"{name}.parquet")
    return int(release.num_rows)


def audited(checkout: Path, folder: Path, names: Sequence[str]) -> tuple[float, float]:
    """Processor seconds of an audit by a checkout, and the most memory of its process in MB."""
    env = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, "-c", _AUDIT, str(folder), json.dumps(POLICY), *names]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, env=env, cwd=folder)
    spent, memory = json.loads(done.stdout.splitlines()[-1])
    return spent, memory


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    asked = parser(__doc__)
    asked.add_argument("--rows", type=int, default=2_000_000)
    asked.add_argument("--quick", action="store_true", help="200,000 events, once")
    asked.add_argument("--old", type=Path, help="a checkout of shoal to compare with")
    given = parse(asked, arguments)
    rows, tries = (2_000, 1) if given.tiny else (200_000, 1) if given.quick else (given.rows, 3)
    checkouts = {"this version": ROOT} | ({"the other": given.old.resolve()} if given.old else {})
    report = Report(__file__, given)
    with tempfile.TemporaryDirectory() as place:
        released = write(Path(place), rows)
        ways = {"with truth and trace": PARTS, "with truth": PARTS[:2], "release alone": PARTS[:1]}
        costs: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for _ in range(tries):
            for way, names in ways.items():
                for version, checkout in checkouts.items():
                    costs.setdefault((way, version), []).append(audited(checkout, Path(place), names))
    columns = ["", "version", "events", "released", "processor seconds for a million events", "MB"]
    cells = [
        [way, version, f"{rows:,}", f"{released:,}", short(min(found)[0] / rows * 1e6), f"{min(found)[1]:,.0f}"]
        for (way, version), found in costs.items()
    ]
    report.table("costs", columns, cells)
    report.write()


if __name__ == "__main__":
    main()
