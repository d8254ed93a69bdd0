"""A z that follows the stream, without a peer: k = 5, real check-ins, and what it costs.

python -m benchmarks.z_targets [--data FOLDER]

Real check-ins are checkins.csv(.gz) with user, time, lat and lon, in the folder or one folder below; synthetic visits
otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

import shoal
from benchmarks.measure import Report, measured, parse, parser, rate_columns, short
from benchmarks.z_drifts import KINDS, make_drift
from benchmarks.z_following import ROTATION_NS, best_fixed, by_shoal, judge
from shoal.models.z.target.epoch_needs import missed_bins, needed
from shoal.models.z.windows import window_curves
from shoal.testing.visits import make_visits

SEED, K = 2, 5
COLUMNS = {"person": "user", "time": "ts", "attribute": "site"}


def drifting(kinds: Sequence[str], shares: Sequence[float], users: int, windows: int) -> list[list[str]]:
    """Windows that met the target and rows released, compared with the best fixed z."""
    rows = []
    for kind in kinds:
        stream = make_drift(kind, users=users, windows=windows, seed=SEED)
        columns = (stream.times, stream.persons, stream.values)
        curves = window_curves(*columns, window_ns=ROTATION_NS, rotation_ns=ROTATION_NS, k=K)
        for p in shares:
            fixed = best_fixed(curves, p)
            held, shown, share = judge(by_shoal(stream, K, p)[0], stream, K, p)
            best = (str(fixed[0]), f"{fixed[1]:.1%}") if fixed else ("not reachable", "–")
            rows.append([kind, str(p), *best, f"{held:.1%}", f"{shown:.1%}", f"{share:.1%}"])
    return rows


def checkins(folder: Path) -> pa.Table | None:
    """Check-ins by cells of about 2 km, in order of time; None where the folder has none."""
    paths = sorted([*folder.glob("checkins.csv*"), *folder.glob("*/checkins.csv*")])
    if not paths:
        return None
    table = arrow_csv.read_csv(paths[0])
    cells = [np.rint(table[name].to_numpy() * 50).astype(np.int64).astype(str) for name in ("lat", "lon")]
    columns = {"ts": table["time"], "user": table["user"].cast(pa.string()), "site": np.char.add(*cells)}
    return pa.table(columns).sort_by("ts")


def visits(people: int, events: int, *, sites: int | None = None, seed: int = 1) -> pa.Table:
    """A synthetic day of web visits."""
    made = make_visits(people=people, sites=sites or max(people // 10, 20), events=events, seed=seed)
    return pa.table({
        "ts": pa.array(made.times, pa.timestamp("ns")),
        "user": pa.array(made.people).take(pa.array(made.person)),
        "site": pa.array(made.sites).take(pa.array(made.site)),
    })  # fmt: skip


def real(table: pa.Table, windows: Sequence[str], shares: Sequence[float]) -> list[list[str]]:
    """Rows released, and epochs that met the target of those that show anybody."""
    rows = []
    for window in windows:
        for p in shares:
            target = shoal.KTarget(k=2, p=p)
            method = shoal.ZAnonymity(target=target, window=window, max_gap="8760h", key=bytes(16), **COLUMNS)
            released = method.push_batch(table).rows.num_rows + method.flush().rows.num_rows
            shown = [one for one in method.outcomes if one.shown]
            met = sum(one.anonymous >= p * one.shown for one in shown)
            rows.append([window, str(p), f"{released / table.num_rows:.1%}", f"{met} of {len(shown)}"])
    return rows


def hindsight(days: Sequence[tuple[str, pa.Table, pa.Table | None]], k: int, p: float) -> list[list[str]]:
    """What the controller releases of what the best z of every window, known afterwards, would have released.

    A day may come with an earlier one that z is learnt from.
    """
    rows = []
    for name, table, earlier in days:
        target = shoal.KTarget(k=k, p=p, learn=earlier is not None)
        method = shoal.ZAnonymity(target=target, window="1h", key=bytes(16), **COLUMNS)
        if earlier is not None:
            method.learn(earlier)
        released = method.push_batch(table).rows.num_rows
        columns = (table["ts"].cast(pa.int64()).to_numpy(), *(codes(table[name]) for name in ("user", "site")))
        curves = window_curves(*columns, window_ns=ROTATION_NS, rotation_ns=ROTATION_NS, k=k)
        best = sum(one.rows_at(needed(missed_bins(one, target), k)) for one in curves)
        fixed = best_fixed(curves, p)
        epochs = len(method.outcomes)
        shown, met = (sum(ones) for ones in zip(*((one.shown > 0, one.is_met) for one in method.outcomes), strict=True))
        rows.append([
            name, f"{best / table.num_rows:.1%}", f"{fixed[1]:.1%}" if fixed else "–",
            f"{released / table.num_rows:.1%}", f"{released / best:.0%}", f"{shown} of {epochs}", f"{met} of {epochs}",
        ])  # fmt: skip
    return rows


def first_hour(table: pa.Table) -> int:
    """When the first hour of a stream begins."""
    return int(table["ts"][0].value) // ROTATION_NS * ROTATION_NS


def codes(column: pa.ChunkedArray) -> np.ndarray:
    """A number for every distinct text."""
    return column.combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)


def other_days() -> list[tuple[str, pa.Table, None]]:
    """Days of other kinds than those that the controller was designed with."""
    hours = np.arange(25)
    rush = 1 + 6 * np.exp(-((hours - 8) ** 2) / 2) + 6 * np.exp(-((hours - 18) ** 2) / 2)
    large, small = visits(3000, 400_000, sites=2000, seed=41), visits(1000, 100_000, sites=500, seed=42)
    return [
        ("a day without a rhythm (seed 41)", with_rhythm(large, np.ones(25)), None),
        ("a day with two rush hours (seed 41)", with_rhythm(large, rush), None),
        ("a day of 1,000 people (seed 42)", small, None),
    ]


def with_rhythm(table: pa.Table, density: np.ndarray) -> pa.Table:
    """The same visits in the same order, spread over the day by another density."""
    mass = np.concatenate(([0], np.cumsum((density[1:] + density[:-1]) / 2)))
    places = (np.arange(table.num_rows) + 0.5) / table.num_rows * mass[-1]
    times = first_hour(table) + (np.interp(places, mass, np.arange(len(mass))) * ROTATION_NS).astype(np.int64)
    return table.set_column(0, "ts", pa.array(times, pa.timestamp("ns")))


def several_days(count: int, people: int, events: int) -> pa.Table:
    """Days on which the same people visit the same sites."""
    table = visits(people, events)
    day = np.random.default_rng(1).integers(count, size=events) * 24 * ROTATION_NS
    times = pa.array(table["ts"].cast(pa.int64()).to_numpy() + day, pa.timestamp("ns"))
    return table.set_column(0, "ts", times).sort_by("ts")


def cost(people: int, events: int) -> list[list[str]]:
    """Rates of a batch and of single pushes, with a fixed z and with a target."""
    table = visits(people, events)
    few = table.slice(0, min(20_000, events)).to_pylist()
    rows = []
    for name, setting in {"z = 20": {"z": 20}, "k = 2, p = 0.95": {"target": shoal.KTarget(k=2, p=0.95)}}.items():

        def make(setting: dict = setting) -> shoal.ZAnonymity:
            return shoal.ZAnonymity(window="1h", key=bytes(16), **COLUMNS, **setting)

        make().push_batch(table.slice(0, 1000))  # compiles on a new machine
        batch, _ = measured(lambda make=make: make().push_batch(table), tries=3)
        method = make()
        single, _ = measured(lambda method=method: [method.push(row) for row in few])
        rows.append([name, *batch.rates(events), short(single.processor / len(few) * 1e6)])
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all three."""
    given = parse(parser(__doc__, data="checkins.csv with user, time, lat and lon"), arguments)
    report = Report(__file__, given, data="synthetic streams")
    shares = (0.8,) if given.tiny else (0.8, 0.95, 0.99)
    rows = drifting(("stationary",), shares, 60, 4) if given.tiny else drifting(KINDS, shares, 600, 200)
    best = ["best fixed z", "it releases"]
    report.table("strict", ["stream", "p", *best, "windows held", "held where anybody is shown", "released"], rows)
    found, windows = (checkins(given.data) if given.data else None), ("24h", "168h")
    if found is None:
        found, windows = visits(*((200, 4000) if given.tiny else (3000, 200_000))), ("1h", "2h")
        report.data += "; synthetic visits in place of check-ins"
    else:
        report.data += f"; {found.num_rows:,} check-ins of {pc.count_distinct(found['user']).as_py():,} people"
    columns = ["epoch", "p", "rows released", "epochs that met the target, of those that show anybody"]
    report.table("checkins", columns, real(found, windows, (0.8, 0.9, 0.95)))
    days = [("a day", visits(200, 4000), None)]
    if not given.tiny:
        names = {7: "the demo", 1: "another day (seed 1)", 2: "another day (seed 2)", 3: "another day (seed 3)"}
        days = [(name, visits(3000, 400_000, sites=2000, seed=seed), None) for seed, name in names.items()]
        days.append(("four days", several_days(4, 3000, 800_000), None))
        demo, other = days[0][1], visits(3000, 400_000, sites=2000, seed=11)
        days.append(("the demo, learnt from a day of other people", demo, other))
        nine = demo.slice(np.searchsorted(demo["ts"].cast(pa.int64()).to_numpy(), first_hour(demo) + 9 * ROTATION_NS))
        days += [("the demo from 9:00 on", nine, None), ("the same, learnt from a day of other people", nine, other)]
    best = ["best z of every window", "best fixed z"]
    columns = ["stream", *best, "controller", "of the best", "windows that show anybody", "windows that met the target"]
    report.table("hindsight", columns, hindsight(days, 2, 0.95))
    report.table("other", columns, hindsight(days if given.tiny else other_days(), 2, 0.95))
    made = cost(100, 2000) if given.tiny else cost(100_000, 2_000_000)
    report.table("cost", ["setting", *rate_columns("events"), "µs of the processor for a single push"], made)
    report.write()


if __name__ == "__main__":
    main()
