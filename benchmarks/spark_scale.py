"""A simulated cluster at a billion events an hour: python -m benchmarks.spark_scale [--rows N]

Each step of z-anonymity on Spark is measured in this process, without Spark; what the JVM, decoding and encoding need
for an event is that of `spark_cost`. A simulation then runs micro-batches of a minute on a number of cores: tasks of a
step start when a core is free, a step starts when the one before has ended. Values are skewed, one of them may have a
tenth of all events, and some tasks are slow. The last column checks the arithmetic: without slow tasks, no schedule is
faster than the work of every step divided by the cores, or than its longest task.
"""

from __future__ import annotations

import heapq
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from benchmarks.measure import Report, parse, parser, short
from benchmarks.spark_parts import Steps, events
from shoal import ZAnonymity
from shoal.spark.recipe import Recipe
from shoal.spark.z.pieces import ROWS_OF_A_RANGE

BILLION_AN_HOUR = 1_000_000_000 / 60
"""Events of a micro-batch of a minute."""
BLOCK = 65_536
MOVING = 1.4e-6
"""Processor seconds for an event outside the steps, by `spark_cost`: the JVM, decoding and encoding."""
SLOW_SHARE, SLOWER = 0.02, 5.0
"""Of the tasks, this share takes this many times as long."""
VALUES = 10_000
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Rates:
    """Processor seconds for an event, by step; what is outside the steps is divided among those that divide."""

    admit: float
    split: float
    judge: float
    merge: float


def measured_rates(rows: int) -> tuple[Rates, float]:
    """What the steps take, and the bytes that move between tasks for an event."""
    method = ZAnonymity(z=20, window="1h", person="user", time="ts", attribute="site")
    steps, table = Steps(Recipe.of(method), method, 16), events(rows)
    for _ in steps.measured(table.slice(0, 1_000)):  # loads the compiled functions
        pass
    admit, split, judge, merge = (cost.processor / rows for _, cost in steps.measured(table))
    more, moved = MOVING / 3, steps.to_shards + steps.to_ranges
    return Rates(admit, split + more, judge + more, merge + more), moved / rows


def shares(shards: int, hot: float) -> Floats:
    """The share of all events that each shard gets: values by Zipf's law, and one with the share `hot` of all."""
    draw = np.random.default_rng(5)
    weights = 1 / np.arange(1, VALUES + 1) ** 1.1
    found = np.bincount(draw.integers(0, shards, VALUES), weights=weights / weights.sum(), minlength=shards) * (1 - hot)
    found[found.argmax()] += hot  # the worst case
    return found


def steps_of(count: float, rates: Rates, shards: int, hot: float) -> list[Floats]:
    """The seconds of every task of a micro-batch, step by step."""
    blocks, ranges = max(1, round(count / BLOCK)), max(1, round(count / ROWS_OF_A_RANGE))
    return [
        np.array([count * rates.admit]),
        np.full(blocks, count / blocks * rates.split),
        count * shares(shards, hot) * rates.judge,
        np.full(ranges, count / ranges * rates.merge),
    ]


def simulated(steps: Sequence[Floats], cores: int, *, slow: bool) -> float:
    """Seconds until all tasks are done, if each starts as soon as a core is free and the step before has ended."""
    draw, now = np.random.default_rng(7), 0.0
    for tasks in steps:
        seconds = np.where(draw.random(len(tasks)) < SLOW_SHARE, SLOWER, 1.0) * tasks if slow else tasks
        free = [now] * cores
        for one in sorted(seconds, reverse=True):
            heapq.heapreplace(free, free[0] + one)
        now = max(free)
    return now


def least(steps: Sequence[Floats], cores: int) -> float:
    """No schedule is faster."""
    return float(sum(max(tasks.sum() / cores, tasks.max()) for tasks in steps))


def lines_of(rates: Rates, cases: Sequence[tuple[int, int, float, bool]]) -> list[list[str]]:
    """A line for each case."""
    found = []
    for cores, shards, hot, slow in cases:
        steps = steps_of(BILLION_AN_HOUR, rates, shards, hot)
        seconds, bound = simulated(steps, cores, slow=slow), least(steps, cores)
        largest = max(steps[2]) / steps[2].sum()
        stragglers = f"{SLOW_SHARE:.0%} of tasks, {SLOWER:.0f} times as long" if slow else "none"
        found.append(
            [str(cores), str(shards), f"{hot:.0%}", stragglers, f"{largest:.0%}", short(seconds),
             "yes" if seconds < 60 else "no", f"{seconds / bound:.2f}"]
        )  # fmt: skip
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and simulate."""
    asked = parser(__doc__)
    asked.add_argument("--rows", type=int, default=2_000_000)
    given = parse(asked, arguments)
    report = Report(__file__, given)
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder) / "key"
        key.write_bytes(bytes(range(32, 64)))
        with patch.dict(os.environ, SHOAL_KEY_FILE=str(key)):
            rates, moved = measured_rates(3_000 if given.tiny else given.rows)
    cases = [
        (cores, shards, hot, slow)
        for cores, shards in ((2, 16), (8, 16), (8, 64))
        for hot, slow in ((0.0, False), (0.1, False), (0.1, True), (0.5, True))
    ]
    columns = ["cores", "shards", "events of one value", "stragglers", "largest shard",
               "seconds for a minute of events", "keeps up", "times the least possible"]  # fmt: skip
    report.table("minutes", columns, lines_of(rates, cases))
    steps = steps_of(BILLION_AN_HOUR, rates, 16, 0.0)
    work = float(sum(tasks.sum() for tasks in steps))
    hot = 60 / (BILLION_AN_HOUR * rates.judge)
    admitted = 60 / (BILLION_AN_HOUR * rates.admit)
    report.table(
        "needs",
        ["a billion events an hour", ""],
        [
            ["cores that are busy all the time", f"{work / 60:.1f}"],
            ["moved between tasks, MB a second", short(moved * BILLION_AN_HOUR / 60 / 1e6)],
            ["if all events had one value, one task could judge this many times as many", f"{hot:.1f}"],
            ["admission could take this many times as many", f"{admitted:.0f}"],
        ],
    )
    report.write()


if __name__ == "__main__":
    main()
