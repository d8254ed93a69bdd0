"""Speed of the auditor of tuple streams compared with pycanon, in one run: python -m benchmarks.audit_tuples

With `--old CHECKOUT` compared with the auditor of another checkout instead: each in processes of its own, in turns.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pycanon import anonymity

from benchmarks.measure import TIME_COLUMNS, Cost, Meter, Report, measured, parse, parser, peak_megabytes
from benchmarks.sources import ROOT
from shoal import audit

K = 2
QUASI = ("age", "hours", "gain", "job", "school", "home")
LABELS = [f"{branch}{leaf}" for branch in "abcdefgh" for leaf in range(12)]
TREE = {"*": {branch: [label for label in LABELS if label[0] == branch] for branch in "abcdefgh"}}
SPAN = pa.struct([("lo", pa.int64()), ("hi", pa.int64())])


def policy() -> dict[str, Any]:
    """What the release promises."""
    number = {"kind": "numeric", "low": 0, "high": 1_000_000}
    label = {"kind": "categorical", "hierarchy": {"kind": "nested", "tree": TREE}}
    return {
        "stream": {"person": "id"},
        "anonymize": {
            "method": "fads", "k": K, "deadline": 1000, "reuse": 1000, "sensitive": ["illness", "income"],
            "quasi": {name: number if name in QUASI[:3] else label for name in QUASI},
        },
    }  # fmt: skip


def make_release(rows: int, classes: int, seed: int = 7) -> tuple[pa.Table, pa.Table, pa.Table]:
    """A correct release: clusters of two people one after the other; the other rows reuse the newest cluster."""
    draw = np.random.default_rng(seed)
    size = np.full(classes, K)
    size += draw.multinomial(rows - K * classes, np.full(classes, 1 / classes))
    group = np.repeat(np.arange(classes), size)
    turn = np.arange(rows) - np.repeat(np.cumsum(size) - size, size)
    truth: dict[str, Any] = {"id": pa.array(np.char.add("p", np.arange(rows).astype(str)))}
    release: dict[str, Any] = {}
    carriers = pa.FixedSizeListArray.from_arrays(pa.array(np.full(rows * len(QUASI), K, np.int32)), len(QUASI))
    for name in QUASI[:3]:
        truth[name] = draw.integers(0, 1_000_000, rows)
        low, high = np.full(classes, 2_000_000), np.full(classes, -1)
        np.minimum.at(low, group, truth[name])
        np.maximum.at(high, group, truth[name])
        release[name] = pa.StructArray.from_arrays([pa.array(low[group]), pa.array(high[group])], fields=list(SPAN))
    for name in QUASI[3:]:
        branch = draw.integers(0, 8, classes)
        truth[name] = np.array(LABELS)[branch[group] * 12 + draw.integers(0, 12, rows)]
        release[name] = np.array(list("abcdefgh"))[branch[group]]
    truth["illness"] = release["illness"] = np.array([f"illness {n}" for n in range(14)])[draw.integers(0, 14, rows)]
    truth["income"] = release["income"] = draw.integers(0, 2000, rows)
    # Two arrive and are published with the second; the next ones are published as they come.
    delay = np.where(turn == 0, 1, 0)
    trace = {
        "row": np.arange(rows), "verdict": ["released"] * rows, "reason": pa.nulls(rows, pa.string()), "group": group,
        "delay": delay, "k": np.full(rows, K), "reused": turn >= K,
        "carriers": carriers.cast(pa.list_(pa.int32())),
    }  # fmt: skip
    order = np.arange(rows)  # the two of a cluster in random order
    first = np.flatnonzero(turn == 0)[draw.random(classes) < 0.5]
    order[first], order[first + 1] = first + 1, first
    return pa.table(release).take(order), pa.table(truth), pa.table(trace).take(order)


def frame_of(release: pa.Table) -> pd.DataFrame:
    """The release as pycanon wants it: ranges as text."""
    columns = {}
    for name in QUASI[:3]:
        ends = [np.asarray(release[name].combine_chunks().field(end)).astype(str) for end in ("lo", "hi")]
        columns[name] = np.char.add(np.char.add(ends[0], "-"), ends[1])
    return pd.DataFrame({**columns, **{name: release[name].to_pandas() for name in release.column_names[3:]}})


def peer_costs(release: pa.Table, rows: int) -> dict[str, Cost]:
    """What pycanon needs for each of its measures on the first rows."""
    frame = frame_of(release.slice(0, rows))
    quasi, sensitive = list(QUASI), ["illness", "income"]
    calls = {
        "k": lambda: anonymity.k_anonymity(frame, quasi),
        "l": lambda: anonymity.l_diversity(frame, quasi, sensitive),
        "entropy l": lambda: anonymity.entropy_l_diversity(frame, quasi, sensitive),
        "t": lambda: anonymity.t_closeness(frame, quasi, ["illness"]),
    }
    return {f"pycanon, {name}": measured(call)[0] for name, call in calls.items()}


def promising_policy() -> dict[str, Any]:
    """The same with l, entropy l and t of every class and of every cluster as it grew."""
    found = policy()
    shares = {"illness": {f"illness {n}": 1 for n in range(14)}, "income": {str(n): 1 for n in range(2000)}}
    found["anonymize"] |= {"l": 1, "entropy_l": 1, "t": 1.0, "reference": shares}
    return found


def one_audit(rows: int, classes: int) -> dict[str, float]:
    """Processor seconds of one audit with truth and trace, and how much more memory it took, per million rows."""
    release, truth, trace = make_release(rows, classes)
    promised = promising_policy()
    audit(release.slice(0, 100), policy=promised)
    before = peak_megabytes()
    with Meter() as meter:
        found = audit(release, truth, trace, promised)
    assert found.ok, found.text()
    return {"seconds": meter.cost.processor * 1e6 / rows, "megabytes": (peak_megabytes() - before) * 1e6 / rows}


def against(old: Path, rows: int, classes: int, tries: int) -> dict[str, dict[str, float]]:
    """The least of some tries for each checkout, which take turns."""
    script = f"import json; from benchmarks.audit_tuples import *; print(json.dumps(one_audit({rows}, {classes})))"
    found: dict[str, dict[str, float]] = {}
    for tree in [old.resolve(), ROOT] * tries:
        paths = {**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{ROOT}"}
        done = subprocess.run([sys.executable, "-c", script], env=paths, stdout=subprocess.PIPE, check=True, text=True)
        own = json.loads(done.stdout.splitlines()[-1])
        best = found.setdefault("this checkout" if tree == ROOT else "the other one", own)
        best.update({name: min(value, best[name]) for name, value in own.items()})
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    asked = parser(__doc__)
    asked.add_argument("--rows", type=int, default=300_000)
    asked.add_argument("--classes", type=int, default=125_000)
    asked.add_argument("--old", type=Path, help="another checkout, to compare with instead of pycanon")
    asked.add_argument("--peer-rows", type=int, default=6_000, help="pycanon is slow: it gets the first rows only")
    given = parse(asked, arguments)
    rows, classes, peer_rows = (600, 200, 100) if given.tiny else (given.rows, given.classes, given.peer_rows)
    report = Report(__file__, given)
    if given.old is not None:
        costs = against(given.old, rows, classes, 1 if given.tiny else 3)
        cells = [[name, f"{one['seconds']:.2f}", f"{one['megabytes']:.0f}"] for name, one in costs.items()]
        report.table("against", ["", "processor seconds per million rows", "megabytes more per million rows"], cells)
        return
    release, truth, trace = make_release(rows, classes)
    found = audit(release, truth, trace, policy())
    assert found.ok, found.text()
    part, tries = release.slice(0, peer_rows), 1 if given.tiny else 3
    ours = "shoal, release alone (k, l, entropy l, t and the rest)"
    spent = {
        (rows, "shoal, with truth and trace"): measured(lambda: audit(release, truth, trace, policy()), tries=tries)[0],
        (rows, ours): measured(lambda: audit(release, policy=policy()), tries=tries)[0],
        (peer_rows, ours): measured(lambda: audit(part, policy=policy()), tries=tries)[0],
        **{(peer_rows, name): cost for name, cost in peer_costs(release, peer_rows).items()},
    }
    cells = [[f"{count:,}", name, *cost.seconds()] for (count, name), cost in spent.items()]
    report.table("costs", ["rows", "", *TIME_COLUMNS], cells)
    report.figures = {"classes": found.metrics["classes"]}
    report.write()


if __name__ == "__main__":
    main()
