"""Deterministic k^m-anonymity (σ = 1) of published transactions, beside what peers need.

python -m benchmarks.sets_speed --data FOLDER [--names BMS-WebView-2 retail] [-m 2 3 4] [-k 5]

The folder has the files as downloaded, plain or .gz: BMS-WebView-2.dat with BMS-WebView-2_hierarchy.csv, retail.dat and
kosarak.dat (or parts of it, kosarak-*.dat) of the FIMI repository. Data without a tree get a balanced one.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.sets_city import peak_megabytes
from shoal import Hierarchy
from shoal.anonymizers.km_anonymity import KmAnonymity
from shoal.anonymizers.km_records import read_records

NAMES = ("BMS-WebView-2", "retail", "kosarak")
PEERS = {
    ("BMS-WebView-2", 5, 2): "peers: over 900 s (Amnesia's core); 1,001 s and 1,900 MB (a public Apriori program)",
}
ASKED = {("BMS-WebView-2", 5, 2): "asked: 30 s, 1,000 MB, NCP 0.058"}


def files(folder: Path, name: str) -> list[Path]:
    """The data of a name: one file, or the parts of it that are there."""
    found = sorted(path for ending in ("dat", "dat.gz") for path in folder.glob(f"{name}*.{ending}"))
    if not found:
        sys.exit(f"{name}.dat: is not in the folder, plain or as .gz")
    return found


def tree_for(path: Path) -> Hierarchy:
    """The published tree of the data, or a balanced one over the items."""
    published = path.parent / f"{path.name.partition('.')[0]}_hierarchy.csv"
    if published.exists():
        return Hierarchy.from_csv(published)
    packed = published.with_suffix(".csv.gz")
    if not packed.exists():
        return Hierarchy.balanced(read_records(path).labels)
    with tempfile.TemporaryDirectory() as folder:
        unpacked = Path(folder) / published.name
        unpacked.write_bytes(gzip.decompress(packed.read_bytes()))
        return Hierarchy.from_csv(unpacked)


def measure(path: Path, k: int, m: int) -> dict[str, Any]:
    """Read, anonymize, and say what it took; the tree was there before, and all is compiled."""
    tree = tree_for(path)
    _compile()
    begun, worked = time.perf_counter(), time.process_time()
    result = KmAnonymity(k, m, 1.0, generalize=tree, trials=1).anonymize(path)
    return {
        "records": len(result), "seconds": time.perf_counter() - begun, "worked": time.process_time() - worked,
        "megabytes": peak_megabytes(),
        "ncp": result.error, "blocks": len(result.blocks), "items": sum(map(len, result.blocks.values())),
    }  # fmt: skip


def measure_apart(path: Path, k: int, m: int) -> dict[str, Any]:
    """Measure in a fresh process, so that its peak of memory is its own."""
    command = [sys.executable, "-m", "benchmarks.sets_speed", "--child", str(path), "-k", str(k), "-m", str(m)]
    found: dict[str, Any] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return found


def _compile() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "few.dat"
        path.write_text("1 2 3 4\n1 2 3 5\n2 3 4 5\n" * 4)
        KmAnonymity(5, 4, 1.0, generalize=Hierarchy.balanced("12345"), trials=1).anonymize(path)


def show(name: str, k: int, m: int, found: dict[str, Any]) -> None:
    """Print one run."""
    print(
        f"{name:16s} k={k} m={m}: {found['seconds']:8.1f} s (processors {found['worked']:.1f} s), "
        f"{found['megabytes']:,.0f} MB, NCP {found['ncp']:.4f}, {found['blocks']:,} blocks of "
        f"{found['items']:,} items, {found['records']:,} records",
        flush=True,
    )
    for beside in (PEERS, ASKED):
        if (name, k, m) in beside:
            print(f"{'':16s} {beside[name, k, m]}")


def main() -> None:
    """Measure all data asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--names", nargs="+", default=NAMES)
    parser.add_argument("-k", type=int, default=5)
    parser.add_argument("-m", type=int, nargs="+", default=[2, 3, 4])
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(measure(given.child, given.k, given.m[0])))
        return
    if given.data is None:
        parser.error("--data: give the folder of the downloaded files")
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; sizes 1 to m counted")
    for name in given.names:
        for path in files(given.data, name):
            for m in given.m:
                show(path.name.partition(".")[0], given.k, m, measure_apart(path, given.k, m))


if __name__ == "__main__":
    main()
