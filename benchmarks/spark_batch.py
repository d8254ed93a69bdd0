"""What batches cost on Spark: sets, flexible k, tuples, z with combine or a target: python -m benchmarks.spark_batch

Processor time next to one process, both from files to files with the same policy. Each engine is one process that runs
all methods one after another: of each twice a thousand rows, then all of them. The first of these runs loads what the
method needs, the second shows what any run costs, the third what its rows cost.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import Report, parse, parser, short
from benchmarks.spark_cost import FILES
from benchmarks.spark_parts import events
from benchmarks.spark_runs import MASTER, Ran, measured_runs

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
VALUES = """
[stream]
person = "user"
time = "ts"
[source]
kind = "parquet"
path = "in/"
[anonymize]
method = "z-anonymity"
attribute = "site"
window = "10min"
{more}
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


@dataclass(frozen=True)
class Case:
    """A method, and the rows that it is measured on."""

    name: str
    rows: int
    table: Callable[[int], pa.Table]
    policy: str


CASES = [
    Case("k^m-apriori, m = 2", 3_000_000, items, _policy(SETS, method="k^m-apriori", m="2", more="")),
    Case("k^m, m = 3, sampled", 2_000_000, items,
         _policy(SETS, method="k^m", m="3", more="sigma = 0.95\ntrials = 2\ncounted = 1")),
    Case("flexible-k", 1_000_000, measurements,
         _policy(FLEXIBLE, places=_toml({"anywhere": PLACES}), devices=_toml({"any device": DEVICES}))),
    Case("least-loss", 400_000, measurements, _policy(LEAST_LOSS, places=_toml({"anywhere": PLACES}))),
    Case("z, combine", 800_000, events, _policy(VALUES, more='z = 20\ncombine = "k"\nk = 5')),
    Case("z, target", 4_000_000, events, _policy(VALUES, more="target = {k = 2, p = 0.9}")),
]  # fmt: skip
COLUMNS = ["method", "rows", "run", "a thousand rows, processor s", "all rows, in the JVM", "in Python",
           "rows per processor s", "times", "times beyond a thousand rows", "released"]  # fmt: skip


def cost(report: Report, cases: Sequence[Case], *, tiny: bool) -> None:
    """Processor seconds of each method."""
    with tempfile.TemporaryDirectory() as place:
        key = Path(place) / "key"
        key.write_bytes(bytes(range(32, 64)))
        key.chmod(0o600)
        env = {**os.environ, "SHOAL_KEY_FILE": str(key)}
        folders = [_folder(Path(place) / str(number), case) for number, case in enumerate(cases)]
        here = _runs(folders, "here", env, on_spark=False)
        there = [] if tiny else _runs(folders, "there", env, on_spark=True)  # starting Spark takes longer than that
    lines = []
    for number, case in enumerate(cases):
        runs = {"one process": here[number]} | ({f"Spark, {MASTER}": there[number]} if there else {})
        lines += [_line(case, name, ran, here[number]) for name, ran in runs.items()]
    report.table("cost", COLUMNS, lines)


def _folder(folder: Path, case: Case) -> Path:
    write(folder / "few", case.policy, case.table(1_000))
    write(folder / "all", case.policy, case.table(case.rows))
    return folder


def _runs(folders: Sequence[Path], out: str, env: dict[str, str], *, on_spark: bool) -> list[tuple[Ran, Ran]]:
    """Of each folder a run of few rows that is not the first, and one of all rows."""
    policies = [folder / size / f"{out}.toml" for folder in folders for size in ("few", "few", "all")]
    ran = measured_runs(policies, env, on_spark=on_spark)
    return list(zip(ran[1::3], ran[2::3], strict=True))


def _line(case: Case, name: str, own: tuple[Ran, Ran], one: tuple[Ran, Ran]) -> list[str]:
    (few, ran), (least, plain) = own, one
    spent = max(ran.spent.total, 0.01)
    times = plain.spent.total / spent
    beyond = (plain.spent.total - least.spent.total) / max(ran.spent.total - few.spent.total, 0.01)
    return [case.name, f"{case.rows:,}", name, short(few.spent.total), short(ran.spent.java), short(ran.spent.python),
            short(case.rows / spent), f"{times:.2f}", f"{beyond:.2f}", f"{ran.released:,}"]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the table."""
    asked = parser(__doc__)
    asked.add_argument("--only", nargs="+", default=[case.name for case in CASES], help="names of methods to run")
    given = parse(asked, arguments)
    report = Report(__file__, given)
    chosen = [case for case in CASES if case.name in given.only]
    cost(report, [replace(case, rows=2_000) for case in chosen] if given.tiny else chosen, tiny=given.tiny)
    report.write()


if __name__ == "__main__":
    main()
