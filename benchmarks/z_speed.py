"""Speed of z-anonymity compared with its peers, in one run: python -m benchmarks.z_speed"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import Cost, Meter, Report, least, measured, parse, parser, rate_columns, short
from benchmarks.z_peers import BareLoop, naive_cost, zanon_cost
from benchmarks.z_stream import Stream, make_stream
from shoal import Pipeline, ZAnonymity
from shoal.methods.z import helper_thread, judge, pieces, publisher
from shoal.methods.z.helper_thread import SMALLEST_PIECE
from shoal.methods.z.task_graph import Task

TRIES = 5
_POLICY = """
[stream]
person = "user"
time = "ts"
[source]
kind = "parquet"
path = "in.parquet"
[anonymize]
method = "z-anonymity"
attribute = "site"
z = {z}
window = {window}
[sink]
kind = "parquet"
path = "out.parquet"
"""


def method_for(stream: Stream, z: int) -> ZAnonymity:
    """z-anonymity as the benchmark asks for it."""
    return ZAnonymity(z=z, window=stream.window, person="user", time="ts", attribute="site", key=bytes(16))


def push_all(stream: Stream, z: int, rows: int) -> tuple[Cost, int, int]:
    """What it takes from Arrow to Arrow, rows released, pairs live at the end."""
    method, batches = method_for(stream, z), stream.batches(rows)
    with Meter() as meter:
        released = sum(method.push_batch(batch).rows.num_rows for batch in batches)
    return meter.cost, released, method.live_pairs


class _NoHelpers(ThreadPoolExecutor):
    """A pool that never begins: the calling thread does all the work."""

    def submit(self, *_: Any, **__: Any) -> Future[Any]:
        return Future()


class _TwoThreads:
    """Does all work in one thread, and computes how long two would take; by processor time, whatever the load."""

    def __init__(self) -> None:
        self.saved = 0.0

    def each(self, function: Callable[[Any], Any], items: Sequence[Any], *, rows: int) -> list[Any]:
        """As helper_thread.each."""
        made: list[Any] = []
        tasks = [Task((number,), lambda item=item: made.append(function(item))) for number, item in enumerate(items)]  # type: ignore[misc]
        if rows > SMALLEST_PIECE:
            self.run_all(tasks)
        else:
            for task in tasks:
                task.run()
        return made

    def run_all(self, tasks: list[Task]) -> None:
        """As task_graph.run_all: a thread that is free takes the most urgent of the tasks that are ready then."""
        free, work = [0.0, 0.0], 0.0
        since = dict.fromkeys(tasks, 0.0)
        ready = [task for task in tasks if not task.waits]
        while ready:
            now = max(min(free), min(since[task] for task in ready))
            task = min(task for task in ready if since[task] <= now)
            ready.remove(task)
            start = time.thread_time()
            followers = task.run()
            cost = time.thread_time() - start
            work += cost
            free[free.index(min(free))] = now + cost
            for one in followers:
                one.waits -= 1
                since[one] = max(since[one], now + cost)
            ready += [one for one in followers if not one.waits]
        self.saved += work - max(free)


def work_of_two(stream: Stream, rows: int) -> tuple[float, float]:
    """Processor seconds of all work, and on the longest path of two threads; counted on one, whatever the load."""
    two = _TwoThreads()
    with (
        mock.patch.object(pieces, "run_all", two.run_all),
        mock.patch.object(judge, "each", two.each),
        mock.patch.object(publisher, "each", two.each),
    ):
        cost, *_ = push_all(stream, 10, rows)
    return cost.processor, cost.processor - two.saved


def wall_of_threads(stream: Stream, rows: int) -> tuple[float, float]:
    """Wall clock seconds on one thread and on all."""
    with mock.patch.object(helper_thread, "_pool", return_value=_NoHelpers(1)):
        alone, *_ = push_all(stream, 10, rows)
    return alone.wall, push_all(stream, 10, rows)[0].wall


def shared_row(stream: Stream, rows: int) -> list[str]:
    """What two threads gain: by the longest path of the work, and by the wall clock."""
    works = [work_of_two(stream, rows) for _ in range(TRIES)]
    walls = [wall_of_threads(stream, rows) for _ in range(TRIES)]
    (work, path), (alone, shared) = min(works), (min(column) for column in zip(*walls, strict=True))
    figures = f"{1000 * work:.0f}", f"{1000 * path:.0f}", f"{work / max(path, 1e-9):.2f}", f"{alone / shared:.2f}"
    return [f"{rows:,}", *figures]


def push_cost(stream: Stream, z: int) -> tuple[Cost, int]:
    """What records pushed one by one take, and how many they are."""
    events = stream.batch.slice(0, 50_000).to_pylist()

    def push() -> None:
        method = method_for(stream, z)
        for event in events:
            method.push(event)

    return measured(push, tries=TRIES)[0], len(events)


@contextmanager
def pipeline(stream: Stream, z: int) -> Iterator[Callable[[], Any]]:
    """The whole pipeline from Parquet to Parquet, ready to run."""
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(pa.Table.from_batches([stream.batch]), Path(folder, "in.parquet"))
        policy = Path(folder, "policy.toml")
        policy.write_text(_POLICY.format(z=z, window=stream.window))
        yield lambda: Pipeline.from_policy(policy).run()


def ours_and_bare(stream: Stream, z: int) -> tuple[dict[str, Cost], int, int]:
    """The least costs of shoal on several threads and on one and of the bare loop; rows released, live pairs."""
    _, released, live = push_all(stream, z, 65_536)
    bare, best = BareLoop(stream, live), {}
    for _ in range(TRIES):
        costs = {
            "shoal, batches of 65,536": push_all(stream, z, 65_536)[0],
            "shoal, batches of 262,144": push_all(stream, z, 262_144)[0],
            "shoal, batches of 16,384": push_all(stream, z, SMALLEST_PIECE)[0],
            "a bare compiled loop: hash both texts, look the pair up": measured(bare.run)[0],
        }
        best = {name: least(cost, best.get(name, cost)) for name, cost in costs.items()}
    return best, released, live


def compare(stream: Stream, z: int, *, peers: Any) -> tuple[list[list[str]], dict[str, Any]]:
    """Rows of the table for one z, and raw figures."""
    events = stream.batch.num_rows
    best, released, live = ours_and_bare(stream, z)
    rates = {name: (cost, events) for name, cost in best.items()}
    rates["package zanon 0.3.4 (with a fixed z)"] = zanon_cost(stream, z, **peers)
    naive, naive_released = naive_cost(stream, z)
    if released != naive_released:
        raise SystemExit(f"shoal released {released} rows, Algorithm 1 {naive_released}: the comparison means nothing")
    rates["Algorithm 1 in plain Python (OrderedDict)"] = naive, events
    with pipeline(stream, z) as run:
        rates["shoal, Parquet to Parquet"] = measured(run, tries=3)[0], events
    ours = next(iter(best.values())).processor / events
    rows = [
        [str(z), name, *cost.rates(count), short(float(f"{cost.processor / count / ours:.2g}"))]
        for name, (cost, count) in rates.items()
    ]
    figures = {name: vars(cost) | {"events": count} for name, (cost, count) in rates.items()}
    return rows, {"released": released, "live_pairs": live, "costs": figures}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; keep the figures as JSON."""
    given = parse(parser(__doc__), arguments)
    report = Report(__file__, given)
    stream = make_stream(5_000, 200, 50) if given.tiny else make_stream()
    peers = {"warm": 500, "timed": 500} if given.tiny else {}
    rows = []
    for z in (10, 150):
        more, report.figures[f"z{z}"] = compare(stream, z, peers=peers)
        rows += more
    columns = ["z", "", *rate_columns("events"), "processor time, shoal = 1"]
    report.table("rates", columns, rows)
    columns = ["rows of a batch", "all work, processor ms", "longest path of two threads, processor ms"]
    columns += ["work / path", "wall clock, one thread / all (on a quiet machine)"]
    report.table("threads", columns, [shared_row(stream, rows) for rows in (65_536, 262_144)])
    cost, count = push_cost(stream, 10)
    report.figures["push"] = vars(cost) | {"events": count}
    report.text("push", f"One record pushed alone takes {cost.processor / count * 1e6:.1f} µs of the processor.")
    report.write()


if __name__ == "__main__":
    main()
