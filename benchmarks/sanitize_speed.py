"""How long the sanitization process takes, inside and outside, as records grow.

    python -m benchmarks.sanitize_speed [--records 250000 ...] [--method flexible-k fads] [--fill] [--folder DIR]

The method is what the external side waits for most, so it is named with the result.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.decoys import campaign
from benchmarks.measure import TIME_COLUMNS, Meter, Report, parse, parser
from shoal.sanitize.process import Sanitizer

_PEOPLE_A_RECORD = 1 / 20


def write_input(folder: Path, records: int) -> None:
    """A Parquet file of a campaign, with names."""
    table, who = campaign(max(50, int(records * _PEOPLE_A_RECORD)), records, seed=1)
    names = np.array([f"person{at:07d}" for at in range(int(who.max()) + 1)])
    own = {"account": pa.array(names[who]), "email": pa.array(np.char.add(names, "@example.org")[who])}
    pq.write_table(
        pa.table({**own, **dict(zip(table.schema.names, table.columns, strict=True))}), folder / "in.parquet"
    )


def policy(folder: Path, method: str, *, k: int, blend: bool) -> Path:
    """A policy over it; flexible-k takes the device as sparse, other methods publish it as it is."""
    kinds = {
        "place": [f"district {at}" for at in range(25)],
        "provider": [f"provider {at}" for at in range(4)],
        "network": ["3G", "4G", "5G"],
    }
    trees = "\n".join(
        f'[anonymize.quasi.{name}]\nkind = "categorical"\n'
        f'hierarchy = {{ kind = "flat", values = {json.dumps(values)}, root = "any {name}" }}'
        for name, values in kinds.items()
    )
    is_flexible = method == "flexible-k"
    table = 'kind = "table", path = "models.csv", value = "model", properties = ["brand"], tag = "sparse"'
    device = f'[anonymize.quasi.device]\nkind = "ontology"\nontology = {{ {table} }}'
    lines = ["model,brand", *(f"model {at},brand {at % 12}" for at in range(200))]
    (folder / "models.csv").write_text("\n".join(lines) + "\n")
    path = folder / "policy.toml"
    path.write_text(
        f"""
[stream]
time = "time"
carry = ["mbps", "signal"{"" if is_flexible else ', "device"'}]
carry_identifying = true
[source]
kind = "parquet"
path = "in.parquet"
[anonymize]
method = "{method}"
k = {k}
[anonymize.quasi.time]
kind = "numeric"
low = "2026-01-01"
high = "2027-01-01"
grid = "1h"
{trees}
{device if is_flexible else ""}
[sanitize]
pii = ["account", "email"]
maid = ["email"]
sealed = "pii.sealed"
blend = {str(blend).lower()}
[sanitize.internal]
path = "internal.db"
[sanitize.external]
path = "external.db"
"""
    )
    return path


def measure(records: int, method: str, *, k: int, blend: bool, folder: Path) -> dict[str, Any]:
    """Seconds of both sides, and sizes."""
    write_input(folder, records)
    (folder / "key.txt").write_text("a key of more than sixteen bytes")
    (folder / "key.txt").chmod(0o600)
    with mock.patch.dict(os.environ, {"SHOAL_KEY_FILE": str(folder / "key.txt")}):
        return _measure(records, method, k=k, blend=blend, folder=folder)


def _measure(records: int, method: str, *, k: int, blend: bool, folder: Path) -> dict[str, Any]:
    process = Sanitizer.from_policy(policy(folder, method, k=k, blend=blend))
    with process._open() as house, process._working(house) as (intake, publisher):  # noqa: SLF001 - each side by itself
        with Meter() as inside:
            intake.read(lambda rows: None)
        with Meter() as outside:
            publisher.restore()
            for _ in publisher.publish_all(time.time_ns()):
                pass
        state = publisher.state
    size = (folder / "internal.db").stat().st_size / 1e6
    return {
        "records": records, "inside": inside.cost, "outside": outside.cost,
        "published": state.published,
        "pending": state.pending, "suppressed": state.suppressed, "internal_mb": size,
    }  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure every number of records asked for."""
    options = parser(__doc__)
    options.add_argument("--records", type=int, nargs="+", default=[50_000, 250_000])
    options.add_argument("--method", nargs="+", default=["flexible-k", "fads"])
    options.add_argument("--k", type=int, default=6)
    options.add_argument("--fill", action="store_true")
    given = parse(options, arguments)
    report, rows = Report(__file__, given, data="a synthetic campaign of measurements"), []
    sizes, methods = ([400], given.method[:1]) if given.tiny else (given.records, given.method)
    for method in methods if not given.tiny else ():
        with tempfile.TemporaryDirectory() as folder:
            measure(1000, method, k=given.k, blend=True, folder=Path(folder))  # compiles on a new machine
    for method, records in product(methods, sizes):
        with tempfile.TemporaryDirectory() as folder:
            found = measure(records, method, k=given.k, blend=not given.fill, folder=Path(folder))
        times = [cell for side in ("inside", "outside") for cell in found[side].seconds()]
        counts = [f"{found[name]:,}" for name in ("published", "pending", "suppressed")]
        rows.append([f"{records:,}", method, *times, *counts, f"{found['internal_mb']:,.1f}"])
        print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    times = [f"{side}: {column}" for side in ("inside", "outside") for column in TIME_COLUMNS]
    report.table("runs", ["records", "method", *times, "published", "pending", "suppressed", "internal MB"], rows)
    report.write()


if __name__ == "__main__":
    main()
