"""Speed and memory as the number of live (person, attribute) pairs grows. Run in a process of its own."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa

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


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def measure(pairs: int) -> dict[str, float]:
    """Fill a window with about so many pairs, then measure speed over a while with the window full."""
    people = max(1_000, pairs * 20)  # so that nearly every event is a new pair
    attributes = 10_000
    method = ZAnonymity(z=10, window=pairs, person="user", time="ts", attribute="site", key=bytes(16))
    rng = np.random.default_rng(3)
    method.push_batch(_batch(rng, 0, people, attributes, 1_000))
    base, at = _resident_bytes(), 1_000
    while at < 1.2 * pairs:
        method.push_batch(_batch(rng, at, people, attributes))
        at += _BATCH
    peak, grown = _peak_bytes(), method.live_pairs
    seconds, rows = 0.0, 0
    while rows < max(1_000_000, 0.05 * pairs):
        batch = _batch(rng, at, people, attributes)
        begun = time.perf_counter()
        method.push_batch(batch)
        seconds += time.perf_counter() - begun
        at, rows = at + _BATCH, rows + _BATCH
    return {
        "live_pairs": method.live_pairs,
        "events_per_second": rows / seconds,
        "table_bytes_per_pair": method.state_bytes / method.live_pairs,
        "resident_bytes_per_pair": (_resident_bytes() - base) / method.live_pairs,
        "peak_bytes_per_pair": (peak - base) / grown,
    }


def measure_apart(pairs: int) -> dict[str, float]:
    """Measure in a fresh process, so that one size does not stand on another's memory."""
    done = subprocess.run([sys.executable, "-m", "benchmarks.z_memory", str(pairs)], capture_output=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
