"""Runs over files with a tap, for tests of what is measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from shoal.decode.base import Decoded
from shoal.methods.release import Release
from shoal.pipeline import Pipeline
from shoal.serve.recent import RecentRows
from shoal.serve.released import ReleasedRows
from shoal.serve.tap import RunTap

Z = """
[stream]
person = "user"
time = "ts"
[source]
kind = "csv"
path = "visits.csv"
[anonymize]
method = "z-anonymity"
attribute = "site"
z = 3
window = "20s"
[sink]
kind = "csv"
path = "released.csv"
"""
TUPLES = """
[stream]
person = "user"
[source]
kind = "csv"
path = "people.csv"
[anonymize]
method = "fads"
k = 4
l = 2
deadline = 60
sensitive = ["illness"]
[anonymize.quasi.lat]
kind = "numeric"
low = 40
high = 50
[anonymize.quasi.lon]
kind = "numeric"
low = 0
high = 10
[anonymize.quasi.job]
kind = "categorical"
hierarchy = { kind = "nested", tree = { any = { health = ["nurse", "doctor"], trade = ["baker", "smith"] } } }
[sink]
kind = "csv"
path = "released.csv"
"""


class Run:
    """A finished run and what its tap has kept."""

    def __init__(self, folder: Path, policy: str, content: str, *, most_rows: int = 500_000) -> None:
        (folder / "policy.toml").write_text(policy)
        (folder / Pipeline.from_policy(folder / "policy.toml").policy.file_source.path[0].path).write_text(content)
        self.pipeline = Pipeline.from_policy(folder / "policy.toml")
        self.policy, self.recent = self.pipeline.policy, RecentRows(most_rows=most_rows)
        self.tap = RunTap(self.recent, ReleasedRows())
        self.summary = self.pipeline.run(self.tap)

    def records(self) -> list[dict[str, Any]]:
        """The input by number."""
        return [row for step in self.recent.steps() if step.batch is not None for row in step.batch.to_pylist()]

    def published(self) -> list[tuple[int, dict[str, Any]]]:
        """Published rows, each with the number of its record."""
        pairs = [step.shown() for step in self.recent.steps()]
        return [
            (number, row)
            for rows, trace in filter(None, pairs)
            for number, row in zip(trace.column("row").to_pylist(), rows.to_pylist(), strict=True)
        ]


def forged(recent: RecentRows, number: int, changes: dict[str, Any]) -> None:
    """Add a release of one more row of a record: the last published row, with some columns changed."""
    rows, trace = next(found for step in reversed(recent.steps()) if (found := step.shown()) and found[0].num_rows)
    row = {**rows.slice(rows.num_rows - 1).to_pylist()[0], **changes}
    entry = {**trace.slice(trace.num_rows - 1).to_pylist()[0], "row": number, "reused": False}
    entry = {name: entry[name] for name in trace.schema.names}
    published, traced = (
        pa.RecordBatch.from_pylist([row], rows.schema),
        pa.RecordBatch.from_pylist([entry], trace.schema),
    )
    recent.add(None, 0, Release(published, traced))


def arrive(recent: RecentRows, rows: list[dict[str, Any]], first: int, like: pa.RecordBatch) -> None:
    """Add records of which nothing was released."""
    batch = pa.RecordBatch.from_pylist(rows, schema=like.schema)
    nothing = recent.steps()[-1].release
    empty = Release(nothing.rows.slice(0, 0), nothing.trace.slice(0, 0))
    recent.add(Decoded(batch, (), {}), first, empty)
