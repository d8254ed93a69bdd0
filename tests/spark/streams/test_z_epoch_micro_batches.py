"""combine and target in micro-batches, without Spark: what executors and the driver do, in one process."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from shoal import Hierarchy, KTarget, ZAnonymity
from shoal.methods.z.reader import reasons_of
from shoal.spark.recipe import Recipe
from shoal.spark.records.blocks import OpenBlocks, block_of
from shoal.spark.streams.state import ShardStates
from shoal.spark.z.admit import ADMITTED, AdmitRows, admission_columns, read_admission
from shoal.spark.z.decide import ZTrace
from shoal.spark.z.epochs.close import CloseEpochs
from shoal.spark.z.epochs.stream_shard import ContinueValues
from shoal.spark.z.epochs.target_stream import FOLLOWED, FollowStream
from shoal.spark.z.epochs.value_shard import EPOCH, STRETCH
from shoal.spark.z.judge import SplitRows
from shoal.spark.z.output_ranges import PIECES, Ranges, merged
from tests.spark.scene import SCHOOLS, events
from tests.spark.visits import PEOPLE, RESTART, VISITS, WRONG_CLOCKS, Visit, batch_of_visits, crowds

pytestmark = [pytest.mark.compiled, pytest.mark.usefixtures("key_file")]
BINS = 3


class Stream:
    """What the driver and the executors do with micro-batches."""

    def __init__(self, method: ZAnonymity, types: pa.Schema, shards: int, folder: Path) -> None:
        self._method, self._shards, self._folder = method, shards, folder
        self._recipe, self._types = Recipe.of(method), pa.schema([types.field(name) for name in method.columns])
        self._admission: bytes | None = None
        self._chains: dict[str, list[str]] = {}
        self._previous: str | None = None
        self._end = 0
        self.logs = 0

    def decided(self, rows: pa.RecordBatch, attempt: str, *, in_memory: bool = True, counts: bool = True,
                is_end: bool = False) -> tuple[Any, dict[str, Any]]:  # fmt: skip
        """Decide a micro-batch; `in_memory`: by workers that know the shards; `counts`: it is committed."""
        recipe, head, first = self._recipe, admission_columns(self._method.settings), self._end
        opening, end = OpenBlocks(self._types, head, {(0, 0): first}), first + rows.num_rows
        ranges = Ranges(first, rows.num_rows, 1)
        blocks = [block_of(0, 0, rows.select(self._types.names), head)]
        admitted = pa.Table.from_batches(
            list(AdmitRows(recipe, opening, ranges, is_end, self._admission)(blocks)), ADMITTED
        )
        found = read_admission(admitted, is_end=is_end)
        admission = SimpleNamespace(value=found)
        split = SplitRows(recipe, opening, self._shards, admission, first)
        assigned = pa.Table.from_batches(list(split(blocks))).sort_by([("_shoal_shard", "ascending")])
        previous = self._previous if in_memory or self._previous is None else "another worker's"
        states = ShardStates(self._folder, attempt, previous, self._chains)
        judge = ContinueValues(recipe, self._types, admission, end, ranges, BINS, states)
        values = pa.Table.from_batches(list(judge(assigned.to_batches())))
        values = values.sort_by([(STRETCH, "ascending"), (EPOCH, "ascending")])
        decide: Any = CloseEpochs(recipe, self._types, admission, end, ranges)
        if self._method.settings.target is not None:
            decide = FollowStream(recipe, self._types, admission, ranges, states, self._shards)
        pieces = pa.Table.from_batches(list(decide(values.to_batches())), PIECES)
        refused = admitted.filter(admitted["_shoal_state"].is_null()).select(PIECES.names)
        names = [column.name for column in self._method.settings.attributes]
        decided = merged(pa.concat_tables([refused, pieces]).to_batches(), self._method.output_schema, names)
        notes = [orjson.loads(note) for note in decided.notes]
        if counts:
            self._admission, self._previous, self._end = found.state, attempt, end
            self._chains |= {str(note["shard"]): note["chain"] for note in notes if "chain" in note}
            self.logs += sum(len(chain) > 1 for chain in self._chains.values())
        return decided, next((note[FOLLOWED] for note in notes if FOLLOWED in note), {})


def compare(options: dict[str, Any], rows: pa.RecordBatch, cuts: list[int], shards: int, folder: Path) -> Any:
    """Every micro-batch publishes what one machine does; returns the stream, the method and how much was published."""
    here, there = ZAnonymity(**options), ZAnonymity(**options)
    here.bind(rows.schema)
    there.bind(rows.schema)
    stream, trace = Stream(there, rows.schema, shards, folder), ZTrace.of(there)
    bounds = sorted({0, rows.num_rows, *(cut for cut in cuts if cut < rows.num_rows)})
    published, waited = 0, 0
    for number, first in enumerate(bounds):
        is_end = first == rows.num_rows
        part = rows.slice(first, 0 if is_end else bounds[number + 1] - first)
        expected = here.flush() if is_end else here.push_batch(part)
        if number % 4 == 2:  # an attempt that is never committed
            stream.decided(part, f"{number}-lost", counts=False, is_end=is_end)
        found, followed = stream.decided(part, str(number), in_memory=number % 3 > 0, is_end=is_end)
        assert found.rows.to_pylist() == expected.rows.to_pylist(), number
        assert trace.batch(found, reasons_of(there.settings)).to_pylist() == expected.trace.to_pylist(), number
        if here.settings.target is not None:
            assert followed["metrics"] == here.metrics
            assert followed["changes"] == [[change.moment, change.z] for change in here.take_changes()]
        published += found.rows.num_rows
        waited += here.pending > 0
    assert here.pending == 0
    return stream, here, published, waited


def batch_of(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.Table.from_pylist(rows).combine_chunks().to_batches()[0]


ONE: dict[str, Any] = {"attribute": "site"}
BLANK: dict[str, Any] = {"attribute": "site", "on_private": "blank"}
TWO: dict[str, Any] = {"attribute": {"site": {}, "app": {}}}
COMBINE: dict[str, Any] = {"z": 2, "combine": "k", "k": 3, "window": "4min", "rotation": "2min"}
TARGET: dict[str, Any] = {"target": KTarget(k=2, p=0.3, start=3), "window": "12min", "rotation": "6min"}
CUTS = [40, 300, 310, 420, 700, 701, 702, 1000, 1100, 1250, 1480]


@pytest.mark.parametrize("lateness", ["0s", "40s", "5min"])
@pytest.mark.parametrize("attributes", [ONE, BLANK, TWO], ids=["one", "blank", "two"])
@pytest.mark.parametrize("option", [COMBINE, TARGET], ids=["combine", "target"])
def test_micro_batches_publish_what_one_machine_does(
    tmp_path: Path, option: dict[str, Any], attributes: dict[str, Any], lateness: str
) -> None:
    options = {"person": "id", "time": "ts", "lateness": lateness, "carry": ["n"], **attributes, **option}
    rows = batch_of([{**row, "n": number} for number, row in enumerate(events(1500))])
    stream, here, published, waited = compare(options, rows, CUTS, 3, tmp_path)
    assert 0 < published < 1500
    assert stream.logs > 0
    assert waited > 5 or (option is TARGET and lateness == "0s")
    assert option is COMBINE or len({outcome.z for outcome in here.outcomes}) > 1


def test_labels_of_a_hierarchy_are_combined(tmp_path: Path) -> None:
    rows = [{**row, "site": ["primary", "secondary", "bachelor", "master"][number % 4] if number % 9 else None}
            for number, row in enumerate(events(900))]  # fmt: skip
    options = {
        "person": "id", "time": "ts", "attribute": "site", "on_private": "generalize", **COMBINE, "z": 6, "k": 4,
        "hierarchy": Hierarchy.from_nested(SCHOOLS),
    }  # fmt: skip
    assert compare(options, batch_of(rows), [100, 350, 600], 4, tmp_path)[2] > 0


@pytest.mark.parametrize("option", [COMBINE, TARGET], ids=["combine", "target"])
def test_what_waits_is_sealed_and_a_micro_batch_writes_what_it_was_given(
    tmp_path: Path, option: dict[str, Any]
) -> None:
    options = {"person": "id", "time": "ts", "carry": ["note"], **ONE, **option, "rotation": "1h", "window": "1h"}
    rows = batch_of([{**row, "ts": 1_700_000_000 + number // 400, "note": "a carried value"}
                     for number, row in enumerate(events(1600))])  # fmt: skip
    here, there = ZAnonymity(**options), ZAnonymity(**options)
    there.bind(rows.schema)
    stream, written = Stream(there, rows.schema, 2, tmp_path), []
    for number in range(32):
        before = set(tmp_path.iterdir())
        part = rows.slice(50 * number, 50)
        here.push_batch(part)
        stream.decided(part, f"{number:02}", in_memory=number % 2 == 1)
        written.append(set(tmp_path.iterdir()) - before)
    assert here.pending > 1000 or option is TARGET
    assert not any(b"carried value" in path.read_bytes() for path in tmp_path.iterdir())
    logs = [sum(path.stat().st_size for path in new if path.suffix == ".log") for new in written]
    only_logs = [size for size, new in zip(logs, written, strict=True) if all(path.suffix == ".log" for path in new)]
    assert len(only_logs) > 16, "snapshots are rare"
    assert max(only_logs) < 1.5 * min(only_logs), "logs do not grow with the epoch"


LEAST: list[dict[str, Any]] = [
    {"rotation": "30s", "z": 1, "combine": "k", "k": 2},
    {"rotation": "1min", "target": KTarget(k=2, p=0.3, start=2)},
]


def least(option: dict[str, Any], attributes: dict[str, Any], lateness: str) -> dict[str, Any]:
    return {
        "window": "1min", "person": "id", "time": "ts", "lateness": lateness, "max_gap": "10min",
        **attributes, **option,
    }  # fmt: skip


@given(VISITS, WRONG_CLOCKS, st.lists(st.integers(1, 59), max_size=8), st.integers(1, 4),
       st.sampled_from(["0s", "15s", "70s"]), st.sampled_from([ONE, BLANK, TWO]), st.sampled_from(LEAST))  # fmt: skip
@example(RESTART, PEOPLE, [1], 2, "0s", BLANK, LEAST[0])
@example(RESTART, PEOPLE, [1], 2, "0s", ONE, LEAST[1])
@example(RESTART, PEOPLE, [1, 2, 3], 2, "15s", TWO, LEAST[1])
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
def test_random_streams_in_random_parts_with_wrong_clocks(
    tmp_path_factory: pytest.TempPathFactory,
    visits: list[Visit],
    wrong_clocks: int,
    cuts: list[int],
    shards: int,
    lateness: str,
    attributes: Any,
    option: Any,
) -> None:
    """Some events are far ahead, at the beginning too: time starts over, and what waits is refused."""
    options = least(option, attributes, lateness)
    compare(options, batch_of_visits(visits, wrong_clocks), cuts, shards, tmp_path_factory.mktemp("state"))


@pytest.mark.parametrize("attributes", [ONE, BLANK, TWO], ids=["one", "blank", "two"])
@pytest.mark.parametrize("option", LEAST, ids=["combine", "target"])
def test_crowds_with_wrong_clocks_are_published(
    tmp_path_factory: pytest.TempPathFactory, option: Any, attributes: Any
) -> None:
    """With few people a target publishes next to nothing, so random streams of few people would show nothing."""
    published = [
        compare(
            least(option, attributes, "15s"),
            crowds(seed, wrong_clocks),
            [70, 300, 301, 500],
            3,
            tmp_path_factory.mktemp("state"),
        )[2]
        for seed in range(2)
        for wrong_clocks in (1, 40)
    ]
    assert min(published) > 20
