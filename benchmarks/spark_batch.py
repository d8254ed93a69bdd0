"""What sets, flexible k and tuples cost on Spark: python -m benchmarks.spark_batch [--cases N]

Processor time next to one process, both from files to files with the same policy. Start-up is a run over a thousand
rows; the run over all rows follows in the same process.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import Report, parse, parser, short
from benchmarks.spark_cost import FILES
from benchmarks.spark_runs import MASTER, measured_runs

SETS = """
[stream]
person = "user"
[source]
kind = "parquet"
path = "in/"
[anonymize]
method = "{method}"
item = "item"
k = 10
m = {m}
{more}
[anonymize.generalize]
balanced = 5
[sink]
kind = "parquet"
path = "{out}.parquet"
"""
FLEXIBLE = """
[stream]
person = "user"
[source]
kind = "parquet"
path = "in/"
[anonymize]
method = "flexible-k"
k = 6
sparse = ["device"]
[anonymize.quasi.place]
kind = "categorical"
hierarchy = { kind = "nested", tree = {places} }
[anonymize.quasi.speed]
kind = "numeric"
low = 0
high = 100
grid = 5
[anonymize.quasi.device]
kind = "categorical"
hierarchy = { kind = "nested", tree = {devices} }
[sink]
kind = "parquet"
path = "{out}/"
"""
LEAST_LOSS = """
[stream]
person = "user"
[source]
kind = "parquet"
path = "in/"
[anonymize]
method = "least-loss"
k = 10
deadline = 10_000
[anonymize.quasi.place]
kind = "categorical"
hierarchy = { kind = "nested", tree = {places} }
[anonymize.quasi.speed]
kind = "numeric"
low = 0
high = 100
[sink]
kind = "parquet"
path = "{out}/"
"""
PLACES = {f"p{a}": {f"p{a}.{b}": [f"p{a}.{b}.{c}" for c in range(6)] for b in range(6)} for a in range(6)}
DEVICES = {f"brand {a}": [f"device {a}.{b}" for b in range(20)] for a in range(20)}


def _toml(tree: dict[str, object]) -> str:
    return "{" + ", ".join(
        f"{json.dumps(name)} = {_toml(below) if isinstance(below, dict) else json.dumps(below)}"  # inline tables
        for name, below in tree.items()
    ) + "}"  # fmt: skip


def items(rows: int) -> pa.Table:
    """(user, item) rows: 8 for each person, of 200 items, the n-th with a chance in proportion to 1 / n."""
    draw = np.random.default_rng(1)
    chances = 1 / np.arange(1, 201)
    chosen = draw.choice(200, rows, p=chances / chances.sum())
    return pa.table({"user": pa.array(draw.integers(0, max(rows // 8, 1), rows)).cast(pa.string()),
                     "item": pa.array(chosen).cast(pa.string())})  # fmt: skip


def measurements(rows: int) -> pa.Table:
    """Measurements of people at places with devices; common ones first."""
    draw = np.random.default_rng(1)
    places = [leaf for region in PLACES.values() for district in region.values() for leaf in district]
    devices = [device for brand in DEVICES.values() for device in brand]

    def some(values: list[str]) -> pa.Array:
        chances = 1 / np.arange(1, len(values) + 1)
        return pa.array(values).take(pa.array(draw.choice(len(values), rows, p=chances / chances.sum())))

    people = draw.integers(0, max(rows // 3, 1), rows)
    return pa.table({"user": pa.array(people).cast(pa.string()), "place": some(places),
                     "speed": draw.uniform(0, 100, rows), "device": some(devices)})  # fmt: skip


def write(folder: Path, policy: str, table: pa.Table) -> None:
    """Input files and policies."""
    (folder / "in").mkdir(parents=True)
    size = -(-len(table) // FILES)
    for number in range(FILES):
        pq.write_table(table.slice(number * size, size), folder / "in" / f"part-{number}.parquet")
    for out in ("here", "there"):
        (folder / f"{out}.toml").write_text(policy.replace("{out}", out))


def _policy(text: str, **values: str) -> str:
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


CASES: list[tuple[str, int, Callable[[int], pa.Table], str]] = [
    ("k^m-apriori, m = 2", 200_000, items, _policy(SETS, method="k^m-apriori", m="2", more="")),
    ("k^m, m = 3, sampled", 200_000, items,
     _policy(SETS, method="k^m", m="3", more="sigma = 0.95\ntrials = 2\ncounted = 1")),
    ("flexible-k", 100_000, measurements,
     _policy(FLEXIBLE, places=_toml({"anywhere": PLACES}), devices=_toml({"any device": DEVICES}))),
    ("least-loss", 100_000, measurements, _policy(LEAST_LOSS, places=_toml({"anywhere": PLACES}))),
]  # fmt: skip


def cost(report: Report, *, tiny: bool, cases: int = len(CASES)) -> None:
    """Processor seconds of each method."""
    lines = []
    with tempfile.TemporaryDirectory() as place:
        key = Path(place) / "key"
        key.write_bytes(bytes(range(32, 64)))
        key.chmod(0o600)
        env = {**os.environ, "SHOAL_KEY_FILE": str(key)}
        for number, (name, rows, make, policy) in enumerate(CASES[:cases]):
            few, whole = Path(place) / f"few {number}", Path(place) / f"all {number}"
            write(few, policy, make(1_000))
            write(whole, policy, make(2_000 if tiny else rows))
            rate = 0.0
            runs = [("one process", "here", False), (f"Spark, {MASTER}", "there", True)]
            for where, out, on_spark in runs[: 1 if tiny else 2]:
                start, ran = measured_runs([few / f"{out}.toml", whole / f"{out}.toml"], env, on_spark=on_spark)
                own = rows / max(ran.spent.total, 0.01)
                rate = rate or own
                lines.append([name, where, short(start.spent.total), short(ran.spent.java), short(ran.spent.python),
                              short(own), f"{own / rate:.2f}", f"{ran.released:,}"])  # fmt: skip
    columns = ["method", "run", "start-up, processor s", "rest in the JVM", "rest in Python", "rows per processor s",
               "times", "released"]  # fmt: skip
    report.table("cost", columns, lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the table."""
    asked = parser(__doc__)
    asked.add_argument("--cases", type=int, default=len(CASES), help="how many of the methods to run, from the first")
    given = parse(asked, arguments)
    report = Report(__file__, given)
    cost(report, tiny=given.tiny, cases=given.cases)
    report.write()


if __name__ == "__main__":
    main()
