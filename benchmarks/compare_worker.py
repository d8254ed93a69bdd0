"""The work that `benchmarks.compare` measures, in a process that uses one of the two trees.

It reads the name of a case per line and answers each with a line of JSON: seconds and rows. Both trees run this file,
so it uses nothing of shoal but names that are public and stay.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

EVENTS, PEOPLE, BASKETS, FIRST = "events", "people", "baskets.dat", "first.csv"
"""Files in the folder of data, and `events.csv`. `benchmarks.compare` makes them."""
ITEMS = 300
BATCH = 65_536
_EVENT_POLICY = """
[stream]
person = "user"
time = "ts"
[source]
kind = "csv"
path = '{folder}/events.csv'
[source.types]
ts = "int64"
[anonymize]
method = "z-anonymity"
attribute = "site"
z = 10
window = "100000s"
[sink]
kind = "csv"
path = '{out}/events-out.csv'
"""
_FIRST_POLICY = """
[stream]
person = "person"
[source]
kind = "csv"
path = '{folder}/first.csv'
types = {{age = "int64"}}
[anonymize]
method = "least-loss"
k = 5
deadline = 50
[anonymize.quasi.age]
kind = "numeric"
low = 0
high = 100
[anonymize.quasi.sex]
kind = "categorical"
hierarchy = {{kind = "flat", values = ["Female", "Male"]}}
[sink]
kind = "csv"
path = '{out}/first-out.csv'
"""


@dataclass(frozen=True)
class Case:
    """One thing that a comparison measures."""

    prepare: Callable[[Path, Path], Callable[[], int]]
    """Loads data from a folder (second: for files it writes); what it returns is measured and counts published rows."""
    clock: str = "processor"
    """The clock that counts: seconds of all processors, which other processes hardly disturb, or those of the wall."""
    processors: int | None = 1
    """How many processors the process may use; all of them if None."""
    fresh: bool = False
    """Whether each run is a new process with an empty cache of compiled code, measured from its start."""


def z_anonymity(folder: Path, _: Path) -> Callable[[], int]:
    """Events, Arrow to Arrow."""
    import shoal

    batches = pq.read_table(folder / f"{EVENTS}.parquet").combine_chunks().to_batches(BATCH)

    def run() -> int:
        method = shoal.ZAnonymity(z=10, window=100_000, person="user", time="ts", attribute="site", key=bytes(16))
        return sum(int(method.push_batch(batch).rows.num_rows) for batch in batches)

    return run


def tuples(name: str) -> Callable[[Path, Path], Callable[[], int]]:
    """A method on tuples of people, Arrow to Arrow."""

    def prepare(folder: Path, _: Path) -> Callable[[], int]:
        import shoal

        table = pq.read_table(folder / f"{PEOPLE}.parquet")
        schema = shoal.Schema(person="person", quasi=[_role(table, name) for name in table.column_names[1:]])
        setting = {"k": 50, "deadline": 2000} if len(table) > 5000 else {"k": 5, "deadline": 100}

        def run() -> int:
            method = getattr(shoal, name)(schema, **setting, key=bytes(16))
            return int(method.push_batch(table).rows.num_rows + method.flush().rows.num_rows)

        return run

    return prepare


def _role(table: pa.Table, name: str) -> Any:
    import shoal

    column = table.column(name)
    if pa.types.is_string(column.type):
        return shoal.Categorical(name, shoal.Hierarchy.balanced(sorted(set(column.to_pylist()))))
    return shoal.Numeric(name, low=min(column.to_pylist()), high=max(column.to_pylist()))


def km_anonymity(folder: Path, _: Path) -> Callable[[], int]:
    """Baskets in a file, to records in memory."""
    import shoal

    tree = shoal.Hierarchy.balanced([str(item) for item in range(ITEMS)])

    def run() -> int:
        return len(shoal.KmAnonymity(5, 2, 1.0, generalize=tree, trials=1).anonymize(folder / BASKETS))

    return run


def policy(text: str) -> Callable[[Path, Path], Callable[[], int]]:
    """A run by a policy, file to file."""

    def prepare(folder: Path, out: Path) -> Callable[[], int]:
        import shoal

        path = out / "policy.toml"
        path.write_text(text.format(folder=folder, out=out))
        return lambda: int(shoal.Pipeline.from_policy(path).run().released)

    return prepare


CASES = {
    "z, one processor": Case(z_anonymity),
    "z, two processors": Case(z_anonymity, clock="wall", processors=2),
    "fads": Case(tuples("Fads")),
    "least-loss": Case(tuples("LeastLoss")),
    "k^m": Case(km_anonymity),
    "CSV to CSV": Case(policy(_EVENT_POLICY), processors=None),
    "first row, empty cache": Case(policy(_FIRST_POLICY), fresh=True),
}


def use_processors(count: int | None) -> None:
    """Keep all threads of this process on a number of processors."""
    allowed = sorted(_ALL)[:count]
    for thread in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(thread.name), allowed)


_ALL = os.sched_getaffinity(0)


def measured(case: Case, run: Callable[[], int]) -> dict[str, float]:
    """Seconds of the case's clock, and rows published."""
    gc.collect()
    clock = time.perf_counter if case.clock == "wall" else time.process_time
    begun = 0.0 if case.fresh else clock()
    rows = run()
    return {"seconds": clock() - begun, "rows": rows}


def main() -> None:
    """Answer until there is nothing more to read; the first run of a case in a process is not measured."""
    folder, out = (Path(word) for word in sys.argv[1:])
    ready: dict[str, Callable[[], int]] = {}
    for name in map(str.strip, sys.stdin):
        case = CASES[name]
        use_processors(case.processors)
        if name not in ready:
            ready[name] = case.prepare(folder, out)
            if not case.fresh:
                ready[name]()
        print(json.dumps(measured(case, ready[name])), flush=True)


if __name__ == "__main__":
    main()
