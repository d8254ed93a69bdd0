"""Sets and the flexible method on Spark: python -m benchmarks.spark_batch [cost|loss]

What they cost in processor time next to one process, both from files to files with the same policy, start-up apart. And
what shards of the flexible method cost in loss, on a synthetic campaign of measurements, in this process.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest.mock import patch

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.flexible_speed import roles_of, with_devices
from benchmarks.measure import Report, parse, parser, short
from benchmarks.spark_cost import FILES, MASTER, run
from shoal import FlexibleK, Schema
from shoal.methods.release import DEAD, RELEASED
from shoal.reproduce.data.campaign import make_campaign
from shoal.spark.columns import NOTE, ROW, SHARD, VERDICT
from shoal.spark.flexible.cuts import FlexibleSorter
from shoal.spark.flexible.decide import AssignShards, DecideShards, flexible_metrics
from shoal.spark.flexible.shard import PENDING
from shoal.spark.recipe import Recipe

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
PLACES = {f"p{a}": {f"p{a}.{b}": [f"p{a}.{b}.{c}" for c in range(6)] for b in range(6)} for a in range(6)}
DEVICES = {f"brand {a}": [f"device {a}.{b}" for b in range(20)] for a in range(20)}
K, WINDOW = 6, 5_000


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
]  # fmt: skip


def cost(report: Report, *, tiny: bool) -> None:
    """Processor seconds of each method."""
    lines = []
    with tempfile.TemporaryDirectory() as place:
        key = Path(place) / "key"
        key.write_bytes(bytes(range(32, 64)))
        key.chmod(0o600)
        env = {**os.environ, "SHOAL_KEY_FILE": str(key)}
        for number, (name, rows, make, policy) in enumerate(CASES):
            few, whole = Path(place) / f"few {number}", Path(place) / f"all {number}"
            write(few, policy, make(1_000))
            write(whole, policy, make(2_000 if tiny else rows))
            rate = 0.0
            for where, out, words in (("one process", "here", ()),
                                      (f"Spark, {MASTER}", "there", ("--engine", "spark", "--master", MASTER)))[: 1 if tiny else 2]:  # fmt: skip  # noqa: E501
                start, _ = run(few, env, out, *words)
                spent, released = run(whole, env, out, *words)
                java, python = (max(more - less, 0.0) for more, less in zip(spent, start, strict=True))
                own = rows / max(java + python, 0.01)
                rate = rate or own
                lines.append([name, where, short(sum(start)), short(java), short(python), short(own),
                              f"{own / rate:.2f}", f"{released:,}"])  # fmt: skip
    columns = ["method", "run", "start-up, processor s", "rest in the JVM", "rest in Python", "rows per processor s",
               "times", "released"]  # fmt: skip
    report.table("cost", columns, lines)


def in_shards(table: pa.Table, method: FlexibleK, shards: int, *, divided: bool) -> dict[str, float]:
    """The metrics of a stream in shards, each with a whole window as on Spark, or with its share of one."""
    recipe, rows = Recipe.of(method), table.combine_chunks().to_batches()[0].select(method.columns)
    sorter = FlexibleSorter(recipe, rows.schema)
    calibration = sorter.calibrate(rows)
    cuts = sorter.learn(rows, calibration, shards)
    numbered = rows.append_column(ROW, pa.array(np.arange(len(rows))))
    (assigned,) = AssignShards(recipe, rows.schema, calibration, cuts)([numbered])
    if divided:
        recipe = recipe.with_settings(window=method.settings.window // (len(cuts) + 1))
    decide = DecideShards(recipe, rows.schema, calibration, len(rows) - 1)
    order = [(SHARD, "ascending"), (ROW, "ascending")]
    found = pa.Table.from_batches(
        decide(pa.Table.from_batches([assigned]).sort_by(order).combine_chunks().to_batches())
    )
    left = pc.equal(found[VERDICT], PENDING).fill_null(False)  # noqa: FBT003
    if len(cuts) and found.filter(left).num_rows:
        again = assigned.take(pa.array(np.sort(found.filter(left)[ROW].to_numpy())))
        joint = pa.repeat(pa.scalar(len(cuts) + 1, pa.int32()), len(again))
        again = again.set_column(again.schema.get_field_index(SHARD), SHARD, joint)
        found = pa.concat_tables([found.filter(pc.invert(left)), pa.Table.from_batches(decide.another()([again]))])
    counts = {verdict: pc.sum(pc.equal(found[VERDICT], verdict)).as_py() or 0 for verdict in (RELEASED, DEAD)}
    notes = [orjson.loads(text) for text in found[NOTE].drop_null().to_pylist()]
    return flexible_metrics(notes, counts, shards=len(cuts) + 1, rows=len(rows), calibration=calibration, k=K)


def loss(report: Report, *, tiny: bool) -> None:
    """Loss and pending records, in shards and on one machine."""
    records = 3_000 if tiny else 60_000
    table, ontology = with_devices(make_campaign(records // 2, records, seed=0), 0)
    schema = Schema(person="maid", time="time", quasi=roles_of(table, 4))
    window, lines = min(WINDOW, records // 3), []

    def made() -> FlexibleK:
        return FlexibleK(schema, ontology, k=K, window=window)

    here = made()
    here.push_batch(table.select(here.columns))
    here.flush()
    with tempfile.NamedTemporaryFile() as key:
        key.write(bytes(range(32, 64)))
        key.flush()
        with patch.dict(os.environ, {"SHOAL_KEY_FILE": key.name}):
            for shards, divided in ((1, False), (4, False), (16, False), (4, True), (16, True)):
                found = in_shards(table, made(), shards, divided=divided)
                used, ours, theirs = int(found["shards"]), here.metrics, found["loss"]
                lines.append([str(shards), str(used), f"{window // used if divided else window:,}",
                              f"{ours['loss']:.3f}", f"{theirs:.3f}", f"{theirs / ours['loss']:.2f}",
                              f"{ours['pending'] / records:.2%}", f"{found['pending'] / records:.2%}"])  # fmt: skip
    columns = [
        "shards asked for",
        "used",
        "window of a shard",
        "loss of one machine",
        "in shards",
        "times",
        "pending on one machine",
        "in shards",
    ]
    report.table("loss", columns, lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the tables."""
    asked = parser(__doc__)
    asked.add_argument("what", nargs="?", choices=["cost", "loss"])
    given = parse(asked, arguments)
    report = Report(__file__, given)
    for name, measure in (("cost", cost), ("loss", loss)):
        if given.what in (None, name):
            measure(report, tiny=given.tiny)
    report.write()


if __name__ == "__main__":
    main()
