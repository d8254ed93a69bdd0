"""Tuple methods on streams: shards continue through crashes with the same rows, and k holds on the union."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
import shoal.spark
from shoal.crypto.keys import as_secret
from shoal.encode.sealed import read_sealed_trace
from shoal.pipeline.wiring import make_anonymizer
from shoal.policy import load_policy
from shoal.spark.streams.state import Commit, StateFolder
from shoal.spark.tuples import cuts
from tests.spark.scene import DIVERSE, KEY, TUPLES, Stage, people
from tests.spark.streams.test_dataframes import Crash, published

ROWS, FILES = 2400, 3


def streamed(session: Any, stage: Stage, policy: Path, name: str, *, crashes: int = 0) -> list[Any]:
    """What a stream publishes, by micro-batch; it is started again after every crash."""
    folder = stage.folder / "in"
    stream = session.readStream.schema(session.read.parquet(str(folder)).schema)
    frame = stream.option("maxFilesPerTrigger", 1).parquet(str(folder))
    places = {one: stage.folder / f"{name}-{one}" for one in ("out", "state", "trace", "dead_letters")}
    for left in range(crashes, -1, -1):
        query = shoal.spark.anonymize(frame, policy, shards=4, **places).trigger(availableNow=True).start()
        with pytest.raises(Exception, match="Crash") if left else nullcontext():
            query.awaitTermination()
    return published(places["out"])


def test_micro_batches_are_identical_through_crashes_and_anonymous_on_the_union(
    session: Any, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deadlines are durations here; where they count arrivals: `test_file_streams.py`."""
    stage.write(people(ROWS), files=FILES, kind="parquet")
    for number, path in enumerate(sorted((stage.folder / "in").iterdir())):
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    monkeypatch.setattr(cuts, "LEARNING_ROWS", 1200)
    timed = {**TUPLES, **DIVERSE, "method": "fads", "deadline": "400s", "reuse": "40s"}
    policy = stage.policy(timed, "there", kind="parquet", time=True)
    expected = streamed(session, stage, policy, "one")
    write, crashes = StateFolder.write, {1, 2}

    def crashing(self: StateFolder, commit: Commit) -> None:
        if commit.batch in crashes:
            crashes.remove(commit.batch)
            raise Crash
        write(self, commit)

    monkeypatch.setattr(StateFolder, "write", crashing)
    assert streamed(session, stage, policy, "two", crashes=2) == expected
    rows = pa.Table.from_pylist([row for batch in expected for row in batch])
    traces = sorted((stage.folder / "one-trace").iterdir())
    trace = pa.concat_tables([read_sealed_trace(path, as_secret(KEY)) for path in traces])
    report = shoal.audit(rows, str(stage.folder / "in"), trace, str(policy))
    assert report.ok, report
    assert report.metrics["l"]["work"] == 3
    assert len(rows) > 0.8 * ROWS
    used = {group % 2**40 for group in trace["group"].to_pylist() if group is not None}
    assert len(used) > 1
    first = read_sealed_trace(traces[0], as_secret(KEY))["group"].drop_null().to_pylist()
    assert {group % 2**40 for group in first} == {0}, "all rows are in one shard until cuts are learnt"


def test_a_wrong_clock_of_the_first_person_does_not_stop_a_stream(session: Any, stage: Stage) -> None:
    """Rows wait until a second person confirms the time, because the first one's may be set back."""
    rows = people(900)
    for row in rows[:3]:
        row |= {"id": "wrong", "ts": row["ts"] + 10_000_000}
    for number, part in enumerate((rows[:3], rows[3:450], rows[450:])):
        path = stage.folder / "in" / f"part-{number}.parquet"
        pq.write_table(pa.Table.from_pylist(part), path)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    timed = {**TUPLES, "method": "fads", "deadline": "400s", "reuse": "40s"}
    policy = stage.policy(timed, "there", kind="parquet", time=True)
    found = streamed(session, stage, policy, "one")
    method = make_anonymizer(load_policy(policy), as_secret(KEY))
    parts = [method.push_batch(pq.read_table(path)) for path in sorted((stage.folder / "in").iterdir())]
    here, there = [part.rows.num_rows for part in parts], [len(batch) for batch in found]
    assert there[0] == here[0] == 0
    assert all(0.8 * one < many for one, many in zip(here[1:], there[1:], strict=True)), (here, there)
    parts.append(method.flush())
    traces = [read_sealed_trace(path, as_secret(KEY)) for path in sorted((stage.folder / "one-trace").iterdir())]
    released = pa.Table.from_pylist([row for batch in found for row in batch])
    # A trace from Spark has no events: where the time is not clear either, an audit accuses one machine of as much.
    without = pa.Table.from_batches([part.trace for part in parts]).drop_columns(["event"])
    rows_here = pa.Table.from_batches([part.rows for part in parts])
    assert codes(released, traces, stage, policy) <= codes(rows_here, without, stage, policy) | {"pending"}


def codes(released: Any, trace: Any, stage: Stage, policy: Path) -> set[str]:
    """What an audit finds."""
    return {finding.code for finding in shoal.audit(released, str(stage.folder / "in"), trace, str(policy)).findings}
