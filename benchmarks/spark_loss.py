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
from benchmarks.real_data import folder_with
from shoal import LeastLoss
from shoal.reproduce.data.adult import read_adult
from shoal.reproduce.data.adult_imitation import imitate_adult
from shoal.reproduce.data.streams import Stream
from shoal.spark.recipe import Recipe
from shoal.spark.records.columns import AT_END, CLOCK, NOTE, ROW, VERDICT
from shoal.spark.tuples.cuts import TupleSharder
from shoal.spark.tuples.drift import cuts_of_stretches, sampled_rows, stretches
from shoal.spark.tuples.shard import TupleShard, shard_recipe

FIXED = 2_000
GROWING = 1_000
"""Arrivals for each shard."""


class Found(NamedTuple):
    """What shards made of a stream."""

    shards: int
    learnt: int
    """How often cuts were learnt."""
    loss: float
    suppressed: float
    largest: float
    """The share of the shard with the most rows."""


def in_shards(stream: Stream, method: LeastLoss, shards: int, *, again: bool = True) -> Found:
    """Decide a stream in shards; without `again` the first cuts stay."""
    recipe, rows = Recipe.of(method), stream.table.combine_chunks().to_batches()[0].select(method.columns)
    inner, numbers, starts = shard_recipe(recipe), np.arange(len(stream)), stretches(0, len(stream))
    sampled = sampled_rows(starts, len(stream))
    all_cuts = cuts_of_stretches(rows.take(pa.array(sampled)), sampled, starts if again else starts[:1], recipe, shards)
    whole = rows.append_column(ROW, pa.array(numbers)).append_column(CLOCK, pa.array(numbers))
    of = TupleSharder(recipe, all_cuts).read(rows, numbers).shards
    used = int(of.max()) + 1
    found = [_decided(TupleShard(inner, s, rows.schema), whole.filter(pa.array(of == s))) for s in range(used)]
    left = pa.array(sorted(row for _, rows_left, _ in found for row in rows_left), pa.int64())
    lost, dropped = sum(loss for loss, _, _ in found) - len(left), sum(many for *_, many in found)
    if len(left):
        loss, left_again, more = _decided(TupleShard(inner, used, rows.schema), whole.take(left))
        lost, dropped = lost + loss, dropped + more + len(left_again)
    count = len(stream)
    return Found(used, len(all_cuts), lost / count, dropped / count, int(np.bincount(of).max()) / count)


def _decided(shard: TupleShard, rows: pa.RecordBatch) -> tuple[float, list[int], int]:
    """The loss of a shard's rows, rows that were not due but found too few others, and rows suppressed when due."""
    last = int(np.asarray(rows.column(ROW)).max(initial=0))
    table = pa.Table.from_batches([shard.push(rows), *shard.finish(last)])
    note = orjson.loads(table.filter(pc.is_valid(table[NOTE]))[NOTE].to_pylist()[0])
    suppressed = table.filter(pc.equal(table[VERDICT], "suppressed"))
    at_end = suppressed.filter(suppressed[AT_END])[ROW].to_pylist()
    return note["sums"]["loss"], at_end, len(suppressed) - len(at_end)


def loss_alone(stream: Stream, k: int, deadline: int) -> float:
    """The loss of one window over the whole stream."""
    alone = LeastLoss(stream.schema, k=k, deadline=deadline, reuse=200)
    alone.push_batch(stream.table)
    alone.flush()
    return float(alone.metrics["loss"])


def rows_of(stream: Stream, crowds: Sequence[int], counts: Sequence[int]) -> list[list[str]]:
    """A line for each k, deadline and number of shards."""
    lines = []
    for k in crowds:
        for shards in counts:
            for kind, deadline in (("fixed", FIXED), ("grows", GROWING * shards)):
                deadline = min(deadline, len(stream) // 2)
                one = loss_alone(stream, k, deadline)
                found = in_shards(stream, LeastLoss(stream.schema, k=k, deadline=deadline, reuse=200), shards)
                lines.append(
                    [str(k), f"{kind}, {deadline:,}", str(shards), str(found.shards), f"{one:.3f}",
                     f"{found.loss:.3f}", f"{found.loss / one:.2f}", f"{found.suppressed:.2%}"]
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
                 f"{found.loss / one:.2f}", f"{found.suppressed:.2%}", f"{found.largest:.0%}"]
            )  # fmt: skip
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the table."""
    asked = parser(__doc__, data="UCI's files of Adult")
    asked.add_argument("--rows", type=int, default=30_000)
    given = parse(asked, arguments)
    rows = 400 if given.tiny else given.rows
    adult = folder_with(given.data, "adult.data")
    stream = (read_adult(adult) if adult else imitate_adult(rows, seed=1)).head(rows)
    report = Report(__file__, given, data=stream.origin)
    crowds, counts = ((5,), (4,)) if given.tiny else ((10, 50), (4, 16))
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder) / "key"
        key.write_bytes(bytes(range(32, 64)))
        columns = [
            "k", "deadline, arrivals", "shards asked for", "used", "loss of one window", "in shards", "times",
            "suppressed",
        ]  # fmt: skip
        with patch.dict(os.environ, SHOAL_KEY_FILE=str(key)):
            report.table("loss", columns, rows_of(stream, crowds, counts))
            columns = [
                "k", "deadline, arrivals", "times that cuts were learnt", "loss of one window", "in shards", "times",
                "suppressed", "largest shard",
            ]  # fmt: skip
            report.table("drift", columns, drift_rows(drifting(400 if given.tiny else 4 * given.rows)))
    report.write()


if __name__ == "__main__":
    main()
