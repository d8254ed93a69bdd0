"""Speed of the tuple methods beside NumPy, in one run: python -m benchmarks.tuples_speed [--data FOLDER]"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.numpy_fads import CategoricalColumn, NumericColumn, Table
from benchmarks.numpy_fads import fads as numpy_fads
from benchmarks.numpy_k_varp import k_varp as numpy_k_varp
from shoal import Castle, Fads, Fast, IotAnonymization, KVarp, LeastLoss
from shoal.studies.adult import read_adult
from shoal.studies.adult_imitation import imitate_adult
from shoal.studies.missing import remove_values
from shoal.studies.streams import Stream

SETTING = {"k": 50, "deadline": 2000, "reuse": 200}
FEW = 200


def rate(stream: Stream, make: Callable[..., Any], *, tries: int = 5, **settings: Any) -> tuple[float, float]:
    """Tuples a second from Arrow to Arrow, the end of the stream included, the best of some tries; average loss."""
    best, loss = 0.0, 0.0
    for _ in range(tries):
        method = make(stream.schema, key=bytes(16), **SETTING, **settings)
        begun = time.perf_counter()
        method.push_batch(stream.table)
        method.flush()
        best = max(best, len(stream) / (time.perf_counter() - begun))
        loss = method.metrics["loss"]
    return best, loss


def numpy_rate(stream: Stream, run: Callable[..., Any], *, tries: int = 3) -> float:
    """Tuples a second of a NumPy twin; its arrays are made beforehand and cost it nothing."""
    table, best = as_arrays(stream), 0.0
    for _ in range(tries):
        begun = time.perf_counter()
        run(table, **SETTING)
        best = max(best, len(stream) / (time.perf_counter() - begun))
    return best


def as_arrays(stream: Stream) -> Table:
    """The stream as the NumPy twins take it."""
    columns = [NumericColumn(name, low, high) for name, (low, high) in stream.domains.items()]
    columns += [CategoricalColumn(name, tree) for name, tree in stream.trees.items()]
    values = [stream.table.column(column.name).to_pylist() for column in columns]
    return Table(columns, values, range(len(stream)))


def show(name: str, speed: float, loss: float, ratio: str = "") -> None:
    """Print one line."""
    print(f"{name:44s} {speed:12,.0f} tuples/s   loss {loss:.4f}   {ratio}")


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with UCI's adult.data; without it, an imitation")
    parser.add_argument("--rows", type=int, default=30_000)
    given = parser.parse_args()
    whole = (read_adult(given.data) if given.data else imitate_adult(given.rows, seed=1)).head(given.rows)
    gaps = remove_values(whole, at_most=3, seed=1)
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; {whole.origin}")
    print(f"{len(whole):,} tuples, {len(whole.quasi)} quasi-identifiers, {SETTING}")
    for make in (Fads, KVarp, IotAnonymization, Castle, LeastLoss, Fast):  # compile first
        rate(whole.head(3000), make, tries=1)

    plain = numpy_rate(whole, numpy_fads)
    show("FADS in NumPy", plain, float("nan"))
    fads, fads_loss = rate(whole, Fads)
    show("Fads", fads, fads_loss, f"{fads / plain:.1f} times NumPy (asked: 6)")
    least, loss = rate(whole, LeastLoss, tries=3, candidates=0)
    show("LeastLoss, all candidates", least, loss, f"{least / plain:.1f} times FADS in NumPy (asked: 1)")
    few, loss = rate(whole, LeastLoss, candidates=FEW)
    show(f"LeastLoss, {FEW} candidates", few, loss, f"{few / plain:.1f} times FADS in NumPy (asked: 4)")
    castle, loss = rate(whole, Castle, tries=3)
    show("Castle", castle, loss)

    print("at most 3 missing values")
    for nulls in ("paper", "strict"):
        peer = numpy_rate(gaps, lambda table, nulls=nulls, **rest: numpy_k_varp(table, nulls=nulls, **rest), tries=1)
        show(f"K-VARP in NumPy, {nulls}", peer, float("nan"))
        speed, loss = rate(gaps, KVarp, nulls=nulls)
        show(f"KVarp, {nulls}", speed, loss, f"{speed / peer:.1f} times NumPy (asked: 15)")
    speed, loss = rate(gaps, IotAnonymization)
    show("IotAnonymization, strict", speed, loss)
    speed, loss = rate(gaps, LeastLoss, tries=3)
    show("LeastLoss, strict", speed, loss)

    print("lanes")
    for k, deadline in ((5, 2000), (5, 8000), (50, 2000), (50, 8000)):
        SETTING["k"], SETTING["deadline"] = k, deadline
        one, one_loss = rate(whole, Fads)
        show(f"Fads, k={k}, deadline {deadline}", one, one_loss)
        for threads in (1, 2):
            speed, loss = rate(whole, Fast, threads=threads)
            more = f"{speed / one:.2f} times Fads (asked for 2: 1.6), loss {loss / one_loss - 1:+.1%} (allowed: +5%)"
            show(f"Fast, k={k}, deadline {deadline}, {threads} threads", speed, loss, more)


if __name__ == "__main__":
    main()
