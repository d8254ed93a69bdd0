"""Deterministic k^m-anonymity (σ = 1) of published transactions, compared with what peers need.

python -m benchmarks.sets_speed [--data FOLDER] [--names BMS-WebView-2 retail] [-m 2 3 4] [-k 5]

The folder, or one below it, has the files as downloaded, plain or .gz: BMS-WebView-2.dat with
BMS-WebView-2_hierarchy.csv, retail.dat and kosarak-5-25.dat (or another part of kosarak.dat) of the FIMI repository.
Data without a tree get a balanced one. Without a folder: synthetic baskets.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import TIME_COLUMNS, Meter, Report, apart, parse, parser, peak_megabytes, short
from benchmarks.real_data import folder_with
from shoal import Hierarchy
from shoal.methods.sets.km_anonymity import KmAnonymity
from shoal.methods.sets.records import read_records

NAMES = ("BMS-WebView-2", "retail", "kosarak-5-25")


def synthetic_baskets(path: Path, records: int, items: int) -> None:
    """Baskets whose items follow Zipf's law, one a line."""
    draw = np.random.default_rng(1)
    sizes = np.minimum(draw.geometric(0.2, records), 40)
    chosen = np.minimum((draw.pareto(0.9, int(sizes.sum())) * 3).astype(np.int64), items - 1)
    baskets = np.split(chosen, np.cumsum(sizes)[:-1])
    path.write_text("".join(" ".join(map(str, np.unique(basket))) + "\n" for basket in baskets))


@contextmanager
def data_files(folder: Path | None, names: Sequence[str], *, tiny: bool) -> Iterator[list[Path]]:
    """The files of a folder, or a synthetic one."""
    if folder is not None:
        found = [folder_with(folder, f"{name}.dat") for name in names]
        if None in found:
            sys.exit(f"{', '.join(names)}: not all are in the folder as .dat or .dat.gz")
        yield [
            next(place / f"{name}.dat{ending}" for ending in ("", ".gz") if (place / f"{name}.dat{ending}").exists())
            for place, name in zip(found, names, strict=True)
            if place
        ]
        return
    with tempfile.TemporaryDirectory() as made:
        path = Path(made) / "synthetic.dat"
        synthetic_baskets(path, *((300, 40) if tiny else (80_000, 3_000)))
        yield [path]


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


def measure(path: str, k: int, m: int) -> dict[str, Any]:
    """Read, anonymize, and say what it took; the tree was there before, and all is compiled."""
    tree = tree_for(Path(path))
    _compile()
    with Meter() as meter:
        result = KmAnonymity(k, m, 1.0, generalize=tree, trials=1).anonymize(Path(path))
    return {
        "records": len(result), **vars(meter.cost), "megabytes": peak_megabytes(),
        "ncp": result.error, "blocks": len(result.blocks), "items": sum(map(len, result.blocks.values())),
    }  # fmt: skip


def _compile() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "few.dat"
        path.write_text("1 2 3 4\n1 2 3 5\n2 3 4 5\n" * 4)
        KmAnonymity(5, 4, 1.0, generalize=Hierarchy.balanced("12345"), trials=1).anonymize(path)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all data asked for."""
    asked = parser(__doc__, data="the files as downloaded")
    asked.add_argument("--names", nargs="+", default=NAMES)
    asked.add_argument("-k", type=int, default=5)
    asked.add_argument("-m", type=int, nargs="+", default=[2, 3, 4])
    given = parse(asked, arguments)
    report = Report(__file__, given, data="as published" if given.data else "synthetic baskets (no folder was given)")
    rows = []
    with data_files(given.data, given.names, tiny=given.tiny) as paths:
        for path in paths:
            for m in [2] if given.tiny else given.m:
                found = apart(measure, here=given.tiny, path=str(path), k=given.k, m=m)
                times = [short(found["processor"]), short(found["wall"]), found["threads"]]
                sizes = [f"{found['megabytes']:,.0f}", f"{found['ncp']:.3f}", f"{found['blocks']:,}"]
                what = [path.name.partition(".")[0], f"{found['records']:,}", f"{found['items']:,}", m]
                rows.append([*what, *times, *sizes])
    columns = ["data", "people", "items", "m", *TIME_COLUMNS, "MB", "NCP", "blocks"]
    report.table("runs", columns, rows)
    report.write()


if __name__ == "__main__":
    main()
