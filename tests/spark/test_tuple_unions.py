"""Random streams of tuples in shards that are too small: k, l and t hold on the union, with the rows decided again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from shoal.hierarchies import Hierarchy
from shoal.methods.registry import METHODS
from shoal.schema import Categorical, Numeric, Schema
from shoal.spark.families import check_settings
from shoal.spark.recipe import Recipe
from shoal.spark.records.columns import DECIDED, DELAY, GROUP, REUSED, ROW, SHARD, VERDICT
from shoal.spark.tuples import cuts
from tests.spark.scene import KEY, LEAVES, SCHOOLS
from tests.spark.tuple_shards import Union, cuts_for, in_shards

pytestmark = pytest.mark.compiled

ROWS, SEEDS = 700, range(4)
VALUES = ["flu", "gout", "cold", "none"]
QUASI = {
    "age": {"kind": "numeric", "low": 0, "high": 100},
    "income": {"kind": "numeric", "low": 0, "high": 1000},
    "school": {"kind": "categorical", "hierarchy": {"kind": "nested", "tree": SCHOOLS}},
}
LEAST: dict[str, Any] = {"method": "least-loss", "k": 4, "deadline": 60, "reuse": 20}
CASES: dict[str, dict[str, Any]] = {
    "least-loss": LEAST,
    "root": {**LEAST, "suppressed": "root"},
    "groups": {**LEAST, "groups": True},
    "shares of one person": {**LEAST, "max_share": 0.3},
    "no reuse": {**LEAST, "reuse": 0},
    "fads": {**LEAST, "method": "fads"},
    "fast": {**LEAST, "method": "fast"},
    "k-varp": {**LEAST, "method": "k-varp", "missing": "covered"},
    "iot": {**LEAST, "method": "iot-anonymization", "missing": "covered"},
    "castle": {**LEAST, "method": "castle"},
    "durations": {**LEAST, "deadline": "60s", "reuse": "20s"},
    "durations, fads": {**LEAST, "method": "fads", "deadline": "60s", "reuse": "20s"},
    "distinct l": {**LEAST, "l": 3},
    "entropy l": {**LEAST, "entropy_l": 2.2},
    "t": {**LEAST, "t": 0.3, "reference": {"illness": dict(zip(VALUES, (0.4, 0.3, 0.2, 0.1), strict=True))}},
    "l of fads": {**LEAST, "method": "fads", "l": 3, "entropy_l": 2.2},
}


@pytest.fixture(autouse=True)
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "key"
    path.write_bytes(KEY)
    monkeypatch.setenv("SHOAL_KEY_FILE", str(path))
    monkeypatch.setattr(cuts, "ROWS_OF_A_SHARD", 0.5)  # so that many rows find too few others


def stream(seed: int) -> pa.RecordBatch:
    """People who come again, values that are missing or refused; some stretches are of one kind of people."""
    draw = np.random.default_rng(seed)
    of_one_kind = np.repeat(draw.random(ROWS // 50) < 0.4, 50)
    ages = np.where(of_one_kind, draw.normal(80, 4, ROWS), draw.normal(40, 18, ROWS)).clip(0, 99).round()
    ages[draw.random(ROWS) < 0.02] = 300
    times = 1_700_000_000 + np.cumsum(draw.choice([0, 1, 5], ROWS, p=[0.3, 0.6, 0.1]))
    return pa.record_batch(
        {
            "id": [f"p{number}" for number in draw.integers(0, 500, ROWS)],
            "age": pa.array(ages, mask=draw.random(ROWS) < 0.05),
            "income": draw.integers(0, 1000, ROWS),
            "school": pa.array(draw.choice(LEAVES, ROWS, p=[0.5, 0.3, 0.15, 0.05]).tolist()),
            "illness": draw.choice(VALUES, ROWS, p=[0.4, 0.3, 0.2, 0.1]).tolist(),
            "ts": pa.array(times * 10**9).cast(pa.timestamp("ns", tz="UTC")),
        }
    )


def schema(*, is_timed: bool) -> Schema:
    quasi = [
        Numeric("age", low=0, high=100), Numeric("income", low=0, high=1000),
        Categorical("school", Hierarchy.from_nested(SCHOOLS)),
    ]  # fmt: skip
    return Schema(person="id", quasi=quasi, sensitive=["illness"], time="ts" if is_timed else None)


def method(settings: dict[str, Any]) -> Any:
    is_timed = isinstance(settings["deadline"], str)
    options = {name: value for name, value in settings.items() if name != "method"}
    return METHODS[settings["method"]].load()(schema(is_timed=is_timed), **options)


def policy(settings: dict[str, Any]) -> dict[str, Any]:
    time = {"time": "ts"} if isinstance(settings["deadline"], str) else {}
    return {"stream": {"person": "id", **time}, "anonymize": {**settings, "sensitive": ["illness"], "quasi": QUASI}}


def decided(settings: dict[str, Any], seed: int) -> tuple[Union, pa.RecordBatch]:
    recipe = Recipe.of(method(settings))
    rows = stream(seed).select(recipe.make().columns)
    return in_shards(recipe, rows, cuts_for(recipe, rows, 6, rows_of_learning=30)), rows


@pytest.mark.parametrize("name", CASES)
def test_the_union_passes_the_audit_with_the_rows_that_were_decided_again(name: str) -> None:
    settings, saved = CASES[name], 0
    for seed in SEEDS:
        found, rows = decided(settings, seed)
        report = found.audit(rows, policy(settings))
        assert report.ok, (seed, report)
        assert not report.warnings, (seed, report)
        assert sorted(found.decided[ROW].to_pylist()) == list(range(ROWS))
        check_last_shard(found)
        check_metrics(found, report.metrics["loss"])
        saved += len(found.again) - found.counts()["suppressed"]
    assert saved > 0, "some rows found others in the last shard only"


def check_last_shard(found: Union) -> None:
    """The last shard has exactly the rows that others suppressed, and decides them by their own deadlines."""
    last = found.decided.filter(pc.equal(found.decided[SHARD], found.shards))
    assert arrivals(last) == arrivals(found.again)
    assert pc.max(last[DELAY]).as_py() <= int(found.recipe.settings().deadline)
    suppressed = found.decided.filter(pc.equal(found.decided[VERDICT], "suppressed"))
    assert set(suppressed[SHARD].to_pylist()) <= {found.shards}
    assert {group % 2**40 for group in last[GROUP].drop_null().to_pylist()} <= {found.shards}


def arrivals(decided: pa.Table) -> list[tuple[int, int]]:
    """The numbers of rows, and when they arrived."""
    clocks = pc.subtract(decided[DECIDED], decided[DELAY])
    return sorted(zip(decided[ROW].to_pylist(), clocks.to_pylist(), strict=True))


def check_metrics(found: Union, losses: dict[str, float]) -> None:
    """They are those of the decisions that count."""
    whole = found.decided.filter(pc.invert(pc.equal(found.decided[VERDICT], "dead")))
    unit = 1e9 if found.recipe.settings().is_timed else 1
    assert found.metrics["delay"] == pytest.approx(pc.mean(whole[DELAY]).as_py() / unit)
    assert found.metrics["suppressed"] == found.counts()["suppressed"]
    assert found.metrics["max_delay"] * unit >= pc.max(whole[DELAY]).as_py()
    measured = {"own": found.metrics["loss"], "all": found.metrics["loss_all"]}
    assert measured == pytest.approx(losses)
    assert found.metrics["reused"] == pc.sum(whole[REUSED]).as_py()


def test_t_without_a_declared_reference_is_refused_and_l_is_not() -> None:
    with pytest.raises(Exception, match="one reference for all shards"):
        check_settings(Recipe.of(method({**LEAST, "t": 0.3})))
    check_settings(Recipe.of(method(CASES["l of fads"])))


@pytest.mark.parametrize("name", ["distinct l", "entropy l", "t"])
def test_a_union_without_l_or_t_is_convicted(name: str) -> None:
    found, rows = decided(LEAST, 1)
    assert found.audit(rows, policy(LEAST)).ok
    assert not found.audit(rows, policy(CASES[name])).ok
