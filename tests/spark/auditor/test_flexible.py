"""The audit of flexible k in parts says what the audit on one machine says, of sound and of damaged releases.

Parts are judged in this process, bin by bin; `test_on_spark.py` judges some of them on Spark.
"""

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
from shoal.errors import InputError
from shoal.spark.auditor.dispatch import audit_on
from tests.auditor.flexible.naive import DENSITY, RELEASE, TRACE, TRUTH, Run, records, table
from tests.spark.auditor.test_tuples import ManyBins, _found, _is_near

NOT_IN_PARTS = {"spelling"}
"""What is listed as not checked."""
NOT_MEASURED = {"candidates_knowing_all", "candidates_knowing_normal"}
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


def same(here: AuditReport, there: AuditReport) -> None:
    """Both found the same; only the order and what is listed as not checked may differ."""
    assert _found(there) == [found for found in _found(here) if found[1] not in NOT_IN_PARTS]
    assert set(here.metrics) - NOT_MEASURED == set(there.metrics)
    for name, value in there.metrics.items():
        assert _is_near(value, here.metrics[name]), (name, value, here.metrics[name])


def both(run: Run, folder: Path, **how: Any) -> tuple[AuditReport, AuditReport]:
    paths = write(run, folder, **how)
    return shoal.audit(**paths), audit_on(ManyBins(), **paths)


def made(folder: Path, seed: int, **how: Any) -> Run:
    truth = records(300, seed=seed, missing=0.05)
    for row in range(0, 300, 41):
        truth[row]["maid"] = None
    return Run(folder, truth, **how)


@pytest.mark.parametrize("how", HOWS, ids=str)
def test_a_sound_release(tmp_path: Path, how: dict[str, Any]) -> None:
    here, there = both(made(tmp_path, 3, **how), tmp_path)
    same(here, there)
    assert there.metrics["verdicts"]["dead"] > 0
    assert there.metrics["verdicts"]["pending"] > 0
    assert "not on Spark" in there.not_checked[0]


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
    same(here, there)
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
    same(*both(run, tmp_path, files=draw.choice([1, 3, 5])))


def test_records_that_no_round_of_grouping_saw_may_be_pending(tmp_path: Path) -> None:
    run = made(tmp_path, 4)
    early = [at for at, entry in enumerate(run.entries()) if entry["row"] < 150]
    entries = run.entries()
    run.release = [run.release[at] for at in early]
    run.trace = [entry for entry in run.trace if entry["verdict"] == "dead"] + [entries[at] for at in early]
    for record in run.truth[150:]:  # pending, and alike: the first 200 usable records were in two windows
        record |= {"device": "G 1", "place": "a", "hour": 3}
    here, there = both(run, tmp_path)
    same(here, there)
    (found,) = [found for found in there.findings if found.code == "held-back"]
    assert 0 < found.count < 100


def test_a_window_that_ended_early(tmp_path: Path) -> None:
    run = made(tmp_path, 4)
    whole = shoal.audit(**write(run, tmp_path / "whole")).metrics["p_sparse"]
    min(run.entries(), key=lambda entry: entry["row"])["delay"] = 20
    here, there = both(run, tmp_path / "early")
    same(here, there)
    assert there.metrics["p_sparse"] != whole


def test_a_lost_row_leaves_nothing_to_compare(tmp_path: Path) -> None:
    run = made(tmp_path, 4)
    run.release.pop(9)
    here, there = both(run, tmp_path)
    assert "release-count" in {found.code for found in here.violations}
    assert [found.code for found in there.violations] == ["release-count"]
    assert any("differ in length" in sentence for sentence in there.not_checked)


def test_no_truth_is_refused(tmp_path: Path) -> None:
    paths = write(made(tmp_path, 4), tmp_path)
    with pytest.raises(InputError, match="with its truth and its trace"):
        audit_on(ManyBins(), **{**paths, "truth": None})
