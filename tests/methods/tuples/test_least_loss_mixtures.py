"""LeastLoss loses no more than the other strict methods, whatever columns are missing."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from shoal import Castle, Fads, KVarp, LeastLoss
from shoal.hierarchies import Hierarchy
from shoal.schema import Categorical, Numeric, Schema

TREE = {"*": {letter: [f"{letter}{digit}" for digit in range(4)] for letter in "abcd"}}
NUMBERS = ("v", "w", "x")
LABELS = ("y", "z")
ROWS = 1500


def mixture(seed: int) -> tuple[Schema, pa.Table]:
    """Rows of three kinds of people, with columns of which up to 80% are missing."""
    draw = random.Random(seed)
    shares = {name: draw.choice([0.0, 0.0, 0.4, 0.6, 0.8]) for name in (*NUMBERS, *LABELS)}
    centres = [{name: draw.random() for name in NUMBERS} | {name: draw.choice("abcd") for name in LABELS}
               for _ in range(3)]  # fmt: skip
    people = draw.choice([ROWS // 8, 100 * ROWS])
    columns: dict[str, list] = {"id": [draw.randrange(people) for _ in range(ROWS)]} | {name: [] for name in shares}
    for _ in range(ROWS):
        centre = draw.choice(centres)
        for name in NUMBERS:
            value = min(max(draw.gauss(centre[name], 0.2), 0.0), 1.0)
            columns[name].append(None if draw.random() < shares[name] else value)
        for name in LABELS:
            letter = centre[name] if draw.random() < 0.7 else draw.choice("abcd")
            columns[name].append(None if draw.random() < shares[name] else f"{letter}{draw.randrange(4)}")
    quasi = [*(Numeric(name, 0, 1) for name in NUMBERS),
             *(Categorical(name, Hierarchy.from_nested(TREE)) for name in LABELS)]  # fmt: skip
    return Schema(person="id", quasi=quasi), pa.table(columns)


def loss(method: type, schema: Schema, table: pa.Table, k: int) -> float:
    one = method(schema, k=k, deadline=300, reuse=50, missing="covered", key=bytes(16))
    one.push_batch(table)
    one.flush()
    return one.metrics["loss"]


@pytest.mark.compiled  # the same without JIT takes minutes
@pytest.mark.parametrize(("k", "most", "average"), [(5, 0.9, 0.8), (10, 1.02, 0.9), (20, 0.95, 0.9), (50, 0.98, 0.93)])
def test_no_other_strict_method_loses_clearly_less(k, most, average):
    """Loss relative to the best other method; k = 50 is a sixth of the window."""
    ratios = []
    for seed in range(8):
        schema, table = mixture(seed)
        others = [loss(method, schema, table, k) for method in (Fads, Castle, KVarp)]
        ratios.append(loss(LeastLoss, schema, table, k) / min(others))
    assert max(ratios) <= most, ratios
    assert sum(ratios) / len(ratios) <= average, ratios
