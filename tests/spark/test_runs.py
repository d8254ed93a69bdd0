"""Runs on Spark next to runs on one machine: z-anonymity publishes the same, tuples pass the auditor on the union."""

from __future__ import annotations

import base64
import json
from collections import Counter
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import shoal
import shoal.spark
from shoal.crypto.keys import as_secret
from shoal.crypto.sealing import unseal
from shoal.observe.observer import Observer
from shoal.pipeline import Pipeline
from shoal.policy import load_policy
from shoal.schema import Numeric, Schema
from shoal.spark.recipe import Recipe
from shoal.spark.records.numbering import NumberedRows
from shoal.spark.run import SparkRun
from shoal.spark.tuples import cuts
from tests.docs.pages import blocks
from tests.spark.scene import DIVERSE, EVENTS, KEY, TUPLES, Stage, events, people
from tests.spark.tuple_shards import cuts_for, in_shards

ONE_COLUMN = {**EVENTS, "lateness": "40s"}
TWO_COLUMNS = {
    "method": "z-anonymity", "z": 3, "window": "10min", "lateness": "40s",
    "attribute": {"site": {"on_private": "blank"}, "app": {"z": 4}},
}  # fmt: skip

COMBINED = {**ONE_COLUMN, "z": 2, "window": "6min", "rotation": "3min", "combine": "k", "k": 3}
FOLLOWING = {
    "method": "z-anonymity", "window": "16min", "rotation": "8min", "lateness": "40s",
    "attribute": {"site": {"on_private": "blank"}, "app": {}}, "target": {"k": 2, "p": 0.3, "start": 3},
}  # fmt: skip


def both(stage: Stage, anonymize: dict[str, Any], *, kind: str = "csv", time: bool) -> tuple[Any, Any]:
    """The summaries of a run on one machine and of one on Spark."""
    here = Pipeline(load_policy(stage.policy(anonymize, "here", kind=kind, time=time))).run()
    there = SparkRun(load_policy(stage.policy(anonymize, "there", kind=kind, time=time)), Observer(), master="local[2]")
    return here, there.execute()


@pytest.mark.parametrize(
    "anonymize",
    [EVENTS, ONE_COLUMN, TWO_COLUMNS, COMBINED, FOLLOWING],
    ids=["in order", "late rows", "two columns", "combine", "target"],
)
def test_events_are_published_as_on_one_machine(session: Any, stage: Stage, anonymize: dict[str, Any]) -> None:
    stage.write(events(4000), files=3)
    here, there = both(stage, anonymize, time=True)
    assert stage.rows("there").to_pylist() == stage.rows("here").to_pylist()
    assert stage.letters("there") == stage.letters("here")
    assert (there.rows_in, there.released, there.suppressed) == (here.rows_in, here.released, here.suppressed)
    assert there.dead_by_reason == {name: count for name, count in here.dead_by_reason.items() if count}
    assert 0 < there.released < there.rows_in
    assert min(there.suppressed, there.dead) > 0
    assert there.metrics == here.metrics
    assert stage.trace("there").to_pylist() == stage.trace("here").to_pylist()
    report = shoal.audit(
        stage.rows("there"), str(stage.folder / "in"), stage.trace("there"), str(stage.folder / "there.toml")
    )
    assert report.ok, report


def kept_records(letters: list[dict[str, Any]]) -> list[Any]:
    """The records of dead letters, opened."""
    sealed = [base64.b64decode(letter["sealed"]) for letter in letters if "sealed" in letter]
    return [json.loads(unseal(as_secret(KEY), one, purpose="dead letter")) for one in sealed]


