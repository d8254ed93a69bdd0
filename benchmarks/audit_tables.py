"""Speed and memory of the audit of plain tables, compared with polars and pycanon: python -m benchmarks.audit_tables

python -m benchmarks.audit_tables --against CHECKOUT [--quick]     by turns with the library of another checkout
"""

from __future__ import annotations

import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv
from pycanon import anonymity

from benchmarks.measure import Cost, Report, apart, markdown, measured, parse, parser, peak_megabytes
from benchmarks.sources import ROOT
from shoal import audit_table

SIZES = (10, 5, 8, 12, 4, 6, 3, 7)
"""Different values of the eight quasi-identifiers."""
QUASI = [f"q{number}" for number in range(len(SIZES))]
WORKS: dict[str, dict[str, Any]] = {
    "k, l, entropy l, t, α, β": {"sensitive": "ill", "k": 2, "l": 2, "t": 0.5},
    "the same of people, a tenth of the values missing": {
        "sensitive": "noted", "person": "who", "k": 2, "l": 2, "t": 0.5
    },
    "k^m, any 2 values": {"k": 2, "m": 2},
}  # fmt: skip
ROUNDS = 3


def make_table(rows: int) -> pa.Table:
    """Eight quasi-identifiers and a sensitive column, all text; a number of the person, and missing values."""
    draw = np.random.default_rng(11)

    def texts(count: int) -> pa.Array:
        names = pa.array([f"value {number}" for number in range(count)])
        return pa.DictionaryArray.from_arrays(pa.array(draw.integers(0, count, rows).astype(np.int32)), names).cast(
            pa.string()
        )

    columns = {**{name: texts(count) for name, count in zip(QUASI, SIZES, strict=True)}, "ill": texts(20)}
    noted = pc.if_else(pa.array(draw.random(rows) < 0.9), columns["ill"], None)
    return pa.table({**columns, "noted": noted, "who": draw.integers(0, max(rows // 5, 1), rows)})


def write_files(rows: int, folder: str) -> dict[str, Any]:
    """Write the table as Parquet and CSV; in a process of its own, whose memory does not count."""
    table = make_table(rows)
    pq.write_table(table, f"{folder}/table.parquet")
    csv.write_csv(table, f"{folder}/table.csv")
    return {}


def audited(path: str, max_memory: str, work: str = next(iter(WORKS))) -> dict[str, Any]:
    """Audit a file."""
    before = peak_megabytes()
    cost, report = measured(lambda: audit_table(path, quasi=QUASI, max_memory=max_memory, **WORKS[work]))
    return {**_plain(cost), "megabytes": peak_megabytes() - before, "k": report.metrics["smallest_k"]}


def counted(path: str) -> dict[str, Any]:
    """Count the smallest class with polars, which computes k and nothing else."""
    before = peak_megabytes()
    cost, found = measured(lambda: pl.read_parquet(path).group_by(QUASI).len()["len"].min())
    return {**_plain(cost), "megabytes": peak_megabytes() - before, "k": found}


def _plain(cost: Cost) -> dict[str, Any]:
    return {"processor": cost.processor, "wall": cost.wall, "threads": cost.threads}


def against(other: Path, paths: dict[str, str], given: Namespace) -> dict[str, Any]:
    """The least of some rounds, in each of which both checkouts do the same, one after the other."""
    works = [(kind, memory, work) for kind in paths for memory in ("8 GB", "1 GB") for work in WORKS]
    rows = []
    for kind, memory, work in works[: 1 if given.tiny else None]:
        if memory == "1 GB" and work != next(iter(WORKS)):
            continue
        asked: dict[str, Any] = {"path": paths[kind], "max_memory": memory, "work": work}
        found: dict[Path, list[Any]] = {other: [], ROOT: []}
        for _ in range(1 if given.tiny else ROUNDS):
            for tree, costs in found.items():
                costs.append(apart(audited, tree=tree, **asked))
        cells = [
            f"{min(cost[figure] for cost in costs):{shape}}"
            for figure, shape in (("processor", ".3g"), ("megabytes", ",.0f"))
            for costs in found.values()
        ]
        rows.append([f"{work}, {kind}, at most {memory}", *cells])
    columns = ["", "CPU-s there", "CPU-s here", "MB above the start there", "MB here"]
    return {"columns": columns, "rows": rows}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    asked = parser(__doc__)
    asked.add_argument("--rows", type=int, default=10_000_000)
    asked.add_argument("--peer-rows", type=int, default=5_000, help="pycanon is slow: it gets the first rows only")
    asked.add_argument(
        "--against", type=Path, metavar="CHECKOUT", help="compare with this checkout; nothing is written"
    )
    asked.add_argument("--quick", action="store_true", help="a million rows")
    given = parse(asked, arguments)
    rows, peer_rows = (2_000, 300) if given.tiny else (1_000_000 if given.quick else given.rows, given.peer_rows)
    if given.against:
        with tempfile.TemporaryDirectory() as folder:
            apart(write_files, here=given.tiny, rows=rows, folder=folder)
            paths = {kind: f"{folder}/table.{kind}" for kind in ("parquet", "csv")}
            print(f"{rows:,} rows\n{markdown(against(given.against.resolve(), paths, given))}")
        return
    report = Report(__file__, given)
    with tempfile.TemporaryDirectory() as folder:
        apart(write_files, here=given.tiny, rows=rows, folder=folder)
        paths = {kind: f"{folder}/table.{kind}" for kind in ("parquet", "csv")}
        ours = "shoal: k, l, entropy l, t, α, β"
        found = [
            (rows, f"{ours}, {kind}, at most {memory}", apart(audited, here=given.tiny, path=path, max_memory=memory))
            for memory in ("8 GB", "1 GB")
            for kind, path in paths.items()
        ]
        found.append((rows, "polars: k alone, parquet", apart(counted, here=given.tiny, path=paths["parquet"])))
    smallest = {one["k"] for _, _, one in found}
    assert len(smallest) == 1, "shoal and polars differ"
    part = make_table(peer_rows)
    found.append((peer_rows, ours, _plain(measured(lambda: audit_table(part, quasi=QUASI, sensitive="ill"))[0])))
    frame = part.to_pandas()
    for name, call in {
        "k": lambda: anonymity.k_anonymity(frame, QUASI),
        "l": lambda: anonymity.l_diversity(frame, QUASI, ["ill"]),
        "t": lambda: anonymity.t_closeness(frame, QUASI, ["ill"]),
    }.items():
        found.append((peer_rows, f"pycanon: {name}", _plain(measured(call)[0])))
    report.table(
        "costs",
        ["rows", "", "processor seconds", "wall clock seconds", "threads", "memory above the start, MB"],
        [
            [f"{count:,}", name, f"{one['processor']:.3g}", f"{one['wall']:.3g}", one["threads"], _memory(one)]
            for count, name, one in found
        ],
    )
    report.write()


def _memory(one: dict[str, Any]) -> str:
    return f"{one['megabytes']:,.0f}" if "megabytes" in one else "–"


if __name__ == "__main__":
    main()
