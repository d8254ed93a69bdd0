"""combine and target in shards, without Spark: what executors and the driver do, in one process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
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
from shoal.spark.blocks import OpenBlocks, block_of
from shoal.spark.recipe import Recipe
from shoal.spark.z.admit import AdmitRows, admission_columns, read_admission
from shoal.spark.z.decide import ZTrace
from shoal.spark.z.epochs import CloseEpochs, split_notes
from shoal.spark.z.following import CountEvents, ProfileEpochs, followed_epochs, keeps_blank
from shoal.spark.z.judge import SplitRows
from shoal.spark.z.pieces import PIECES, RANGE, Merged, Ranges, merged
from shoal.spark.z.values import EPOCH, PEAKS, STRETCH, JudgeValues
from tests.spark.scene import KEY, SCHOOLS, events

pytestmark = pytest.mark.compiled
BINS = 3


@pytest.fixture(scope="module", autouse=True)
def key(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path: Path = tmp_path_factory.mktemp("keys") / "key"
    path.write_bytes(KEY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHOAL_KEY_FILE", str(path))
        yield


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


ROWS = st.lists(
    st.tuples(*(st.integers(0, most) for most in (5, 40, 4, 2)), st.sampled_from([0, 0, 0, 9])),
    min_size=1,
    max_size=60,
)


@given(ROWS, st.integers(1, 4), st.integers(1, 30), st.sampled_from(["0s", "15s"]), st.sampled_from([ONE, BLANK, TWO]),
       st.sampled_from([{"z": 1, "combine": "k", "k": 2}, {"target": KTarget(k=2, p=0.3, start=2)}]))  # fmt: skip
@example([(0, 0, 1, 1, 9), *[(person, 0, 0, 0, 0) for person in (1, 2, 3, 1)], (2, 0, 1, 1, 0)], 2, 2, "0s", ONE,
         {"z": 1, "combine": "k", "k": 2})  # fmt: skip
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_streams_with_wrong_clocks(
    drawn: list[tuple[int, ...]], shards: int, step: int, lateness: str, attributes: Any, option: Any
) -> None:
    """Some events are far ahead, at the beginning too: time starts over, and what waits is refused."""
    rows = [
        {"id": f"p{person}", "ts": 1_000_000 + 7 * number + 10 * (moment // 8) + 1_000_000 * ahead,
         "site": None if site == 0 else f"s{site}", "app": f"a{app}" if app else None}
        for number, (person, moment, site, app, ahead) in enumerate(drawn)
    ]  # fmt: skip
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("site", pa.string()), ("app", pa.string())])
    batch = pa.RecordBatch.from_pylist(rows, schema=schema)
    made = ZAnonymity(
        window="1min", rotation="30s", person="id", time="ts", lateness=lateness, max_gap="10min",
        **attributes, **option,
    )  # fmt: skip
    compare(made, batch, shards, step)
