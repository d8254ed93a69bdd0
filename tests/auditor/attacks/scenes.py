"""People, policies and releases made by hand: some known to be weak, some known to be safe."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

PEOPLE = 200
TREE = {"*": {"north": ["n1", "n2", "n3"], "south": ["s1", "s2", "s3"]}}
ILLNESSES = ("flu", "asthma", "gout", "measles")
POLICY: dict[str, Any] = {
    "stream": {"person": "id"},
    "anonymize": {
        "method": "least-loss",
        "k": 5,
        "deadline": 50,
        "reuse": 10,
        "sensitive": ["ill"],
        "quasi": {
            "age": {"kind": "numeric", "low": 0, "high": 100},
            "height": {"kind": "numeric", "low": 0, "high": 1000},
            "zone": {"kind": "categorical", "hierarchy": {"kind": "nested", "tree": TREE}},
        },
    },
}


def people(*, seed: int = 1, rows_of_each: int = 1, gaps: bool = False, count: int = PEOPLE) -> pa.Table:
    """People with their own heights, and illnesses that depend on nothing."""
    random = np.random.default_rng(seed)
    who = np.repeat(np.arange(count), rows_of_each)
    ill = random.choice(ILLNESSES, size=count, p=(0.4, 0.3, 0.2, 0.1))
    zone = [f"{random.choice(['n', 's'])}{random.integers(1, 4)}" for _ in who]
    return pa.table(
        {
            "id": [f"p{seed}-{one}" for one in who],
            "age": random.integers(1, 100, size=len(who)),
            "height": random.permutation(np.arange(100, 100 + len(who))),
            "zone": [None if gaps and random.random() < 0.3 else one for one in zone],
            "ill": ill[who],
        }
    )


def ranges(low: Any, high: Any) -> pa.Array:
    return pa.StructArray.from_arrays([pa.array(low), pa.array(high)], ["lo", "hi"])


def as_it_is(truth: pa.Table) -> pa.Table:
    """The truth without persons: no protection at all."""
    points = {
        name: ranges(truth.column(name).to_pylist(), truth.column(name).to_pylist()) for name in ("age", "height")
    }
    return pa.table({**points, "zone": truth.column("zone"), "ill": truth.column("ill")})


def at_the_root(truth: pa.Table) -> pa.Table:
    """Every quasi-identifier suppressed."""
    rows = len(truth)
    return pa.table(
        {
            "age": ranges([0] * rows, [100] * rows),
            "height": ranges([0] * rows, [1000] * rows),
            "zone": ["*"] * rows,
            "ill": truth.column("ill"),
        }
    )


def in_classes(truth: pa.Table, k: int) -> tuple[pa.Table, np.ndarray]:
    """Neighbours by height in classes of k, with the smallest ranges; and the record of every row."""
    height = np.array(truth.column("height").to_pylist())
    age = np.array(truth.column("age").to_pylist())
    order = np.argsort(height)
    group = np.arange(len(order)) // k
    columns: dict[str, Any] = {}
    for name, value in (("age", age), ("height", height)):
        low = [int(value[order][group == one].min()) for one in group]
        high = [int(value[order][group == one].max()) for one in group]
        columns[name] = ranges(low, high)
    return pa.table({**columns, "zone": ["*"] * len(order), "ill": truth.column("ill").take(pa.array(order))}), order


def traced(order: Any, event: Any = None, group: Any = None) -> pa.Table:
    """A trace that says whose row is whose."""
    rows = len(order)
    return pa.table(
        {
            "row": np.asarray(order, np.int64),
            "verdict": ["released"] * rows,
            "group": np.zeros(rows, np.int64) if group is None else group,
            "event": np.full(rows, rows, np.int64) if event is None else np.asarray(event, np.int64),
        }
    )
