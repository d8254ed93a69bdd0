"""What each way to protect combinations releases of the same stream: `combine`, a tuned z, a z that follows the stream.

python -m benchmarks.z_ways [--data FOLDER]

The demo's day of visits, and real check-ins (checkins.csv(.gz) with user, time, lat and lon) where the folder has them.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

import shoal
from benchmarks.measure import Report, parse, parser
from benchmarks.z_following import best_fixed
from benchmarks.z_targets import COLUMNS, checkins, codes, visits
from shoal.models.z.target.epoch_needs import missed_bins, needed
from shoal.models.z.windows import window_curves
from shoal.schema import duration_ns

P = 0.95


def released(table: pa.Table, window: str, **settings: object) -> float:
    """The share of rows released."""
    method = shoal.ZAnonymity(window=window, max_gap="8760h", key=bytes(16), **COLUMNS, **settings)
    return (method.push_batch(table).rows.num_rows + method.flush().rows.num_rows) / table.num_rows


def ways(name: str, table: pa.Table, window: str) -> list[list[str]]:
    """One row for each way."""
    length = duration_ns(window, name="window")
    columns = (
        table["ts"].cast(pa.timestamp("ns")).cast(pa.int64()).to_numpy(),
        codes(table["user"]),
        codes(table["site"]),
    )
    rows = []
    for k in (5, 2):
        share = released(table, window, z=k, combine="k", k=k)
        rows.append([f'`combine = "k"`, k = {k}, z = {k}', "everybody, certain", "up to a window", f"{share:.1%}"])
    for k in (5, 2):
        target = shoal.KTarget(k=k, p=P)
        curves = window_curves(*columns, window_ns=length, rotation_ns=length, k=k)
        best = sum(one.rows_at(needed(missed_bins(one, target), k)) for one in curves) / table.num_rows
        fixed = best_fixed(curves, P)
        aim = f"{P:.0%} of people shown, k = {k}"
        rows.append([f"the best z of every window, known afterwards (k = {k})", aim, "none", f"{best:.1%}"])
        rows.append([f"the best fixed z, known afterwards (k = {k})", f"{aim}, in 99% of windows", "none",
                     f"{fixed[1]:.1%}" if fixed else "under 1%"])  # fmt: skip
        rows.append(
            [
                f"`target = {{k = {k}, p = {P}}}`",
                f"{aim}, aimed at",
                "none",
                f"{released(table, window, target=target):.1%}",
            ]
        )
    return [[name, *row] for row in rows]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure every way on every stream."""
    given = parse(parser(__doc__, data="checkins.csv with user, time, lat and lon"), arguments)
    report = Report(__file__, given, data="synthetic visits")
    day = visits(200, 4000) if given.tiny else visits(3000, 400_000, sites=2000, seed=7)
    rows = ways("the demo, 1 h", day, "1h")
    found = checkins(given.data) if given.data else None
    if found is not None:
        report.data += f"; {found.num_rows:,} check-ins"
        rows += ways("check-ins, 7 d", found, "168h")
    columns = ["stream, window", "way", "k-anonymous by all that is released in a window", "delay", "rows released"]
    report.table("ways", columns, rows)
    report.write()


if __name__ == "__main__":
    main()
