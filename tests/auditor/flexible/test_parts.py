"""The audit of flexible k in parts says what the audit of everything at once says, of sound and damaged releases."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import shoal
from shoal.auditor import AuditReport
from tests.auditor.flexible.naive import DENSITY, RELEASE, TRACE, TRUTH, Run, records, table
from tests.auditor.in_parts import audit_in_parts, same_report

HOWS: list[dict[str, Any]] = [
    {"p_sparse": 0.5},
    {},
    {"sparse": "auto", "window": 60},
    {"density": DENSITY},
    {"cells": (1, {12: 6, 20: 5}), "window": 150},
    {"root": False},
]


def write(run: Run, folder: Path, *, files: int = 3) -> dict[str, Any]:
    """Write all parts to files; return the arguments of an audit."""
    notes = None if run.claims is None else {b"shoal": json.dumps(run.claims).encode()}
    full = {"release": table(run.release, RELEASE), "truth": table(run.truth, TRUTH),
            "trace": table(run.trace, TRACE).replace_schema_metadata(notes)}  # fmt: skip
    for name, rows in full.items():
        (folder / name).mkdir(parents=True)
        size = max(-(-len(rows) // files), 1)
        for number in range(files):
            pq.write_table(rows.slice(number * size, size), folder / name / f"part-{number}.parquet")
    return {**{name: str(folder / name) for name in full}, "policy": run.promised}


def both(run: Run, folder: Path, *, buckets: int = 3, without: str = "", **how: Any) -> tuple[AuditReport, AuditReport]:
    paths = {name: None if name == without else path for name, path in write(run, folder, **how).items()}
    return shoal.audit(**paths), audit_in_parts(**paths, buckets=buckets)


def made(folder: Path, seed: int, **how: Any) -> Run:
    truth = records(300, seed=seed, missing=0.05)
    for row in range(0, 300, 41):
        truth[row]["maid"] = None
    return Run(folder, truth, **how)


@pytest.mark.parametrize("how", HOWS, ids=str)
def test_a_sound_release(tmp_path: Path, how: dict[str, Any]) -> None:
    here, there = both(made(tmp_path, 3, **how), tmp_path)
    same_report(here, there)
    assert there.metrics["verdicts"]["dead"] > 0
    assert there.metrics["verdicts"]["pending"] > 0
    assert not there.not_checked


def a_label_of_another_place(run: Run) -> None:
    at = next(at for at, row in enumerate(run.release) if row["device"] is not None)
    run.release[at]["device"] = "Apple" if run.release[at]["device"] != "Apple" else "Samsung"


def too_few_people(run: Run) -> None:
    vector = run.vector(0, names=("place", "hour"))
    for at in range(len(run.release)):
        if run.vector(at, names=("place", "hour")) == vector:
            run.record_of(at)["maid"] = "m1" if at % 2 else "m2"


def a_lower_k(run: Run) -> None:
    run.entries()[40]["k"] = 1


def a_claim_of_less(run: Run) -> None:
    run.claims["k"] = 2


def a_record_twice(run: Run) -> None:
    run.entries()[5]["row"] = run.entries()[-1]["row"]


def a_record_that_does_not_exist(run: Run) -> None:
    run.entries()[5]["row"] = 5000


def another_network(run: Run) -> None:
    run.release[30]["net"] = "3g"


def a_suppressed_record(run: Run) -> None:
    released = {entry["row"] for entry in run.trace}
    run.trace.append({"row": min(set(range(300)) - released), "verdict": "suppressed"})


def a_refusal_without_cause(run: Run) -> None:
    run.truth[next(entry["row"] for entry in run.trace if entry["verdict"] == "dead")]["maid"] = "m3"


def a_range_that_is_no_cell(run: Run) -> None:
    at = next(at for at, row in enumerate(run.release) if row["hour"] is not None)
    run.release[at]["hour"] = {"lo": run.release[at]["hour"]["lo"], "hi": run.release[at]["hour"]["hi"] + 1}


def an_identifier_for_a_label(run: Run) -> None:
    run.release[60]["place"] = "m5"


BROKEN: dict[Callable[[Run], None], str] = {
    a_label_of_another_place: "group-differs",
    too_few_people: "below-k",
    a_lower_k: "k-lowered",
    a_claim_of_less: "k-lowered",
    a_record_twice: "decided-twice",
    a_record_that_does_not_exist: "trace-row",
    another_network: "wrong-sensitive",
    a_suppressed_record: "suppressed",
    a_refusal_without_cause: "dead-without-cause",
    a_range_that_is_no_cell: "not-a-cell",
    an_identifier_for_a_label: "raw-identifier",
}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda one: one.__name__)
def test_a_broken_release(tmp_path: Path, broken: Callable[[Run], None]) -> None:
    run = made(tmp_path, 4, p_sparse=0.5)
    broken(run)
    here, there = both(run, tmp_path)
    same_report(here, there)
    assert BROKEN[broken] in {found.code for found in there.violations}


def damage(run: Run, draw: random.Random) -> None:
    """Change something at random: rows, entries of the trace, or records."""
    rows, entries, truth = run.release, run.trace, run.truth
    kind, at = draw.choice("vhnrgdktm"), draw.randrange(len(rows))
    if kind == "v":
        name = draw.choice(["device", "place"])
        rows[at][name] = draw.choice([None, "Samsung", "city", "moon", "m7", *{row[name] for row in rows[:30]}])
    elif kind == "h":
        low = draw.choice([0, 8, 13, 64, -4, 0.5])
        rows[at]["hour"] = draw.choice([None, {"lo": low, "hi": low + draw.choice([-1, 4, 8, 64])}])
    elif kind == "n":
        rows[at]["net"], rows[at]["mbps"] = draw.choice(["lte", "m3", None]), draw.choice([10.0, None, 777.0])
    elif kind == "r":
        draw.choice(entries)["row"] = draw.choice([-1, None, 9999, draw.randrange(len(truth))])
    elif kind == "g":
        draw.choice(entries)["group"] = draw.choice([None, 0, 7, 10_000])
    elif kind == "d":
        draw.choice(entries)["delay"] = draw.choice([None, -5, 0, 1000])
    elif kind == "k":
        draw.choice(entries)[draw.choice(["k", "k_s"])] = draw.choice([None, 1, 3])
    elif kind == "t":
        draw.choice(truth)[draw.choice(["place", "device"])] = draw.choice([None, "moon", "a", "G 1"])
    else:
        draw.choice(truth)["maid"] = draw.choice([None, "", "m1", "m2"])


@pytest.mark.parametrize("seed", range(40))
def test_random_damage(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    run = made(tmp_path, seed, **draw.choice(HOWS))
    for _ in range(draw.randint(1, 5)):
        damage(run, draw)
    without = draw.choice(["", "", "truth", "trace"])
    same_report(*both(run, tmp_path, buckets=draw.choice([1, 3]), files=draw.choice([1, 3, 5]), without=without))


def test_records_that_no_round_of_grouping_saw_may_be_pending(tmp_path: Path) -> None:
    run = made(tmp_path, 4)
    early = [at for at, entry in enumerate(run.entries()) if entry["row"] < 150]
    entries = run.entries()
    run.release = [run.release[at] for at in early]
    run.trace = [entry for entry in run.trace if entry["verdict"] == "dead"] + [entries[at] for at in early]
    for record in run.truth[150:]:  # pending, and alike: the first 200 usable records were in two windows
        record |= {"device": "G 1", "place": "a", "hour": 3}
    here, there = both(run, tmp_path)
    same_report(here, there)
    (found,) = [found for found in there.findings if found.code == "held-back"]
    assert 0 < found.count < 100


def test_a_window_that_ended_early(tmp_path: Path) -> None:
    run = made(tmp_path, 4)
    whole = shoal.audit(**write(run, tmp_path / "whole")).metrics["p_sparse"]
    min(run.entries(), key=lambda entry: entry["row"])["delay"] = 20
    here, there = both(run, tmp_path / "early")
    same_report(here, there)
    assert there.metrics["p_sparse"] != whole


def test_a_lost_row(tmp_path: Path) -> None:
    run = made(tmp_path, 4)
    run.release.pop(9)
    here, there = both(run, tmp_path)
    same_report(here, there)
    assert "release-count" in {found.code for found in there.violations}


@pytest.mark.parametrize("without", ["truth", "trace"])
def test_less_evidence(tmp_path: Path, without: str) -> None:
    run = made(tmp_path, 4, p_sparse=0.5)
    too_few_people(run)
    here, there = both(run, tmp_path, without=without)
    same_report(here, there)
    assert there.not_checked == here.not_checked


def test_too_many_rows_to_gather(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.auditor.flexible.candidates._MOST_GATHERED", 10)
    here, there = both(made(tmp_path, 4), tmp_path)
    assert not here.not_checked
    assert "too many rows" in there.not_checked[0]
    assert there.metrics["candidates_knowing_all"] is None
