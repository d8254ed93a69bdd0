"""What shards cost in loss: python -m benchmarks.spark_loss [--data FOLDER] [--rows N]

Least-loss in shards as on Spark, all in this process, compared with one window over the whole stream: with a fixed
deadline, so that every shard has fewer rows to choose from, and with one that grows with the number of shards.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
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
from shoal.spark.columns import AT_END, CLOCK, NOTE, ROW, VERDICT
from shoal.spark.recipe import Recipe
from shoal.spark.tuples.cuts import LEARNING_ROWS, TupleSorter
from shoal.spark.tuples.shard import TupleShard, shard_recipe

FIXED = 2_000
GROWING = 1_000
"""Arrivals for each shard."""


def in_shards(stream: Stream, method: LeastLoss, shards: int) -> tuple[int, float, float]:
    """Shards used, loss and suppressed share."""
    recipe, rows = Recipe.of(method), stream.table.combine_chunks().to_batches()[0].select(method.columns)
    count, inner, sorter = len(stream), shard_recipe(recipe), TupleSorter(recipe)
    sorter.learn(rows.slice(0, LEARNING_ROWS), shards)
    numbers = np.arange(count)
    whole = rows.append_column(ROW, pa.array(numbers)).append_column(CLOCK, pa.array(numbers))
    of = sorter.read(rows, numbers).shards
    found = [_decided(TupleShard(inner, s, rows.schema), whole.filter(pa.array(of == s))) for s in range(sorter.shards)]
    left = pa.array(sorted(row for _, rows_left, _ in found for row in rows_left), pa.int64())
    lost, kept = sum(loss for loss, _, _ in found) - len(left), sum(dropped for *_, dropped in found)
    if len(left):
        loss, again, dropped = _decided(TupleShard(inner, sorter.shards, rows.schema), whole.take(left))
        lost, kept = lost + loss, kept + dropped + len(again)
    return sorter.shards, lost / count, kept / count


def _decided(shard: TupleShard, rows: pa.RecordBatch) -> tuple[float, list[int], int]:
    """The loss of a shard's rows, rows that were not due but found too few others, and rows suppressed when due."""
    last = int(np.asarray(rows.column(ROW)).max(initial=0))
    table = pa.Table.from_batches([shard.push(rows), *shard.finish(last)])
    note = orjson.loads(table.filter(pc.is_valid(table[NOTE]))[NOTE].to_pylist()[0])
    suppressed = table.filter(pc.equal(table[VERDICT], "suppressed"))
    at_end = suppressed.filter(suppressed[AT_END])[ROW].to_pylist()
    return note["sums"]["loss"], at_end, len(suppressed) - len(at_end)


def rows_of(stream: Stream, crowds: Sequence[int], counts: Sequence[int]) -> list[list[str]]:
    """A line for each k, deadline and number of shards."""
    found = []
    for k in crowds:
        for shards in counts:
            for kind, deadline in (("fixed", FIXED), ("grows", GROWING * shards)):
                deadline = min(deadline, len(stream) // 2)
                alone = LeastLoss(stream.schema, k=k, deadline=deadline, reuse=200)
                alone.push_batch(stream.table)
                alone.flush()
                used, loss, dropped = in_shards(
                    stream, LeastLoss(stream.schema, k=k, deadline=deadline, reuse=200), shards
                )
                one = alone.metrics["loss"]
                found.append(
                    [str(k), f"{kind}, {deadline:,}", str(shards), str(used), f"{one:.3f}", f"{loss:.3f}",
                     f"{loss / one:.2f}", f"{dropped:.2%}"]
                )  # fmt: skip
    return found


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
    report.write()


if __name__ == "__main__":
    main()
