"""Random streams for tests of z-anonymity with `combine` and `target`: people who show the same, and wrong clocks."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

PEOPLE = 6
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("site", pa.string()), ("app", pa.string())])
Visit = tuple[int, int, int, int, int, int]
"""Who comes first, a delay, site, app, how far ahead the first one's clock is, and how many people come."""
_VISIT: st.SearchStrategy[Visit] = st.tuples(
    st.integers(0, PEOPLE - 1), st.integers(0, 5), st.integers(0, 4), st.integers(0, 2),
    st.sampled_from([0, 0, 0, 9]), st.integers(1, PEOPLE - 1),
)  # fmt: skip
VISITS = st.lists(_VISIT, min_size=1, max_size=30) | st.lists(_VISIT, min_size=15, max_size=30)
"""Short streams find a small failing example, long ones have several epochs."""
WRONG_CLOCKS = st.sampled_from([1, PEOPLE])
"""Whose clocks may be wrong. One person's never move time after the first event; those of several do."""
RESTART: list[Visit] = [(0, 0, 1, 1, 9, 1), *[(who, 0, 0, 0, 0, 1) for who in (1, 2, 3, 1)], (2, 0, 1, 1, 0, 1)]
"""The first clock is wrong, so time starts over."""


def batch_of_visits(visits: list[Visit], wrong_clocks: int, people: int = PEOPLE) -> pa.RecordBatch:
    """A row for each person who comes; the clocks of the first `wrong_clocks` people may be far ahead."""
    rows: list[dict[str, Any]] = [
        {
            "id": f"p{(first + more) % people}",
            "ts": 1_000_000 + 7 * number + 10 * delay + more + 1_000_000 * ahead * (more == 0 and first < wrong_clocks),
            "site": f"s{site}" if site else None,
            "app": f"a{app}" if app else None,
        }
        for number, (first, delay, site, app, ahead, count) in enumerate(visits)
        for more in range(count)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def crowds(seed: int, wrong_clocks: int, *, people: int = 40) -> pa.RecordBatch:
    """Several epochs of so many people that a target publishes, the same in every run: drawn from `seed` alone."""
    draw = random.Random(seed)
    visits = [
        (draw.randrange(people), draw.randint(0, 5), draw.randint(0, 4), draw.randint(0, 2),
         draw.choice([0] * 15 + [9]), draw.randint(people // 2, people - 1))
        for _ in range(30)
    ]  # fmt: skip
    return batch_of_visits(visits, wrong_clocks, people)
