"""A missing sensitive value protects nobody: recounted from what is published, with plain counters."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.schema import Numeric, Schema

METHODS = ("Fads", "Fast", "LeastLoss", "Castle", "KVarp", "IotAnonymization")
KEY = b"sixteen bytes at least"
RANGE = "{'lo': 30.0, 'hi': 30.0}"
SCHEMA = Schema(person="id", quasi=[Numeric("age", low=0, high=100)], sensitive=["ill"])


def classes_of(method: Any, ages: list[float], ills: list[Any]) -> dict[Any, list[Any]]:
    """The sensitive values of each class of equal published rows."""
    table = pa.table({"id": [f"p{row}" for row in range(len(ages))], "age": ages, "ill": pa.array(ills, pa.string())})
    rows = [row for release in (method.push_batch(table), method.flush()) for row in release.rows.to_pylist()]
    found = defaultdict(list)
    for row in rows:
        found[str(row["age"])].append(row["ill"])
    return found


def make(name: str, **asked: Any) -> Any:
    return getattr(shoal, name)(SCHEMA, k=3, deadline=40, reuse=20, key=KEY, **asked)


def known(values: list[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def away(values: list[Any], reference: dict[Any, float]) -> float:
    """Half the sum of the differences of shares."""
    counts, total = Counter(values), sum(reference.values())
    kinds = counts.keys() | reference.keys()
    return sum(abs(counts[one] / len(values) - reference.get(one, 0) / total) for one in kinds) / 2


@pytest.fixture(scope="module")
def stream() -> tuple[list[float], list[Any]]:
    """600 people, half of them without a value; values of neighbours are alike."""
    random = np.random.default_rng(4)
    ages = random.integers(0, 100, 600).astype(float).tolist()
    ills = [None if random.random() < 0.5 else "abcd"[int(age // 25) if random.random() < 0.7 else random.integers(4)]
            for age in ages]  # fmt: skip
    return ages, ills


@pytest.mark.parametrize("name", METHODS)
def test_l_counts_known_values(name: str, stream: tuple[list[float], list[Any]]) -> None:
    found = classes_of(make(name, l=2), *stream)
    assert len(found) > 3
    assert {len(set(known(values))) for values in found.values()} <= {0, 2, 3, 4}
    assert any(len(set(known(values))) == 1 for values in classes_of(make(name), *stream).values()), "without l"


@pytest.mark.parametrize("name", METHODS)
def test_the_entropy_is_that_of_known_values(name: str, stream: tuple[list[float], list[Any]]) -> None:
    for values in classes_of(make(name, entropy_l=1.9), *stream).values():
        shares = [count / len(known(values)) for count in Counter(known(values)).values()]
        assert not shares or -sum(share * math.log(share) for share in shares) >= math.log(1.9) - 1e-9


@pytest.mark.parametrize("name", METHODS)
def test_t_holds_on_known_values_and_on_all(name: str, stream: tuple[list[float], list[Any]]) -> None:
    declared = {"a": 0.25, "b": 0.25, "c": 0.25, "d": 0.25}
    for values in classes_of(make(name, t=0.6, reference={"ill": declared}), *stream).values():
        assert away(values, declared) <= 0.6 + 1e-9
        assert not known(values) or away(known(values), declared) <= 0.6 + 1e-9


@pytest.mark.parametrize("name", METHODS)
def test_a_single_known_value_among_missing_ones_is_not_published(name: str) -> None:
    ages = [30.0] * 5
    assert classes_of(make(name, l=2), ages, ["HIV", None, None, None, None]) in ({}, {RANGE: [None] * 4})
    assert classes_of(make(name, l=2), ages, [None] * 5) == {RANGE: [None] * 5}
    assert len(classes_of(make(name, l=2), ages, ["HIV", "flu", None, None, None])) == 1
