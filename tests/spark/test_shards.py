"""Shards of tuples without Spark: what an executor does, in one process."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import shoal
from shoal import KTarget, LeastLoss, ZAnonymity
from shoal.errors import PolicyError, VaultError
from shoal.schema import Numeric, Schema
from shoal.spark.families import check_settings
from shoal.spark.recipe import Recipe
from shoal.spark.records.columns import AT_END, CLOCK, DECIDED, ROW, SHARD, VERDICT, cast, wire_schema
from shoal.spark.tuples import cuts
from shoal.spark.tuples.cuts import CutsFrom, TupleSharder
from shoal.spark.tuples.drift import cuts_of_stretches, sampled_rows, stretches
from shoal.spark.tuples.shard import TupleShard, shard_recipe
from shoal.spark.tuples.trace import TupleTrace
from tests.spark.scene import KEY

pytestmark = pytest.mark.compiled

ROWS = 1200
QUASI = [Numeric("age", low=0, high=100), Numeric("height", low=100, high=220)]
POLICY = {
    "stream": {"person": "id"},
    "anonymize": {
        "method": "least-loss", "k": 5, "deadline": 120, "reuse": 20,
        "quasi": {role.name: {"kind": "numeric", "low": role.low, "high": role.high} for role in QUASI},
    },
}  # fmt: skip


@pytest.fixture(autouse=True)
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "key"
    path.write_bytes(KEY)
    monkeypatch.setenv("SHOAL_KEY_FILE", str(path))


def table(*, drifts: bool = False) -> pa.RecordBatch:
    """People of two kinds; every 50th age is outside the domain. If it drifts, people become older."""
    draw = np.random.default_rng(3)
    ages = np.where(draw.random(ROWS) < 0.5, draw.normal(30, 5, ROWS), draw.normal(70, 5, ROWS)).round()
    ages = ages[np.argsort(ages + draw.normal(0, 15, ROWS))] if drifts else ages
    ages[::50] = 200
    people = [f"p{number % 900}" for number in range(ROWS)]
    return pa.record_batch({"id": people, "age": ages, "height": draw.normal(160, 12, ROWS).round()})


def cuts_for(shards: int, rows: pa.RecordBatch) -> tuple[Recipe, tuple[CutsFrom, ...]]:
    """The cuts of a stream, learnt on 40 rows of each stretch of 400."""
    recipe = Recipe.of(LeastLoss(Schema(person="id", quasi=QUASI), k=5, deadline=120, reuse=20))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuts, "LEARNING_ROWS", 40)
        starts = stretches(0, ROWS)
        numbers = sampled_rows(starts, ROWS)
        return recipe, cuts_of_stretches(rows.take(pa.array(numbers)), numbers, starts, recipe, shards)


def decided(shards: int, *, keeps: bool = False, drifts: bool = False) -> tuple[pa.Table, int]:
    """Decisions of all shards about the table; with `keeps`, each shard is stored and opened again half way."""
    rows = table(drifts=drifts)
    recipe, all_cuts = cuts_for(shards, rows)
    inner, used = shard_recipe(recipe), max(each.shards for each in all_cuts)
    numbers = np.arange(ROWS)
    of = TupleSharder(recipe, all_cuts).read(rows, numbers).shards
    whole = rows.append_column(ROW, pa.array(numbers)).append_column(CLOCK, pa.array(numbers))
    parts, left = [], []
    for number in range(used):
        own, shard = whole.filter(pa.array(of == number)), TupleShard(inner, number, rows.schema)
        half = own.num_rows // 2
        parts.append(shard.push(own.slice(0, half)))
        if keeps:
            shard = TupleShard(inner, number, rows.schema, shard.dump())
        parts += [shard.push(own.slice(half)), *shard.finish(ROWS - 1)]
    found = pa.Table.from_batches(parts)
    is_left = pc.and_(found[AT_END], pc.equal(found[VERDICT], "suppressed")).fill_null(False)
    left = sorted(found.filter(is_left)[ROW].to_pylist())
    last = TupleShard(inner, used, rows.schema)
    again = [last.push(whole.take(pa.array(left, pa.int64()))), *last.finish(ROWS - 1)] if left else []
    return pa.concat_tables([found.filter(pc.invert(is_left)), *map(pa.table, again)]), used


def audit(found: pa.Table, *, drifts: bool = False) -> Any:
    records = found.filter(pc.is_valid(found[VERDICT])).sort_by([(DECIDED, "ascending"), (SHARD, "ascending")])
    dead = np.sort(np.asarray(records.filter(pc.equal(records[VERDICT], "dead"))[ROW]))
    trace = TupleTrace(5, False, dead)
    written = pa.Table.from_batches(list(trace.batches(records.combine_chunks().to_batches())))
    rows = records.filter(pc.equal(records[VERDICT], "released")).select(["age", "height"])
    return shoal.audit(rows, pa.table(table(drifts=drifts)), written, POLICY)


@pytest.mark.parametrize(("shards", "drifts"), [(1, False), (3, False), (16, False), (3, True), (16, True)])
def test_the_union_of_shards_keeps_the_promise(shards: int, drifts: bool) -> None:
    found, used = decided(shards, drifts=drifts)
    report = audit(found, drifts=drifts)
    assert report.ok, report
    assert not report.warnings, report
    assert used > 1 or shards == 1
    counts = dict(zip(*np.unique(found[VERDICT].drop_null().to_pylist(), return_counts=True), strict=True))
    assert counts["dead"] == ROWS / 50
    assert sum(counts.values()) == ROWS
    assert counts.get("suppressed", 0) <= 0.02 * ROWS


def test_a_shard_that_is_stored_decides_the_same() -> None:
    assert decided(3, keeps=True)[0].equals(decided(3)[0])


def test_a_broken_union_is_convicted() -> None:
    found, _ = decided(3)
    place = found.schema.get_field_index("age")
    ages = found["age"].to_pylist()
    at = found[VERDICT].to_pylist().index("released")
    ages[at] = {"lo": ages[at]["lo"], "hi": ages[at]["hi"] + 1}
    assert not audit(found.set_column(place, "age", pa.array(ages, found["age"].type))).ok


def test_cuts_depend_on_the_first_rows_only_and_shards_are_not_too_small() -> None:
    recipe, rows = Recipe.of(LeastLoss(Schema(person="id", quasi=QUASI), k=5, deadline=120)), table()
    sorter, other = TupleSharder(recipe), TupleSharder(recipe)
    sorter.learn(rows.slice(0, 400), 64)
    other.learn(rows.slice(0, 400), 64)
    assert sorter.all_cuts == other.all_cuts
    sizes = np.bincount(sorter.read(rows.slice(0, 400), np.arange(400)).shards)
    assert sizes.min() * 120 / 400 >= 2 * 5


def test_cuts_are_learnt_again_where_a_stream_drifts_and_only_there() -> None:
    _, still = cuts_for(4, table())
    assert [each.first for each in still] == [0]
    rows = table(drifts=True)
    recipe, all_cuts = cuts_for(4, rows)
    assert [each.first for each in all_cuts] in ([0, 400], [0, 800], [0, 400, 800])
    assert cuts_for(4, rows)[1] == all_cuts
    numbers = np.arange(ROWS)
    of = TupleSharder(recipe, all_cuts).read(rows, numbers).shards
    for each, end in zip(all_cuts, [*(later.first for later in all_cuts[1:]), ROWS], strict=True):
        own = rows.slice(each.first, end - each.first)
        alone = TupleSharder(recipe, [CutsFrom(0, each.cuts)]).read(own, numbers[each.first : end]).shards
        assert of[each.first : end].tolist() == alone.tolist()
    fixed = TupleSharder(recipe, all_cuts[:1]).read(rows, numbers).shards
    last = all_cuts[-1].first
    assert np.bincount(of[last:]).min() > 2 * np.bincount(fixed[last:], minlength=4).min()


def test_a_long_stream_has_few_stretches_and_the_rows_of_its_end_count() -> None:
    starts = stretches(7, 100_000_000)
    assert len(starts) == 64
    assert sampled_rows(stretches(0, 30_002), 30_002).tolist() == [*range(3_000), 30_000, 30_001]
    assert len(stretches(0, 0)) == len(sampled_rows(stretches(0, 0), 0)) == 0


def test_columns_come_back_unchanged() -> None:
    batch = pa.record_batch(
        {
            "time": pa.array([1, None], pa.timestamp("ns", tz="UTC")),
            "big": pa.array([2**64 - 1, 0], pa.uint64()),
            "range": pa.array([{"lo": 1.0, "hi": 2.0}, None]),
            "text": pa.array(["ä", ""], pa.large_string()),
        }
    )
    assert cast(cast(batch, wire_schema(batch.schema)), batch.schema).equals(batch)


def test_no_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHOAL_KEY_FILE")
    with pytest.raises(VaultError, match="every executor needs the same key"):
        Recipe.of(LeastLoss(Schema(person="id", quasi=QUASI)))


def test_a_key_of_its_own_is_refused_and_never_travels() -> None:
    schema = Schema(person="id", quasi=QUASI)
    with pytest.raises(PolicyError, match="leave key out"):
        Recipe.of(LeastLoss(schema, key=bytes(16)))
    assert KEY not in str(Recipe.of(LeastLoss(schema))).encode()


def test_what_cannot_be_divided_is_refused() -> None:
    diverse = LeastLoss(Schema(person="id", quasi=QUASI, sensitive=["work"]), t=0.5)
    learning = ZAnonymity(window="1h", person="id", time="ts", attribute="site", target=KTarget(k=2, p=0.9, learn=True))
    for method, words in ((diverse, "one reference for all shards"), (learning, "an earlier stream is read on one")):
        with pytest.raises(PolicyError, match=words):
            check_settings(Recipe.of(method))


def test_a_shard_with_pending_rows_goes_without_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    rows = table().slice(0, 20)
    numbers = pa.array(np.arange(20))
    recipe = Recipe.of(LeastLoss(Schema(person="id", quasi=QUASI), k=5, deadline=120))
    shard = TupleShard(shard_recipe(recipe), 0, rows.schema)
    shard.push(rows.append_column(ROW, numbers).append_column(CLOCK, numbers))
    del shard
    gc.collect()
    assert not caplog.records
