"""How long the sanitization process takes, inside and outside, as records grow.

    python -m benchmarks.sanitize_speed [--records 100000 ...] [--method flexible-k] [--fill] [--folder DIR]

The method is what the external side waits for most, so it is named with the result.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.decoys import campaign
from shoal.pipeline.sanitize import Sanitizer

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


def measure(records: int, method: str, *, k: int, blend: bool, folder: Path) -> dict[str, float]:
    """Seconds of both sides, and sizes."""
    write_input(folder, records)
    (folder / "key.txt").write_text("a key of more than sixteen bytes")
    os.environ["SHOAL_KEY_FILE"] = str(folder / "key.txt")
    process = Sanitizer.from_policy(policy(folder, method, k=k, blend=blend))
    with process._open() as house, process._working(house) as (intake, publisher):  # noqa: SLF001 - each side by itself
        start = time.perf_counter()
        intake.read(lambda rows: None)
        middle, worked = time.perf_counter(), time.process_time()
        publisher.restore()
        for _ in publisher.publish_all(time.time_ns()):
            pass
        end, worked = time.perf_counter(), time.process_time() - worked
        state = publisher.state
    size = (folder / "internal.db").stat().st_size / 1e6
    return {
        "records": records, "inside_s": middle - start, "outside_s": end - middle, "outside_cpu": worked,
        "published": state.published,
        "pending": state.pending, "suppressed": state.suppressed, "internal_mb": size,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of the sanitization process.")
    parser.add_argument("--records", type=int, nargs="+", default=[50_000, 100_000, 200_000])
    parser.add_argument("--method", default="fads")
    parser.add_argument("--k", type=int, default=6)
    parser.add_argument("--fill", action="store_true")
    given = parser.parse_args()
    print("records    inside s  outside s  (processor s)  published  pending  suppressed  internal MB")
    for records in given.records:
        with tempfile.TemporaryDirectory() as folder:
            found = measure(records, given.method, k=given.k, blend=not given.fill, folder=Path(folder))
        print(
            f"{records:>9,}  {found['inside_s']:8.1f}  {found['outside_s']:9.1f}  {found['outside_cpu']:13.1f}  "
            f"{found['published']:9,}  "
            f"{found['pending']:7,}  {found['suppressed']:10,}  {found['internal_mb']:11,.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
