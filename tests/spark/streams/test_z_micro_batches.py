"""Micro-batches of events without Spark: shards continue from memory, from snapshots and from logs, with one result."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shoal import ZAnonymity
from shoal.crypto.sealing import SealBroken
from shoal.errors import CheckpointError
from shoal.methods.z.reader import reasons_of
from shoal.spark.recipe import Recipe
from shoal.spark.records.blocks import OpenBlocks, block_of
from shoal.spark.streams.snapshots import dump_shard, open_shard
from shoal.spark.streams.state import ShardStates
from shoal.spark.z.admit import ADMITTED, AdmitRows, admission_columns, read_admission
from shoal.spark.z.decide import ZTrace
from shoal.spark.z.judge import JudgeShards, SplitRows
from shoal.spark.z.output_ranges import NOTE, PIECES, Ranges, merged
from tests.spark.scene import events
from tests.spark.test_z_shards import ROWS as DRAWN
from tests.spark.test_z_shards import far_ahead, wrong_clocks

pytestmark = [pytest.mark.compiled, pytest.mark.usefixtures("key_file")]
ROWS, STEP = 1500, 250
ONE = {"attribute": "site"}
TWO = {"attribute": {"site": {"on_private": "blank"}, "app": {"z": 4}}}


class Stream:
    """What the driver and the executors do with micro-batches."""

    def __init__(self, method: ZAnonymity, shards: int, folder: Path) -> None:
        self._method, self._shards, self._folder = method, shards, folder
        self._recipe = Recipe.of(method)
        self._admission: bytes | None = None
        self._chains: dict[str, list[str]] = {}
        self._previous: str | None = None
        self.logs = 0

    def decided(self, rows: pa.RecordBatch, first: int, *, attempt: str, in_memory: bool, counts: bool = True) -> Any:
        """Decide a micro-batch; `in_memory`: by workers that know the shards; `counts`: it is committed."""
        head, types = admission_columns(self._method.settings), pa.schema(
            [rows.schema.field(name) for name in self._method.columns]
        )  # fmt: skip
        opening, ranges = OpenBlocks(types, head, {(0, 0): first}), Ranges(first, rows.num_rows, 1)
        blocks = [block_of(0, 0, rows.select(self._method.columns), head)]
        admit = AdmitRows(self._recipe, opening, ranges, is_end=False, state=self._admission)
        admitted = pa.Table.from_batches(list(admit(blocks)), ADMITTED)
        found = read_admission(admitted, is_end=False)
        admission = SimpleNamespace(value=found)
        split = SplitRows(self._recipe, opening, self._shards, admission, first)
        assigned = pa.Table.from_batches(list(split(blocks))).sort_by([("_shoal_shard", "ascending")])
        previous = self._previous if in_memory or self._previous is None else "another worker's"
        states = ShardStates(self._folder, attempt, previous, self._chains)
        judge = JudgeShards(self._recipe, types, admission, first + rows.num_rows, ranges, states)
        pieces = pa.Table.from_batches(list(judge(assigned.to_batches())))
        refused = admitted.filter(admitted["_shoal_state"].is_null()).select(PIECES.names)
        notes = [orjson.loads(note) for note in pieces[NOTE].drop_null().to_pylist()]
        assert sorted(note["shard"] for note in notes) == list(range(self._shards))
        if counts:
            self._admission, self._previous = found.state, attempt
            self._chains = {str(note["shard"]): note["chain"] for note in notes}
            self.logs += sum(len(chain) > 1 for chain in self._chains.values())
        attributes = [column.name for column in self._method.settings.attributes]
        return merged(pa.concat_tables([refused, pieces]).to_batches(), self._method.output_schema, attributes)


@pytest.mark.parametrize(("attributes", "lateness"), [(ONE, "0s"), (ONE, "40s"), (TWO, "40s")])
@pytest.mark.parametrize("shards", [1, 3, 16])
def test_micro_batches_publish_what_one_machine_does(
    tmp_path: Path, shards: int, lateness: str, attributes: dict[str, Any]
) -> None:
    rows = pa.Table.from_pylist(events(ROWS)).combine_chunks().to_batches()[0]
    made = {"z": 3, "window": "10min", "person": "id", "time": "ts", "lateness": lateness, **attributes}
    here, there = ZAnonymity(**made), ZAnonymity(**made)
    there.bind(rows.schema)
    stream, trace = Stream(there, shards, tmp_path), ZTrace.of(there)
    for number, first in enumerate(range(0, ROWS, STEP)):
        part = rows.slice(first, STEP)
        expected = here.push_batch(part)
        if number == 3:  # an attempt that is never committed
            stream.decided(part, first, attempt=f"{number}-lost", in_memory=True, counts=False)
        found = stream.decided(part, first, attempt=str(number), in_memory=number % 2 == 1)
        assert found.rows.to_pylist() == expected.rows.to_pylist(), number
        assert trace.batch(found, reasons_of(there.settings)).to_pylist() == expected.trace.to_pylist(), number
    assert stream.logs > 0


def test_a_worker_keeps_all_shards_that_it_judged(tmp_path: Path) -> None:
    rows = pa.Table.from_pylist(events(ROWS)).combine_chunks().to_batches()[0]
    made = {"z": 3, "window": "10min", "person": "id", "time": "ts", **ONE}
    here, there = ZAnonymity(**made), ZAnonymity(**made)
    there.bind(rows.schema)
    stream = Stream(there, 5, tmp_path)
    for number, first in enumerate(range(0, ROWS, STEP)):
        part = rows.slice(first, STEP)
        found = stream.decided(part, first, attempt=str(number), in_memory=True)
        assert found.rows.to_pylist() == here.push_batch(part).rows.to_pylist(), number
        for path in tmp_path.iterdir():
            path.write_bytes(b"is not read")


def test_a_task_that_runs_again_does_not_count_its_rows_twice(tmp_path: Path) -> None:
    rows = pa.Table.from_pylist(events(ROWS)).combine_chunks().to_batches()[0]
    made = {"z": 3, "window": "10min", "person": "id", "time": "ts", **ONE}
    here, there = ZAnonymity(**made), ZAnonymity(**made)
    there.bind(rows.schema)
    stream = Stream(there, 5, tmp_path)
    for number, first in enumerate(range(0, ROWS, STEP)):
        part = rows.slice(first, STEP)
        stream.decided(part, first, attempt=str(number), in_memory=True, counts=False)
        found = stream.decided(part, first, attempt=str(number), in_memory=True)
        assert found.rows.to_pylist() == here.push_batch(part).rows.to_pylist(), number


@pytest.mark.parametrize("damaged", [b"", b"SHOALSNAP of an earlier version", b"short"])
def test_a_snapshot_of_something_else_is_refused(damaged: bytes) -> None:
    recipe = Recipe.of(ZAnonymity(z=3, window="10min", person="id", time="ts", **ONE))
    made = dump_shard(recipe, b"sealed", {"open": np.arange(3)})
    assert open_shard(recipe, made)[0] == b"sealed"
    assert open_shard(recipe, made)[1]["open"].tolist() == [0, 1, 2]
    with pytest.raises(CheckpointError, match="another version"):
        open_shard(recipe, damaged)
    with pytest.raises(SealBroken):
        open_shard(recipe, made[:40] + bytes([made[40] ^ 1]) + made[41:])


def test_logs_do_not_grow_with_the_number_of_distinct_times(tmp_path: Path) -> None:
    rows, shards = 800, 16
    made = {"z": 3, "window": "1h", "person": "id", "time": "ts", "lateness": "1s", **ONE}
    found = {}
    for name, step in (("one time", 0), ("distinct times", 1)):
        folder, method = tmp_path / name, ZAnonymity(**made)
        folder.mkdir()
        stream = Stream(method, shards, folder)
        for number in range(4):
            times = np.full(rows, 1_700_000_000_000_000) + step * np.arange(number * rows, (number + 1) * rows)
            people = [f"p{place * 7919 % 5003}" for place in range(rows)]
            sites = [f"s{place * place % 97}" for place in range(rows)]
            batch = pa.record_batch({"id": people, "ts": pa.array(times).cast(pa.timestamp("us")), "site": sites})
            method.bind(batch.schema)
            stream.decided(batch, number * rows, attempt=str(number), in_memory=True)
        logs = [path.stat().st_size for path in folder.glob("*.log")]
        assert len(logs) > shards
        found[name] = sum(logs) / len(logs)
    assert abs(found["distinct times"] - found["one time"]) < 200, "a log has the rows, and a few entries of the clock"


@given(DRAWN, st.integers(1, 4), st.integers(1, 20), st.sampled_from([ONE, TWO]), st.sampled_from(["0s", "15s"]))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_micro_batches_with_wrong_first_clocks(
    drawn: list[tuple[int, ...]], shards: int, step: int, attributes: dict[str, Any], lateness: str
) -> None:
    """Time may start over in a later micro-batch than the one with the wrong clock."""
    rows = far_ahead(drawn)
    here, there = wrong_clocks(lateness, attributes), wrong_clocks(lateness, attributes)
    there.bind(rows.schema)
    with TemporaryDirectory() as folder:
        stream, trace = Stream(there, shards, Path(folder)), ZTrace.of(there)
        for number, first in enumerate(range(0, rows.num_rows, step)):
            part = rows.slice(first, step)
            expected = here.push_batch(part)
            found = stream.decided(part, first, attempt=str(number), in_memory=number % 2 == 1)
            assert found.rows.to_pylist() == expected.rows.to_pylist(), number
            assert trace.batch(found, reasons_of(there.settings)).to_pylist() == expected.trace.to_pylist(), number
    here.flush()
