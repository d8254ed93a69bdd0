"""Speed and memory of z-anonymity as the number of live (person, attribute) pairs grows.

python -m benchmarks.z_memory [--pairs 10000 ... 100000000]    # 10⁸ pairs need about 10 GB and ten minutes
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measure import Meter, Report, apart, parse, parser, peak_megabytes, resident_bytes, short
from benchmarks.z_stream import names
from shoal import ZAnonymity

_BATCH = 65_536


def _batch(rng: np.random.Generator, first: int, people: int, attributes: int, rows: int = _BATCH) -> pa.RecordBatch:
    sites = np.minimum(rng.zipf(1.3, rows), attributes)
    columns = [
        pa.array(np.arange(first, first + rows)),
        names("user-", rng.integers(0, people, rows), ""),
        names("site-", sites, ".example"),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["ts", "user", "site"])


def measure(pairs: int, rows: int = 1_000_000) -> dict[str, Any]:
    """Fill a window with about `pairs` pairs, then measure speed over some rows with the window full."""
    people = max(1_000, pairs * 20)  # so that nearly every event is a new pair
    attributes = 10_000
    method = ZAnonymity(z=10, window=pairs, person="user", time="ts", attribute="site", key=bytes(16))
    rng = np.random.default_rng(3)
    method.push_batch(_batch(rng, 0, people, attributes, 1_000))
    base, at = resident_bytes(), 1_000
    while at < 1.2 * pairs:
        method.push_batch(_batch(rng, at, people, attributes))
        at += _BATCH
    peak, grown = peak_megabytes() * 2**20, method.live_pairs
    batches = [_batch(rng, at + start, people, attributes) for start in range(0, max(rows, pairs // 20), _BATCH)]
    with Meter() as meter:
        for batch in batches:
            method.push_batch(batch)
    done = sum(batch.num_rows for batch in batches)
    del batches, batch
    return {
        "live_pairs": method.live_pairs,
        "per_processor_second": done / meter.cost.processor,
        "per_wall_second": done / meter.cost.wall,
        "threads": meter.cost.threads,
        "table_bytes_per_pair": method.state_bytes / method.live_pairs,
        "resident_bytes_per_pair": (resident_bytes() - base) / method.live_pairs,
        "peak_bytes_per_pair": (peak - base) / grown,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure every size in a fresh process."""
    asked = parser(__doc__)
    asked.add_argument("--pairs", type=int, nargs="+", default=[10**power for power in range(4, 8)])
    given = parse(asked, arguments)
    report = Report(__file__, given)
    sizes = {"rows": 1000} if given.tiny else {}
    found = [apart(measure, here=given.tiny, pairs=pairs, **sizes) for pairs in ([1000] if given.tiny else given.pairs)]
    rows = [["events per processor second", *(short(one["per_processor_second"]) for one in found)]]
    rows += [["events per second of wall clock", *(short(one["per_wall_second"]) for one in found)]]
    rows += [["threads", *(one["threads"] for one in found)]]
    rows += [["tables, bytes a pair", *(f"{one['table_bytes_per_pair']:.0f}" for one in found)]]
    # In small windows the process's fixed base (Arrow, compiled code) outweighs the pairs.
    peaks = [f"{one['peak_bytes_per_pair']:.0f}" if one["live_pairs"] > 5e6 else "–" for one in found]
    rows += [["whole process at its peak while growing, bytes a pair", *peaks]]
    report.table("growth", ["live (person, value) pairs", *(f"{one['live_pairs']:,}" for one in found)], rows)
    report.figures = {"runs": found}
    report.write()


if __name__ == "__main__":
    main()
