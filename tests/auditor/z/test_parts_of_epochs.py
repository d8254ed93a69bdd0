"""The audit of `combine` and of targets in parts says what the audit on one machine says.

Releases are those of shoal, some with something wrong in them; parts are judged in this process, bin by bin.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.auditor import AuditReport
from tests.auditor.in_parts import audit_in_parts, same_report
from tests.auditor.z.test_combine import SUFFIX, TABLE, alone
from tests.auditor.z.test_combine import Run as Combined
from tests.spark.auditor.releases import Evidence

pytestmark = pytest.mark.compiled
WINDOW = 100
SCHEMA = pa.schema([("ts", pa.int64()), ("user", pa.string()), ("site", pa.string()), ("device", pa.string())])


class Targeted(Combined):
    """A run of z-anonymity with a target, whose release and trace tests may spoil."""

    def __init__(self, *, k: int = 2, p: float = 0.9, count: int = 1500, **rules: Any) -> None:
        random = np.random.default_rng(5)
        times = np.sort(random.integers(0, 6 * WINDOW, count)).tolist()
        drawn = zip(times, random.integers(60, size=count), random.geometric(0.35, size=count), strict=True)
        self.truth = [
            {"ts": time, "user": f"u{who}", "site": None if site > 8 else f"s{site}", "device": ("tv", "pc")[who % 2]}
            for time, who, site in drawn
        ]
        target = {"k": k, "p": p}
        self.rules = {"attribute": "site", "window": WINDOW, **rules, "target": target}
        method = shoal.ZAnonymity(
            person="user", time="ts", key=bytes(16), **{**self.rules, "target": shoal.KTarget(**target)}
        )
        releases = [method.push_batch(pa.Table.from_pylist(self.truth, SCHEMA)), method.flush()]
        self.release = [row for release in releases for row in release.rows.to_pylist()]
        self.trace = [row for release in releases for row in release.trace.to_pylist()]


def both(run: Any, folder: Path, **how: Any) -> tuple[AuditReport, AuditReport]:
    evidence = Evidence(run.release, run.truth, run.trace, run.policy())
    paths = evidence.write(folder, **how)
    return shoal.audit(**paths), audit_in_parts(**paths)


BLANK = {"on_private": "blank"}
COMBINED: dict[str, dict[str, Any]] = {
    "drop": {}, "three": {"k": 3}, "blank": BLANK, "suffix": SUFFIX, "table": TABLE, "short": {"z": 1, "rotation": 20},
    "high": {"z": 5},
    "late": {"lateness": 5}, "flushed": {"flush_after": range(20, 240, 31), "lateness": 5, "rotation": 150},
}  # fmt: skip
TARGETS: dict[str, dict[str, Any]] = {
    "drop": {}, "four": {"k": 4}, "blank": BLANK, "strict": {"p": 1.0}, "late": {"lateness": 3},
    "table": {"attribute": {"site": {}, "device": {"on_private": "blank"}}},
}  # fmt: skip


@cache
def _combined(name: str) -> Combined:
    return Combined(**COMBINED[name])


@cache
def _targeted(name: str) -> Targeted:
    return Targeted(**TARGETS[name])


def combined(name: str = "drop") -> Combined:
    return deepcopy(_combined(name))


def targeted(name: str = "drop") -> Targeted:
    return deepcopy(_targeted(name))


@pytest.mark.parametrize("name", COMBINED)
def test_a_sound_release_with_combine(tmp_path: Path, name: str) -> None:
    run = combined(name)
    here, there = both(run, tmp_path)
    same_report(here, there)
    assert there.findings == ()
    assert there.metrics["smallest_k"] >= run.rules["k"]
    assert there.not_checked == ()


@pytest.mark.parametrize("name", TARGETS)
def test_a_sound_release_with_a_target(tmp_path: Path, name: str) -> None:
    here, there = both(targeted(name), tmp_path)
    same_report(here, there)
    assert there.ok
    assert there.metrics["withheld"] > 0
    assert there.metrics["target"]["epochs_shown"] > 2


def test_lines(tmp_path: Path) -> None:
    same_report(*both(combined("blank"), tmp_path / "combine", kind="jsonl"))
    same_report(*both(targeted("table"), tmp_path / "target", kind="jsonl", files=5))


# ---- combine


def a_set_of_one(run: Any) -> None:
    run.withhold(alone(run))


def higher_k(run: Any) -> None:
    run.rules["k"] = 4


def no_wait(run: Any) -> None:
    run.trace[run.places(lambda entry: entry["verdict"] == "released")[40]]["group"] = None


def another_epoch(run: Any) -> None:
    run.trace[run.places(lambda entry: entry["group"] is not None)[70]]["group"] += 1


def swapped(run: Any) -> None:
    """Two rows of an epoch, in the wrong order."""
    waited = run.places(lambda entry: entry["group"] is not None and entry["verdict"] == "suppressed")
    first, second = next((a, b) for a, b in pairwise(waited) if b == a + 1)
    run.trace[first], run.trace[second] = run.trace[second], run.trace[first]


def decided_at_once_out_of_order(run: Any) -> None:
    now = run.places(lambda entry: entry["group"] is None)
    first, second = next((a, b) for a, b in pairwise(now) if b == a + 1)
    run.trace[first], run.trace[second] = run.trace[second], run.trace[first]


def an_epoch_too_early(run: Any) -> None:
    group = next(entry["group"] for entry in reversed(run.trace) if entry["group"] is not None)
    ended, rest = ([one for one in run.trace if (one["group"] == group) is own] for own in (True, False))
    shown = sum(entry["verdict"] == "released" for entry in ended)
    run.trace, run.release = ended + rest, run.release[-shown:] + run.release[:-shown]


def a_level_that_did_not_pass(run: Any) -> None:
    place = run.places(lambda entry: entry["verdict"] == "suppressed" and entry["level"] < 0)[-1]
    run.trace[place]["level"] = 0


def a_level_that_does_not_exist(run: Any) -> None:
    place = run.places(lambda entry: entry["verdict"] == "suppressed" and entry["level"] < 0)[-1]
    run.trace[place]["level"] = 7


def a_level_of_nothing(run: Any) -> None:
    place = run.places(lambda entry: entry["verdict"] == "suppressed" and entry["level"] < 0)[3]
    run.truth[run.trace[place]["row"]]["site"] = None
    run.trace[place]["level"] = 0


def a_level_not_recorded(run: Any) -> None:
    place = run.places(lambda entry: entry["verdict"] == "suppressed" and entry["group"] is not None)[5]
    run.trace[place]["level"] = -1


def not_let_wait(run: Any) -> None:
    closed = set()
    for entry in run.trace:
        if entry["verdict"] == "suppressed" and entry["group"] is not None and entry["group"] not in closed:
            entry["group"] = None
            break
        closed.add(entry["group"])


def too_few_people(run: Any) -> None:
    entry = run.trace[run.places(lambda entry: entry["verdict"] == "released")[50]]
    record = run.truth[entry["row"]]
    for other in run.truth:
        if other["site"] == record["site"] and other["user"] != record["user"]:
            other["site"] = "elsewhere"


def lost(run: Any) -> None:
    del run.trace[run.places(lambda entry: entry["verdict"] == "suppressed")[4]]


def lost_of_the_last_epoch(run: Any) -> None:
    """Others of the epoch, which came later, were decided at its end."""
    waited = run.places(lambda entry: entry["group"] is not None)
    del run.trace[next(at for at in waited[::-1][5:] if run.trace[at]["verdict"] == "suppressed")]


def without_levels(run: Any) -> None:
    for entry in run.trace:
        del entry["level"]


def without_groups(run: Any) -> None:
    for entry in run.trace:
        del entry["group"]


BROKEN_SETS: dict[Callable[[Any], None], tuple[str, set[str]]] = {
    a_set_of_one: ("drop", {"set-below-k"}),
    higher_k: ("drop", {"set-below-k"}),
    no_wait: ("drop", {"trace-group"}),
    another_epoch: ("drop", {"trace-group"}),
    swapped: ("three", {"decision-order"}),
    decided_at_once_out_of_order: ("drop", {"decision-order"}),
    an_epoch_too_early: ("drop", {"decision-order"}),
    a_level_that_did_not_pass: ("drop", {"trace-level"}),
    a_level_that_does_not_exist: ("drop", {"trace-level"}),
    a_level_of_nothing: ("drop", {"trace-level"}),
    a_level_not_recorded: ("three", {"held-back"}),
    not_let_wait: ("three", {"held-back"}),
    too_few_people: ("drop", {"below-z"}),
    lost: ("drop", {"lost"}),
    lost_of_the_last_epoch: ("three", {"lost"}),
    without_levels: ("drop", {"unchecked-promise"}),
    without_groups: ("drop", {"trace-group"}),
}


@pytest.mark.parametrize("broken", BROKEN_SETS, ids=lambda one: one.__name__)
def test_a_broken_release_with_combine(tmp_path: Path, broken: Callable[[Any], None]) -> None:
    name, codes = BROKEN_SETS[broken]
    run = combined(name)
    broken(run)
    here, there = both(run, tmp_path)
    assert codes <= {found.code for found in there.findings}
    same_report(here, there)


@pytest.mark.parametrize("waits", [False, True], ids=["at once", "waited"])
@pytest.mark.parametrize("place", [1, 2])
def test_order_over_ranges_of_entries(tmp_path: Path, place: int, waits: bool) -> None:
    """Entries next to the edge of a range change places, each with one of the other range."""
    run = combined("high")
    edge = place * -(-len(run.trace) // 3)
    places = run.places(lambda entry: (entry["group"] is not None) is waits and entry["verdict"] == "suppressed")
    before, after = max(at for at in places if at < edge), min(at for at in places if at >= edge)
    run.trace[before], run.trace[after] = run.trace[after], run.trace[before]
    here, there = both(run, tmp_path)
    assert "decision-order" in {found.code for found in there.violations}
    same_report(here, there)


def test_rows_that_wait_are_pending(tmp_path: Path) -> None:
    run = combined()
    epoch = max(entry["group"] for entry in run.trace if entry["group"] is not None)
    ended = [entry for entry in run.trace if entry["group"] == epoch]
    run.trace = [entry for entry in run.trace if entry["group"] != epoch]
    run.release = run.release[: -sum(entry["verdict"] == "released" for entry in ended)]
    here, there = both(run, tmp_path)
    assert [(found.code, found.count) for found in there.findings] == [("pending", len(ended))]
    same_report(here, there)


# ---- targets


def a_missing_z(run: Any) -> None:
    run.trace[300]["z"] = None


def a_z_of_its_own(run: Any) -> None:
    run.trace[700]["z"] += 1


def too_early(run: Any) -> None:
    for entry in run.trace:
        entry["z"] = min(entry["z"], 3)


def a_lower_z(run: Any) -> None:
    run.trace[900]["z"] = 1


def a_needless_gap(run: Any) -> None:
    """A released row, withheld: its person shows the value again, so nothing more would have become known."""
    for place in run.places(lambda entry: entry["verdict"] == "released")[100:]:
        row = run.shown(place)
        if any(one == row for one in run.release if one is not row):
            run.withhold(place)
            return


def a_row_too_many(run: Any) -> None:
    """All rows of an epoch that z let pass, also those that were withheld."""
    run.rules["target"] = {**run.rules["target"], "p": 1.0}


def another_k(run: Any) -> None:
    run.rules["target"] = {**run.rules["target"], "k": 4}


def later_start(run: Any) -> None:
    run.rules["rotation"] = 2 * WINDOW


BROKEN_TARGETS: dict[Callable[[Any], None], tuple[str, set[str]]] = {
    a_missing_z: ("drop", {"z-missing", "z-within-epoch"}),
    a_z_of_its_own: ("drop", {"z-within-epoch"}),
    too_early: ("drop", {"z-too-early", "held-back"}),
    a_lower_z: ("drop", {"z-lowered"}),
    a_needless_gap: ("drop", {"held-back"}),
    a_row_too_many: ("drop", {"stands-out"}),
    another_k: ("blank", {"stands-out", "target-missed"}),
    later_start: ("drop", {"z-within-epoch", "z-too-early", "pseudonym-split"}),
}


@pytest.mark.parametrize("broken", BROKEN_TARGETS, ids=lambda one: one.__name__)
def test_a_broken_release_with_a_target(tmp_path: Path, broken: Callable[[Any], None]) -> None:
    name, codes = BROKEN_TARGETS[broken]
    run = targeted(name)
    broken(run)
    here, there = both(run, tmp_path)
    assert codes <= {found.code for found in there.findings}
    same_report(here, there)
