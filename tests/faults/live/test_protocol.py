"""The commit protocol, searched exhaustively over short runs of a toy method, with and without planted defects."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from shoal.policy import Policy, parse_policy
from tests.faults.live.checker import Checker
from tests.faults.live.endpoints import Choice, Script, Silence
from tests.faults.live.plants import PLANTS
from tests.faults.live.process import TRANSACTIONAL, Fault
from tests.faults.live.scene import SINKS, Scene, World
from tests.faults.live.toy import Toy
from tests.reference.effort import IS_EXHAUSTIVE, kill_points

SECOND = 10**9
SCHEMA = pa.schema([("ts", pa.int64()), ("user", pa.string())])


def policy(folder: Path) -> Policy:
    table = {
        "stream": {"person": "user", "time": "ts"},
        "source": {"kind": "csv", "path": "unused.csv"},
        "anonymize": {"method": "z-anonymity", "attribute": "site", "z": 2, "window": "8s"},
        "sink": {"kind": "jsonl", "path": "unused.jsonl"},
        "checkpoint": {"path": "state", "every": 1},
    }
    return parse_policy(table, folder=folder)


def visit(ts: int) -> dict[str, object]:
    return {"ts": ts, "user": f"u{ts}"}


LONG = [
    visit(1), visit(2), Silence(30 * SECOND), visit(40),
    Choice(((visit(50), visit(51)), (visit(51), visit(50)))), visit(60), visit(61),
]  # fmt: skip


SHORT = [visit(1), Silence(30 * SECOND), visit(40), LONG[4]]
SHORTEST = [visit(1), Silence(30 * SECOND), visit(40), visit(41)]


def scene(folder: Path, kind: str, script: Script = LONG, **options: Any) -> Scene:
    return Scene(folder / "world", policy(folder), script, SCHEMA, kind, make_method=Toy, **options)


KINDS = pytest.mark.parametrize("kind", SINKS)
STUBBORN = pytest.mark.parametrize("is_stubborn", [True, False], ids=["alike", "otherwise"])


@KINDS
@STUBBORN
def test_any_number_of_kills(tmp_path: Path, kind: str, is_stubborn: bool) -> None:
    script = LONG if IS_EXHAUSTIVE else SHORTEST if is_stubborn else SHORT
    checker = Checker(scene(tmp_path, kind, script, is_stubborn=is_stubborn))
    assert checker.problem() is None
    assert checker.explored > 20


@KINDS
def test_any_number_of_kills_and_a_damaged_checkpoint(tmp_path: Path, kind: str) -> None:
    script = SHORT if IS_EXHAUSTIVE else SHORTEST[:3]
    assert Checker(scene(tmp_path, kind, script, is_stubborn=False), damages=True).problem() is None


def problem_with(plant: str, folder: Path, kind: str, script: Script, **options: Any) -> str | None:
    return Checker(scene(folder, kind, script, is_stubborn=False, plants=(PLANTS[plant],)), **options).problem()


@pytest.mark.parametrize(
    ("plant", "kind"),
    [
        ("load the newest checkpoint", "transactions"),
        ("remove old checkpoints before publishing", "transactions"),
        ("publish before the checkpoint is written", "transactions"),
        ("idle time is not recorded", "numbers"),
        ("marks are not recorded", "numbers"),
        ("one message too many is skipped", "numbers"),
        ("one message too many is skipped", "transactions"),
    ],
)
def test_a_planted_defect_is_found(tmp_path: Path, plant: str, kind: str) -> None:
    assert problem_with(plant, tmp_path, kind, SHORT) is not None


@pytest.mark.parametrize(
    ("plant", "kind"),
    [
        ("idle time is in one checkpoint only", "numbers"),
        ("a resumed run has one copy only", "numbers"),
        ("one message too few is skipped", "transactions"),
        ("a commit takes the number of messages back", "transactions"),
    ],
)
def test_a_planted_defect_is_found_if_a_checkpoint_is_damaged(tmp_path: Path, plant: str, kind: str) -> None:
    assert problem_with(plant, tmp_path, kind, SHORTEST, damages=True) is not None


def test_a_crash_loop_does_not_fill_the_disk(tmp_path: Path) -> None:
    assert "no end" in str(problem_with("a crash loop fills the disk", tmp_path, "transactions", SHORTEST, most=100))


@KINDS
@pytest.mark.parametrize("fault", ["lost", "repeat"])
def test_every_answer_is_lost_and_every_record_repeated(tmp_path: Path, kind: str, fault: Fault) -> None:
    one = scene(tmp_path, kind)
    expected = one.undisturbed()
    one.go_to(World())
    assert one.run(dict.fromkeys(range(0, 400, 2), fault)).ended == "done"
    assert one.world.seen == expected


def problem_with_aborts(one: Scene, fault: Fault) -> str | None:
    """Abort each step of a transaction in turn, and some in one run: one process ends with the undisturbed output."""
    expected = one.undisturbed()
    one.go_to(World())
    steps = one.run().steps
    places = [at for at, step in enumerate(steps) if step in TRANSACTIONAL]
    assert {steps[at] for at in places} == set(TRANSACTIONAL)
    for faults in (*([at] for at in places), range(7, 400, 19)):
        one.go_to(World())
        process = one.run(dict.fromkeys(faults, fault))
        where = f"{fault} at {[(at, process.steps[at]) for at in faults if at < len(process.steps)]}"
        if process.ended != "done" or process.steps.count("init") < 2:
            return f"{where}: {process.ended}"
        if one.world.seen != expected:
            return f"{where}: readers see something else"
    return None


ABORTS = pytest.mark.parametrize("fault", ["aborted", "doubtful"])


@ABORTS
def test_an_aborted_transaction_is_written_again_by_the_same_process(tmp_path: Path, fault: Fault) -> None:
    assert problem_with_aborts(scene(tmp_path, "transactions"), fault) is None


@pytest.mark.parametrize(
    ("plants", "fault"),
    [
        (["load the newest checkpoint"], "aborted"),
        (["an aborted commit counts"], "aborted"),
        (["an aborted run keeps its method", "a method that has records is not restored"], "aborted"),
        (["an aborted run keeps its method", "a method that has records is not restored"], "doubtful"),
    ],
)
def test_a_planted_defect_is_found_by_aborts(tmp_path: Path, plants: list[str], fault: Fault) -> None:
    one = scene(tmp_path, "transactions", plants=tuple(PLANTS[plant] for plant in plants))
    assert problem_with_aborts(one, fault) is not None


def test_an_aborted_run_that_was_taken_over_stops(tmp_path: Path) -> None:
    """It must not shut out the process that has taken over."""
    one = scene(tmp_path, "transactions")
    expected = one.undisturbed()
    one.go_to(World())
    at = one.run().steps.index("flush", 12)
    ended: list[str] = []

    def take_over(steps: list[str]) -> None:
        if len(steps) == at and not ended:
            ended.append("started")
            ended[0] = one.run(take_over=True).ended

    one.go_to(World())
    process = one.run({at: "aborted"}, before_step=take_over)
    assert ended == ["done"]
    assert "another process has taken over" in process.ended
    assert process.steps.count("init") == 1
    assert one.world.seen == expected


@KINDS
@pytest.mark.parametrize("by", [None, 12, 30])
def test_a_frozen_process_wakes_up_late(tmp_path: Path, kind: str, by: int | None) -> None:
    """Another process took over and has ended, or was killed; the frozen one notices it and shows nothing any more."""
    one = scene(tmp_path, kind)
    expected = one.undisturbed()

    def take_over() -> None:
        if by is not None:
            one.run({by: "before"}, take_over=True)
        assert one.run(take_over=True).ended == "done"

    one.go_to(World())
    steps = range(1, len(one.run().steps))
    for at in kill_points(steps, default=steps[:: 1 if IS_EXHAUSTIVE else 5]):
        one.go_to(World())
        zombie = one.run({at: "frozen"}, while_frozen=take_over)
        assert one.world.seen == expected, f"frozen before step {at}: {zombie.steps[at]}"
        assert zombie.ended == "done" or re.search("another process (writes|has taken over)", zombie.ended)
        assert zombie.steps.count("commit") <= zombie.steps[: at + 1].count("commit"), "it shows nothing"
        assert one.run().ended == "done", "the checkpoints of its successors are whole"


def test_without_taking_over_a_second_process_is_refused(tmp_path: Path) -> None:
    one = scene(tmp_path, "numbers")
    seconds: list[str] = []
    assert one.run({20: "frozen"}, while_frozen=lambda: seconds.append(one.run().ended)).ended == "done"
    assert "another run is using this checkpoint folder" in seconds[0]
    assert "--take-over" in seconds[0]
