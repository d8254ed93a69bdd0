"""How the tuple methods grow: with the window, with k, with the attributes, and with the length of the stream.

python -m benchmarks.tuples_growth [deadline|k|attributes|length] [--tuples N]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measure import Cost, Meter, Report, apart, parse, parser, peak_megabytes, rate_columns, short
from shoal import Fads, Fast, Hierarchy, KVarp, LeastLoss
from shoal.reproduce.data.adult_imitation import imitate_adult
from shoal.reproduce.data.streams import remove_values
from shoal.schema import Categorical, Numeric, Schema

FEW = "LeastLoss, 200 candidates"
METHODS: dict[str, Callable[..., Any]] = {
    "Fads": Fads,
    "Fast": Fast,
    "KVarp": KVarp,
    "LeastLoss": LeastLoss,
    FEW: partial(LeastLoss, candidates=200),
}
WINDOWS = (500, 1000, 2000, 4000, 8000, 16_000, 32_000)
CROWDS = (5, 20, 50, 100, 200)
WIDTHS = (5, 10, 20, 50, 100)


def rate(schema: Schema, table: pa.Table, make: Callable[..., Any], **settings: Any) -> tuple[Cost, int, float]:
    """What it takes once the window is full, for how many tuples, and the average loss."""
    method = make(schema, key=bytes(16), missing="covered", **settings)
    warm = min(settings["deadline"], table.num_rows // 2)
    method.push_batch(table.slice(0, warm))
    with Meter() as meter:
        method.push_batch(table.slice(warm))
    return meter.cost, table.num_rows - warm, method.metrics["loss"]


def growth(name: str, *, tiny: bool) -> list[list[str]]:
    """One line for each method and step."""
    rows = []
    for method, make in METHODS.items():
        for step, schema, table, settings in steps_of(name, tiny=tiny):
            cost, count, loss = rate(schema, table, make, **settings)
            rows.append([method, f"{step:,}", *cost.rates(count), f"{loss:.3f}"])
    return rows


def steps_of(name: str, *, tiny: bool) -> Iterator[tuple[int, Schema, pa.Table, dict[str, int]]]:
    """Deadlines from 500 to 32,000 arrivals, crowds from 5 to 200, or 5 to 100 quasi-identifiers."""
    if name == "deadline":
        stream = remove_values(imitate_adult(400 if tiny else 80_000, seed=1), at_most=1, seed=1)
        for window in (100,) if tiny else WINDOWS:
            yield window, stream.schema, stream.table, {"k": 5 if tiny else 50, "deadline": window, "reuse": 200}
    elif name == "k":
        stream = imitate_adult(400 if tiny else 40_000, seed=1)
        for k in (5,) if tiny else CROWDS:
            yield k, stream.schema, stream.table, {"k": k, "deadline": 100 if tiny else 4000, "reuse": 200}
    else:
        for width in (5,) if tiny else WIDTHS:
            schema, table = wide_stream(400 if tiny else 20_000, width)
            yield width, schema, table, {"k": 5 if tiny else 50, "deadline": 100 if tiny else 2000, "reuse": 200}


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


def laps(tuples: int, rows: int = 200_000) -> Iterator[pa.Table]:
    """A long stream of ever new people, made as it goes."""
    table = imitate_adult(rows, seed=1).table
    for start in range(0, tuples, rows):
        people = pa.array(np.arange(start, start + rows))
        yield table.set_column(table.schema.get_field_index("person"), "person", people)


def length(name: str, tuples: int, rows: int) -> dict[str, Any]:
    """A long stream: speed, the method's own tables, and what the process needs at its peak."""
    schema = imitate_adult(10, seed=1).schema
    setting = {"k": 50, "deadline": 2000, "reuse": 200} if rows > 2000 else {"k": 5, "deadline": 100, "reuse": 20}
    method = METHODS[name](schema, key=bytes(16), **setting)
    with Meter() as meter:
        for table in laps(tuples, rows):
            method.push_batch(table)
    return {**vars(meter.cost), "tables": method.state_bytes / 2**20, "peak": peak_megabytes()}


def length_row(name: str, tuples: int, *, tiny: bool) -> list[str]:
    """The line of one method, measured in a fresh process."""
    found = apart(length, here=tiny, name=name, tuples=tuples, rows=400 if tiny else 200_000)
    speeds = [short(tuples / found["processor"]), short(tuples / found["wall"]), str(found["threads"])]
    return [name, f"{tuples:,}", *speeds, f"{found['tables']:.1f}", f"{found['peak']:,.0f}"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what was asked for."""
    asked = parser(__doc__)
    asked.add_argument("what", nargs="*", default=["deadline", "k", "attributes", "length"])
    asked.add_argument("--tuples", type=int, default=10_000_000)
    given = parse(asked, arguments)
    report = Report(__file__, given, data="an imitation of Adult, and wide synthetic tuples")
    schema, table = wide_stream(400, 5)
    for make in METHODS.values():  # compile first
        rate(schema, table, make, k=5, deadline=100, reuse=50)
    for what in given.what:
        if what == "length":
            tuples = 800 if given.tiny else given.tuples
            columns = ["method", "tuples", *rate_columns("tuples"), "MB of tables", "MB peak"]
            report.table(what, columns, [length_row(name, tuples, tiny=given.tiny) for name in ("Fads", FEW)])
        else:
            columns = ["method", what, *rate_columns("tuples"), "average loss"]
            report.table(what, columns, growth(what, tiny=given.tiny))
    report.write()


if __name__ == "__main__":
    main()
