"""How the tuple methods grow: with the window, with k, with the attributes, and with the length of the stream.

python -m benchmarks.tuples_growth [window|k|attributes|length] [--tuples N]
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from shoal import Fads, Fast, Hierarchy, KVarp, LeastLoss
from shoal.schema import Categorical, Numeric, Schema
from shoal.studies.adult_imitation import imitate_adult
from shoal.studies.missing import remove_values

METHODS: dict[str, Callable[..., Any]] = {"Fads": Fads, "Fast": Fast, "KVarp": KVarp, "LeastLoss": LeastLoss}
WINDOWS = (500, 1000, 2000, 4000, 8000, 16_000, 32_000)
CROWDS = (5, 20, 50, 100, 200)
WIDTHS = (5, 10, 20, 50, 100)


def rate(schema: Schema, table: pa.Table, make: Callable[..., Any], **settings: Any) -> tuple[float, float]:
    """Tuples a second, once the window is full, and the average loss."""
    method = make(schema, key=bytes(16), **settings)
    warm = min(settings["deadline"], table.num_rows // 2)
    method.push_batch(table.slice(0, warm))
    begun = time.perf_counter()
    method.push_batch(table.slice(warm))
    return (table.num_rows - warm) / (time.perf_counter() - begun), method.metrics["loss"]


def print_table(name: str, steps: tuple[int, ...], measured: dict[str, list[tuple[float, float]]]) -> None:
    """One line a step: tuples a second and loss of each method."""
    print(f"{name:>10s}  " + "  ".join(f"{method:>20s}" for method in measured))
    for place, step in enumerate(steps):
        cells = [f"{rows[place][0]:11,.0f}/s {rows[place][1]:.3f}" for rows in measured.values()]
        print(f"{step:10,d}  " + "  ".join(f"{cell:>20s}" for cell in cells))


def grow_window() -> None:
    """Deadlines from 500 to 32,000 arrivals."""
    stream = remove_values(imitate_adult(80_000, seed=1), at_most=1, seed=1)
    measured = {
        name: [rate(stream.schema, stream.table, make, k=50, deadline=window, reuse=200) for window in WINDOWS]
        for name, make in METHODS.items()
    }
    print_table("deadline", WINDOWS, measured)


def grow_k() -> None:
    """Crowds from 5 to 200."""
    stream = imitate_adult(40_000, seed=1)
    measured = {
        name: [rate(stream.schema, stream.table, make, k=k, deadline=4000, reuse=200) for k in CROWDS]
        for name, make in METHODS.items()
    }
    print_table("k", CROWDS, measured)


def wide_stream(rows: int, attributes: int) -> tuple[Schema, pa.Table]:
    """Half numbers, half labels; a few hidden kinds of people, so that neighbours exist."""
    random = np.random.default_rng(attributes)
    kinds = random.integers(8, size=rows)
    tree = {"any": {f"group{group}": [f"{group}-{leaf}" for leaf in range(4)] for group in range(4)}}
    labels = np.array([f"{group}-{leaf}" for group in range(4) for leaf in range(4)])
    quasi: list[Any] = []
    columns: dict[str, Any] = {"id": np.arange(rows)}
    for number in range(attributes):
        name = f"a{number}"
        middle = random.random(8)[kinds]
        if number % 2:
            quasi.append(Categorical(name, Hierarchy.from_nested(tree)))
            columns[name] = labels[np.clip((middle * 16 + random.normal(0, 1.5, rows)).astype(int), 0, 15)]
        else:
            quasi.append(Numeric(name, low=0, high=1))
            columns[name] = np.clip(middle + random.normal(0, 0.1, rows), 0, 1)
    return Schema(person="id", quasi=quasi), pa.table(columns)


def grow_attributes() -> None:
    """From 5 to 100 quasi-identifiers."""
    streams = {width: wide_stream(20_000, width) for width in WIDTHS}
    measured = {
        name: [rate(*streams[width], make, k=50, deadline=2000, reuse=200) for width in WIDTHS]
        for name, make in METHODS.items()
    }
    print_table("attributes", WIDTHS, measured)


def laps(tuples: int, rows: int = 200_000) -> Iterator[pa.Table]:
    """A long stream of ever new people, made as it goes."""
    table = imitate_adult(rows, seed=1).table
    for start in range(0, tuples, rows):
        people = pa.array(np.arange(start, start + rows))
        yield table.set_column(table.schema.get_field_index("person"), "person", people)


def grow_length(tuples: int) -> None:
    """Memory over a long stream: what the process needs, and the method's own tables."""
    schema = imitate_adult(10, seed=1).schema
    for name in ("Fads", "LeastLoss"):
        options = {"candidates": 200} if name == "LeastLoss" else {}
        method = METHODS[name](schema, k=50, deadline=2000, reuse=200, key=bytes(16), **options)
        begun, done = time.perf_counter(), 0
        for table in laps(tuples):
            method.push_batch(table)
            done += table.num_rows
            if done % 2_000_000 == 0 or done == table.num_rows:
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                speed = done / (time.perf_counter() - begun)
                own = method.state_bytes / 2**20
                print(f"{name:10s} {done:12,d} tuples  {own:6.1f} MB of tables  {peak:6.0f} MB peak  {speed:10,.0f}/s")


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", default=["window", "k", "attributes", "length"])
    parser.add_argument("--tuples", type=int, default=10_000_000)
    given = parser.parse_args()
    schema, table = wide_stream(3000, 5)
    for make in METHODS.values():  # compile first
        rate(schema, table, make, k=5, deadline=500, reuse=50)
    for what in given.what:
        if what == "length":
            grow_length(given.tuples)
        else:
            {"window": grow_window, "k": grow_k, "attributes": grow_attributes}[what]()


if __name__ == "__main__":
    main()
