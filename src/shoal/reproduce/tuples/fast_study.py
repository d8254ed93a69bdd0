"""The experiments of the FAST paper (section 5): FADS and FAST at its Table 3, every parameter varied."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any, Final

import numpy as np

from shoal.reproduce.data.streams import Stream
from shoal.reproduce.study import Progress, Record, Table
from shoal.reproduce.tuples.running import (
    Decisions,
    Outcome,
    pool_sizes,
    read_decisions,
    rounds_taken,
    run_method,
    time_method,
)

FADS: Final = "FADS"
PAPERS_CLOCK: Final = "FAST, the paper's clock"
SAME_DEADLINE: Final = "FAST, the deadline of FADS"
LEAST_LOSS: Final = "least-loss (ours)"
METHODS: Final = (FADS, PAPERS_CLOCK, SAME_DEADLINE, LEAST_LOSS)
_BINS: Final = 60


@dataclass(frozen=True, slots=True)
class FastPlan:
    """What to run; the defaults are the paper's Table 3, the varied values are our choice."""

    k: int = 5
    deadline: int = 30
    reuse: int = 20
    threads: int = 5
    alpha: float = 0.02
    rows_shares: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0)
    ks: tuple[int, ...] = (2, 5, 10, 15, 20)
    deadlines: tuple[int, ...] = (10, 20, 30, 40, 60, 100)
    reuses: tuple[int, ...] = (0, 10, 20, 40, 80)
    all_threads: tuple[int, ...] = (1, 2, 3, 4, 5)
    times: int = 3
    """How often a run is timed."""
    large: Mapping[str, int] = field(default_factory=lambda: {"k": 5, "deadline": 8000, "reuse": 200})
    """A second setting for the times, with enough work for several threads."""


QUICK: Final = FastPlan(
    rows_shares=(0.5, 1.0), ks=(5, 10), deadlines=(30, 60), reuses=(0, 20), all_threads=(1, 2), threads=2, times=1,
    large={"k": 10, "deadline": 200, "reuse": 20},
)  # fmt: skip


def name_of_threads(threads: int) -> str:
    """Return the line name of FAST with this many threads."""
    return f"FAST, {threads} thread{'s' if threads > 1 else ''}"


def run_fast_study(stream: Stream, plan: FastPlan, progress: Progress) -> dict[str, Table]:
    """Run the study; return its tables by file name."""
    return _FastStudy(stream, plan, progress).run()


