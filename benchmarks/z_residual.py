"""What the strict residual rule costs, and what it hides: rows published by either rule, and all small worlds.

python -m benchmarks.z_residual [--data FOLDER]

Generated visits of hosts, and where a folder is given its checkins.csv(.gz) with user, time, lat and lon, there or one
folder below.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
from tests.reference.onlooker import HIERARCHIES, conclusions

from benchmarks.measure import Cost, Report, measured, parse, parser, rate_columns
from benchmarks.z_combine import Stream
from shoal import Hierarchy
from shoal.methods.z.z_anonymity import ZAnonymity
from shoal.testing.visits import make_visits

Case = tuple[Stream, Hierarchy]


def cases(folder: Path | None, *, tiny: bool) -> list[Case]:
    """Streams with the hierarchy of their values."""
    hosts = Hierarchy.by_suffix()
    if tiny:
        return [(visits("visits", people=100, events=2_000, sites=100), hosts)]
    found = [(visits("the demo", people=3_000, events=400_000, sites=2_000), hosts)]
    found += [(visits("visits of 20,000 people", people=20_000, events=1_000_000, sites=10_000), hosts)]
    paths = [] if folder is None else sorted([*folder.glob("checkins.csv*"), *folder.glob("*/checkins.csv*")])[:1]
    for path in paths:
        table = arrow_csv.read_csv(path)
        places = pc.binary_join_element_wise(table["lat"].cast(pa.string()), table["lon"].cast(pa.string()), ",")
        events = pa.table({"ts": table["time"], "user": table["user"].cast(pa.string()), "item": places}).sort_by("ts")
        for window in ("24h", "168h"):
            found.append(
                (Stream(f"check-ins ({path.parent.name}), {window}", events, window, (5, 20)), Hierarchy.geo())
            )
    return found


def visits(name: str, *, people: int, events: int, sites: int) -> Stream:
    """A day of visits."""
    made = make_visits(people=people, sites=sites, events=events, seed=7)
    columns = {
        "ts": pa.array(made.times, pa.timestamp("ns")),
        "user": pa.array(made.people).take(pa.array(made.person)),
        "item": pa.array(made.sites).take(pa.array(made.site)),
    }
    return Stream(name, pa.table(columns), "1h", (5, 20, 50))


def run(case: Case, z: int, residual: Any) -> tuple[pa.Table, Cost]:
    """What is published, and what it took."""
    stream, hierarchy = case

    def push() -> pa.RecordBatch:
        method = ZAnonymity(
            person="user", time="ts", attribute="item", z=z, window=stream.window, max_gap="8760h", key=bytes(16),
            on_private="generalize", hierarchy=hierarchy, residual=residual,
        )  # fmt: skip
        return method.push_batch(stream.table).rows

    cost, rows = measured(push, tries=3)
    return rows, cost


def compared(case: Case) -> tuple[list[list[str]], list[list[str]]]:
    """Rows published, and speed: a line of each for every z."""
    stream, price, speed = case[0], [], []
    for z in stream.zs:
        (loose, loose_cost), (strict, strict_cost) = run(case, z, "loose"), run(case, z, "strict")
        fewer = 1 - strict.num_rows / max(loose.num_rows, 1)
        counts = [f"{stream.table.num_rows:,}", f"{loose.num_rows:,}", f"{strict.num_rows:,}", f"{fewer:.2%}"]
        price.append([stream.name, str(z), *counts])
        for name, cost in (("loose", loose_cost), ("strict", strict_cost)):
            speed.append([stream.name, str(z), name, *cost.rates(stream.table.num_rows)])
    return price, speed


def worlds(most: int) -> list[list[str]]:
    """One line for each small hierarchy and z."""
    lines = []
    for name, paths in HIERARCHIES.items():
        for z in (2, 3):
            found = {strict: conclusions(paths, z=z, strict=strict, most=most) for strict in (False, True)}
            cells = [f"{sum(map(bool, (one.excluded for one in rows)))} of {len(rows):,}" for rows in found.values()]
            lines.append([name, str(z), *cells])
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and write."""
    given = parse(parser(__doc__, data="a folder with checkins.csv"), arguments)
    report = Report(__file__, given)
    price, speed = [], []
    for case in cases(given.data, tiny=given.tiny):
        more_price, more_speed = compared(case)
        price += more_price
        speed += more_speed
    report.table("price", ["data", "z", "rows", "published: loose", "published: strict", "fewer"], price)
    report.table("speed", ["data", "z", "rule", *rate_columns("rows")], speed)
    columns = ["hierarchy", "z", "rows of which the onlooker excludes a value of the crowd: loose", "strict"]
    report.table("worlds", columns, worlds(4 if given.tiny else 6))
    report.data = "synthetic visits" + (", checkins (gowalla_nyc)" if given.data else "")
    report.write()


if __name__ == "__main__":
    main()
