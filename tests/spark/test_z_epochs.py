"""combine and target in shards, without Spark: what executors and the driver do, in one process."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from shoal import Hierarchy, KTarget, ZAnonymity
from shoal.methods.z.reader import reasons_of
from shoal.spark.recipe import Recipe
from shoal.spark.records.blocks import OpenBlocks, block_of
from shoal.spark.z.admit import AdmitRows, admission_columns, read_admission
from shoal.spark.z.decide import ZTrace
from shoal.spark.z.epochs.close import CloseEpochs, split_notes
from shoal.spark.z.epochs.target_batch import CountEvents, ProfileEpochs, followed_epochs, keeps_blank
from shoal.spark.z.epochs.value_shard import EPOCH, PEAKS, STRETCH, JudgeValues
from shoal.spark.z.judge import SplitRows
from shoal.spark.z.output_ranges import PIECES, RANGE, Merged, Ranges, merged
from tests.spark.scene import SCHOOLS, events
from tests.spark.visits import PEOPLE, RESTART, VISITS, WRONG_CLOCKS, Visit, batch_of_visits, crowds

pytestmark = [pytest.mark.compiled, pytest.mark.usefixtures("key_file")]
BINS = 3


def frame(batches: list[pa.RecordBatch]) -> Any:
    """What the driver collects."""
    rows = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    return SimpleNamespace(collect=lambda: rows)


def by_epoch(table: pa.Table) -> list[pa.RecordBatch]:
    """Messages as the tasks of epochs get them."""
    return table.sort_by([(STRETCH, "ascending"), (EPOCH, "ascending")]).combine_chunks().to_batches()


def decided(method: Any, rows: pa.RecordBatch, shards: int, step: int) -> tuple[Any, Any, list[Merged]]:
    """What all steps decide about rows in blocks of `step`: every z, metrics, and three ranges of the output."""
    recipe, head = Recipe.of(method), admission_columns(method.settings)
    starts = {(0, number): start for number, start in enumerate(range(0, rows.num_rows, step))}
    opening = OpenBlocks(pa.schema([rows.schema.field(name) for name in method.columns]), head, starts)
    blocks = [
        block_of(0, number, rows.select(method.columns).slice(start, step), head)
        for (_, number), start in starts.items()
    ]
    ranges = Ranges(0, rows.num_rows, 3)
    admitted = pa.Table.from_batches(list(AdmitRows(recipe, opening, ranges)(blocks)))
    admission = SimpleNamespace(value=read_admission(admitted.filter(admitted["_shoal_state"].is_valid())))
    split = pa.Table.from_batches(list(SplitRows(recipe, opening, shards, admission)(blocks)))
    judge = JudgeValues(recipe, opening.types, admission, rows.num_rows, ranges, BINS)
    values = pa.Table.from_batches(list(judge(split.sort_by([("_shoal_shard", "ascending")]).to_batches())))
    driver: Any = recipe.make()
    driver.bind(opening.types)
    close, followed = CloseEpochs(recipe, opening.types, admission, rows.num_rows, ranges), None
    if driver.settings.k is None:
        counted = frame(list(CountEvents(recipe, opening, admission)(blocks)))
        profile = ProfileEpochs(driver.settings.target.k, keeps_blank(driver.settings))
        profiles = frame(list(profile(by_epoch(values.filter(values[PEAKS].is_valid())))))
        followed = followed_epochs(driver, counted, profiles, admission.value.clock)
        values, close = values.filter(values[PEAKS].is_null()), replace(close, z=followed.z)
    pieces = pa.Table.from_batches(list(close(by_epoch(values))), schema=PIECES)
    refused = admitted.filter(admitted["_shoal_state"].is_null()).select(PIECES.names)
    pieces = pa.concat_tables([refused, pieces])
    names = [column.name for column in method.settings.attributes]
    parts = [pieces.filter(pa.array(np.asarray(pieces[RANGE]) == at)).to_batches() for at in range(3)]
    found = [merged(part, method.output_schema, names) for part in parts]
    changes = driver.take_changes()
    shown = split_notes(orjson.loads(note) for part in found for note in part.notes)[1]
    return changes, {} if followed is None else followed.metrics(driver, shown), found


def compare(method: Any, rows: pa.RecordBatch, shards: int, step: int) -> int:
    """Everything is decided as by one method; returns the number of rows published."""
    pushed, flushed = method.push_batch(rows), method.flush()
    changes, metrics, found = decided(method, rows, shards, step)
    here = [*pushed.rows.to_pylist(), *flushed.rows.to_pylist()]
    assert [row for part in found for row in part.rows.to_pylist()] == here
    trace = ZTrace.of(method)
    written = [row for part in found for row in trace.batch(part, reasons_of(method.settings)).to_pylist()]
    assert written == [*pushed.trace.to_pylist(), *flushed.trace.to_pylist()]
    assert metrics == method.metrics
    assert changes == method.take_changes()
    return len(here)


def batch_of(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.Table.from_pylist(rows).combine_chunks().to_batches()[0]


ONE: dict[str, Any] = {"attribute": "site"}
BLANK: dict[str, Any] = {"attribute": "site", "on_private": "blank"}
TWO: dict[str, Any] = {"attribute": {"site": {}, "app": {}}}
COMBINE: dict[str, Any] = {"z": 2, "combine": "k", "k": 3}
TARGET: dict[str, Any] = {"target": KTarget(k=2, p=0.3, start=3)}


@pytest.mark.parametrize("lateness", ["0s", "40s"])
@pytest.mark.parametrize("attributes", [ONE, BLANK, TWO], ids=["one", "blank", "two"])
@pytest.mark.parametrize("option", [COMBINE, TARGET], ids=["combine", "target"])
@pytest.mark.parametrize("shards", [1, 5])
def test_epochs_are_decided_as_on_one_machine(
    shards: int, option: dict[str, Any], attributes: dict[str, Any], lateness: str
) -> None:
    lasts = {"window": "4min", "rotation": "2min"} if option is COMBINE else {"window": "12min", "rotation": "6min"}
    made = ZAnonymity(person="id", time="ts", lateness=lateness, carry=["n"], **lasts, **attributes, **option)
    rows = batch_of([{**row, "n": number} for number, row in enumerate(events(1500))])
    published = compare(made, rows, shards, 400)
    assert 0 < published < 1500
    assert option is COMBINE or len({outcome.z for outcome in made.outcomes}) > 1


def test_labels_of_a_hierarchy_are_combined_as_on_one_machine() -> None:
    rows = [{**row, "site": ["primary", "secondary", "bachelor", "master"][number % 4] if number % 9 else None}
            for number, row in enumerate(events(900))]  # fmt: skip
    made = ZAnonymity(
        window="4min", rotation="2min", person="id", time="ts", attribute="site", on_private="generalize",
        hierarchy=Hierarchy.from_nested(SCHOOLS), z=6, combine="k", k=4,
    )  # fmt: skip
    assert compare(made, batch_of(rows), 4, 250) > 0


LEAST: list[dict[str, Any]] = [
    {"rotation": "30s", "z": 1, "combine": "k", "k": 2},
    {"rotation": "1min", "target": KTarget(k=2, p=0.3, start=2)},
]


def least(option: dict[str, Any], attributes: dict[str, Any], lateness: str) -> ZAnonymity:
    return ZAnonymity(window="1min", person="id", time="ts", lateness=lateness, max_gap="10min", **attributes, **option)


@given(VISITS, WRONG_CLOCKS, st.integers(1, 4), st.integers(1, 30), st.sampled_from(["0s", "15s"]),
       st.sampled_from([ONE, BLANK, TWO]), st.sampled_from(LEAST))  # fmt: skip
@example(RESTART, PEOPLE, 2, 2, "0s", ONE, LEAST[0])
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
def test_random_streams_with_wrong_clocks(
    visits: list[Visit], wrong_clocks: int, shards: int, step: int, lateness: str, attributes: Any, option: Any
) -> None:
    """Some events are far ahead, at the beginning too: time starts over, and what waits is refused."""
    compare(least(option, attributes, lateness), batch_of_visits(visits, wrong_clocks), shards, step)


@pytest.mark.parametrize("attributes", [ONE, BLANK, TWO], ids=["one", "blank", "two"])
@pytest.mark.parametrize("option", LEAST, ids=["combine", "target"])
def test_crowds_with_wrong_clocks_are_published(option: Any, attributes: Any) -> None:
    """With few people a target publishes next to nothing, so random streams of few people would show nothing."""
    published = [
        compare(least(option, attributes, "15s"), crowds(seed, wrong_clocks), 3, 200)
        for seed in range(2)
        for wrong_clocks in (1, 40)
    ]
    assert min(published) > 20
