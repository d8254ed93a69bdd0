"""FAST and LeastLoss in lanes, compared with FADS and with one thread: python -m benchmarks.tuples_fast [--data FOLDER]

Runs are interleaved, so that what else happens on the machine happens to all of them. The ratio of wall clocks is the
median over rounds of runs; it means something on a quiet machine only. The longest path is processor time of the
calling thread, and of other threads while it waits for them: about the wall clock of a machine with nothing else to do.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unittest import mock

from benchmarks.measure import Meter, Report, parse, parser, short
from benchmarks.real_data import folder_with
from shoal import Fads, Fast, LeastLoss
from shoal.methods.tuples.decider import lane_threads
from shoal.reproduce.data.adult import fast_stream, read_adult
from shoal.reproduce.data.adult_imitation import imitate_adult
from shoal.reproduce.data.streams import Stream

PAPER = {"k": 5, "deadline": 30, "reuse": 20}
"""Table 3 of the FAST paper."""
COLUMNS = [
    "setting", "method", "processor ms", "longest path, processor ms", "wall clock ms", "times the first, by path",
    "times the first, by wall clock", "average loss", "loss against the first", "suppressed",
]  # fmt: skip


@dataclass
class Runs:
    """What the runs of one method took."""

    name: str
    make: Callable[..., Any]
    settings: dict[str, int]
    walls: list[float] = field(default_factory=list)
    processor: float = float("inf")
    path: float = float("inf")
    metrics: dict[str, Any] = field(default_factory=dict)

    def run(self, stream: Stream) -> None:
        """One more run, from Arrow to Arrow, the end of the stream included."""
        method = self.make(stream.schema, key=bytes(16), **self.settings)
        with longest_path() as path, Meter() as meter:
            method.push_batch(stream.table)
            method.flush()
            seconds = path.seconds
        self.walls.append(meter.cost.wall)
        self.processor, self.path = min(self.processor, meter.cost.processor), min(self.path, seconds)
        self.metrics = method.metrics


class Path:
    """Processor seconds on the longest path: of the calling thread, and of others while it waits for them."""

    def __init__(self) -> None:
        self._begun, self._waited, self._wave, self._others = time.thread_time(), 0.0, 0.0, [0.0]

    @property
    def seconds(self) -> float:
        """The length of the path so far."""
        return time.thread_time() - self._begun + self._waited

    def submit(self, submit: Callable[..., Any], pool: Any, job: Callable[..., Any], *given: Any) -> Any:
        """In place of an executor's submit: take the time of the job."""
        if len(self._others) == 1:
            self._wave = time.thread_time()

        def timed() -> Any:
            begun = time.thread_time()
            try:
                return job(*given)
            finally:
                self._others.append(time.thread_time() - begun)

        return submit(pool, timed)

    def wait(self, wait: Callable[..., None], futures: Sequence[Any]) -> None:
        """In place of waiting for jobs: add what the longest takes after the calling thread is done."""
        own = time.thread_time() - self._wave
        wait(futures)
        if futures:
            self._waited += max(0.0, max(self._others) - own)
            self._others = [0.0]


@contextmanager
def longest_path() -> Iterator[Path]:
    """Follow the longest path through lanes and tasks."""
    path, submit, wait = Path(), ThreadPoolExecutor.submit, lane_threads.wait_for
    with (
        mock.patch.object(ThreadPoolExecutor, "submit", lambda pool, *given: path.submit(submit, pool, *given)),
        mock.patch.object(lane_threads, "wait_for", partial(path.wait, wait)),
    ):
        yield path


def compared(stream: Stream, setting: str, runs: Sequence[Runs], *, tries: int) -> list[list[str]]:
    """Run all, in turn; a row for each."""
    for _ in range(tries):
        for one in runs:
            one.run(stream)
    first, rows = runs[0], []
    for one in runs:
        ratio = statistics.median(a / b for a, b in zip(first.walls, one.walls, strict=True))
        loss = one.metrics["loss"] / first.metrics["loss"] - 1
        times = [short(1000 * seconds) for seconds in (one.processor, one.path, min(one.walls))]
        ratios = [f"{first.path / one.path:.2f}", f"{ratio:.2f}"]
        quality = [f"{one.metrics['loss']:.4f}", f"{loss:+.1%}", f"{one.metrics['suppressed']:,}"]
        rows.append([setting, one.name, *times, *ratios, *quality])
    return rows


def in_lanes(make: Callable[..., Any], name: str, settings: dict[str, int], threads: Sequence[int]) -> list[Runs]:
    """The runs of one method with several numbers of threads."""
    return [Runs(f"`{name}`, threads = {count}", make, {**settings, "threads": count}) for count in threads]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure everything, print and write it."""
    asked = parser(__doc__, data="UCI's adult.data")
    asked.add_argument("--rows", type=int, default=30_000)
    asked.add_argument("--tries", type=int, default=25)
    given = parse(asked, arguments)
    folder = folder_with(given.data, "adult.data")
    rows, tries = (700, 1) if given.tiny else (given.rows, given.tries)
    all_rows = read_adult(folder) if folder else imitate_adult(rows, seed=1)
    report = Report(__file__, given, data=all_rows.origin)
    whole = all_rows.head(rows)
    paper = fast_stream(all_rows.head(rows) if given.tiny else all_rows, seed=1)
    deadline, reuse = (100, 20) if given.tiny else (2000, 200)
    for make in (Fads, Fast, LeastLoss):  # compile first
        Runs("", make, {"k": 5, "deadline": 100}).run(whole.head(500))
    fast, least = [], []
    for k in (3,) if given.tiny else (5, 50):
        settings = {"k": k, "deadline": deadline, "reuse": reuse}
        setting = ", ".join(f"{name} {value}" for name, value in settings.items())
        runs = [Runs("`fads`", Fads, settings), *in_lanes(Fast, "fast", settings, (1, 2, 4))]
        fast += compared(whole, setting, runs, tries=tries)
        runs = in_lanes(LeastLoss, "least-loss", settings, (1, 2, 4))
        least += compared(whole, setting, runs, tries=max(1, tries // 3))
    setting = ", ".join(f"{name} {value}" for name, value in PAPER.items())
    runs = [Runs("`fads`", Fads, PAPER), *in_lanes(Fast, "fast", PAPER, (1, 2, 5))]
    report.table("fast", COLUMNS, fast)
    report.table("paper", COLUMNS, compared(paper, f"the paper's Table 3: {setting}", runs, tries=tries))
    report.table("least_loss", COLUMNS, least)
    report.write()


if __name__ == "__main__":
    main()
