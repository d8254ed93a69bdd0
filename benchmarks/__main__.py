"""Measure all figures of README and docs, one benchmark after the other, and fill them in.

python -m benchmarks [--data FOLDER] [--only NAME ...]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

SUITE = (
    "z_speed",
    "z_memory",
    "tuples_speed",
    "tuples_growth",
    "tuples_loss",
    "tuples_missing",
    "audit_tuples",
    "arrival_attack",
    "sets_speed",
    "flexible_speed",
    "flexible_compare",
    "limits",
    "window_report",
)
"""What `make bench` runs: all that README and docs are filled from."""
WITH_DATA = {
    "tuples_speed", "arrival_attack", "sets_speed", "flexible_compare", "limits", "tuples_loss", "tuples_missing",
    "z_combine",
}  # fmt: skip


def main() -> None:
    """Run each in a process of its own: compiled code, memory and the files it loads are its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of real data; benchmarks that have no use for it ignore it")
    parser.add_argument("--only", nargs="+", default=list(SUITE), help="names of benchmarks, of the suite or others")
    given = parser.parse_args()
    begun = time.perf_counter()
    for name in given.only:
        data = ["--data", str(given.data)] if given.data and name in WITH_DATA else []
        print(f"\n== {name}", flush=True)
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *data], check=True)
        print(f"{(time.perf_counter() - begun) / 60:.1f} minutes so far", flush=True)
    subprocess.run([sys.executable, "-m", "benchmarks.fill"], check=True)


if __name__ == "__main__":
    main()
