"""Real methods on the system in memory: whatever fails on the way, readers see the same bytes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.policy import parse_policy
from tests.faults.live.endpoints import Choice, Silence
from tests.faults.live.process import Fault
from tests.faults.live.scene import SINKS, Scene, World, only_grew
from tests.laws.flexible_cases import QUASI, SCHEMA, measurements
from tests.reference.effort import tries

SECOND = 10**9
VISITS = pa.schema([("ts", pa.int64()), ("user", pa.string()), ("site", pa.string())])
SITES = {"kind": "categorical", "hierarchy": {"kind": "flat", "values": ["a", "b"]}}
Z = {"method": "z-anonymity", "attribute": "site", "z": 2, "window": "8s", "lateness": "3s"}
LEAST_LOSS = {"method": "least-loss", "k": 2, "deadline": "6s", "reuse": "6s", "quasi": {"site": SITES}}
FLEXIBLE = {"method": "flexible-k", "quasi": QUASI, "k": 3, "window": 10}


def visit(ts: int | None, user: str | None, site: str) -> dict[str, Any]:
    return {"ts": ts, "user": user, "site": site}


# The first clock is days ahead: with lateness that record waits and is refused much later. Others are late, have no
# person or time, or cannot be read.
ROWS: list[Any] = [
    visit(900_000, "eve", "a"), visit(10, "ann", "a"), visit(11, "bob", "a"), None, visit(12, "cid", "b"),
    visit(None, "dan", "a"), visit(13, "dan", "a"), Silence(17 * SECOND), visit(18, None, "a"), visit(18, "eve", "b"),
    Choice(((visit(19, "ann", "b"), visit(20, "bob", "a")), (visit(20, "bob", "a"), visit(19, "ann", "b")))),
    visit(21, "cid", "a"), visit(2, "dan", "b"), Silence(40 * SECOND), visit(42, "eve", "a"), visit(43, "ann", "a"),
]  # fmt: skip


def scene(folder: Path, method: str, kind: str) -> Scene:
    is_flexible = method == "flexible"
    anonymize = {"z": Z, "least-loss": LEAST_LOSS, "flexible": FLEXIBLE}[method]
    stream = {"person": "maid", "time": "ts", "carry": ["mbps"]} if is_flexible else {"person": "user", "time": "ts"}
    table = {
        "stream": stream,
        "source": {"kind": "csv", "path": "unused.csv"},
        "anonymize": anonymize,
        "sink": {"kind": "jsonl", "path": "unused.jsonl"},
        "checkpoint": {"path": "state", "every": 2},
    }
    script = [*measurements(40).to_pylist(), None] if is_flexible else ROWS
    return Scene(folder / "world", parse_policy(table, folder=folder), script, SCHEMA if is_flexible else VISITS, kind)


KINDS = ["before", "after", "lost", "repeat", "aborted", "doubtful"]
FAULTS = st.dictionaries(st.integers(0, 90), st.sampled_from(KINDS), max_size=4)


@pytest.mark.parametrize("kind", SINKS)
@pytest.mark.parametrize("method", ["z", "least-loss", "flexible"])
def test_any_faults(method: str, kind: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        one = scene(Path(folder), method, kind)
        expected = one.undisturbed()
        assert {topic for topic, _ in expected} == {"rows", "letters"}

        @tries(32 if method != "flexible" else 20)
        @given(schedule=st.lists(FAULTS, max_size=4))
        def check(schedule: list[dict[int, Fault]]) -> None:
            one.go_to(World())
            before = one.world.seen
            for faults in schedule:
                assert one.run(faults).ended in ("killed", "done")
                assert only_grew(before, before := one.world.seen)
            assert one.run().ended == "done"
            assert one.world.seen == expected

        check()
