"""Loss where values are missing at random, by the share that is: python -m benchmarks.tuples_missing [--data FOLDER]

Four numbers about a check-in (latitude, longitude, hour, weekday); every value is missing with the same chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from benchmarks.measure import Report, parse, parser
from shoal import Fads, KVarp, LeastLoss, Numeric, Schema
from shoal.reproduce.data.campaign import make_campaign

CHECKINS = "checkins.csv.gz"
SHARES = (0.0, 0.25, 0.5, 0.6, 0.75, 0.9)
METHODS: dict[str, tuple[Any, dict[str, int]]] = {
    "least-loss": (LeastLoss, {}),
    "least-loss, min_carriers = 2": (LeastLoss, {"min_carriers": 2}),
    "fads": (Fads, {}),
    "fads, min_carriers = 2": (Fads, {"min_carriers": 2}),
    "k-varp": (KVarp, {}),
}


def checkins(path: Path | None, rows: int) -> dict[str, Any]:
    """People and where and when they were."""
    if path is None:
        found = make_campaign(max(rows // 20, 50), rows, seed=1).rename_columns({"maid": "user"})
    else:
        found = csv.read_csv(path).slice(60_000, rows)
    kind = pa.timestamp("s", tz=found["time"].type.tz)
    seconds = found["time"].cast(kind, safe=False).cast(pa.int64()).to_numpy()
    numbers = {"hour": seconds % 86_400 / 3600, "weekday": (seconds // 86_400 % 7).astype(np.float64)}
    return {"user": found["user"], "lat": found["lat"].to_numpy(), "lon": found["lon"].to_numpy(), **numbers}


def losses(columns: dict[str, Any], share: float, k: int, seed: int = 1) -> list[str]:
    """The average loss of every method, over what rows carry."""
    random = np.random.default_rng(seed)
    numbers = {name: column for name, column in columns.items() if name != "user"}
    quasi = [Numeric(name, low=float(column.min()), high=float(column.max())) for name, column in numbers.items()]
    holed = {name: pa.array(column, mask=random.random(len(column)) < share) for name, column in numbers.items()}
    table = pa.table({"user": columns["user"], **holed})
    cells = []
    for make, settings in METHODS.values():
        method = make(Schema(person="user", quasi=quasi), k=k, deadline=2000, reuse=200, key=bytes(16), **settings)
        method.push_batch(table)
        method.flush()
        cells.append(f"{method.metrics['loss']:.3f}")
    return cells


def main(arguments: Sequence[str] | None = None) -> None:
    """Print and write the table."""
    given = parse(parser(__doc__, data=f"Gowalla's {CHECKINS}"), arguments)
    report = Report(__file__, given)
    path = next(iter(given.data.rglob(CHECKINS)), None) if given.data else None
    rows = 600 if given.tiny else 10_000
    report.data = "synthetic" if path is None else "Gowalla check-ins in New York"
    columns = checkins(path, rows)
    shares = SHARES[::3] if given.tiny else SHARES
    table = [
        [str(k), f"{share:.0%}", *losses(columns, share, k)]
        for k in ((5,) if given.tiny else (5, 50))
        for share in shares
    ]
    report.table("loss", ["k", "missing", *METHODS], table)
    report.write()


if __name__ == "__main__":
    main()
