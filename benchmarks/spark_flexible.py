"""What shards of the flexible method cost in loss: python -m benchmarks.spark_flexible

Shards as on Spark, all in this process, compared with one machine on a synthetic campaign of measurements. A shard has
the window of the policy, as on Spark, or its share of it, so that records wait as long as on one machine.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from unittest.mock import patch

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.flexible_speed import roles_of, with_devices
from benchmarks.measure import Report, parse, parser
from shoal import FlexibleK, Schema
from shoal.methods.release import DEAD, RELEASED
from shoal.reproduce.data.campaign import make_campaign
from shoal.spark.flexible.cuts import FlexibleSharder
from shoal.spark.flexible.decide import AssignShards, DecideShards, flexible_metrics
from shoal.spark.flexible.shard import PENDING
from shoal.spark.recipe import Recipe
from shoal.spark.records.columns import NOTE, ROW, SHARD, VERDICT

K, WINDOW = 6, 5_000


def in_shards(table: pa.Table, method: FlexibleK, shards: int, *, divided: bool) -> dict[str, float]:
    """The metrics of a stream in shards, each with a whole window as on Spark, or with its share of one."""
    recipe, rows = Recipe.of(method), table.combine_chunks().to_batches()[0].select(method.columns)
    sorter = FlexibleSharder(recipe, rows.schema)
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
    """Measure the table."""
    given = parse(parser(__doc__), arguments)
    report = Report(__file__, given)
    loss(report, tiny=given.tiny)
    report.write()


if __name__ == "__main__":
    main()
