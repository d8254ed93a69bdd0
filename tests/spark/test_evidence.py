"""What a notebook writes can be audited in full: rows, trace and dead letters come from the same decisions."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
import shoal.spark
from shoal.auditor.findings import AuditReport
from shoal.cli.app import app
from shoal.cli.evidence.audit import read_private_trace
from shoal.crypto.keys import as_secret
from shoal.encode.sealed import read_sealed_trace
from shoal.errors import OutputError, PolicyError
from tests.spark.flexible.test_shards import promise
from tests.spark.flexible.test_shards import records as flexible_records
from tests.spark.scene import EVENTS, KEY, TUPLES, Stage, events, people

Z = {**EVENTS, "lateness": "40s"}
COMBINED = {**Z, "z": 2, "window": "6min", "rotation": "3min", "combine": "k", "k": 3}
TIMED = {**TUPLES, "method": "fads", "deadline": "400s", "reuse": "40s", "suppressed": "root"}


def write_uneven(stage: Stage, rows: list[dict[str, Any]]) -> None:
    """Files of which Spark reads the second one first."""
    bounds = (0, len(rows) // 20, len(rows) // 2, len(rows))
    for number, (start, stop) in enumerate(pairwise(bounds)):
        pq.write_table(pa.Table.from_pylist(rows[start:stop]), stage.folder / "in" / f"part-{number}.parquet")


def require_clean(reports: list[AuditReport], *, allowed: frozenset[str] = frozenset()) -> None:
    for report in reports:
        assert report.ok, report
        assert {found.code for found in report.findings} <= allowed, report


def dated() -> list[dict[str, Any]]:
    """Events with times instead of numbers."""
    return [{**row, "ts": datetime.fromtimestamp(row["ts"], UTC)} for row in events(3000)]


@pytest.mark.parametrize("name", ["z", "dated", "combine", "tuples", "durations", "flexible"])
def test_a_batch_is_audited_in_full(session: Any, stage: Stage, name: str) -> None:
    anonymize, rows = {
        "z": (Z, events(3000)), "dated": (Z, dated()), "combine": (COMBINED, events(3000)),
        "tuples": (TUPLES, people(2000)), "durations": (TIMED, people(2000)),
        "flexible": (promise(stage.folder), flexible_records()),
    }[name]  # fmt: skip
    write_uneven(stage, rows)
    policy = stage.policy(anonymize, "there", kind="parquet", time=name not in ("tuples", "flexible"))
    release, truth = str(stage.folder / "out"), str(stage.folder / "in")
    trace, letters = stage.folder / "private" / "trace.parquet", stage.folder / "private" / "dead.jsonl"
    published = shoal.spark.anonymize(session.read.parquet(truth), policy, trace=trace, dead_letters=letters)
    opened = read_sealed_trace(trace, as_secret(KEY)).to_pylist()
    dead = [json.loads(line) for line in letters.read_text().splitlines()]
    assert [letter["row"] for letter in dead] == sorted(row["row"] + 1 for row in opened if row["verdict"] == "dead")
    assert all(letter["reason"] for letter in dead)
    assert (trace.stat().st_mode | letters.stat().st_mode) & 0o077 == 0
    assert dict(published.dtypes).get("ts") == {"dated": "timestamp", "z": "bigint", "combine": "bigint"}.get(name)
    published.write.parquet(release)
    assert 0 < pq.read_table(release).num_rows <= len(rows)
    reports = [shoal.audit(release, truth, read_private_trace(trace), policy)]
    reports.append(shoal.spark.audit(release, truth, trace, policy))
    require_clean(reports, allowed=frozenset({"pending"}) if name == "flexible" else frozenset())
    if name == "z":
        here = shoal.ZAnonymity(z=3, window="10min", person="id", time="ts", attribute="site", lateness="40s", key=KEY)
        assert opened == here.anonymize(pa.Table.from_pylist(rows)).trace.to_pylist()


@pytest.mark.parametrize("name", ["z", "tuples"])
def test_a_stream_is_audited_in_full(session: Any, stage: Stage, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = events(2000) if name == "z" else people(1600)
    stage.write(rows, files=2, kind="parquet")
    for number, path in enumerate(sorted((stage.folder / "in").iterdir())):
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    policy = stage.policy(EVENTS if name == "z" else TUPLES, "there", kind="parquet", time=name == "z")
    truth, places = str(stage.folder / "in"), {one: stage.folder / one for one in ("out", "state", "trace")}
    stream = session.readStream.schema(session.read.parquet(truth).schema).option("maxFilesPerTrigger", 1)
    writer = shoal.spark.anonymize(stream.parquet(truth), policy, shards=3, **places)
    writer.trigger(availableNow=True).start().awaitTermination()
    assert [path.name for path in sorted(places["trace"].iterdir())] == [
        "batch=000000000.parquet",
        "batch=000000001.parquet",
    ]
    traces = [places["trace"], str(places["trace"] / "*.parquet"), sorted(places["trace"].iterdir())]
    reports = [shoal.spark.audit(places["out"], truth, trace, policy) for trace in traces]
    reports.append(shoal.audit(places["out"], truth, read_private_trace(places["trace"]), policy))
    require_clean(reports, allowed=frozenset({"pending"}))
    assert len({str(report.findings) for report in reports}) == 1
    words = ["audit", places["out"], "--truth", truth, "--trace", places["trace"], "--policy", policy]
    for engine in ([], ["--engine", "spark"]):
        with pytest.raises(SystemExit) as end:
            app([*map(str, words), *engine])
        assert end.value.code == 0, capsys.readouterr()
    backwards = shoal.audit(places["out"], truth, read_private_trace(places["trace"])[::-1], policy)
    assert not backwards.ok


def test_files_are_named_where_folders_are_refused(session: Any, stage: Stage) -> None:
    frame = session.createDataFrame([("p1", 1, "s1")], "id string, ts long, site string")
    method = shoal.ZAnonymity(z=1, window="10min", person="id", time="ts", attribute="site")
    for place in (stage.folder, f"{stage.folder}/new/"):
        with pytest.raises(OutputError, match="is a folder; of a batch give a file"):
            shoal.spark.anonymize(frame, method, trace=place)
    sets = shoal.KmAnonymity(2, 2, generalize=shoal.Hierarchy.from_nested({"any": {"a": ["b", "c"]}}))
    with pytest.raises(PolicyError, match="audited without a trace"):
        shoal.spark.anonymize(frame, sets, trace=stage.folder / "trace")


def test_folders_of_micro_batches_are_read_in_order(tmp_path: Path) -> None:
    from shoal.auditor.reading.paths import table_paths

    for batch in (10, 2):
        for part in (1, 0):
            path = tmp_path / f"batch={batch:09d}" / f"part-{part:05d}.parquet"
            path.parent.mkdir(exist_ok=True)
            path.touch()
    (tmp_path / ".attempt-1").mkdir()
    found = [str(path.relative_to(tmp_path)) for path in table_paths(tmp_path, "release")]
    assert found == [f"batch={batch:09d}/part-{part:05d}.parquet" for batch in (2, 10) for part in (0, 1)]
