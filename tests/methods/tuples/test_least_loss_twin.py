"""LeastLoss against its naive twin: the same rows, clusters and trace, whatever the stream."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from shoal.hierarchies import Hierarchy
from shoal.methods.tuples.least_loss import LeastLoss
from shoal.schema import Categorical, Numeric, Schema
from tests.reference.least_loss import LeastLossTwin
from tests.reference.publish_order import in_published_order
from tests.reference.tuples import Cat, Num

TREE = {"r": {"a": ["x", "y"], "b": ["z", "w", "v"]}}
BIG = {"r": {f"g{group}": [f"{group}.{leaf}" for leaf in range(40)] for group in range(14)}}
LETTERS, NUMBERS = "xyzwv", 12


def records(draw: random.Random, count: int, *, missing: float, people: int) -> list[dict]:
    clock, made = 0, []
    for _ in range(count):
        clock += draw.choice([0, 0, 1, 3, 9])
        made.append(
            {
                "id": f"p{draw.randrange(people)}",
                "ts": clock,
                "a": None if draw.random() < missing else float(draw.randrange(NUMBERS)),
                "c": None if draw.random() < missing else draw.choice(LETTERS),
                "b": None if draw.random() < missing else f"{draw.randrange(14)}.{draw.randrange(3)}",
                "f": None if draw.random() < missing else draw.random(),
                "s": draw.choice("stu"),
            }
        )
    return made


def both(rows: list[dict], *, timed: bool, labels: float, candidates: int, **settings):
    """What the method and its twin do with a stream; the method gets it in batches."""
    schema = Schema(
        person="id",
        time="ts" if timed else None,
        quasi=[
            Numeric("a", 0, NUMBERS),
            Categorical("c", Hierarchy.from_nested(TREE), weight=labels),
            Categorical("b", Hierarchy.from_nested(BIG)),
            Numeric("f", 0, 1, weight=2),
        ],
        sensitive=["s"],
    )
    spans = {name: f"{settings[name]}ns" if timed else settings[name] for name in ("deadline", "reuse")}
    method = LeastLoss(schema, candidates=candidates, key=bytes(16), **{**settings, **spans})
    kinds = {"ts": pa.timestamp("ns"), "a": pa.float64(), "f": pa.float64()}
    table = pa.table({name: pa.array([row[name] for row in rows], kinds.get(name, pa.string())) for name in rows[0]})
    releases, start = [], 0
    for size in (1, 5, 60, 2, len(rows)):
        releases.append(method.push_batch(table.slice(start, size)))
        start += size
    releases.append(method.flush())
    twin = LeastLossTwin(
        [Num("a", 0, NUMBERS), Cat("c", TREE, weight=labels), Cat("b", BIG), Num("f", 0, 1, weight=2)],
        by="time" if timed else "count",
        candidates_limit=max(candidates, 2 * settings["k"]) if candidates else 0,
        **settings,
    )
    decisions = []
    for row in rows:
        made = twin.push(row["id"], [row[name] for name in "acbf"], row["ts"] if timed else None, (row["s"],))
        decisions += in_published_order(made, bytes(16))
    decisions += in_published_order(twin.flush(), bytes(16))
    return method, read(releases), twin, decisions


def read(releases) -> list[tuple]:
    rows = iter([row for release in releases for row in release.rows.to_pylist()])
    found = []
    for trace in (row for release in releases for row in release.trace.to_pylist()):
        published = None
        if trace["verdict"] == "released":
            row = next(rows)
            published = tuple((row[n]["lo"], row[n]["hi"]) if isinstance(row[n], dict) else row[n] for n in "acbf")
        carriers = tuple(trace["carriers"]) if trace["carriers"] else None
        parts = ("row", "verdict", "group", "delay", "reused")
        found.append((*(trace[part] for part in parts), published, carriers))
    return found


def expected(decisions) -> list[tuple]:
    return [
        (one.row, one.verdict, one.group, one.delay, one.reused, one.published if one.group is not None else None,
         one.carriers)
        for one in decisions
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_it_decides_as_its_twin(seed):
    draw = random.Random(seed)
    count, k = draw.choice([40, 90, 130]), draw.choice([2, 3, 5, 20, 22])
    rows = records(draw, count, missing=draw.choice([0.0, 0.15, 0.5, 0.75]), people=draw.choice([count, 8 * count]))
    diversity = draw.choice([{}, {}, {"l": 2}, {"t": 0.5, "reference": 20}, {"entropy_l": 1.5}])
    given = {
        "timed": draw.random() < 0.4, "labels": draw.choice([1, 6]), "candidates": draw.choice([0, 0, 7]), "k": k,
        "deadline": draw.choice([6, 12, 40, 70]), "reuse": draw.choice([0, 5, 30]),
        "missing": draw.choice(["own", "own", "covered", "hidden", "paper"]), **diversity,
    }  # fmt: skip
    cap = {} if given["missing"] == "paper" else {"max_share": draw.choice([None, max(1 / k, 0.2)])}
    method, got, twin, decisions = both(rows, **given, **cap)
    assert got == expected(decisions)
    assert method._engine.decider.sums[3] == twin.typical


@pytest.mark.parametrize(("labels", "loses_least"), [(1, 0.4), pytest.param(6, 0.0, marks=pytest.mark.exhaustive)])
def test_exchanging_happens(labels, loses_least):
    """Where k is 20, members are exchanged: always if labels weigh most, else where clusters lose much."""
    draw = random.Random(5)
    rows = records(draw, 400, missing=0.0, people=10_000)
    settings = {"timed": False, "labels": labels, "candidates": 0, "k": 20, "deadline": 150, "reuse": 10}
    _, got, twin, decisions = both(rows, **settings)
    assert twin.exchanges == 12
    assert twin.typical > twin.exchanged_from == loses_least
    assert got == expected(decisions)


def test_all_leave_together_at_the_end():
    rows = records(random.Random(1), 9, missing=0.0, people=1000)
    method, got, _, _ = both(rows, timed=False, labels=1, candidates=0, k=5, deadline=100, reuse=0)
    assert [decision[1] for decision in got] == ["released"] * 9
    assert method.metrics["formed"] == 1
