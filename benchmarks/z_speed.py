"""Speed and memory of z-anonymity beside its peers, in one run: python -m benchmarks.z_speed"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.z_memory import measure_apart
from benchmarks.z_peers import bare_rate, naive_rate, zanon_rate
from benchmarks.z_stream import Stream, make_stream
from shoal import Pipeline, ZAnonymity

_POLICY = """
[stream]
person = "user"
time = "ts"
[source]
kind = "parquet"
path = "in.parquet"
[anonymize]
method = "z-anonymity"
attribute = "site"
z = {z}
window = {window}
[sink]
kind = "parquet"
path = "out.parquet"
"""


def method_for(stream: Stream, z: int) -> ZAnonymity:
    """z-anonymity as the benchmark asks for it."""
    return ZAnonymity(z=z, window=stream.window, person="user", time="ts", attribute="site", key=bytes(16))


def shoal_rate(stream: Stream, z: int, *, tries: int = 5) -> tuple[float, int, int]:
    """Events a second from Arrow to Arrow, rows released, pairs live at the end."""
    best, released, live = 0.0, 0, 0
    for _ in range(tries):
        method, batches = method_for(stream, z), stream.batches()
        begun = time.perf_counter()
        released = sum(method.push_batch(batch).rows.num_rows for batch in batches)
        best = max(best, stream.batch.num_rows / (time.perf_counter() - begun))
        live = method.live_pairs
    return best, released, live


def push_microseconds(stream: Stream, z: int, *, records: int = 50_000) -> float:
    """Microseconds for one record pushed alone, the best of five."""
    events = stream.batch.slice(0, records).to_pylist()
    best = float("inf")
    for _ in range(5):
        method = method_for(stream, z)
        begun = time.perf_counter()
        for event in events:
            method.push(event)
        best = min(best, (time.perf_counter() - begun) / records * 1e6)
    return best


def file_rate(stream: Stream, z: int, *, tries: int = 3) -> float:
    """Events a second from Parquet to Parquet through the whole pipeline."""
    best = 0.0
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(pa.Table.from_batches([stream.batch]), Path(folder, "in.parquet"))
        policy = Path(folder, "policy.toml")
        policy.write_text(_POLICY.format(z=z, window=stream.window))
        for _ in range(tries):
            summary = Pipeline.from_policy(policy).run()
            best = max(best, summary.rows_per_second)
    return best


def compare(stream: Stream, z: int) -> dict[str, float]:
    """All rates for one z."""
    arrow, released, live = shoal_rate(stream, z)
    naive, naive_released = naive_rate(stream, z)
    if released != naive_released:
        raise SystemExit(f"shoal released {released} rows, Algorithm 1 {naive_released}: the comparison means nothing")
    rates = {
        "shoal": arrow,
        "zanon": zanon_rate(stream, z),
        "naive": naive,
        "bare": bare_rate(stream, live),
        "parquet": file_rate(stream, z),
    }
    print(f"\nz = {z}: {released / stream.batch.num_rows:.1%} of events released, {live:,} live pairs")
    print(f"  shoal, Arrow to Arrow         {arrow:>12,.0f} events/s")
    beside = (
        ("package zanon", "zanon", arrow / rates["zanon"], "times as fast as it (goal 60)"),
        ("Algorithm 1, plain Python", "naive", arrow / naive, "times as fast as it (goal 8)"),
        ("bare loop: hash, look up", "bare", rates["bare"] / arrow, "times as long as it (goal 3)"),
        ("shoal, Parquet to Parquet", "parquet", rates["parquet"] / arrow, "of Arrow to Arrow (goal 0.33)"),
    )
    for name, key, ratio, meaning in beside:
        print(f"  {name:<29} {rates[key]:>12,.0f}   {ratio:6.2f} {meaning}")
    return rates


def main() -> None:
    """Measure and print; keep the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=float, default=1e7, help="most live pairs to grow to (1e8 needs about 10 GB)")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/z_speed.json"))
    given = parser.parse_args()
    stream = make_stream()
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    found: dict[str, object] = {f"z{z}": compare(stream, z) for z in (10, 150)}
    found["push_us"] = push = push_microseconds(stream, 10)
    print(f"\none record pushed alone: {push:.1f} µs (goal 15)")
    print("\n  live pairs    events/s   table B/pair   resident B/pair   peak while growing B/pair")
    sizes = [int(10**power) for power in range(4, 9) if 10**power <= given.largest]
    found["growth"] = growth = [measure_apart(size) for size in sizes]
    for row in growth:
        print(
            f"{row['live_pairs']:>12,.0f} {row['events_per_second']:>11,.0f} {row['table_bytes_per_pair']:>14.0f} "
            f"{row['resident_bytes_per_pair']:>17.0f} {row['peak_bytes_per_pair']:>27.0f}"
        )
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