class _FastStudy:
    def __init__(self, stream: Stream, plan: FastPlan, progress: Progress) -> None:
        self._stream, self._plan, self._progress = stream, plan, progress
        self._outcomes: dict[tuple[Any, ...], Outcome] = {}
        self._done = 0
        points = sum(map(len, self._varied().values()))
        self._steps = points * len(METHODS) + len(plan.all_threads) + 1 + 2 * (len(plan.all_threads) + 1) + 2

    def run(self) -> dict[str, Table]:
        """Run everything."""
        tables = (self._sweep(), *self._pools(), self._times(), self._rounds())
        return {table.name: table for table in tables}

    # ---- figures 3 and 7

    def _varied(self) -> dict[str, Sequence[int]]:
        plan, rows = self._plan, len(self._stream)
        return {
            "rows": [int(rows * share) for share in plan.rows_shares],
            "k": plan.ks,
            "deadline": plan.deadlines,
            "reuse": plan.reuses,
            "threads": plan.all_threads,
        }

    def _sweep(self) -> Table:
        records = []
        for parameter, values in self._varied().items():
            for value, method in product(values, METHODS):
                found = self._run(method, **{parameter: value}).metrics
                measured = {key: found[key] for key in ("loss", "cost", "delay", "formed", "reused", "suppressed")}
                records.append({"parameter": parameter, "value": value, "method": method, **measured})
        caption = "Figures 3 and 7: averages at the paper's parameters, one of them varied (delays in arrivals)"
        return Table("fast_parameters", caption, records)

    # ---- figures 4 and 5

    def _pools(self) -> tuple[Table, Table]:
        over_time: list[Record] = []
        published: list[Record] = []
        runs = [(FADS, 1), *((PAPERS_CLOCK, threads) for threads in self._plan.all_threads)]
        for method, threads in runs:
            outcome = self._run(method, threads=threads)
            name = method if method == FADS else name_of_threads(threads)
            decisions, reuse = read_decisions(outcome.trace), outcome.settings["reuse"]
            over_time += _pool_over_time(name, decisions, len(self._stream), reuse)
            published += _published_by_pool(name, decisions, reuse)
        return (
            Table("fast_pool", "Figure 4: clusters ready for reuse, averaged over intervals of arrivals", over_time),
            Table("fast_published", "Figure 5: rows published by the number of clusters ready for reuse", published),
        )

    # ---- figure 6

    def _times(self) -> Table:
        plan = self._plan
        small = {"k": plan.k, "deadline": plan.deadline, "reuse": plan.reuse}
        records = []
        for point in (small, plan.large):
            setting = f"k={point['k']}, δ={point['deadline']}"
            for threads in plan.all_threads:
                self._step(f"timing FAST, {setting}, {threads} threads")
                settings = _settings(SAME_DEADLINE, {**point, "threads": threads}, plan.alpha)
                seconds = time_method("fast", self._stream, settings, times=plan.times)
                records.append({"setting": setting, "method": "FAST", "threads": threads, "seconds": seconds})
            self._step(f"timing FADS, {setting}")
            seconds = time_method("fads", self._stream, _settings(FADS, point, plan.alpha), times=plan.times)
            records += [
                {"setting": setting, "method": FADS, "threads": threads, "seconds": seconds}
                for threads in plan.all_threads
            ]
        caption = (
            f"Figure 6: seconds for {len(self._stream)} rows, the shortest of {plan.times} runs "
            f"on {os.cpu_count()} cores (FADS has no threads)"
        )
        return Table("fast_time", caption, records)

    # ---- figure 8

    def _rounds(self) -> Table:
        deadline = self._plan.deadline
        readings = {
            f"δ = {deadline} arrivals to wait (ours)": deadline,
            f"δ = {deadline} buffered rows (the paper's)": 2 * deadline,
        }
        records = []
        for reading, wait in readings.items():
            rounds = rounds_taken(read_decisions(self._run(FADS, deadline=wait).trace))
            counts = np.bincount(rounds)
            records += [
                {"reading": reading, "rounds": number, "rows": int(count), "share": float(count / len(rounds))}
                for number, count in enumerate(counts)
                if number
            ]
        return Table("fast_rounds", "Figure 8: rows by the number of rounds of FADS they take part in", records)

    # ---- running

    def _run(self, method: str, **varied: Any) -> Outcome:
        plan = self._plan
        point = {"k": plan.k, "deadline": plan.deadline, "reuse": plan.reuse, "threads": plan.threads, **varied}
        rows = point.pop("rows", len(self._stream))
        settings = _settings(method, point, plan.alpha)
        kind = _KINDS[method]
        key = (kind, rows, *settings.items())
        self._step(f"{method}, " + ", ".join(f"{name} {value}" for name, value in varied.items()))
        if key not in self._outcomes:
            self._outcomes[key] = run_method(kind, self._stream.head(rows), settings)
        return self._outcomes[key]

    def _step(self, step: str) -> None:
        self._progress(self._done, self._steps, step)
        self._done += 1


_KINDS: Final = {FADS: "fads", PAPERS_CLOCK: "fast", SAME_DEADLINE: "fast", LEAST_LOSS: "least-loss"}


def _settings(method: str, point: Mapping[str, Any], alpha: float) -> dict[str, Any]:
    """Return the settings of a method.

    In the paper all threads run in parallel and each takes one row per tick of the clock, so in arrivals δ and the age
    of clusters are `threads` times as long, and the cost of a delay is scaled down accordingly.
    """
    settings = {"k": point["k"], "deadline": point["deadline"], "reuse": point["reuse"], "alpha": alpha}
    if _KINDS[method] != "fast":
        return settings
    threads = point["threads"]
    if method == PAPERS_CLOCK:
        settings["deadline"] *= threads
        settings["reuse"] *= threads
        settings["alpha"] = (1 + alpha) ** (1 / threads) - 1
    return {**settings, "threads": threads}


def _pool_over_time(name: str, decisions: Decisions, rows: int, reuse: int) -> list[Record]:
    sizes = pool_sizes(decisions, np.arange(rows), reuse=reuse)
    edges = np.linspace(0, rows, min(_BINS, rows) + 1).astype(np.int64)
    return [
        {"method": name, "arrival": int(end), "clusters": float(sizes[begin:end].mean())}
        for begin, end in pairwise(edges)
    ]


def _published_by_pool(name: str, decisions: Decisions, reuse: int) -> list[Record]:
    counts = np.bincount(pool_sizes(decisions, decisions.left, reuse=reuse))
    return [{"method": name, "clusters": size, "rows": int(count)} for size, count in enumerate(counts)]
