"""Speed of the auditor of flexible releases, and how it grows: python -m benchmarks.audit_flexible"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from benchmarks.measure import TIME_COLUMNS, Report, measured, parse, parser
from shoal import audit

K, K_S = 6, 3
BRANDS, MODELS, SYSTEMS = 100, 50, 4
DISTRICTS, CELLS = 20, 20
HOURS = 24 * 365
ROWS_OF_BLOCK, LABELS_OF_BLOCK = 50, 5
PLACES = {"*": {f"d{d}": [f"d{d}c{c}" for c in range(CELLS)] for d in range(DISTRICTS)}}
NETWORKS = {"*": {"mobile": ["3g", "4g", "5g"], "fixed": ["cable", "fibre"]}}
SPAN = pa.struct([("lo", pa.int64()), ("hi", pa.int64())])


def policy(folder: Path) -> dict[str, Any]:
    """What the release promises; writes the list of devices."""
    brand, model = np.divmod(np.arange(BRANDS * MODELS), MODELS)
    devices = {"model": [f"b{b}m{m}" for b, m in zip(brand, model, strict=True)], "brand": [f"b{b}" for b in brand],
               "os": [f"os {b % SYSTEMS}" for b in brand]}  # fmt: skip
    csv.write_csv(pa.table(devices), folder / "devices.csv")
    ontology = {"kind": "table", "path": str(folder / "devices.csv"), "value": "model", "is_a": ["brand"],
                "properties": ["os"], "tag": "sparse", "root": "any"}  # fmt: skip
    return {
        "stream": {"person": "maid", "carry": ["mbps"], "carry_identifying": True},
        "anonymize": {
            "method": "flexible-k", "k": K, "k_s": K_S,
            "quasi": {
                "device": {"kind": "ontology", "ontology": ontology},
                "place": {"kind": "categorical", "hierarchy": {"kind": "nested", "tree": PLACES}},
                "network": {"kind": "categorical", "hierarchy": {"kind": "nested", "tree": NETWORKS}},
                "hour": {"kind": "numeric", "low": 0, "high": HOURS, "grid": 1},
            },
        },
    }  # fmt: skip


def make_release(rows: int, people: int = 200_000, seed: int = 7) -> tuple[pa.Table, pa.Table, pa.Table]:
    """A correct release: blocks of 50 rows, each with 5 labels for the device, at all levels of every column."""
    draw = np.random.default_rng(seed)
    blocks = -(-rows // ROWS_OF_BLOCK)
    block = np.arange(rows) // ROWS_OF_BLOCK
    group = np.arange(rows) // (ROWS_OF_BLOCK // LABELS_OF_BLOCK)
    maid = (np.arange(rows) * 7919 + draw.integers(people)) % people
    truth: dict[str, Any] = {"maid": np.char.add("m", maid.astype(str))}
    release: dict[str, Any] = {}
    truth["device"], release["device"] = _devices(draw, group)
    truth["place"], release["place"] = _places(draw, block, blocks)
    network = draw.integers(0, 2, blocks)[block]
    names = np.array([["3g", "4g", "5g"], ["cable", "fibre", "fibre"]])
    truth["network"] = names[network, draw.integers(0, 3, rows)]
    release["network"] = np.array(["mobile", "fixed"])[network]
    width = 2 ** draw.integers(0, 6, blocks)
    begin = (draw.integers(0, HOURS - 64, blocks) // width * width)[block]
    truth["hour"] = begin + draw.integers(0, width[block])
    ends = [pa.array(begin), pa.array(begin + width[block])]
    release["hour"] = pa.StructArray.from_arrays(ends, fields=list(SPAN))
    truth["mbps"] = release["mbps"] = draw.integers(0, 1000, rows)
    trace = {
        "row": np.arange(rows), "verdict": ["released"] * rows, "reason": pa.nulls(rows, pa.string()), "group": group,
        "delay": np.zeros(rows, np.int64), "k": np.full(rows, K), "k_s": np.full(rows, K_S),
    }  # fmt: skip
    claims = {"sparse": ["device"], "k": K, "k_s": K_S, "p_sparse": None}
    kept = pa.table(trace).replace_schema_metadata({b"shoal": json.dumps(claims).encode()})
    return pa.table(release), pa.table(truth), kept


def _devices(draw: np.random.Generator, group: Any) -> tuple[Any, Any]:
    count = int(group[-1]) + 1
    brand, level = draw.integers(0, BRANDS, count), draw.integers(0, 3, count)
    popular = draw.integers(0, MODELS, count)
    own = np.where(level[group] == 0, popular[group], draw.integers(0, MODELS, len(group)))
    other = (brand[group] + SYSTEMS * draw.integers(0, BRANDS // SYSTEMS, len(group))) % BRANDS
    shown_brand = np.where(level[group] == 2, other, brand[group])
    texts = np.array([[f"b{b}m{m}" for m in range(MODELS)] for b in range(BRANDS)])
    labels = np.array([[f"b{b}m{popular}" for popular in range(MODELS)] for b in range(BRANDS)])[brand, popular]
    labels = np.where(level == 1, np.char.add("b", brand.astype(str)), labels)
    labels = np.where(level == 2, np.char.add("os ", (brand % SYSTEMS).astype(str)), labels)
    return texts[shown_brand, own], labels[group]


def _places(draw: np.random.Generator, block: Any, blocks: int) -> tuple[Any, Any]:
    district, cell = draw.integers(0, DISTRICTS, blocks), draw.integers(0, CELLS, blocks)
    is_cell = draw.random(blocks) < 0.5
    texts = np.array([[f"d{d}c{c}" for c in range(CELLS)] for d in range(DISTRICTS)])
    true = texts[district[block], np.where(is_cell[block], cell[block], draw.integers(0, CELLS, len(block)))]
    return true, np.where(is_cell, texts[district, cell], np.char.add("d", district.astype(str)))[block]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    options = parser(__doc__)
    options.add_argument("--rows", type=int, nargs="+", default=[125_000, 250_000, 500_000, 1_000_000])
    given = parse(options, arguments)
    report = Report(__file__, given)
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        promised = policy(Path(folder))
        for rows in [1000] if given.tiny else given.rows:
            evidence = make_release(rows)
            cost, found = measured(lambda: audit(*evidence, promised))  # noqa: B023 - called at once
            assert found.ok, found.text()
            groups = [f"{found.metrics[name]['count']:,}" for name in ("normal_groups", "groups")]
            lines.append([f"{rows:,}", *groups, *cost.seconds()])
    report.table("growth", ["rows", "blocks", "groups", *TIME_COLUMNS], lines)
    report.write()


if __name__ == "__main__":
    main()