def test_records_are_kept_in_dead_letters_only_if_asked(
    session: Any, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.write(events(1000), files=2)
    columns: list[list[str]] = []
    picked = NumberedRows.picked

    def noted(self: NumberedRows, *numbers: Any, **options: Any) -> pa.Table:
        found = picked(self, *numbers, **options)
        columns.append(found.column_names)
        return found

    monkeypatch.setattr(NumberedRows, "picked", noted)
    both(stage, EVENTS, time=True)
    assert not any("id" in names for names in columns), "a value of a record reached the driver"
    for name in ("here", "there"):
        path = stage.folder / f"{name}.toml"
        path.write_text(path.read_text() + "\nkeep_rows = true\n")
    Pipeline(load_policy(stage.folder / "here.toml")).run()
    SparkRun(load_policy(stage.folder / "there.toml"), Observer(), master="local[2]").execute()
    found = kept_records(stage.letters("there"))
    assert found == kept_records(stage.letters("here"))
    assert len(found) > 3


@pytest.mark.parametrize(
    ("anonymize", "time"),
    [
        (TUPLES, False),
        ({**TUPLES, "method": "fads", "deadline": "400s", "reuse": "40s", "missing": "covered"}, True),
        ({**TUPLES, **DIVERSE}, False),
    ],
    ids=["arrivals", "durations, late rows", "l and t"],
)
def test_tuples_are_anonymous_on_the_union(session: Any, stage: Stage, anonymize: dict[str, Any], time: bool) -> None:
    rows = people(3000)
    for number, row in enumerate(rows):
        row["ts"] -= 300 if number % 6 == 0 else 0
    rows[1500]["ts"] += 10_000_000
    stage.write(rows, files=3)
    here, there = both(stage, anonymize, time=time)
    assert there.dead_by_reason.get("ahead", 0) == (1 if time else 0)
    report = shoal.audit(
        stage.rows("there"), str(stage.folder / "in"), stage.trace("there"), str(stage.folder / "there.toml")
    )
    assert report.ok, report
    assert not report.warnings, report
    assert there.metrics["shards"] > 1
    assert stage.letters("there") == stage.letters("here")
    assert there.dead == here.dead
    assert there.released + there.suppressed + there.dead == 3000
    assert there.suppressed <= 0.02 * 3000
    assert there.metrics["loss"] <= 1.25 * here.metrics["loss"]


@pytest.mark.parametrize("partitions", [1, 3, 16])
def test_shuffled_rows_are_taken_in_the_order_that_is_named(session: Any, partitions: int) -> None:
    """Spark divides a sorted DataFrame anew in every job; the numbers of records must fit all of them."""
    rows = [{**row, "number": number, "site": row["site"] or "s0"} for number, row in enumerate(events(1500))]
    made = partial(
        shoal.ZAnonymity, z=2, window="20s", person="id", time="ts", attribute="site", lateness="5s", carry=["number"]
    )
    here = made(key=KEY).anonymize(pa.Table.from_pylist(rows))
    frame = session.createDataFrame(rows).repartition(partitions)
    there = shoal.spark.anonymize(frame, made(), order="number", shards=3).toArrow()
    assert 0 < here.rows.num_rows < 1500
    assert there.select(here.rows.schema.names).to_pylist() == here.rows.to_pylist()
    policy = {
        "stream": {"person": "id", "time": "ts", "carry": ["number"], "carry_identifying": True},
        "anonymize": {**EVENTS, "z": 2, "window": "20s", "lateness": "5s"},
    }
    report = shoal.audit(there.select(here.rows.schema.names), pa.Table.from_pylist(rows), here.trace, policy)
    assert report.ok, report


def test_tuples_of_any_number_of_partitions_are_published_as_by_the_same_shards_in_one_process(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shards are so small that many rows are decided again in one more."""
    monkeypatch.setattr(cuts, "ROWS_OF_A_SHARD", 0.3)
    rows = [{"number": number, **row, "age": row["age"] or 40} for number, row in enumerate(people(900))]
    schema = Schema(person="id", quasi=[Numeric("age", low=17, high=90), Numeric("income", low=0, high=1500)])
    method = shoal.LeastLoss(schema, k=5, deadline=60)
    frames = [session.createDataFrame(rows).repartition(partitions) for partitions in (1, 3, 16)]
    found = [shoal.spark.anonymize(frame, method, order="number", shards=12).toArrow().to_pylist() for frame in frames]
    recipe, (table,) = Recipe.of(method), pa.Table.from_pylist(rows).select(method.columns).to_batches()
    union = in_shards(recipe, table, cuts_for(recipe, table, 12, rows_of_learning=cuts.LEARNING_ROWS))
    assert found[0] == found[1] == found[2] == union.rows.to_pylist()
    assert union.shards == 12
    assert len(union.again) > union.counts()["suppressed"] + 20
    assert min(Counter(map(repr, found[0])).values()) >= 5


def test_sets_of_an_epoch_are_combined_in_a_dataframe(session: Any) -> None:
    rows = [{**row, "number": number, "site": row["site"] or "s0"} for number, row in enumerate(events(1200))]
    made = partial(
        shoal.ZAnonymity, z=2, window="4min", person="id", time="ts", attribute="site", lateness="40s",
        carry=["number"], combine="k", k=3,
    )  # fmt: skip
    here = made(key=KEY).anonymize(pa.Table.from_pylist(rows)).rows.to_pylist()
    there = shoal.spark.anonymize(session.createDataFrame(rows).coalesce(1), made(), shards=3).toArrow()
    assert 0 < len(here) < 1200
    assert there.select(list(here[0])).to_pylist() == here


def test_the_script_of_the_page_runs(session: Any, stage: Stage) -> None:
    stage.write(people(600), files=2, kind="parquet")
    schema = Schema(person="id", quasi=[Numeric("age", low=17, high=90), Numeric("income", low=0, high=1000)])
    script = next(block for block in blocks("python") if block.page == "docs/howto/spark.md")
    text = script.text.replace("people/", str(stage.folder / "in")).replace("published/", str(stage.folder / "out"))
    exec(compile(text, script.page, "exec"), {"spark": session, "schema": schema})
    classes = Counter(map(repr, stage.rows("out").to_pylist()))
    assert 500 < classes.total() < 600  # some incomes are outside
    assert min(classes.values()) >= 50
