"""Sets on Spark next to sets on one machine: the same release, byte for byte, and the same certificate."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
import shoal.spark
from shoal import Hierarchy, KmAnonymity
from shoal.errors import InputError, PolicyError
from shoal.observe.observer import Observer
from shoal.pipeline import Pipeline
from shoal.policy import load_policy
from shoal.spark.cluster.doctor import spark_remarks
from shoal.spark.run import SparkRun
from tests.docs.pages import blocks
from tests.spark.scene import Stage, toml
from tests.spark.sets.test_parts import ITEMS, records

TREE = {
    "any": {
        f"group {first}": {f"group {low}.": ITEMS[low : low + 3] for low in range(first, first + 15, 3)}
        for first in range(0, 60, 15)
    }
}
COUNTED = {"method": "k^m-apriori", "k": 3, "m": 2, "item": "item"}
SAMPLED = {"method": "k^m", "k": 3, "m": 3, "sigma": 0.9, "trials": 2, "seed": 11, "counted": 1, "item": "item"}
NESTED = {"hierarchy": {"kind": "nested", "tree": TREE}}


def visits(count: int = 300) -> list[dict[str, Any]]:
    """(person, item) rows: of a person in several files; some lack a person or an item, or have an unknown one."""
    found = [
        {"id": f"p{number}", "item": item}
        for number, items in enumerate(records(count))
        for item in (*sorted(items), *(["nothing"] if number % 40 == 7 else []))
    ]
    found.sort(key=lambda row: hash_of(row["item"] + row["id"]))
    return [*found, {"id": None, "item": "i03"}, {"id": "alone", "item": None}]


def hash_of(text: str) -> int:
    return sum(ord(letter) * 31**place for place, letter in enumerate(text)) % 9973


def policy(stage: Stage, anonymize: Mapping[str, Any], out: str, *, source: Mapping[str, Any] | None = None) -> Path:
    sections = {
        "stream": {} if source else {"person": "id"},
        "source": {"kind": "csv", "path": "in/", **(source or {})},
        "anonymize": {"generalize": NESTED, **anonymize},
        "sink": {"kind": "parquet", "path": f"{out}.parquet"},
        "trace": {"path": f"{out}.trace.parquet"},
        "dead_letters": {"path": f"{out}.dead.jsonl", "keep_rows": True},
    }
    path = stage.folder / f"{out}.toml"
    path.write_text("\n".join(toml({name: table for name, table in sections.items() if table})))
    return path


def both(stage: Stage, anonymize: Mapping[str, Any], **more: Any) -> tuple[Any, Any]:
    here = Pipeline(load_policy(policy(stage, anonymize, "here", **more))).run()
    there = load_policy(policy(stage, anonymize, "there", **more))
    return here, SparkRun(there, Observer(), master="local[2]").execute()


def require_same(stage: Stage, here: Any, there: Any) -> None:
    for ending in (".parquet", ".parquet.certificate.json", ".parquet.blocks.json"):
        assert (stage.folder / f"there{ending}").read_bytes() == (stage.folder / f"here{ending}").read_bytes(), ending
    assert stage.trace("there").to_pylist() == stage.trace("here").to_pylist()
    for name in (
        "rows_in",
        "released",
        "records",
        "empty_records",
        "dead",
        "items",
        "error",
        "guarantee",
        "blocks_used",
    ):
        assert getattr(there, name) == getattr(here, name), name
    assert there.dead_by_reason == here.dead_by_reason
    assert there.files == here.files
    assert there.warnings == here.warnings


@pytest.mark.parametrize(
    ("anonymize", "files"), [(COUNTED, 1), (SAMPLED, 3), (COUNTED, 16)], ids=["counted", "sampled", "many files"]
)
def test_rows_of_people(session: Any, stage: Stage, anonymize: dict[str, Any], files: int) -> None:
    stage.write(visits(), files=files)
    here, there = both(stage, anonymize)
    require_same(stage, here, there)
    assert 1 < here.blocks_used < len(ITEMS)
    assert here.dead > 0
    letters = [{**letter, "record": None} for letter in stage.letters("there")]  # sealed with a nonce
    assert letters == [{**letter, "record": None} for letter in stage.letters("here")]
    release, truth = str(stage.folder / "there.parquet"), str(stage.folder / "in")
    report = shoal.audit(release, truth, stage.trace("there"), str(stage.folder / "there.toml"))
    assert report.ok, report


def test_a_row_for_each_person_and_items_without_a_tree(session: Any, stage: Stage) -> None:
    stage.write([{"item": "|".join(sorted(items))} for items in records(200)], files=2)
    here, there = both(stage, {**COUNTED, "generalize": {"balanced": 5}}, source={"separator": "|"})
    require_same(stage, here, there)


def test_dataframes(session: Any) -> None:
    given = records()
    method = KmAnonymity(3, 2, 0.9, generalize=Hierarchy.from_nested(TREE), trials=2, seed=3)
    here = method.anonymize(given)
    lists = session.createDataFrame(pa.table({"basket": [sorted(items) for items in given]})).repartition(16)
    found = shoal.spark.anonymize_sets(lists, method)
    assert found.certificate == here.certificate
    assert found.blocks == here.blocks
    assert [row[0] for row in found.rows.collect()] == here.published().column("items").to_pylist()
    pairs = [(f"p{number}", item) for number, items in enumerate(given) for item in items]
    rows = session.createDataFrame(pairs[::-1], "who string, what string").repartition(3)
    assert [row[0] for row in shoal.spark.anonymize(rows, method).collect()] == [row[0] for row in found.rows.collect()]


def test_dataframes_with_a_policy(session: Any, stage: Stage) -> None:
    from pyspark.sql import functions as f

    rows = [{"id": f"p{number}", "item": item} for number, items in enumerate(records()) for item in sorted(items)]
    stage.write(rows, files=2)
    frame = session.read.option("header", "true").csv(str(stage.folder / "in")).withColumn("more", f.lit(1))
    for settings in (COUNTED, {**COUNTED, "generalize": {"balanced": 5}, "column": "places"}):
        Pipeline(load_policy(policy(stage, settings, "here"))).run()
        here = pq.read_table(stage.folder / "here.parquet")
        there = shoal.spark.anonymize(frame, policy(stage, settings, "there"))
        assert there.columns == here.column_names
        found = [sorted(row[0]) for row in there.collect()]
        assert sorted(found) == sorted(sorted(row) for row in here.column(0).to_pylist())
    with pytest.raises(PolicyError, match="drop_rare: is not counted across executors"):
        shoal.spark.anonymize_sets(frame, policy(stage, {**COUNTED, "drop_rare": 2}, "there"))


def test_the_script_of_the_page(session: Any, stage: Stage) -> None:
    stage.write([{"basket": sorted(items)} for items in records()], files=2, kind="parquet")
    script = next(one for one in blocks("python") if one.page == "docs/howto/spark.md" and "anonymize_sets" in one.text)
    text = script.text.replace("baskets/", str(stage.folder / "in")).replace(
        "published sets/", str(stage.folder / "out")
    )
    known: dict[str, Any] = {"spark": session, "tree": Hierarchy.from_nested(TREE), "shoal": shoal}
    exec(compile(text, script.page, "exec"), known)
    assert len(stage.rows("out")) == len(records())
    assert known["found"].certificate.statement.startswith("size 1, counted: every itemset")


def test_the_doctor_asks_executors_for_key_and_input(session: Any, stage: Stage) -> None:
    stage.write(visits(20), files=1)
    found = list(spark_remarks(load_policy(policy(stage, COUNTED, "there")), master="local[2]"))
    assert {remark.level for remark in found} == {"good"}
    assert found[-1].sentence == "2 tasks at a time on 1 machine: all have the key and see the input"
    chain = load_policy(policy(stage, {**SAMPLED, "sampler": "chain"}, "there"))
    assert [remark.level for remark in spark_remarks(chain, master="local[2]")] == ["wrong"]


def test_refusals(session: Any, stage: Stage) -> None:
    stage.write(visits(), files=2)
    chain = load_policy(policy(stage, {**SAMPLED, "sampler": "chain"}, "there"))
    with pytest.raises(PolicyError, match="sampler: a chain looks at the sets of everybody"):
        SparkRun(chain, Observer(), master="local[2]").execute()
    method = KmAnonymity(5, 2, generalize=Hierarchy.from_nested(TREE))
    for rows, words in (
        ([(["i01", None],)], "column 'items'"),
        ([([],)], "column 'items': a record is empty"),
        ([(["i01"],)] * 3, "3 records cannot hide anybody among 5"),
        ([(["i01", "secret"],)] * 9, "1 items are not known to the generalization"),
    ):
        with pytest.raises(InputError, match=words) as caught:
            shoal.spark.anonymize(session.createDataFrame(rows, "items array<string>"), method)
        assert "secret" not in str(caught.value)
    few = load_policy(policy(stage, {**COUNTED, "k": 5000}, "there"))
    with pytest.raises(InputError, match="cannot hide anybody among 5,000"):
        SparkRun(few, Observer(), master="local[2]").execute()
    assert not list(stage.folder.glob("there.parquet*"))
