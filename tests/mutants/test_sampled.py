"""A toy package end to end: what its tests check is killed, what they do not check survives, and both are recorded."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from tests.mutants import reach, sampled
from tests.mutants.forks import Ended, Fork, TooSlow, limit_cpu
from tests.mutants.overlay import Overlay
from tests.mutants.places import ROOT, Places
from tests.mutants.reach import Test
from tests.mutants.sampled import lower, table
from tests.mutants.trial import KILLED, SURVIVED, UNDECIDED, Trials, affordable

TABLE = """
source = "src/toy"
seed = 1
most_of_a_package = 100
most_of_all = 900
tests = ["tests"]
markers = "not slow"
seconds_of_a_test = 10
seconds_of_a_file = 60

[packages]
gate = ["gate"]
unused = ["unused"]
"""
GATE = """
def admit(size, k):
    check_whole(size)
    return size >= k


def check_whole(size):
    if size != int(size):
        raise ValueError(size)


def never(size):
    return size > 1
"""
TESTS = """
import pytest
from toy.gate.gate import admit

@pytest.mark.parametrize("size", [3, 4])
def test_enough(size):
    assert admit(size, 3)

def test_too_few():
    assert not admit(2, 3)
"""
CHECKED = """
def test_whole():
    with pytest.raises(ValueError):
        admit(2.5, 3)
