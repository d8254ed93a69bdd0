"""Time and memory of `shoal report`: python -m benchmarks.window_report [ROWS]"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

HOURS = 24
PEOPLE = 60_000
SITES = 2_000
POLICY = """\
[stream]
person = "user"
time = "ts"
[anonymize]
method = "z-anonymity"
attribute = "site"
z = 20
window = "1h"
"""


def make_release(rows: int, seed: int = 1) -> pa.Table:
    """A day of released rows: few people and few sites have most of them."""
    draw = np.random.default_rng(seed)
    moment = np.sort(draw.integers(0, HOURS * 3600, rows))
    person = (draw.pareto(1.2, rows) * PEOPLE / 20).astype(np.int64) % PEOPLE
    site = (draw.pareto(1.0, rows) * 5).astype(np.int64) % SITES
    pseudonym = moment // 3600 * PEOPLE + person
    names = [f"{number:032x}" for number in pseudonym.tolist()]
    return pa.table({"ts": moment, "user": names, "site": [f"{number}.example" for number in site.tolist()]})


def main() -> None:
    """Make a release, and report on it with the command, in a process of its own."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        release, policy = Path(folder, "released.parquet"), Path(folder, "policy.toml")
        parquet.write_table(make_release(rows), release)
        policy.write_text(POLICY)
        command = [sys.executable, "-m", "shoal.cli", "report", str(release), "--policy", str(policy)]
        begun = time.perf_counter()
        process = subprocess.Popen([*command, "--out", folder], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - begun
    assert process.returncode == 0
    print(
        f"{rows:,} released rows: {seconds:.1f} s ({usage.ru_utime + usage.ru_stime:.1f} s of processor time), "
        f"at most {usage.ru_maxrss / 1024:.0f} MB"
    )


if __name__ == "__main__":
    main()
