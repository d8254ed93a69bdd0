"""Processor seconds from an empty cache of compiled kernels to the first published row: python -m benchmarks.first_run

Each row of the table is a fresh process with a cache of its own. Start and import of Python are included.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.flexible_speed import roles_of, with_devices
from benchmarks.measure import Report, apart, parse, parser, short
from shoal import FlexibleK, Hierarchy, Schema, ZAnonymity
from shoal.methods.registry import METHODS
from shoal.reproduce.data.adult_imitation import imitate_adult
from shoal.reproduce.data.campaign import make_campaign

PAIRS = (
    ("z-anonymity", None), ("fads", "least-loss"), ("least-loss", "castle"), ("fads", "k-varp"),
    ("k^m", "k^m-apriori"), ("flexible-k", None),
)  # fmt: skip
"""A method that is used first, and a second one of its family used after it in the same process."""


def publish(method: str) -> int:
    """How many rows the first batch publishes."""
    family, made = METHODS[method].family, METHODS[method].load()
    if family == "sets":
        draw = np.random.default_rng(1)
        items = [str(item) for item in range(8)]
        baskets = [sorted(set(draw.choice(items, 4).tolist())) for _ in range(100)]
        return len(made(k=5, m=2, generalize=Hierarchy.balanced(items, fanout=2)).anonymize(baskets).records)
    return int(_pushed(family, made).rows.num_rows)


def _pushed(family: str, made: Any) -> Any:
    if family == "z":
        table = pa.table({"user": list("abc") * 40, "ts": [float(row) for row in range(120)], "site": list("xxy") * 40})
        return ZAnonymity(z=2, window="1h", person="user", time="ts", attribute="site").push_batch(table)
    if family == "tuples":
        stream = imitate_adult(400, seed=1)
        return made(stream.schema, k=5, deadline=100, reuse=20).push_batch(stream.table)
    table, ontology = with_devices(make_campaign(100, 200, seed=0), 0)
    schema = Schema(person="maid", time="time", quasi=roles_of(table, 4), carry=["mbps_down"])
    return FlexibleK(schema, ontology, k=2, window=50).push_batch(table)


def measure(first: str, second: str | None) -> dict[str, Any]:
    """Processor seconds of this process until each of two methods has published its first row."""
    assert publish(first)
    until_first = time.process_time()
    if second is not None:
        assert publish(second)
    return {"first": until_first, "second": time.process_time() - until_first}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure every pair, print and write it."""
    given = parse(parser(__doc__), arguments)
    report, rows = Report(__file__, given), []
    for first, second in PAIRS[:1] if given.tiny else PAIRS:
        with tempfile.TemporaryDirectory() as folder:
            if not given.tiny:
                os.environ["NUMBA_CACHE_DIR"] = folder
            found = apart(measure, here=given.tiny, first=first, second=second)
        after = [f"`{second}`", short(found["second"])] if second else ["", ""]
        rows.append([f"`{first}`", short(found["first"]), *after])
    columns = ["first method", "processor seconds to its first row", "second method", "processor seconds more"]
    report.table("first_run", columns, rows)
    report.write()


if __name__ == "__main__":
    main()
