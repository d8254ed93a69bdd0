"""Speed of the auditor of tuple streams beside pycanon, in one run: python -m benchmarks.audit_tuples"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pycanon import anonymity

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
    # Two arrive, leave together with the second; the next ones leave as they come.
    delay = np.where(turn == 0, 1, 0)
    trace = {
        "row": np.arange(rows), "verdict": ["released"] * rows, "reason": pa.nulls(rows, pa.string()), "group": group,
        "delay": delay, "k": np.full(rows, K), "reused": turn >= K,
        "carriers": carriers.cast(pa.list_(pa.int32())),
    }  # fmt: skip
    return pa.table(release), pa.table(truth), pa.table(trace)


def seconds(call: Callable[[], Any], tries: int = 1) -> float:
    """The best of some tries."""
    best = float("inf")
    for _ in range(tries):
        begun = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begun)
    return best


def frame_of(release: pa.Table) -> pd.DataFrame:
    """The release as pycanon wants it: ranges as text."""
    columns = {}
    for name in QUASI[:3]:
        ends = [np.asarray(release[name].combine_chunks().field(end)).astype(str) for end in ("lo", "hi")]
        columns[name] = np.char.add(np.char.add(ends[0], "-"), ends[1])
    return pd.DataFrame({**columns, **{name: release[name].to_pandas() for name in release.column_names[3:]}})


def peer_times(release: pa.Table, rows: int) -> dict[str, float]:
    """Seconds of pycanon for each of its measures on the first rows."""
    frame = frame_of(release.slice(0, rows))
    quasi, sensitive = list(QUASI), ["illness", "income"]
    calls = {
        "k": lambda: anonymity.k_anonymity(frame, quasi),
        "l": lambda: anonymity.l_diversity(frame, quasi, sensitive),
        "entropy_l": lambda: anonymity.entropy_l_diversity(frame, quasi, sensitive),
        "t": lambda: anonymity.t_closeness(frame, quasi, ["illness"]),
    }
    return {name: seconds(call) for name, call in calls.items()}


def main() -> None:
    """Measure, print, and write benchmarks/results/audit_tuples.json."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rows", type=int, default=300_000)
    asked.add_argument("--classes", type=int, default=125_000)
    asked.add_argument("--peer-rows", type=int, default=6_000, help="pycanon is slow: it gets the first rows only")
    given = asked.parse_args()
    release, truth, trace = make_release(given.rows, given.classes)
    report = audit(release, truth, trace, policy())
    assert report.ok, report.text()
    part = release.slice(0, given.peer_rows)
    found = {
        "machine": {"python": platform.python_version(), "cores": os.cpu_count()},
        "rows": given.rows,
        "classes": report.metrics["classes"],
        "audit_seconds": seconds(lambda: audit(release, truth, trace, policy()), 3),
        "audit_release_alone_seconds": seconds(lambda: audit(release, policy=policy()), 3),
        "peer_rows": given.peer_rows,
        "audit_release_alone_seconds_on_peer_rows": seconds(lambda: audit(part, policy=policy()), 3),
        "pycanon_seconds_on_peer_rows": peer_times(release, given.peer_rows),
    }
    text = json.dumps(found, indent=2)
    print(text)
    Path(__file__).with_name("results").joinpath("audit_tuples.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
