"""Measure all figures of README and docs, one benchmark after the other, and fill them in.

python -m benchmarks [--data FOLDER] [--all] [--only NAME ...]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

SUITE = (
    "z_speed",
    "z_memory",
    "tuples_speed",
    "tuples_fast",
    "tuples_growth",
    "tuples_loss",
    "spark_loss",
    "spark_flexible",
    "spark_parts",
    "spark_scale",
    "audit_tuples",
    "audit_tables",
    "arrival_attack",
    "sets_speed",
    "flexible_speed",
    "flexible_compare",
    "limits",
    "several_rows",
    "window_report",
    "max_share",
    "flexible_traces",
    "walk",
    "end_to_end",
    "messages",
    "first_run",
)
"""What `make bench` runs."""
LONG = (
    "serve",
    "serve_load",
    "attack_matrix",
    "minimality",
    "tuples_missing",
    "missing_modes",
    "tuples_optimum",
    "tuples_frontier",
    "z_model",
    "z_following",
    "z_targets",
    "z_tuning",
    "z_ways",
    "z_combine",
    "z_residual",
    "decoys",
    "sanitize_speed",
    "sets_promise",
    "sets_trees",
    "sets_local",
    "sets_growth",
    "sets_city",
    "sets_study",
    "live_systems",
    "live_kafka",
    "live_workers",
    "spark_cost",
    "spark_hot",
    "spark_stream",
    "spark_batch",
    "spark_audit",
)
"""What `make bench-all` runs after these: each takes minutes, together about an hour on two busy cores. README and
docs are filled from both lists and from `BY_HAND`, and from nothing else."""
BY_HAND = ("soak",)
"""What neither of them runs, because its duration is an option."""
WITH_DATA = {
    "tuples_speed", "tuples_fast", "arrival_attack", "attack_matrix", "minimality", "sets_speed", "sets_trees",
    "sets_local", "flexible_compare", "limits",
    "tuples_loss", "spark_loss", "tuples_missing", "missing_modes", "tuples_optimum", "tuples_frontier", "z_combine",
    "z_residual", "z_targets", "z_tuning", "z_ways",
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Run each in a process of its own: compiled code, memory and the files it loads are its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of real data; benchmarks that have no use for it ignore it")
    parser.add_argument("--all", action="store_true", help="the long ones too: about an hour")
    parser.add_argument("--only", nargs="+", help="names of benchmarks, of the suite or others")
    given = parser.parse_args(arguments)
    begun = time.perf_counter()
    for name in given.only or [*SUITE, *(LONG if given.all else ())]:
        data = ["--data", str(given.data)] if given.data and name in WITH_DATA else []
        print(f"\n== {name}", flush=True)
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *data], check=True)
        print(f"{(time.perf_counter() - begun) / 60:.1f} minutes so far", flush=True)
    subprocess.run([sys.executable, "-m", "benchmarks.fill"], check=True)


if __name__ == "__main__":
    main()
