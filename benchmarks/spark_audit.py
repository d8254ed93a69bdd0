"""What audits cost on Spark: python -m benchmarks.spark_audit [--only z sets least-loss flexible-k]

Releases with their truth and trace are audited by one process, and on Spark with two tasks at a time. Processor seconds
are those of all processes, the JVM included. Each engine is one process that audits one release after another: of each
twice a release of a thousand rows, then the whole one. The first audit loads what it needs, the second shows what any
audit costs.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.measure import Report, parse, parser, short
from benchmarks.spark_batch import CASES as BATCHES
from benchmarks.spark_batch import Case, write
from benchmarks.spark_cost import POLICY
from benchmarks.spark_parts import events
from benchmarks.spark_runs import MASTER, Ran, measured_runs

_TRACE = '\n[trace]\npath = "{out}-trace.parquet"\n'
_BATCHES = {case.name: case for case in BATCHES}
CASES = {
    "z": Case("z-anonymity", 1_000_000, events, POLICY),
    "sets": replace(_BATCHES["k^m-apriori, m = 2"], rows=2_000_000),
    "least-loss": replace(_BATCHES["least-loss"], rows=400_000),
    "flexible-k": replace(_BATCHES["flexible-k"], rows=400_000),
}
COLUMNS = ["release", "rows", "audit", "a thousand rows, processor s", "all rows, in the JVM", "in Python",
           "rows per processor s", "times", "findings"]  # fmt: skip


def published(folder: Path, case: Case) -> list[Path]:
    """Policies of a release of a thousand rows, and of one of all rows."""
    for size, count in (("few", 1_000), ("all", case.rows)):
        write(folder / size, case.policy + _TRACE, case.table(count))
    return [folder / size / "here.toml" for size in ("few", "all")]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the table."""
    asked = parser(__doc__)
    asked.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES), help="releases to audit")
    given = parse(asked, arguments)
    report = Report(__file__, given)
    chosen = [replace(CASES[name], rows=2_000) if given.tiny else CASES[name] for name in given.only]
    with tempfile.TemporaryDirectory() as place:
        key = Path(place) / "key"
        key.write_bytes(bytes(range(32, 64)))
        key.chmod(0o600)
        env = {**os.environ, "SHOAL_KEY_FILE": str(key)}
        pairs = [published(Path(place) / str(number), case) for number, case in enumerate(chosen)]
        measured_runs([policy for pair in pairs for policy in pair], env, on_spark=False)
        policies = [policy for few, whole in pairs for policy in (few, few, whole)]
        engines = {"one process": measured_runs(policies, env, on_spark=False, work="audit")}
        if not given.tiny:  # starting Spark takes longer than a tiny run may
            engines[f"Spark, {MASTER}"] = measured_runs(policies, env, on_spark=True, work="audit")
    lines = [
        _line(case, engine, ran[3 * number + 1], ran[3 * number + 2], engines["one process"][3 * number + 2])
        for number, case in enumerate(chosen)
        for engine, ran in engines.items()
    ]
    report.table("cost", COLUMNS, lines)
    report.write()


def _line(case: Case, engine: str, few: Ran, whole: Ran, one: Ran) -> list[str]:
    spent = max(whole.spent.total, 0.01)
    return [case.name, f"{case.rows:,}", engine, short(few.spent.total), short(whole.spent.java),
            short(whole.spent.python), short(case.rows / spent), f"{one.spent.total / spent:.2f}",
            str(whole.released)]  # fmt: skip


if __name__ == "__main__":
    main()
