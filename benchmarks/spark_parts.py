"""What each step of z-anonymity on Spark takes, without Spark: python -m benchmarks.spark_parts [--rows N]

Admission is one task for the whole stream; a shard is judged by one task at a time. So these two rates bound what a
cluster can do, however large it is.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from benchmarks.measure import Cost, Report, measured, parse, parser, short
from shoal import ZAnonymity
from shoal.decode.base import BATCH_ROWS
from shoal.methods.z.admission import Clock
from shoal.spark.recipe import Recipe
from shoal.spark.records.blocks import HEAD, OpenBlocks, block_of
from shoal.spark.records.columns import BLOCK, PART, SHARD
from shoal.spark.z.admit import AdmitRows, admission_columns, read_admission
from shoal.spark.z.judge import JudgeShards, SplitRows
from shoal.spark.z.output_ranges import RANGE, Ranges, merged


def events(rows: int) -> pa.Table:
    """Visits of 100,000 people to 10,000 sites in two hours, in order."""
    draw = np.random.default_rng(1)
    times = np.sort(draw.integers(0, 7_200, rows)) + 1_700_000_000
    return pa.table(
        {
            "user": pa.array(draw.integers(0, 100_000, rows)).cast(pa.string()),
            "ts": pa.array(times).cast(pa.timestamp("s")),
            "site": pa.array(draw.zipf(1.3, rows) % 10_000).cast(pa.string()),
        }
    )


def rows_of(count: int, shards: int) -> list[list[str]]:
    """A line for each step."""
    method = ZAnonymity(z=20, window="1h", person="user", time="ts", attribute="site")
    recipe, table = Recipe.of(method), events(count)
    steps = Steps(recipe, method, shards)
    for _ in steps.measured(table.slice(0, 1_000)):  # loads the compiled functions
        pass
    found = dict(steps.measured(table))
    lines = [[name, short(count / cost.processor)] for name, cost in found.items()]
    lines.append(["clock, with lateness: bytes for each distinct time", short(clock_bytes(table))])
    lines.append([f"share of the largest of {shards} shards", f"{max(steps.sizes) / count:.1%}"])
    lines.append(["moved to admission: bytes for each event", short(steps.to_admission / count)])
    lines.append(["moved to shards: bytes for each event", short(steps.to_shards / count)])
    lines.append(["moved to the output: bytes for each event", short(steps.to_ranges / count)])
    return lines


def clock_bytes(table: pa.Table) -> float:
    """What the clock takes for each distinct time, where rows wait for late ones."""
    method = ZAnonymity(z=20, window="1h", person="user", time="ts", attribute="site", lateness="1min")
    steps = Steps(Recipe.of(method), method, 1)
    for _ in steps.measured(table.slice(0, 10_000)):
        pass
    return (steps.clock.numbers.nbytes + steps.clock.newest.nbytes) / len(set(table.slice(0, 10_000)["ts"].to_pylist()))


class Steps:
    """The steps of a run on Spark, one after another in this process."""

    def __init__(self, recipe: Recipe, method: ZAnonymity, shards: int) -> None:
        self._recipe, self._method, self._shards = recipe, method, shards
        self._head = admission_columns(method.settings)
        self.clock = Clock(np.empty(0, np.int64), np.empty(0, np.int64))
        self.sizes: list[int] = []
        self.to_admission = self.to_shards = self.to_ranges = 0

    def measured(self, table: pa.Table) -> Iterator[tuple[str, Cost]]:
        """What each step takes."""
        rows, count = table.combine_chunks().to_batches()[0].select(self._method.columns), len(table)
        self._method.bind(rows.schema)
        pieces = [rows.slice(start, BATCH_ROWS) for start in range(0, count, BATCH_ROWS)]
        starts = {(0, number): BATCH_ROWS * number for number in range(len(pieces))}
        opening = OpenBlocks(rows.schema, self._head, starts)
        blocks = [block_of(0, number, piece, self._head) for number, piece in enumerate(pieces)]
        self.to_admission = sum(block.select([PART, BLOCK, HEAD]).nbytes for block in blocks)
        ranges = Ranges.of(0, count, 2)
        admit = AdmitRows(self._recipe, opening, ranges)
        cost, admitted = measured(lambda: list(admit(blocks)))
        yield "admission: one task for all", cost
        admission = SimpleNamespace(value=read_admission(pa.Table.from_batches(admitted)))
        split = SplitRows(self._recipe, opening, self._shards, admission)
        cost, assigned = measured(lambda: pa.Table.from_batches(list(split(blocks))))
        yield "split by the method", cost
        self.clock, self.to_shards = admission.value.clock, assigned.nbytes
        assigned = assigned.sort_by(SHARD).combine_chunks()
        owners = self._method.owners(rows, self._shards)[0]
        self.sizes = np.bincount(owners, minlength=self._shards).tolist()
        judge = JudgeShards(self._recipe, rows.schema, admission, count, ranges)
        cost, judged = measured(lambda: list(judge(assigned.to_batches(max_chunksize=self._shards))))
        yield "a shard", cost
        decided = pa.Table.from_batches(judged)
        self.to_ranges = decided.nbytes
        parts = [decided.filter(pa.array(np.asarray(decided[RANGE]) == number)) for number in range(ranges.ranges)]
        schema, names = self._method.output_schema, ["site"]
        cost, _ = measured(lambda: [merged(part.to_batches(), schema, names) for part in parts])
        yield "a range of the output", cost


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
            lines = rows_of(3_000 if given.tiny else given.rows, 16)
            report.table("steps", ["step", "events per processor second"], lines)
    report.write()


if __name__ == "__main__":
    main()
