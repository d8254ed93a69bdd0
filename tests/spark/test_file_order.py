"""Records of a DataFrame come in the order of files, whichever of them Spark reads first."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import shoal.spark
from shoal.spark.records import file_order
from shoal.spark.records.columns import ROW
from shoal.spark.records.file_order import with_files
from shoal.spark.records.numbering import number_rows
from tests.spark.scene import KEY, Stage, events

SIZES = (20, 1300, 5, 400, 275)
NAMES = ("2024/a b.{}", "2024/c.{}", "2024-x/a%20.{}", "2025/a.{}", "2025/b.{}")
"""Sorted as one machine sorts them: folder by folder."""
COLUMNS = "id string, ts long, site string, app string, number long"
MADE = partial(shoal.ZAnonymity, z=2, window="20s", person="id", time="ts", attribute="site", carry=["number"])


def rows() -> list[dict[str, Any]]:
    """Events with their numbers."""
    return [{**row, "number": number} for number, row in enumerate(events(sum(SIZES)))]


@pytest.fixture
def folder(stage: Stage) -> Path:
    """Files of different sizes in two formats."""
    at, found = 0, rows()
    for size, name in zip(SIZES, NAMES, strict=True):
        for kind, write in (("parquet", pq.write_table), ("csv", pyarrow.csv.write_csv)):
            path = stage.folder / kind / name.format(kind)
            path.parent.mkdir(parents=True, exist_ok=True)
            write(pa.Table.from_pylist(found[at : at + size]), path)
        at += size
    return stage.folder


def read(session: Any, folder: Path, kind: str) -> Any:
    frame = session.read.option("recursiveFileLookup", "true").option("header", "true")
    return frame.schema(COLUMNS).format(kind).load(str(folder / kind))


CHANGES = {
    "as read": lambda frame: frame,
    "columns": lambda frame: frame.selectExpr("number + 0 as number", "site", "ts").where("ts is not null"),
    "coalesced": lambda frame: frame.coalesce(1),
    "one file": lambda frame: frame.where("number >= 1325 and number < 1725"),
    "nothing": lambda frame: frame.where("number < 0"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_records_are_numbered_by_file_and_place(session: Any, folder: Path, kind: str, change: Any) -> None:
    session.conf.set("spark.sql.files.maxPartitionBytes", "8k")  # pieces of files, several in a task
    session.conf.set("spark.sql.files.openCostInBytes", "100")
    try:
        frame = change(read(session, folder, kind))
        assert with_files(frame) is not None
        numbered = number_rows(frame, ["number"], ["number"])
        found = sorted((row[ROW], row["number"]) for row in numbered.frame.collect())
        wanted = [row["number"] for row in frame.select("number").orderBy("number").collect()]
        assert None not in wanted
        assert [number for _, number in found] == wanted
        assert [row for row, _ in found] == list(range(len(wanted)))
        assert [row["number"] for row in numbered.first_rows(30).to_pylist()] == wanted[:30]
        numbered.stored.unpersist()
    finally:
        session.conf.unset("spark.sql.files.maxPartitionBytes")
        session.conf.unset("spark.sql.files.openCostInBytes")


def test_a_batch_publishes_what_one_machine_does_of_the_files_in_order(session: Any, folder: Path) -> None:
    here = MADE(key=KEY).anonymize(pa.Table.from_pylist(rows())).rows
    frame = read(session, folder, "parquet")
    assert [row[0] for row in frame.select("number").collect()] != list(range(sum(SIZES)))
    there = shoal.spark.anonymize(frame, MADE(), shards=3).toArrow()
    assert there.column("number").to_pylist() == here.column("number").to_pylist()
    assert 0 < len(there) < sum(SIZES)


def test_files_that_spark_names_in_two_ways(session: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_order, "_hashes", lambda frame: {})
    found = number_rows(read(session, folder, "parquet"), ["number"], ["number"]).first_rows(40)
    assert found.column("number").to_pylist() == list(range(40))


def test_a_micro_batch_has_its_files_in_order(session: Any, folder: Path, stage: Stage) -> None:
    release = MADE(key=KEY).push_batch(pa.Table.from_pylist(rows()))
    frame = session.readStream.option("recursiveFileLookup", "true").schema(
        "id string, ts long, site string, number long"
    )
    stream = frame.parquet(str(folder / "parquet"))
    places = {name: stage.folder / name for name in ("out", "state")}
    shoal.spark.anonymize(stream, MADE(), shards=3, **places).trigger(availableNow=True).start().awaitTermination()
    parts = sorted((places["out"] / "batch=000000000").glob("part-*"))
    there = [number for part in parts for number in pq.read_table(part).column("number").to_pylist()]
    assert there == release.rows.column("number").to_pylist()


def test_rows_that_moved_have_no_files(session: Any, folder: Path) -> None:
    frame = read(session, folder, "parquet")
    ids = frame.select("id").distinct()
    moved = [
        frame.union(frame), frame.repartition(3), frame.join(ids, "id"), frame.orderBy("number"),
        frame.sortWithinPartitions("number"), session.range(5),
        session.createDataFrame([(1,)], "number long"), frame.where("number < 3").withColumnRenamed("id", "_metadata"),
        session.read.parquet(str(folder / "parquet" / NAMES[0].format("parquet"))),
    ]  # fmt: skip
    assert [with_files(one) is None for one in moved] == [True] * len(moved)
