"""Releases of events damaged at random: the audit in parts says what the audit on one machine says."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from tests.auditor.in_parts import same_report
from tests.auditor.z.test_combine import SCHEMA, SUFFIX, Run, stream
from tests.auditor.z.test_parts_of_epochs import COMBINED, TARGETS, both, combined, targeted

pytestmark = pytest.mark.compiled
DAY = 86_400


class Plain(Run):
    """A run of z-anonymity alone, over records that do not come in the order of time."""

    def __init__(self, **rules: Any) -> None:
        self.truth, random = stream(), np.random.default_rng(3)
        for record in self.truth:
            record["ts"] += int(random.integers(0, 12))
        self.rules = {"attribute": "site", "z": 2, "window": 60, **rules}
        given = dict(self.rules)
        if "hierarchy" in given:
            given["hierarchy"] = shoal.Hierarchy.by_suffix()
        method = shoal.ZAnonymity(person="user", time="ts", carry=["device"], key=bytes(16), **given)
        releases = [method.push_batch(pa.Table.from_pylist(self.truth, SCHEMA)), method.flush()]
        self.release = [row for release in releases for row in release.rows.to_pylist()]
        self.trace = [row for release in releases for row in release.trace.to_pylist()]

    def policy(self) -> dict[str, Any]:
        stream = {"person": "user", "time": "ts", "carry": ["device"]}
        return {"stream": stream, "anonymize": {"method": "z-anonymity", **self.rules}}


def restarted() -> Run:
    """The first clock is far ahead, so the stream restarts."""
    ahead = [
        {"ts": 1_000_000 + 3 * DAY + turn, "user": "odd", "site": "a.news", "device": "tv"} for turn in (0, 1, 200)
    ]
    return Run(truth=ahead + stream(), z=1)


@cache
def _runs() -> list[Any]:
    plain = [Plain(lateness=5), Plain(lateness=12, on_private="blank"), Plain(lateness=3, **SUFFIX), Plain()]
    return [*plain, *map(combined, COMBINED), *map(targeted, TARGETS), restarted()]


def _pick(random: np.random.Generator, *choices: Any) -> Any:
    return choices[int(random.integers(len(choices)))]


def damage_row(run: Any, random: np.random.Generator) -> None:
    row, other, record = (_pick(random, *rows) for rows in (run.release, run.release, run.truth))
    row |= _pick(
        random, {"user": other["user"]}, {"site": other["site"]}, {"ts": row["ts"] + int(random.integers(-80, 80))},
        {"user": None}, {"user": record["user"]}, {"user": "0" * 32}, {"ts": None},
        {"device": record["user"]},
    )  # fmt: skip


def damage_record(run: Any, random: np.random.Generator) -> None:
    record, other = _pick(random, *run.truth), _pick(random, *run.truth)
    record |= _pick(
        random, {"ts": record["ts"] + int(random.integers(-80, 80))}, {"user": ""}, {"user": "someone else"},
        {"site": "rare"}, {"site": other["site"]}, {"ts": other["ts"]},
    )  # fmt: skip


def damage_entry(run: Any, random: np.random.Generator) -> None:
    entry, other = _pick(random, *run.trace), _pick(random, *run.trace)
    entry |= _pick(
        random, {"z": 1}, {"z": 50}, {"group": None}, {"group": other.get("group")}, {"level": -1}, {"level": 0},
        {"level": 9}, {"row": -1}, {"row": 10**6}, {"row": other["row"]},
    )  # fmt: skip


def damage_verdict(run: Any, random: np.random.Generator) -> None:
    """Of an entry without a released row, so that release and trace keep their lengths."""
    others = [one for one in run.trace if one["verdict"] != "released"]
    if not others:
        return
    entry = _pick(random, *others)
    if random.integers(4):
        reason = _pick(random, "late", "null-person", "bad luck", "ahead", None)
        entry |= {"verdict": "dead", "reason": reason}
    else:
        run.trace.remove(entry)


def damage_order(run: Any, random: np.random.Generator) -> None:
    at, to = random.integers(len(run.trace), size=2).tolist()
    run.trace[at], run.trace[to] = run.trace[to], run.trace[at]


DAMAGES = (damage_row, damage_record, damage_entry, damage_verdict, damage_order)


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_release(tmp_path: Path, seed: int) -> None:
    random, run = np.random.default_rng(seed), deepcopy(_runs()[seed % len(_runs())])
    for _ in range(1 + seed % 4):
        _pick(random, *DAMAGES)(run, random)
    same_report(*both(run, tmp_path))


def test_runs_as_they_are(tmp_path: Path) -> None:
    for number, run in enumerate(_runs()):
        here, there = both(run, tmp_path / str(number))
        same_report(here, there)
        assert there.ok, there.text()
