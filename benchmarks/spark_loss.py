"""What shards cost in loss: python -m benchmarks.spark_loss [--data FOLDER] [--rows N]

Least-loss in shards as on Spark, all in this process, compared with one window over the whole stream: with a fixed
deadline, so that every shard has fewer rows to choose from, and with one that grows with the number of shards. Then the
same on a stream of imitated records whose people become older, with cuts that stay and cuts that are learnt again.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.measure import Report, parse, parser
from benchmarks.tuple_streams import real_streams, synthetic_streams
from shoal import LeastLoss
from shoal.methods.release import RELEASED, SUPPRESSED
from shoal.reproduce.data.adult_imitation import imitate_adult
from shoal.reproduce.data.streams import Stream
from shoal.spark.recipe import Recipe
from shoal.spark.records.columns import DELAY, NOTE, ROW, SHARD, VERDICT
from shoal.spark.tuples.decide import AssignShards, DecideShards
from shoal.spark.tuples.drift import cuts_of_stretches, sampled_rows, stretches
from shoal.spark.tuples.shard import shard_recipe
from shoal.spark.tuples.trace import DecidedAgain, tuple_metrics

FIXED = 2_000
GROWING = 1_000
"""Arrivals for each shard."""
DATA = ("adult", "pm25", "check-ins", "flights")


class Found(NamedTuple):
    """What shards made of a stream."""

    shards: int
    learnt: int
    """How often cuts were learnt."""
    loss: float
    left: float
    """The share of rows that found too few others in their shard, and were decided again in one more."""
    suppressed: float
    largest: float
    """The share of the shard with the most rows."""


def in_shards(stream: Stream, method: LeastLoss, shards: int, *, again: bool = True) -> Found:
    """Decide a stream as a batch on Spark does; without `again` the first cuts stay."""
    recipe, rows = Recipe.of(method), stream.table.combine_chunks().to_batches()[0].select(method.columns)
    count, numbers, starts = len(stream), np.arange(len(stream)), stretches(0, len(stream))
    sampled = sampled_rows(starts, count)
    all_cuts = cuts_of_stretches(rows.take(pa.array(sampled)), sampled, starts if again else starts[:1], recipe, shards)
    used = max(each.shards for each in all_cuts)
    assign = AssignShards(recipe, rows.schema, all_cuts, is_timed=False)
    assigned = pa.Table.from_batches(assign([rows.append_column(ROW, pa.array(numbers))]))
    decide = DecideShards(shard_recipe(recipe), rows.schema, count - 1)
    alone = _decided(decide, assigned)
    is_left = pc.fill_null(pc.equal(alone[VERDICT], SUPPRESSED), fill_value=False)
    left, kept = alone.filter(is_left), alone.filter(pc.invert(is_left))
    if used > 1 and len(left):
        ours = assigned.filter(pc.is_in(assigned[ROW], left[ROW]))
        in_one = pa.repeat(pa.scalar(used, pa.int32()), len(ours))
        ours = ours.set_column(ours.schema.get_field_index(SHARD), SHARD, in_one)
        kept = pa.concat_tables([kept, _decided(replace(decide, again=True), ours)])
    dropped = pc.sum(pc.equal(kept[VERDICT], SUPPRESSED)).as_py() or 0
    notes = [orjson.loads(note) for note in kept[NOTE].drop_null().to_pylist()]
    redone = DecidedAgain(len(left), pc.sum(left[DELAY]).as_py() or 0)
    verdicts = {RELEASED: count - dropped, SUPPRESSED: dropped}
    found = tuple_metrics(notes, verdicts, shards=used, is_timed=False, again=redone)
    largest = int(np.bincount(assigned[SHARD].to_numpy()).max())
    return Found(used, len(all_cuts), found["loss"], len(left) / count, dropped / count, largest / count)


def _decided(decide: DecideShards, rows: pa.Table) -> pa.Table:
    """What shards decide about rows."""
    in_order = rows.sort_by([(SHARD, "ascending"), (ROW, "ascending")]).combine_chunks()
    return pa.Table.from_batches(decide(in_order.to_batches()))


def loss_alone(stream: Stream, k: int, deadline: int) -> float:
    """The loss of one window over the whole stream."""
    alone = LeastLoss(stream.schema, k=k, deadline=deadline, reuse=200)
    alone.push_batch(stream.table)
    alone.flush()
    return float(alone.metrics["loss"])


def rows_of(name: str, stream: Stream, crowds: Sequence[int], counts: Sequence[int]) -> list[list[str]]:
    """A line for each k, deadline and number of shards."""
    lines = []
    for k in crowds:
        for shards in counts:
            for kind, deadline in (("fixed", FIXED), ("grows", GROWING * shards)):
                deadline = min(deadline, len(stream) // 2)
                one = loss_alone(stream, k, deadline)
                found = in_shards(stream, LeastLoss(stream.schema, k=k, deadline=deadline, reuse=200), shards)
                lines.append(
                    [name, str(k), f"{kind}, {deadline:,}", str(shards), str(found.shards), f"{one:.3f}",
                     f"{found.loss:.3f}", f"{found.loss / one:.2f}", f"{found.left:.2%}", f"{found.suppressed:.2%}"]
                )  # fmt: skip
    return lines


def drifting(rows: int) -> Stream:
    """Imitated records of people who become older in the course of the stream."""
    stream = imitate_adult(rows, seed=1)
    ages = stream.table["age"].to_numpy() + np.random.default_rng(3).normal(0, 8, rows)
    return replace(stream, table=stream.table.take(pa.array(np.argsort(ages, kind="stable"))))


def drift_rows(stream: Stream) -> list[list[str]]:
    """A line for each k and deadline, with cuts that stay and with cuts that are learnt again."""
    lines = []
    for k, deadline in ((10, FIXED), (50, GROWING * 16)):
        deadline = min(deadline, len(stream) // 2)
        one = loss_alone(stream, k, deadline)
        for again in (False, True):
            method = LeastLoss(stream.schema, k=k, deadline=deadline, reuse=200)
            found = in_shards(stream, method, 16, again=again)
            lines.append(
                [str(k), f"{deadline:,}", str(found.learnt), f"{one:.3f}", f"{found.loss:.3f}",
                 f"{found.loss / one:.2f}", f"{found.left:.2%}", f"{found.suppressed:.2%}", f"{found.largest:.0%}"]
            )  # fmt: skip
    return lines


def streams(data: Path | None, rows: int) -> dict[str, Stream]:
    """The data sets of the table, those that are found; without any, imitations."""
    found = real_streams(data, rows) if data else {}
    return {name: found[name] for name in DATA if name in found} or synthetic_streams(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure both tables."""
    asked = parser(__doc__, data="UCI's files of Adult and PM2.5, check-ins of Gowalla, flights of vega-datasets")
    asked.add_argument("--rows", type=int, default=30_000)
    given = parse(asked, arguments)
    rows = 400 if given.tiny else given.rows
    found = streams(given.data, rows)
    report = Report(__file__, given, data="; ".join(stream.origin for stream in found.values()))
    crowds, counts = ((5,), (4,)) if given.tiny else ((10, 50), (4, 16))
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder) / "key"
        key.write_bytes(bytes(range(32, 64)))
        columns = [
            "data", "k", "deadline, arrivals", "shards asked for", "used", "loss of one window", "in shards", "times",
            "decided again", "suppressed",
        ]  # fmt: skip
        with patch.dict(os.environ, SHOAL_KEY_FILE=str(key)):
            lines = [
                line
                for name, stream in found.items()
                for line in rows_of(name, stream, crowds, counts if name == "adult" else counts[-1:])
            ]
            report.table("loss", columns, lines)
            columns = [
                "k", "deadline, arrivals", "times that cuts were learnt", "loss of one window", "in shards", "times",
                "decided again", "suppressed", "largest shard",
            ]  # fmt: skip
            report.table("drift", columns, drift_rows(drifting(400 if given.tiny else 4 * given.rows)))
    report.write()


if __name__ == "__main__":
    main()
