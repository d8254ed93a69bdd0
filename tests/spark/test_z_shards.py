"""Shards of values without Spark: what executors do, in one process."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from shoal import ZAnonymity
from shoal.methods.z.admission import Clock
from shoal.methods.z.reader import reasons_of
from shoal.spark.recipe import Recipe
from shoal.spark.records.blocks import OpenBlocks, block_of
from shoal.spark.z.admit import AdmitRows, admission_columns, read_admission
from shoal.spark.z.clocks import clock_between, clock_outline
from shoal.spark.z.decide import ZTrace, tasks_for
from shoal.spark.z.judge import JudgeShards, SplitRows
from shoal.spark.z.output_ranges import RANGE, Merged, Ranges, merged
from tests.spark.scene import events

pytestmark = [pytest.mark.compiled, pytest.mark.usefixtures("key_file")]


def test_a_part_of_the_clock_begins_with_the_time_before_it() -> None:
    clock = Clock(np.array([0, 4, 9]), np.array([10, 20, 30]), (9,))
    assert clock_between(clock, 2, 4).newest.tolist() == [10]
    assert clock_between(clock, 4, 10).newest.tolist() == [20, 30]
    assert clock_between(clock, 5, 20).numbers.tolist() == [5, 9]
    assert clock_between(clock, 0, 9).restarts == ()
    assert clock_between(clock, 5, 20).restarts == (9,)


def test_the_outline_of_a_clock_has_the_ends_of_stretches() -> None:
    clock = Clock(np.arange(12), np.array([10, 11, 12, 13, 14, 15, 5, 6, 7, 8, 9, 10]), (6,))
    assert clock_outline(clock).numbers.tolist() == [0, 5, 6, 11]
    assert clock_outline(clock).restarts == (6,)
    assert clock_outline(Clock(clock.numbers[6:], clock.newest[6:], (6,))).numbers.tolist() == [6, 11]
    assert clock_outline(clock, rotation_ns=4).newest.tolist() == [10, 12, 15, 5, 8, 10]


@pytest.mark.parametrize("lateness", ["0s", "1min"])
def test_without_lateness_the_clock_has_few_entries(lateness: str) -> None:
    method = ZAnonymity(z=3, window="10min", person="id", time="ts", lateness=lateness, attribute="site")
    rows = pa.RecordBatch.from_pylist([{"id": f"p{n % 7}", "ts": 1_000_000 + n, "site": "s"} for n in range(600)])
    opening = OpenBlocks(rows.schema, ("id", "ts"), {(0, 0): 0, (0, 1): 300})
    blocks = [block_of(0, number, rows.slice(300 * number, 300), ("id", "ts")) for number in range(2)]
    admitted = pa.Table.from_batches(list(AdmitRows(Recipe.of(method), opening, Ranges(0, 600, 1))(blocks)))
    assert len(read_admission(admitted).clock.numbers) == (4 if lateness == "0s" else 600)


def judged(method: Any, rows: pa.RecordBatch, shards: int, step: int) -> list[Merged]:
    """What admission and all shards decide about rows in blocks of `step`, in three ranges of the output."""
    recipe, head = Recipe.of(method), admission_columns(method.settings)
    starts = {(0, number): start for number, start in enumerate(range(0, rows.num_rows, step))}
    opening = OpenBlocks(pa.schema([rows.schema.field(name) for name in method.columns]), head, starts)
    blocks = [
        block_of(0, number, rows.select(method.columns).slice(start, step), head)
        for (_, number), start in starts.items()
    ]
    ranges = Ranges(0, rows.num_rows, 3)
    admitted = pa.Table.from_batches(list(AdmitRows(recipe, opening, ranges)(blocks)))
    states = admitted.filter(admitted["_shoal_state"].is_valid())
    admission = SimpleNamespace(value=read_admission(states))
    split = pa.Table.from_batches(list(SplitRows(recipe, opening, shards, admission)(blocks)))
    judge = JudgeShards(recipe, opening.types, admission, rows.num_rows, ranges)
    pieces = pa.Table.from_batches(list(judge(split.sort_by([("_shoal_shard", "ascending")]).to_batches())))
    names = [name for name in admitted.column_names if name != "_shoal_state"]
    refused = admitted.filter(admitted["_shoal_state"].is_null()).select(names)
    pieces = pa.concat_tables([refused, pieces])
    attributes = [column.name for column in method.settings.attributes]
    return [
        merged(
            pieces.filter(pa.array(np.asarray(pieces[RANGE]) == number)).to_batches(), method.output_schema, attributes
        )
        for number in range(3)
    ]


ONE = {"attribute": "site"}
TWO = {"attribute": {"site": {"on_private": "blank"}, "app": {"z": 4}}}


@pytest.mark.parametrize(("attributes", "lateness"), [(ONE, "0s"), (ONE, "40s"), (TWO, "0s"), (TWO, "40s")])
@pytest.mark.parametrize("shards", [1, 3, 16])
def test_shards_of_values_publish_what_one_machine_does(shards: int, lateness: str, attributes: dict[str, Any]) -> None:
    rows = pa.Table.from_pylist(events(1500)).combine_chunks().to_batches()[0]
    method = ZAnonymity(z=3, window="10min", person="id", time="ts", lateness=lateness, **attributes)
    found = compare(method, rows, shards, step=400)
    assert all(part.notes for part in found[:1])


ROWS = st.lists(
    st.tuples(*(st.integers(0, most) for most in (3, 40, 3, 2)), st.sampled_from([0, 0, 0, 9])),
    min_size=1,
    max_size=60,
)


@given(ROWS, st.integers(1, 4), st.integers(1, 30), st.sampled_from(["0s", "15s"]), st.sampled_from([ONE, TWO]))
@example([(0, 0, 1, 1, 9), (0, 0, 1, 1, 9), (1, 0, 1, 1, 0), *[(2, 0, 1, 1, 0)] * 6], 2, 30, "15s", ONE)
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_streams_with_wrong_first_clocks(
    drawn: list[tuple[int, ...]], shards: int, step: int, lateness: str, attributes: dict[str, Any]
) -> None:
    """Some events are far ahead, at the beginning too: time starts over, and what waits is refused then."""
    batch = far_ahead(drawn)
    compare(wrong_clocks(lateness, attributes), batch, shards, step)


def far_ahead(drawn: list[tuple[int, ...]]) -> pa.RecordBatch:
    """Events of which some have a time far ahead."""
    rows = [
        {"id": f"p{person}", "ts": 1_000_000 + 7 * number + 10 * (moment // 8) + 1_000_000 * ahead,
         "site": f"s{site}" if site else None, "app": f"a{app}" if app else None}
        for number, (person, moment, site, app, ahead) in enumerate(drawn)
    ]  # fmt: skip
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("site", pa.string()), ("app", pa.string())])
    return pa.RecordBatch.from_pylist(rows, schema=schema)


def wrong_clocks(lateness: str, attributes: dict[str, Any]) -> ZAnonymity:
    """A method for such events."""
    given = {"z": 2, "window": "1min", "person": "id", "time": "ts", "max_gap": "10min", "lateness": lateness}
    return ZAnonymity(**given, **attributes)


def compare(method: ZAnonymity, rows: pa.RecordBatch, shards: int, step: int) -> list[Merged]:
    """Everything is decided as by one method, in the same order."""
    pushed, flushed = method.push_batch(rows), method.flush()
    found = judged(method, rows, shards, step)
    published = [row for part in found for row in part.rows.to_pylist()]
    assert published == [*pushed.rows.to_pylist(), *flushed.rows.to_pylist()]
    trace = ZTrace.of(method)
    written = [row for part in found for row in trace.batch(part, reasons_of(method.settings)).to_pylist()]
    assert written == [*pushed.trace.to_pylist(), *flushed.trace.to_pylist()]
    return found


def test_ranges_are_even_and_what_is_decided_at_the_end_is_in_the_last() -> None:
    ranges = Ranges.of(100, 40_000, 4)
    places = ranges(np.array([100, 10_099, 10_100, 40_099, np.iinfo(np.int64).max]))
    assert ranges.ranges == 4
    assert places.tolist() == [0, 0, 1, 3, 3]
    assert Ranges.of(0, 50, 8).ranges == 1
    assert Ranges.of(0, 5_000_001, 2).ranges == 6


def test_a_task_judges_several_shards_if_they_have_few_rows() -> None:
    assert tasks_for(100, 16, 2) == 2
    assert tasks_for(500_000, 16, 2) == 5
    assert tasks_for(500_000, 16, 8) == 8
    assert tasks_for(50_000_000, 16, 2) == 16
    assert tasks_for(100, 4, 8) == 4
