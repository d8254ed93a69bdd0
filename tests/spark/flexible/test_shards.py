"""Shards of the flexible method without Spark: what executors do, in one process, audited on the union."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import shoal
from shoal import Categorical, FlexibleK, Hierarchy, Numeric, Ontology, Schema
from shoal.spark.flexible.cuts import RECORDS_OF_A_SHARD, FlexibleSharder
from shoal.spark.flexible.decide import AssignShards, DecideShards, FlexibleTrace, flexible_metrics
from shoal.spark.flexible.shard import PENDING
from shoal.spark.recipe import Recipe
from shoal.spark.records.columns import DECIDED, NOTE, ORDER, ROW, SHARD, VERDICT
from tests.spark.scene import KEY

pytestmark = pytest.mark.compiled

ROWS, K, WINDOW = 3000, 4, 600
PLACES = {"city": {side: {f"{side} {n}": [f"{side} {n}{m}" for m in "abc"] for n in range(3)} for side in ("N", "S")}}
LEAVES = [leaf for side in PLACES["city"].values() for district in side.values() for leaf in district]
MODELS = [f"m{number}" for number in range(60)]
PHONES = [{"model": model, "brand": f"b{number % 5}", "os": f"os{number % 2}"} for number, model in enumerate(MODELS)]


def promise(folder: Path, **options: Any) -> dict[str, Any]:
    """The method as [anonymize] of a policy; writes the file of its ontology."""
    path = folder / "models.csv"
    path.write_text("\n".join(["model,brand,os", *(",".join(phone.values()) for phone in PHONES)]) + "\n")
    ontology = {"kind": "table", "path": str(path), "value": "model", "is_a": ["brand"], "properties": ["os"],
                "tag": "sparse"}  # fmt: skip
    quasi = {
        "place": {"kind": "categorical", "hierarchy": {"kind": "nested", "tree": PLACES}},
        "speed": {"kind": "numeric", "low": 0, "high": 100, "grid": 5},
        "model": {"kind": "ontology", "ontology": ontology},
    }
    return {"method": "flexible-k", "k": K, "window": WINDOW, "quasi": quasi, **options}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "key"
    path.write_bytes(KEY)
    monkeypatch.setenv("SHOAL_KEY_FILE", str(path))
    return tmp_path


def method(**options: Any) -> FlexibleK:
    schema = Schema(
        person="id",
        quasi=[
            Categorical("place", Hierarchy.from_nested(PLACES)), Numeric("speed", low=0, high=100, grid=5),
            Categorical("model"),
        ],
    )  # fmt: skip
    ontology = Ontology.from_table(PHONES, value="model", is_a=["brand"], properties=["os"], tag="sparse")
    return FlexibleK(schema, ontology, k=K, window=WINDOW, **options)


def records() -> list[dict[str, Any]]:
    """People at places with phones, some rare; every 50th speed is outside its domain, some values are missing."""
    draw = np.random.default_rng(4)
    models = draw.choice(MODELS, ROWS, p=(w := 1 / np.arange(1, 61)) / w.sum())
    places = draw.choice(LEAVES, ROWS, p=(v := 1 / np.arange(1, 19)) / v.sum())
    return [
        {
            "id": f"p{number % 1400}",
            "place": None if number % 301 == 0 else str(places[number]),
            "speed": 500.0 if number % 50 == 0 else float(draw.integers(0, 100)),
            "model": "never heard of" if number % 97 == 0 else str(models[number]),
        }
        for number in range(ROWS)
    ]


def table() -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(records())


def decided(shards: int, **options: Any) -> tuple[pa.Table, int, dict[str, Any]]:
    """All decisions, the number of shards and the metrics."""
    made, rows = method(**options), table()
    recipe = Recipe.of(made)
    sorter = FlexibleSharder(recipe, rows.schema)
    first = rows.slice(0, 2 * WINDOW)
    calibration = sorter.calibrate(first)
    cuts = sorter.learn(first, calibration, shards)
    numbered = rows.append_column(ROW, pa.array(np.arange(ROWS)))
    (assigned,) = AssignShards(recipe, rows.schema, calibration, cuts)([numbered])
    count, decide = len(cuts) + 1, DecideShards(recipe, rows.schema, calibration, ROWS - 1)
    in_order = pa.Table.from_batches([assigned]).sort_by([(SHARD, "ascending"), (ROW, "ascending")])
    found = pa.Table.from_batches(decide(in_order.combine_chunks().to_batches(max_chunksize=250)))
    left = pc.equal(found[VERDICT], PENDING).fill_null(False)
    if count > 1 and found.filter(left).num_rows:
        again = assigned.take(pa.array(np.sort(found.filter(left)[ROW].to_numpy())))
        again = again.set_column(
            again.schema.get_field_index(SHARD), SHARD, pa.repeat(pa.scalar(count, pa.int32()), len(again))
        )
        more = pa.Table.from_batches(decide.another()([again]))
        found = pa.concat_tables([found.filter(pc.invert(left)), more])
    kept = found.filter(pc.invert(pc.equal(found[VERDICT], PENDING).fill_null(False)))
    counts = {verdict: int(pc.sum(pc.equal(kept[VERDICT], verdict)).as_py() or 0) for verdict in ("released", "dead")}
    notes = [orjson.loads(text) for text in kept[NOTE].drop_null().to_pylist()]
    known = {"shards": count, "rows": ROWS, "calibration": calibration, "k": K}
    return kept.filter(pc.is_null(kept[NOTE])), count, flexible_metrics(notes, counts, **known)


def audit(found: pa.Table, folder: Path, **options: Any) -> Any:
    ordered = found.sort_by([(DECIDED, "ascending"), (SHARD, "ascending"), (ORDER, "ascending")])
    dead = np.sort(ordered.filter(pc.equal(ordered[VERDICT], "dead"))[ROW].to_numpy())
    trace = pa.Table.from_batches(FlexibleTrace(dead).batches(ordered.combine_chunks().to_batches()))
    rows = ordered.filter(pc.equal(ordered[VERDICT], "released")).select(["place", "speed", "model"])
    promised = {"stream": {"person": "id"}, "anonymize": promise(folder, **options)}
    return shoal.audit(rows, pa.table(table()), trace, promised)


@pytest.mark.parametrize("shards", [1, 3, 16])
def test_the_union_of_shards_keeps_the_promise(folder: Path, shards: int) -> None:
    found, used, metrics = decided(shards)
    report = audit(found, folder)
    assert report.ok, report
    assert (used > 1) == (shards > 1)
    here = method()
    here.push_batch(table())
    here.flush()
    assert here.frozen is not None
    assert here.frozen.sparse == ("model",)
    assert metrics["k_s"] == here.metrics["k_s"] < K
    assert metrics["pending"] <= here.metrics["pending"] + 0.01 * ROWS
    assert metrics["loss"] <= 1.25 * here.metrics["loss"]
    assert metrics["unknown_model"] == here.metrics["unknown_model"] > 0
    counts = here.counts
    verdicts = found[VERDICT].to_pylist()
    assert verdicts.count("dead") == counts["dead"] > 0
    assert len(set(found[ROW].to_pylist())) == len(found) == ROWS - metrics["pending"]
    if shards == 1:
        assert metrics["loss"] == pytest.approx(here.metrics["loss"])
        assert verdicts.count("released") == counts["released"]


def test_density_is_measured_once_for_all_shards(folder: Path) -> None:
    rule = {"place": {"level": 2, "classes": [{"fewer_than": 40, "k": 7}]}}
    found, used, _ = decided(4, density_from_data=rule)
    report = audit(found, folder, density_from_data=rule)
    assert report.ok, report
    assert used > 1


def test_a_group_with_too_few_people_is_convicted(folder: Path) -> None:
    found, _, _ = decided(3)
    places = found["place"].to_pylist()
    at = found[VERDICT].to_pylist().index("released")
    places[at] = next(place for place in ("N 0", "N 1") if place != places[at])
    place = found.schema.get_field_index("place")
    assert not audit(found.set_column(place, "place", pa.array(places, found["place"].type)), folder).ok


def test_shards_of_one_calibration_each_are_convicted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A calibration of its own lets a shard publish labels that too few people share."""
    from dataclasses import replace

    from shoal.spark.flexible import shard

    made = shard.FlexibleShard.__init__

    def careless(self: Any, recipe: Any, number: int, types: Any, calibration: Any, **more: Any) -> None:
        made(self, recipe, number, types, replace(calibration, k_s=dict.fromkeys(calibration.k_s, 2)), **more)

    monkeypatch.setattr(shard.FlexibleShard, "__init__", careless)
    found, _, _ = decided(3, p_sparse=0.9)
    assert not audit(found, folder, p_sparse=0.9).ok


def test_cuts_lie_between_the_coarsest_labels_and_leave_enough_records() -> None:
    recipe, rows = Recipe.of(method()), table()
    sorter = FlexibleSharder(recipe, rows.schema)
    calibration = sorter.calibrate(rows)
    cuts = sorter.learn(rows, calibration, 16)
    assert cuts == FlexibleSharder(recipe, rows.schema).learn(rows.slice(0, 2 * WINDOW), calibration, 16)
    usable = rows.column("speed").to_numpy() <= 100
    shards = sorter.shards(rows, calibration, cuts)
    assert np.bincount(shards[usable][:WINDOW]).min() >= RECORDS_OF_A_SHARD * K
    side = [None if place is None else place[0] for place in rows.column("place").to_pylist()]
    side = [one if is_usable else None for one, is_usable in zip(side, usable, strict=True)]
    first = sorter.shards(rows, calibration, cuts[:1])
    by_shard = [{one for one, shard in zip(side, first, strict=True) if one and shard == number} for number in (0, 1)]
    assert [len(sides) for sides in by_shard] == [1, 1]
