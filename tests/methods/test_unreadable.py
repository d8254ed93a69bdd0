"""Records that a source could not decode: they are numbered, traced and counted, and decide nothing."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import shoal
from shoal.methods.arrow_input import with_gaps
from shoal.methods.base import StreamMethod

TREE = shoal.Hierarchy.from_nested({"any": ["a", "b"]})
SCHEMA = shoal.Schema(person="user", time="ts", quasi=[shoal.Categorical("site", TREE)])
KEY = b"a key of more than sixteen bytes"
METHODS: dict[str, Any] = {
    "z": lambda: shoal.ZAnonymity(person="user", time="ts", attribute="site", z=2, window="1h", key=KEY),
    "z-late": lambda: shoal.ZAnonymity(
        person="user", time="ts", attribute="site", z=2, window="1h", lateness="5s", key=KEY
    ),
    "least-loss": lambda: shoal.LeastLoss(SCHEMA, k=2, deadline=4, key=KEY),
    "flexible": lambda: shoal.FlexibleK(SCHEMA, None, k=2, sparse=(), key=KEY),
}
ROWS = pa.record_batch(
    {
        "user": ["ann", None, "bob", "cid", "ann", "dan"],
        "ts": pa.array([1, 2, 3, 4, 5, 6], pa.int64()),
        "site": ["a", "a", "a", "b", "b", "b"],
    }
)
PLACES = [0, 3, 4, 8]


def decided(method: StreamMethod, *pushed: Any) -> tuple[list[Any], list[Any]]:
    releases = [*pushed, method.flush()]
    return [one.rows.to_pylist() for one in releases], [one.trace.to_pylist() for one in releases]


@pytest.mark.parametrize("name", METHODS)
def test_they_are_like_records_without_a_person_but_counted_apart(name: str) -> None:
    ours, twin = METHODS[name](), METHODS[name]()
    made = decided(ours, ours.push_batch(ROWS, refused=PLACES))
    assert made == decided(twin, twin.push_batch(with_gaps(ROWS, PLACES)))
    assert sorted(row["row"] for trace in made[1] for row in trace if row["verdict"] == "dead") == [0, 2, 3, 4, 8]
    expected = dict(twin.counts)
    assert expected.pop("null-person") == 5
    assert ours.counts == {**expected, "unreadable": 4, "null-person": 1}


@pytest.mark.parametrize("name", METHODS)
def test_a_snapshot_keeps_their_number(name: str) -> None:
    method = METHODS[name]()
    method.push_batch(ROWS.slice(0, 2), refused=[1])
    assert shoal.restore(method.snapshot(), KEY).counts["unreadable"] == 1


def test_nothing_else_arrived() -> None:
    method = METHODS["z"]()
    method.push_batch(ROWS.slice(0, 0), refused=[0, 1])
    assert method.counts["pushed"] == method.counts["unreadable"] == 2
