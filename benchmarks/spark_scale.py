"""A simulated cluster at a billion events an hour: python -m benchmarks.spark_scale [--rows N]

What an event costs from end to end, and what is written of the state, is taken from the results of `spark_cost`,
`spark_stream` and `z_memory`; what the task of admission takes on Spark from `spark_hot`; what one process reads from
Kafka and writes to it from `live_kafka`: measure those first. Each step of z-anonymity is measured in this process,
without Spark; what is left of the cost of a stream is divided among the steps. A simulation then runs micro-batches of
a minute on a number of cores: tasks of a step start when a core is free, a step starts when the one before has ended.
Values are skewed, one of them may have a tenth of all events, and some tasks are slow. The last column checks the
arithmetic: without slow tasks, no schedule is faster than the work of every step divided by the cores, or than its
longest task.
"""

from __future__ import annotations

import heapq
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.measure import RESULTS, Report, parse, parser, short
from benchmarks.spark_parts import Steps, events
from benchmarks.spark_stream import WARM
from shoal import ZAnonymity
from shoal.spark.recipe import Recipe
from shoal.spark.z.output_ranges import ROWS_OF_A_RANGE

BILLION_AN_HOUR = 1_000_000_000 / 60
"""Events of a micro-batch of a minute."""
A_SECOND = BILLION_AN_HOUR / 60
BLOCK = 65_536
SLOW_SHARE, SLOWER = 0.02, 5.0
"""Of the tasks, this share takes this many times as long."""
VALUES = 10_000
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Rates:
    """Processor seconds for an event, by step."""

    admit: float
    split: float
    judge: float
    merge: float

    @property
    def total(self) -> float:
        """Of all steps."""
        return self.admit + self.split + self.judge + self.merge

    def costing(self, whole: float, admit: float) -> Rates:
        """With what an event costs outside the steps: the JVM, decoding, encoding, writing state.

        `admit` is what the task of admission takes on Spark; the rest is divided among the steps that divide.
        """
        more = max(whole - admit - (self.total - self.admit), 0.0) / 3
        return Rates(admit, self.split + more, self.judge + more, self.merge + more)


def measured_rates(rows: int, *, hot: bool = False) -> tuple[Rates, float]:
    """What the steps take, and the bytes that move between tasks for an event; `hot`: all events have one value."""
    method = ZAnonymity(z=20, window="1h", person="user", time="ts", attribute="site")
    steps, table = Steps(Recipe.of(method), method, 16), events(rows)
    if hot:
        table = table.set_column(table.schema.get_field_index("site"), "site", pa.repeat("hot", rows))
    for _ in steps.measured(table.slice(0, 1_000)):  # loads the compiled functions
        pass
    rates = Rates(*(cost.processor / rows for _, cost in steps.measured(table)))
    return rates, (steps.to_admission + steps.to_shards + steps.to_ranges) / rows


@dataclass(frozen=True)
class EndToEnd:
    """What was measured on Spark from files to files."""

    batch: float
    """Processor seconds for a further event of a batch."""
    stream: float
    """Processor seconds for a further event of a micro-batch, with its state."""
    micro_batch: float
    """Processor seconds for a micro-batch without events."""
    state: float
    """Bytes of state written for an event."""
    pair: float
    """Bytes of memory for a live pair."""
    admit: float
    """Seconds of wall clock that the task of admission takes for an event, with all that Spark adds to it."""
    kafka: float
    """Rows that one process reads from Kafka and writes to it in a processor second."""


def end_to_end() -> EndToEnd:
    """The figures of the results of other benchmarks."""
    sizes, seconds = [], []
    for run, events_text, _, java, python, *_ in _result("spark_cost")["blocks"]["z"]["rows"]:
        if run.startswith("Spark"):
            sizes.append(number_of(events_text))
            seconds.append(float(java) + float(python))
    batch = (seconds[-1] - seconds[0]) / (sizes[-1] - sizes[0])
    sizes_of_streams = _result("spark_stream")["figures"]
    rows = max(map(int, sizes_of_streams))
    stream = sizes_of_streams[str(rows)]["follow"]
    full, empty = (mean(sum(one["spent"]) for one in part) for part in (stream["full"][WARM:], stream["empty"]))
    written = mean(one["logs"] + one["snapshots"] for one in stream["full"][WARM:])
    pairs = _result("z_memory")["figures"]["runs"][-1]["table_bytes_per_pair"]
    hot = _result("spark_hot")["figures"]
    admit = min(run["admission"] for run in hot["runs"]) / hot["rows"]
    kafka = [
        number_of(row[3]) for row in _result("live_kafka")["blocks"]["rates"]["rows"] if row[1].startswith("shoal")
    ]
    return EndToEnd(batch, (full - empty) / rows, empty, written / rows, pairs, admit, max(kafka))


def number_of(text: str) -> float:
    """The number of a cell."""
    digits, _, unit = text.replace(",", "").partition(" ")
    return float(digits) * (1e6 if unit == "million" else 1)


def _result(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


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


def _cores(what: str, event: float, micro_batch: float = 0.0) -> list[str]:
    """A line: processor seconds for a minute of events, in micro-batches of a minute."""
    return [what, f"{event * 1e6:.2f}", f"{event * A_SECOND + micro_batch / 60:.2f}"]


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
            rows = 3_000 if given.tiny else given.rows
            steps, moved = measured_rates(rows)
            hot, _ = measured_rates(rows, hot=True)
    known = end_to_end()
    rates = steps.costing(known.stream, known.admit)
    cases = [
        (cores, shards, hot, slow)
        for cores, shards in ((2, 16), (8, 16), (8, 64))
        for hot, slow in ((0.0, False), (0.1, False), (0.1, True), (0.5, True))
    ]
    columns = ["cores", "shards", "events of one value", "stragglers", "largest shard",
               "seconds for a minute of events", "keeps up", "times the least possible"]  # fmt: skip
    report.table("minutes", columns, lines_of(rates, cases))
    report.table("cores", ["what is counted", "µs an event", "cores that are busy all the time"], [
        _cores("the steps of the method alone, without Spark", steps.total),
        _cores("a batch, from files to files", known.batch),
        _cores("a stream with its state, from files to files", known.stream, known.micro_batch),
    ])  # fmt: skip
    alone, own = 1 / hot.judge, 1 / hot.costing(known.stream, known.admit).judge
    report.table("needs", ["a billion events an hour", ""], [
        ["moved between tasks: bytes an event", short(moved)],
        ["moved between tasks: MB a second", short(moved * A_SECOND / 1e6)],
        ["state written: bytes an event, whatever the resolution of time", short(known.state)],
        ["state written: MB a second", short(known.state * A_SECOND / 1e6)],
        ["memory for a live (person, value) pair: bytes", short(known.pair)],
        ["memory for 300 million live pairs: GB", short(known.pair * 0.3)],
        ["events of one value that one task judges in a second, the step alone", short(alone)],
        ["the same with what Spark adds", short(own)],
        ["so if all events had one value, one task could judge this many times as many", f"{own / A_SECOND:.1f}"],
        ["events that admission, one task for all, takes in a second, the step alone", short(1 / steps.admit)],
        ["the same as a task of Spark", short(1 / known.admit)],
        ["so admission could take this many times as many", f"{1 / known.admit / A_SECOND:.0f}"],
        ["events a second that a billion an hour are", short(A_SECOND)],
        ["rows that one process reads from Kafka, anonymizes and writes in a processor second", short(known.kafka)],
    ])  # fmt: skip
    report.write()


if __name__ == "__main__":
    main()
