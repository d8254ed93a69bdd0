"""A run from file to file, Arrow to Arrow in memory, and others copying the file: python -m benchmarks.end_to_end"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import Cost, Report, least, measured, parse, parser, rate_columns
from benchmarks.z_speed import push_all
from benchmarks.z_stream import Stream, make_stream
from shoal import Pipeline

TRIES = 5
Z = 10
FORMATS = ("parquet", "csv", "jsonl")
_POLICY = """
[stream]
person = "user"
time = "ts"
[source]
kind = "{kind}"
path = "in.{kind}"
[source.types]
ts = "int64"
[anonymize]
method = "z-anonymity"
attribute = "site"
z = {z}
window = {window}
[sink]
kind = "{kind}"
path = "out.{kind}"
"""
_READ: dict[str, Callable[[Path], pl.DataFrame]] = {
    "parquet": pl.read_parquet,
    "csv": pl.read_csv,
    "jsonl": pl.read_ndjson,
}
_WRITE: dict[str, Callable[[pl.DataFrame, Path], Any]] = {
    "parquet": pl.DataFrame.write_parquet,
    "csv": pl.DataFrame.write_csv,
    "jsonl": pl.DataFrame.write_ndjson,
}


@contextmanager
def files(stream: Stream) -> Iterator[Path]:
    """A folder with the stream in every format, and a policy for each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        frame = pl.from_arrow(stream.batch)
        assert isinstance(frame, pl.DataFrame)
        for kind in FORMATS:
            _WRITE[kind](frame, folder / f"in.{kind}")
            policy = _POLICY.format(kind=kind, z=Z, window=stream.window)
            (folder / f"{kind}.toml").write_text(policy)
        yield folder


def anonymized(folder: Path, kind: str) -> int:
    """Run the policy of a format; give the rows it published."""
    return Pipeline.from_policy(folder / f"{kind}.toml").run().released


def copied(folder: Path, kind: str) -> int:
    """Read the file with polars and write it again, without anonymizing."""
    frame = _READ[kind](folder / f"in.{kind}")
    _WRITE[kind](frame, folder / f"copy.{kind}")
    return frame.height


def read_and_written(folder: Path, released: pa.Table) -> None:
    """Read the Parquet file with pyarrow while another thread writes the rows that shoal published: the floor."""
    with ThreadPoolExecutor(1) as pool, pq.ParquetFile(folder / "in.parquet") as file:
        writing = pool.submit(pq.write_table, released, folder / "floor.parquet", compression="zstd")
        for _ in file.iter_batches(use_threads=False):
            pass
        writing.result()


def compare(stream: Stream, folder: Path, tries: int) -> dict[str, Cost]:
    """The least cost of each way, the ways taking turns."""
    best: dict[str, Cost] = {}
    anonymized(folder, "parquet")
    released = pq.read_table(folder / "out.parquet")
    for _ in range(tries):
        costs = {"shoal, Arrow to Arrow in memory": push_all(stream, Z, 65_536)[0]}
        for kind in FORMATS:
            costs[f"shoal, {kind} to {kind}"] = measured(lambda kind=kind: anonymized(folder, kind))[0]
            costs[f"polars, {kind} to {kind}, not anonymized"] = measured(lambda kind=kind: copied(folder, kind))[0]
        floor = measured(lambda: read_and_written(folder, released))[0]
        costs["pyarrow, parquet read and the published rows written, two threads"] = floor
        best = {name: least(cost, best.get(name, cost)) for name, cost in costs.items()}
    return best


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; keep the figures as JSON."""
    given = parse(parser(__doc__), arguments)
    report = Report(__file__, given)
    stream = make_stream(5_000, 200, 50) if given.tiny else make_stream()
    with files(stream) as folder:
        best = compare(stream, folder, 1 if given.tiny else TRIES)
    events = stream.batch.num_rows
    memory = next(iter(best.values())).wall
    rows = [[name, *cost.rates(events), f"{memory / cost.wall:.2f}"] for name, cost in best.items()]
    report.figures = {name: vars(cost) | {"events": events} for name, cost in best.items()}
    report.table("ways", ["", *rate_columns("events"), "speed, Arrow to Arrow = 1"], rows)
    report.write()


if __name__ == "__main__":
    main()
