"""What each step of z-anonymity on Spark takes, without Spark: python -m benchmarks.spark_parts [--rows N]

Admission is one task for the whole stream; a shard is judged by one task at a time. So these two rates bound what a
cluster can do, however large it is.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.measure import Report, measured, parse, parser, short
from shoal import ZAnonymity
from shoal.spark.columns import NOTE, ROW, SHARD
from shoal.spark.recipe import Recipe
from shoal.spark.session import ROWS_OF_A_BATCH
from shoal.spark.z import AdmitRows, JudgeShards, SplitRows, whole_clock


def events(rows: int) -> pa.Table:
    """Visits of 100,000 people to 10,000 sites in two hours, in order, numbered."""
    draw = np.random.default_rng(1)
    times = np.sort(draw.integers(0, 7_200, rows)) + 1_700_000_000
    return pa.table(
        {
            "user": pa.array(draw.integers(0, 100_000, rows)).cast(pa.string()),
            "ts": pa.array(times).cast(pa.timestamp("s")),
            "site": pa.array(draw.zipf(1.3, rows) % 10_000).cast(pa.string()),
            ROW: np.arange(rows),
        }
    )


def rows_of(count: int, shards: int) -> list[list[str]]:
    """A line for each step."""
    method = ZAnonymity(z=20, window="1h", person="user", time="ts", attribute="site")
    recipe, table = Recipe.of(method), events(count)
    types = pa.schema([table.schema.field(name) for name in method.columns])
    batches = table.to_batches(max_chunksize=ROWS_OF_A_BATCH)
    warm = table.slice(0, 1_000).to_batches()
    admit = AdmitRows(recipe, types, ("user", "ts"))
    split = SplitRows(recipe, types, shards, pa.schema([*table.schema, (SHARD, pa.int32())]))
    list(split(warm))
    list(admit(warm))
    admitting, admitted = measured(lambda: pa.Table.from_batches(list(admit(batches))))
    clock = whole_clock(admitted.filter(pc.is_valid(admitted[NOTE]))[NOTE].to_pylist())
    splitting, dealt = measured(lambda: pa.Table.from_batches(list(split(batches))))
    dealt = dealt.sort_by([(SHARD, "ascending"), (ROW, "ascending")]).combine_chunks()
    judge = JudgeShards(recipe, types, SimpleNamespace(value=clock), count)
    judging, _ = measured(lambda: list(judge(dealt.to_batches(max_chunksize=ROWS_OF_A_BATCH))))
    size = (clock.numbers.nbytes + clock.newest.nbytes) / len(clock.numbers)
    largest = max(np.bincount(np.asarray(dealt[SHARD]), minlength=shards)) / count
    steps = [("admission: one task for all", admitting), ("split by the method", splitting), ("a shard", judging)]
    lines = [[name, short(count / cost.processor)] for name, cost in steps]
    lines.append(["clock: bytes for each distinct time", short(size)])
    lines.append([f"share of the largest of {shards} shards", f"{largest:.1%}"])
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the table."""
    asked = parser(__doc__)
    asked.add_argument("--rows", type=int, default=2_000_000)
    given = parse(asked, arguments)
    report = Report(__file__, given)
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder) / "key"
        key.write_bytes(bytes(range(32, 64)))
        with patch.dict(os.environ, SHOAL_KEY_FILE=str(key)):
            report.table(
                "steps", ["step", "events per processor second"], rows_of(3_000 if given.tiny else given.rows, 16)
            )
    report.write()


if __name__ == "__main__":
    main()
