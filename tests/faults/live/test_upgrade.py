"""A changed policy or key on a stream that goes on: nothing twice, nothing left out, the old promise kept."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shoal.pipeline.stopping import Stop
from shoal.policy import parse_policy
from tests.faults.live.scene import SINKS, Scene, World
from tests.faults.live.test_methods import LEAST_LOSS, VISITS, Z, visit
from tests.reference.effort import IS_EXHAUSTIVE, kill_points

RECORDS = [visit(10 + number // 2, f"u{number % 5}", "ab"[number % 3 == 0]) for number in range(14)]
BEFORE = 6
"""Records that the old policy has read when it is stopped."""
STRICTER = {"z": {**Z, "z": 3}, "least-loss": {**LEAST_LOSS, "k": 3}}


def policy(folder: Path, anonymize: dict[str, Any], **sections: Any) -> Any:
    table = {
        "stream": {"person": "user", "time": "ts"},
        "source": {"kind": "csv", "path": "unused.csv"},
        "anonymize": anonymize,
        "sink": {"kind": "jsonl", "path": "unused.jsonl"},
        "checkpoint": {"path": "state", "every": 2},
    }
    return parse_policy(table | sections, folder=folder)


def scene(folder: Path, anonymize: dict[str, Any], kind: str, script: Any = RECORDS, **sections: Any) -> Scene:
    return Scene(folder / "world", policy(folder, anonymize, **sections), script, VISITS, kind)


def stopped(one: Scene) -> World:
    """The world that a run leaves which was stopped after `BEFORE` records."""
    stop = Stop()

    def ask(steps: list[str]) -> None:
        if steps.count("fetch") == 2:
            stop.ask()

    one.go_to(World())
    assert one.run(stop=stop, before_step=ask).ended == "done"
    return one.world


def rows(one: Scene) -> list[Any]:
    return [json.loads(row) for row in one.world.seen.get(("rows", 0), [])]


@pytest.mark.parametrize("method", STRICTER)
def test_the_old_promise_up_to_here_the_new_one_from_here_on(tmp_path: Path, method: str) -> None:
    """As if two streams had been published, each under its own policy."""
    old = {"z": Z, "least-loss": LEAST_LOSS}[method]
    one = scene(tmp_path, old, "numbers")
    world = stopped(one)
    new = scene(tmp_path, STRICTER[method], "numbers")
    new.go_to(world)
    assert "--upgrade" in new.run().ended, "not without being asked"
    parts = []
    for anonymize, script in ((old, RECORDS[:BEFORE]), (STRICTER[method], RECORDS[BEFORE:])):
        part = scene(tmp_path, anonymize, "numbers", script)
        part.go_to(World())
        assert part.run().ended == "done"
        parts.append(rows(part))
    new.go_to(world)
    assert new.run(is_upgraded=True).ended == "done"
    assert all(parts)
    assert rows(new) == [*parts[0], *parts[1]]
    assert new.run().ended == "done", "the next start needs no flag"


@pytest.mark.parametrize("kind", SINKS)
@pytest.mark.parametrize("has_new_key", [False, True])
def test_an_upgrade_that_is_killed_is_completed(
    tmp_path: Path, kind: str, has_new_key: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = scene(tmp_path, LEAST_LOSS, kind)
    world = stopped(old)
    new = scene(tmp_path, STRICTER["least-loss"], kind)
    if has_new_key:
        (tmp_path / "old.key").write_bytes(new.key)
        new = replace(new, key=b"another key of more than sixteen bytes")
        new.go_to(world)
        assert "another key" in new.run(is_upgraded=True).ended
        monkeypatch.setenv("SHOAL_OLD_KEY_FILE", str(tmp_path / "old.key"))
    new.go_to(world)
    undisturbed = new.run(is_upgraded=True)
    assert undisturbed.ended == "done"
    steps, expected = undisturbed.steps, new.world.seen
    assert any(expected.values())
    first = steps.index("fetch")
    every = range(len(steps))
    for at in kill_points(every, default=every if IS_EXHAUSTIVE else [*range(0, first, 4), first + 1]):
        new.go_to(world)
        assert new.run({at: "before"}, is_upgraded=True).ended == "killed"
        begun = new.world
        old.go_to(begun)
        if at > first:
            assert old.run().ended != "done", "the old policy cannot come back"
        new.go_to(begun)
        assert new.run(is_upgraded=True).ended == "done", f"killed before step {at}: {steps[at]}"
        assert new.world.seen == expected, f"killed before step {at}: {steps[at]}"


def test_pseudonyms_change_with_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = scene(tmp_path, Z, "numbers")
    world = stopped(one)
    (tmp_path / "old.key").write_bytes(one.key)
    one = replace(one, key=b"another key of more than sixteen bytes")
    one.go_to(world)
    monkeypatch.setenv("SHOAL_OLD_KEY_FILE", str(tmp_path / "old.key"))
    assert "the key has changed; continue with --upgrade" in one.run().ended
    one.go_to(world)
    assert one.run(is_upgraded=True).ended == "done"
    found = rows(one)
    early = {row["user"] for row in found if row["ts"] < 10 + BEFORE // 2}
    late = {row["user"] for row in found if row["ts"] >= 10 + BEFORE // 2}
    assert early
    assert late
    assert not early & late
    monkeypatch.delenv("SHOAL_OLD_KEY_FILE")
    assert one.run().ended == "done", "the old key is not needed any more"


def test_state_is_kept_if_the_method_is_the_same(tmp_path: Path) -> None:
    one = scene(tmp_path, LEAST_LOSS, "numbers")
    expected = one.undisturbed()
    world = stopped(one)
    changed = scene(tmp_path, LEAST_LOSS, "numbers", stream={"person": "user", "time": "ts", "carry_identifying": True})
    changed.go_to(world)
    assert "another policy" in changed.run().ended
    changed.go_to(world)
    assert changed.run(is_upgraded=True).ended == "done"
    assert changed.world.seen == expected


@pytest.mark.parametrize(
    ("sections", "sentence"),
    [
        ({"sink": {"kind": "jsonl", "path": "other.jsonl"}}, r"\[sink\]: has changed; --upgrade changes"),
        ({"trace": {"path": "trace.parquet"}}, r"\[trace\]: has changed"),
        ({"stream": {"person": "user", "time": "ts", "carry": ["note"]}}, "column 'note': the new policy needs it"),
        ({"anonymize": {**Z}}, "the columns of the output change"),
    ],
)
def test_what_an_upgrade_cannot_do_is_refused_before_anything_changes(
    tmp_path: Path, sections: dict[str, Any], sentence: str
) -> None:
    world = stopped(scene(tmp_path, LEAST_LOSS, "numbers"))
    new = scene(tmp_path, **{"anonymize": LEAST_LOSS, "kind": "numbers", **sections})
    new.go_to(world)
    ended = new.run(is_upgraded=True).ended
    assert re.search(sentence, ended), ended
    assert new.world.system == world.system
    assert new.world.files == world.files
