"""A key that counts from a time on: pseudonyms change at that epoch, whatever is killed, and the auditor agrees."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from shoal import ZAnonymity
from shoal.auditor import audit
from shoal.crypto.keys import LaterKey, Secret
from shoal.errors import CheckpointError
from shoal.pipeline.key_changes import MARKS_NAME, require_same_keys
from tests.faults.live.scene import SINKS, Scene, World
from tests.faults.live.test_methods import Z, visit
from tests.faults.live.test_upgrade import rows, scene, stopped
from tests.reference.effort import IS_EXHAUSTIVE, kill_points

RECORDS = [visit(10 + number // 2, f"u{number % 5}", "ab"[number % 3 == 0]) for number in range(40)]
FIRST, SECOND = (Secret(name.encode() * 16) for name in "ab")
EDGE = 24
"""The epoch of 8 s that starts at this second is the first with the second key."""
SECOND_NS = 1_000_000_000


def both(start: int = 18) -> Secret:
    return Secret(b"a" * 16, (LaterKey(start * SECOND_NS, SECOND),))


def published(folder: Path, key: Secret) -> list[Any]:
    one = replace(scene(folder, Z, "numbers", RECORDS), key=key)
    one.go_to(World())
    assert one.run().ended == "done"
    return rows(one)


def expected(folder: Path) -> list[Any]:
    """Rows of the first key before the edge, rows of the second behind it."""
    runs = [published(folder, key) for key in (FIRST, SECOND)]
    return [pair[pair[0]["ts"] >= EDGE] for pair in zip(*runs, strict=True)]


def test_pseudonyms_change_at_the_edge_of_an_epoch(tmp_path: Path) -> None:
    found = published(tmp_path, both())
    assert found == expected(tmp_path)
    assert {row["ts"] >= EDGE for row in found} == {True, False}


@pytest.mark.parametrize("kind", SINKS)
def test_a_killed_run_decides_alike(tmp_path: Path, kind: str) -> None:
    one = replace(scene(tmp_path, Z, kind, RECORDS), key=both())
    one.go_to(World())
    undisturbed = one.run()
    seen, steps = one.world.seen, undisturbed.steps
    every = range(len(steps))
    for at in kill_points(every, default=every if IS_EXHAUSTIVE else every[3::16]):
        one.go_to(World())
        assert one.run({at: "before"}).ended == "killed"
        assert one.run().ended == "done"
        assert one.world.seen == seen, f"killed before step {at}: {steps[at]}"


def with_clock(monkeypatch: pytest.MonkeyPatch, second: int) -> None:
    clock = SimpleNamespace(time_ns=lambda: second * SECOND_NS)
    monkeypatch.setattr("shoal.pipeline.key_changes.time", clock)


def test_a_key_to_come_is_added_while_the_run_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = replace(scene(tmp_path, Z, "numbers", RECORDS), key=FIRST)
    world = stopped(one)
    with_clock(monkeypatch, 14)
    later = replace(one, key=both())
    later.go_to(world)
    assert later.run().ended == "done"
    found = rows(later)
    assert found == expected(tmp_path)


@pytest.mark.parametrize(("start", "now"), [(10, 5), (18, 18)])
def test_a_key_from_a_time_that_was_reached_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: int, now: int
) -> None:
    """By the stream, or by the clock: rows behind the last checkpoint may be visible."""
    one = replace(scene(tmp_path, Z, "numbers", RECORDS), key=FIRST)
    world = stopped(one)
    with_clock(monkeypatch, now)
    later = replace(one, key=both(start))
    later.go_to(world)
    assert f"its key from 1970-01-01T00:00:{start}Z on has changed" in later.run().ended
    assert later.world.seen == world.seen


def test_a_key_that_counts_already_cannot_be_taken_away(tmp_path: Path) -> None:
    one = replace(scene(tmp_path, Z, "numbers", RECORDS), key=both(10))
    world = stopped(one)
    for key in (FIRST, Secret(b"a" * 16, (LaterKey(10 * SECOND_NS, FIRST),))):
        other = replace(one, key=key)
        other.go_to(world)
        assert "its key from 1970-01-01T00:00:10Z on has changed" in other.run().ended


def released(key: Secret) -> tuple[pa.Table, pa.Table]:
    """Rows and trace."""
    settings = {name: value for name, value in Z.items() if name != "method"}
    method = ZAnonymity(person="user", time="ts", key=key, **settings)
    releases = [method.push_batch(pa.RecordBatch.from_pylist(RECORDS)), method.flush()]
    return tuple(pa.Table.from_batches([getattr(one, name) for one in releases]) for name in ("rows", "trace"))


def test_the_auditor_accepts_a_change_at_the_edge_and_no_other() -> None:
    truth, policy = pa.Table.from_pylist(RECORDS), {"stream": {"person": "user", "time": "ts"}, "anonymize": Z}
    rows, trace = released(both())
    assert audit(rows, truth=truth, trace=trace, policy=policy).findings == ()
    before, behind = released(FIRST)[0], released(SECOND)[0]
    is_early = pc.less(before["ts"], EDGE - 4)
    mixed = pc.if_else(is_early, before["user"], behind["user"])
    split = before.set_column(before.schema.names.index("user"), "user", mixed)
    report = audit(split, truth=truth, trace=trace, policy=policy)
    assert "pseudonym-split" in {finding.code for finding in report.violations}


# ---- workers


def test_a_worker_with_another_key_is_refused(tmp_path: Path) -> None:
    require_same_keys(tmp_path, FIRST)
    require_same_keys(tmp_path, FIRST)
    with pytest.raises(CheckpointError, match=r"key-marks.json: this worker has another key .* the same file"):
        require_same_keys(tmp_path, SECOND)
    require_same_keys(tmp_path, FIRST)
    noted = (tmp_path / MARKS_NAME).read_text()
    assert "aaaa" not in noted
    assert (tmp_path / MARKS_NAME).stat().st_mode & 0o077 == 0


def test_a_later_key_reaches_workers_one_after_the_other(tmp_path: Path) -> None:
    require_same_keys(tmp_path, FIRST)
    require_same_keys(tmp_path, both())
    with pytest.raises(CheckpointError, match="have a later key that this one lacks"):
        require_same_keys(tmp_path, FIRST)
    with pytest.raises(CheckpointError, match="have a later key that this one lacks"):
        require_same_keys(tmp_path, both(30))


def test_an_upgrade_brings_workers_to_a_new_key_one_after_the_other(tmp_path: Path) -> None:
    require_same_keys(tmp_path, both())
    for _ in range(2):
        require_same_keys(tmp_path, SECOND, old=FIRST)
    with pytest.raises(CheckpointError, match="this worker has another key"):
        require_same_keys(tmp_path, Secret(b"c" * 16), old=FIRST)
    require_same_keys(tmp_path, SECOND)


def test_a_run_of_a_worker_compares_its_key(tmp_path: Path) -> None:
    one = scene(tmp_path, Z, "numbers", RECORDS)
    worker: Scene = replace(one, policy=replace(one.policy, worker=1), key=FIRST)
    worker.go_to(World())
    require_same_keys(tmp_path / "world", SECOND)
    assert "this worker has another key" in worker.run().ended
    assert not worker.world.seen.get(("rows", 0))
