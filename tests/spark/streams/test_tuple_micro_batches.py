"""Micro-batches of tuples without Spark: shards continue from memory, snapshots and logs, also if a task runs twice."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from shoal.methods.tuples.least_loss import LeastLoss
from shoal.schema import Numeric, Schema
from shoal.spark.outcome import SORTED, Outcome
from shoal.spark.recipe import Recipe
from shoal.spark.records.columns import AT_END, CLOCK, DELAY, NOTE, ROW, SHARD, VERDICT, cast
from shoal.spark.streams import state as shard_memory
from shoal.spark.streams.state import ShardStates
from shoal.spark.tuples import cuts
from shoal.spark.tuples import stream as tuple_stream
from shoal.spark.tuples.decide import DecideShards
from shoal.spark.tuples.shard import shard_recipe
from shoal.spark.tuples.stream import ContinueShards, TupleStream
from shoal.spark.tuples.trace import DecidedAgain
from tests.spark.scene import KEY, people
from tests.spark.tuple_shards import Union

pytestmark = pytest.mark.compiled
ROWS, STEP, SHARDS = 900, 150, 3
QUASI = [Numeric("age", low=17, high=90), Numeric("income", low=0, high=1000)]
SCHEMA = Schema(person="id", quasi=QUASI)
TYPES = pa.schema([("id", pa.string()), ("age", pa.int64()), ("income", pa.int64())])


@pytest.fixture(autouse=True)
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "key"
    path.write_bytes(KEY)
    monkeypatch.setenv("SHOAL_KEY_FILE", str(path))


def recipe() -> Recipe:
    return Recipe.of(LeastLoss(SCHEMA, k=4, deadline=60, reuse=20))


def parts(first: int, shards: int = SHARDS) -> list[pa.RecordBatch]:
    """The rows of a micro-batch as they come to shards: sorted, with a row without a number for every shard."""
    rows = [{**row, ROW: first + at, CLOCK: first + at} for at, row in enumerate(people(ROWS)[first : first + STEP])]
    every = [{ROW: None, CLOCK: None, SHARD: shard} for shard in range(shards)]
    rows = [{**row, SHARD: int(row["income"] or 0) % 1000 * shards // 1000} for row in rows]
    schema = pa.schema([*TYPES, (ROW, pa.int64()), (SHARD, pa.int32()), (CLOCK, pa.int64())])
    return (
        pa.Table.from_pylist([*every, *rows], schema=schema).sort_by([(SHARD, "ascending"), (ROW, "ascending")])
    ).to_batches(max_chunksize=70)


def decided(folder: Path, attempt: str, previous: str | None, chains: dict[str, Any], first: int, **more: Any) -> Any:
    """What shards decide, without notes; and the files that lead to them."""
    table = continued(folder, attempt, previous, chains, first, **more)
    notes = [orjson.loads(note) for note in table[NOTE].drop_null().to_pylist()]
    rows = [row for row in table.drop_columns([NOTE]).to_pylist() if row[ROW] is not None]
    return rows, {str(note["shard"]): note["chain"] for note in notes if "chain" in note}


def continued(
    folder: Path, attempt: str, previous: str | None, chains: dict[str, Any], first: int, *, shards: int = SHARDS,
    **more: Any,
) -> pa.Table:  # fmt: skip
    states = ShardStates(folder, attempt, previous, chains)
    last = min(first + STEP, ROWS) - 1
    work = ContinueShards(shard_recipe(recipe()), TYPES, last, states, **{"is_end": False, **more})
    return pa.Table.from_batches(list(work(parts(first, shards))))


def test_shards_continue_alike_from_memory_and_from_files_and_if_a_task_runs_twice(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    chains: dict[str, dict[str, Any]] = {"one": {}, "two": {}}
    logs = pending = 0
    for number, first in enumerate(range(0, ROWS, STEP)):
        before = f"a{number - 1}" if number else None
        is_end = first + STEP >= ROWS
        one, kept = decided(tmp_path / "one", f"a{number}", before, chains["one"], first, is_end=is_end)
        if number % 2:
            shard_memory._IN_MEMORY.clear()  # another worker
        if number == 3:  # a copy of the task that is slower, and one whose attempt is never committed
            decided(tmp_path / "two", f"a{number}", before, chains["two"], first)
            decided(tmp_path / "two", "lost", before, chains["two"], first)
            shard_memory._IN_MEMORY.clear()
        two, again = decided(tmp_path / "two", f"a{number}", before, chains["two"], first, is_end=is_end)
        assert one == two, number
        assert sorted(kept) == ([] if is_end else ["0", "1", "2"])
        chains |= {"one": kept, "two": again}
        logs += sum(len(chain) > 1 for chain in again.values())
        pending += sum(row[ROW] < first for row in two)
    assert logs > 0
    assert pending > 0, "rows are published with the micro-batch that decides them"


def test_rows_that_are_left_at_the_end_are_decided_together_and_all_is_audited(tmp_path: Path) -> None:
    chains: dict[str, Any] = {}
    found, shards = [], 12
    for number, first in enumerate(range(0, ROWS, STEP)):
        table = continued(tmp_path, f"a{number}", f"a{number - 1}" if number else None, chains, first, shards=shards)
        chains |= {str(note["shard"]): note["chain"] for note in map(orjson.loads, table[NOTE].drop_null().to_pylist())}
        found.append(table.filter(pc.is_null(table[NOTE])))
        if number % 2:
            shard_memory._IN_MEMORY.clear()  # another worker: kept rows come from snapshots and logs
    before = f"a{ROWS // STEP - 1}"
    end = continued(tmp_path, "end", before, chains, ROWS, shards=shards, is_end=True)
    shard_memory._IN_MEMORY.clear()
    left = continued(tmp_path, "end", before, chains, ROWS, shards=shards, is_end=True, gives_left=True).sort_by(ROW)
    is_left = pc.fill_null(pc.and_(pc.equal(end[VERDICT], "suppressed"), end[AT_END]), fill_value=False)
    first_tries = end.filter(is_left)
    assert len(left) > 4
    assert left[ROW].to_pylist() == sorted(first_tries[ROW].to_pylist())
    given = pa.Table.from_pylist(people(ROWS), schema=TYPES).take(left[ROW])
    assert left.select(TYPES.names).to_pylist() == given.to_pylist(), "rows are kept as they came"
    together = DecideShards(shard_recipe(recipe()), TYPES, ROWS - 1, again=True)
    in_one = pa.repeat(pa.scalar(shards, pa.int32()), len(left))
    more = pa.Table.from_batches(together(left.append_column(SHARD, in_one).combine_chunks().to_batches()))
    kept = pa.concat_tables([end.filter(pc.invert(is_left)), more])
    notes = [orjson.loads(note) for note in kept[NOTE].drop_null().to_pylist()]
    whole = pa.concat_tables([*found, kept.filter(pc.is_null(kept[NOTE]))])
    again = DecidedAgain(len(left), pc.sum(first_tries[DELAY]).as_py())
    metrics = tuple_stream._metrics(notes, {}, is_timed=False, again=again)
    union = Union(whole.sort_by([(name, "ascending") for name in SORTED]), first_tries, shards, recipe(), metrics)
    numeric = {role.name: {"kind": "numeric", "low": role.low, "high": role.high} for role in QUASI}
    policy = {
        "stream": {"person": "id"},
        "anonymize": {"method": "least-loss", "k": 4, "deadline": 60, "reuse": 20, "quasi": numeric},
    }
    report = union.audit(pa.Table.from_pylist(people(ROWS), schema=TYPES), policy)
    assert report.ok, report
    assert not report.warnings, report
    assert sum(union.counts().values()) == ROWS
    assert pc.sum(pc.equal(more[VERDICT], "released")).as_py() > 0
    assert metrics["suppressed"] == union.counts()["suppressed"]
    assert metrics["shards"] == shards
    assert {"own": metrics["loss"], "all": metrics["loss_all"]} == pytest.approx(report.metrics["loss"])


def after(known: TupleStream, counts: list[int], refused: list[int], oldest: int | None) -> TupleStream:
    """What is known after a micro-batch, given how many rows every shard was given so far."""
    notes = [{"shard": shard, "pushed": pushed, "again": False} for shard, pushed in enumerate(counts)]
    letters = pa.table({"row": refused, "reason": ["null-person"] * len(refused)}) if refused else None
    return known.after(Outcome({}, letters, {}, notes), oldest)


def test_what_the_driver_knows_is_sealed_and_says_when_the_stream_has_drifted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuts, "LEARNING_ROWS", 10)
    made, split = recipe(), ((0.0, 40.0, 0.0, 0.0),)
    known = TupleStream(split, 2, is_learning=False, pushed_before=np.array([50, 0]), dead=np.array([3, 95]))
    for counts, drifted in (([100, 50], False), ([148, 2], True), ([60, 12], False)):
        found = after(known, [50 + counts[0], counts[1]], [101, 99], oldest=90)
        assert found.is_learning is drifted, counts
        assert found.dead.tolist() == [95, 99, 101]
        sealed = found.sealed(made)
        assert b"cuts" not in sealed
        again = TupleStream.opened(made, sealed)
        assert again.cuts == split
        assert again.is_learning is drifted
        assert again.pushed.tolist() == found.pushed.tolist()
        assert again.pushed_before.tolist() == found.pushed_before.tolist()
    sample = pa.record_batch({"id": ["a"], "age": [3]})
    kept = TupleStream.opened(made, TupleStream(sample=sample).sealed(made))
    assert kept.sample == sample
    assert kept.is_learning


@pytest.mark.parametrize("even", [0, 10, 5_000])
def test_a_shift_is_noticed_within_two_stretches_however_long_the_stream_was_even(
    monkeypatch: pytest.MonkeyPatch, even: int
) -> None:
    """Micro-batches of 30 rows, a stretch has 100: `even` of them go to both shards alike, all others to the first."""
    monkeypatch.setattr(cuts, "LEARNING_ROWS", 10)
    made = recipe()
    known = TupleStream(((0.0, 40.0, 0.0, 0.0),), 2, is_learning=False)
    for number in range(1, even + 1):
        known = after(known, [15 * number, 15 * number], [], None)
        assert not known.is_learning, number
    shifted = 0
    while not known.is_learning:
        shifted += 30
        assert shifted <= 2 * (100 + 30), "each stretch ends with a micro-batch"
        known = TupleStream.opened(made, after(known, [15 * even + shifted, 15 * even], [], None).sealed(made))
    rows = cast(pa.Table.from_pylist(people(10), schema=TYPES).to_batches()[0], TYPES)
    given: Any = SimpleNamespace(types=TYPES, count=10, first_rows=lambda count: rows.slice(0, count))
    learnt = known.with_cuts(given, made, 2)
    assert not learnt.is_learning
    assert learnt.cuts != known.cuts
    assert learnt.pushed_before.tolist() == known.pushed.tolist(), "the next stretch begins with the new cuts"
