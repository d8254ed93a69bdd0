"""Shards of tuples without Spark: what an executor does, in one process."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shoal import KTarget, LeastLoss, ZAnonymity
from shoal.errors import PolicyError, VaultError
from shoal.schema import Numeric, Schema
from shoal.spark.families import check_settings
from shoal.spark.recipe import Recipe
from shoal.spark.records.columns import CLOCK, ROW, VERDICT, cast, wire_schema
from shoal.spark.tuples.cuts import CutsFrom, TupleSharder
from shoal.spark.tuples.drift import sampled_rows, stretches
from shoal.spark.tuples.shard import TupleShard, shard_recipe
from tests.spark.scene import KEY
from tests.spark.tuple_shards import Union, cuts_for, in_shards

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


def recipe_of(**more: Any) -> Recipe:
    return Recipe.of(LeastLoss(Schema(person="id", quasi=QUASI), **{"k": 5, "deadline": 120, "reuse": 20, **more}))


def decided(shards: int, *, halves: bool = False, drifts: bool = False) -> Union:
    """Decisions of all shards about the table; cuts are learnt on 40 rows of each stretch of 400."""
    rows, recipe = table(drifts=drifts), recipe_of()
    return in_shards(recipe, rows, cuts_for(recipe, rows, shards, rows_of_learning=40), halves=halves)


@pytest.mark.parametrize(("shards", "drifts"), [(1, False), (3, False), (16, False), (3, True), (16, True)])
def test_the_union_of_shards_keeps_the_promise(shards: int, drifts: bool) -> None:
    found = decided(shards, drifts=drifts)
    report = found.audit(table(drifts=drifts), POLICY)
    assert report.ok, report
    assert not report.warnings, report
    assert found.shards > 1 or shards == 1
    counts = found.counts()
    assert counts["dead"] == ROWS / 50
    assert sum(counts.values()) == ROWS
    assert counts["suppressed"] <= 0.02 * ROWS


def test_a_shard_that_is_stored_decides_the_same() -> None:
    one, other = decided(3, halves=True), decided(3)
    assert one.decided.equals(other.decided)
    assert one.metrics == other.metrics


def test_a_broken_union_is_convicted() -> None:
    found = decided(3)
    rows = found.decided
    ages, at = rows["age"].to_pylist(), rows[VERDICT].to_pylist().index("released")
    ages[at] = {"lo": ages[at]["lo"], "hi": ages[at]["hi"] + 1}
    broken = rows.set_column(rows.schema.get_field_index("age"), "age", pa.array(ages, rows["age"].type))
    assert not replace(found, decided=broken).audit(table(), POLICY).ok


def test_cuts_depend_on_the_first_rows_only_and_shards_are_not_too_small() -> None:
    recipe, rows = recipe_of(), table()
    sorter, other = TupleSharder(recipe), TupleSharder(recipe)
    sorter.learn(rows.slice(0, 400), 64)
    other.learn(rows.slice(0, 400), 64)
    assert sorter.all_cuts == other.all_cuts
    sizes = np.bincount(sorter.read(rows.slice(0, 400), np.arange(400)).shards)
    assert sizes.min() * 120 / 400 >= 2 * 5


def test_cuts_are_learnt_again_where_a_stream_drifts_and_only_there() -> None:
    recipe = recipe_of()
    assert [each.first for each in cuts_for(recipe, table(), 4, rows_of_learning=40)] == [0]
    rows = table(drifts=True)
    all_cuts = cuts_for(recipe, rows, 4, rows_of_learning=40)
    assert [each.first for each in all_cuts] in ([0, 400], [0, 800], [0, 400, 800])
    assert cuts_for(recipe, rows, 4, rows_of_learning=40) == all_cuts
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
    recipe = recipe_of()
    shard = TupleShard(shard_recipe(recipe), 0, rows.schema)
    shard.push(rows.append_column(ROW, numbers).append_column(CLOCK, numbers))
    del shard
    gc.collect()
    assert not caplog.records


def test_only_pending_rows_are_kept_as_they_came() -> None:
    rows, numbers = table(), pa.array(np.arange(ROWS))
    given = rows.append_column(ROW, numbers).append_column(CLOCK, numbers)
    shard = TupleShard(shard_recipe(recipe_of()), 0, rows.schema, keeps=True)
    for first in range(0, ROWS, 100):
        shard.push(given.slice(first, 100))
        assert shard._kept.column(ROW).to_pylist() == shard._rows.tolist()
        assert shard._kept.num_rows <= 120
    again = TupleShard(shard_recipe(recipe_of()), 0, rows.schema, shard.dump(), keeps=True)
    assert again._kept == shard._kept == given.take(pa.array(shard._rows)).select(shard._kept.schema.names)