"""


NAME = "gate/gate.py admit comparison: size >= k -> size > k (0)"


def play(root: Path) -> None:
    """Run the commands on a toy package, one after another; keep what they print and record."""
    for file, text in {
        "tests/mutants/packages.toml": TABLE,
        "tests/test_gate.py": TESTS,
        "src/toy/__init__.py": "",
        "src/toy/gate/__init__.py": "",
        "src/toy/gate/gate.py": GATE,
        "src/toy/unused/__init__.py": "",
    }.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text)

    def sample(*words: str) -> tuple[int, str]:
        with redirect_stdout(StringIO()) as printed:
            code = sampled.main([*words, "--root", str(root)])
        return code, printed.getvalue()

    def measure(tests: str) -> None:
        (root / "tests/test_gate.py").write_text(tests)
        with redirect_stdout(StringIO()):
            reach.main(["--root", str(root)])

    results = {}
    measure(TESTS)
    results["part"] = sample("--most", "2")
    results["rest"] = sample("--write")
    results["recorded"] = _recorded(root)
    results["again"] = sample()
    record = root / "tests/mutants/killed.json"
    survivor = json.dumps(next(one["name"] for one in _recorded(root) if one["verdict"] == SURVIVED))
    record.write_text(record.read_text().replace(survivor, f'{survivor}, "reason": "no matter"'))
    results["reasoned"] = sample()
    sample("--write")
    results["with a reason"] = _recorded(root)
    measure(TESTS + CHECKED)
    results["checked"] = sample()
    results["line"] = sample("--at", "gate/gate.py:4")
    sample("--write")
    results["all killed"] = _recorded(root)
    measure(TESTS.replace("assert not", ""))
    results["weaker"] = sample("--only", "gate", "--jobs", "2")
    results["source"] = (root / "src/toy/gate/gate.py").read_text()
    (root / "results").write_text(json.dumps(results))


def _recorded(root: Path) -> list[dict[str, Any]]:
    return json.loads((root / "tests/mutants/killed.json").read_text())["defects"]


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    root = tmp_path_factory.mktemp("toy")
    script = "import sys, pathlib; from tests.mutants.test_sampled import play; play(pathlib.Path(sys.argv[1]))"
    ended = subprocess.run([sys.executable, "-c", script, root], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return json.loads((root / "results").read_text())


def by_verdict(played, key):
    found = {}
    for entry in played[key]:
        found.setdefault(entry["verdict"], set()).add(entry["name"].partition(" ")[2])
    return found


def test_what_is_checked_is_killed_and_what_is_not_survives(played):
    found = by_verdict(played, "recorded")
    assert found["killed"] == {
        "admit comparison: size >= k -> size > k (0)",
        "check_whole comparison: size != int(size) -> size == int(size) (0)",
    }
    assert found["survived"] == {
        "admit check: check_whole(size) -> pass (0)",
        "check_whole check: if size != int(size) -> if False (0)",
    }
    assert found["not reached"] == {
        "never comparison: size > 1 -> size >= 1 (0)", "never number: 1 -> 0 (0)", "never number: 1 -> 2 (0)",
    }  # fmt: skip


def test_who_kills_which_is_recorded(played):
    by = {entry["name"]: entry.get("by") for entry in played["recorded"]}
    assert by[NAME] == "tests/test_gate.py::test_enough"  # without its parameter


def test_a_run_that_was_cut_off_continues(played):
    def tried(key):
        return [line for line in played[key][1].splitlines() if ": line " in line and "without" not in line]

    assert len(tried("part")) == 2
    assert len(tried("rest")) == len(played["recorded"]) - 2
    assert not {*tried("part")} & {*tried("rest")}
    assert tried("again") == []


def test_a_removed_check_is_reported_until_a_test_checks_it(played):
    code, printed = played["again"]
    assert code == 0
    assert "survived, without a reason: line 3 of gate/gate.py admit check: check_whole(size) -> pass (0)" in printed
    assert "50.0%" in printed
    code, printed = played["checked"]
    assert code == 0
    assert "killed by tests/test_gate.py::test_whole: line 3 of gate/gate.py admit check" in printed
    assert "without a reason" not in printed
    assert "100.0%" in printed


def test_the_defects_of_a_line(played):
    code, printed = played["line"]
    assert code == 0
    assert printed.count("killed by") == 1
    assert NAME in printed


def test_a_reason_stays_with_its_survivor(played):
    assert played["again"][1].count("without a reason") == 2
    assert played["reasoned"][1].count("without a reason") == 1
    assert [entry.get("reason") for entry in played["with a reason"]].count("no matter") == 1
    assert [entry.get("reason") for entry in played["all killed"]].count("no matter") == 0


def test_a_lower_share_fails(played):
    code, printed = played["weaker"]
    assert code == 1
    assert "gate: a lower share is killed than recorded" in printed


def test_the_source_is_never_changed(played):
    assert played["source"] == GATE


# ---- parts


def test_the_cheapest_tests_run_that_there_is_time_for():
    tests = [Test("a::1", 1), Test("a::2", 2), Test("b::1", 2.5), Test("a::3", 3)]
    assert affordable(tests, {"a": 1, "b": 3}, 7) == [*tests[:2], tests[3]]
    assert affordable(tests, {"a": 1, "b": 3}, 0.5) == []


@pytest.mark.parametrize(
    ("code", "is_late", "failed", "unchanged", "expected"),
    [
        (0, False, None, None, SURVIVED),
        (1, False, "a::1", None, KILLED),
        (-9, True, "a::1", None, KILLED),
        (-9, True, None, Ended(0, 14, is_late=False), KILLED),
        (-9, True, None, Ended(0, 16, is_late=False), UNDECIDED),
        (-9, True, None, Ended(-9, 60, is_late=True), UNDECIDED),
        (-11, False, None, Ended(0, 50, is_late=False), KILLED),
        (4, False, None, Ended(4, 1, is_late=False), UNDECIDED),
        (5, False, None, None, UNDECIDED),
    ],
)
def test_verdicts(monkeypatch, code, is_late, failed, unchanged, expected):
    """A time-out counts only if the same tests are far quicker without the defect, a crash only if they pass."""
    trials = Trials.__new__(Trials)
    monkeypatch.setattr(trials, "_run", lambda tests: (unchanged, None))
    assert trials._judge([], Ended(code, 1, is_late=is_late), failed) == (expected, failed)


def test_a_test_that_takes_much_more_cpu_ends():
    def loop() -> None:
        while True:
            pass

    limit_cpu(0.01)
    with pytest.raises(TooSlow):
        loop()
    limit_cpu(0)


def test_what_a_process_leaves_running_ends_with_it(tmp_path):
    never, unwritten = os.pipe()
    seen, kept = os.pipe()

    def run() -> int:
        subprocess.Popen(["cat"], stdin=never, pass_fds=[kept])
        return 0

    ended = Fork(run, root=tmp_path, source=tmp_path, output=tmp_path / "output").wait(30)
    os.close(kept)
    assert (ended.code, ended.is_late) == (0, False)
    assert select.select([seen], [], [], 30)[0]  # nobody holds the other end any more
    assert os.read(seen, 1) == b""
    for end in (never, unwritten, seen):
        os.close(end)


def test_shares_leave_out_what_no_test_reaches():
    now = {"a": {"killed": 3, "survived": 1, "not reached": 6}, "b": {"not reached": 1}}
    before = {"a": {"killed": 4, "survived": 1}, "b": {"killed": 1}, "c": {"killed": 1}}
    assert lower(now, before) == ["a"]
    assert [line.split() for line in table(now, before)][1:] == [
        ["a", "10", "3", "1", "6", "0", "75.0%", "80.0%"],
        ["b", "1", "0", "0", "1", "0", "-", "100.0%"],
        ["c", "0", "0", "0", "0", "0", "-", "100.0%"],
    ]


def test_an_overlay_never_changes_its_source(tmp_path):
    source = tmp_path / "toy"
    source.mkdir()
    (source / "a.py").write_text("x = 1\n")
    overlay = Overlay(source, tmp_path / "overlay")
    with overlay.with_text("a.py", "x = 2\n"):
        assert (overlay.package / "a.py").read_text() == "x = 2\n"
        assert (source / "a.py").read_text() == "x = 1\n"
    assert (overlay.package / "a.py").read_text() == "x = 1\n"


def test_every_package_is_a_folder_with_places_for_defects():
    places = Places(ROOT)
    for folders in places.table["packages"].values():
        assert all((places.source / folder).is_dir() for folder in folders)
    assert all((ROOT / folder).is_dir() for folder in places.table["tests"])
    assert len(places.defects("crypto")) > 100
