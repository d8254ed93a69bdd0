"""The cap on one person's share of a class: it binds, it holds in every class, and the auditor convicts without it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal import Numeric, Schema
from shoal.auditor import audit
from shoal.methods.registry import METHODS, methods_of

TUPLE_METHODS = methods_of("tuples")
CAP, SPANS = 0.4, {"k": 3, "deadline": 30, "reuse": 60}
OWN = {"castle": {"beta": 4, "mu": 4}, "fast": {"threads": 2, "round": 7}}
KEY = bytes(16)


def stream(rows: int = 300) -> pa.Table:
    """One person sends most tuples, all of them near one place."""
    random = np.random.default_rng(3)
    is_heavy = random.random(rows) < 0.7
    person = np.where(is_heavy, 0, 1 + random.integers(0, 40, rows))
    x = np.where(is_heavy, 0.5, random.random(rows)) + 0.001 * random.integers(0, 3, rows)
    return pa.table({"id": [f"p{one}" for one in person], "x": np.round(np.clip(x, 0, 1), 3)})


def made(method: str, cap: float | None):
    schema = Schema(person="id", quasi=[Numeric("x", 0, 1)])
    return METHODS[method].load()(schema, max_share=cap, key=KEY, **SPANS, **OWN.get(method, {}))


def released(anonymizer, table: pa.Table, size: int = 50):
    releases = [anonymizer.push_batch(batch) for batch in table.to_batches(max_chunksize=size)]
    releases.append(anonymizer.flush())
    return tuple(pa.Table.from_batches([getattr(one, name) for one in releases]) for name in ("rows", "trace"))


def largest_share(rows: pa.Table, trace: pa.Table, table: pa.Table) -> float:
    leaves = [row for row, verdict in zip(*(trace[name].to_pylist() for name in ("row", "verdict")), strict=True)
              if verdict == "released"]  # fmt: skip
    persons = table["id"].take(leaves).to_pylist()
    classes = [str(row) for row in rows.to_pylist()]
    sizes, own = Counter(classes), Counter(zip(classes, persons, strict=True))
    return max(count / sizes[name] for (name, _), count in own.items())


def promised(method: str, cap: float | None):
    rules = {} if cap is None else {"max_share": cap}
    quasi = {"x": {"kind": "numeric", "low": 0, "high": 1}}
    return {"stream": {"person": "id"}, "anonymize": {"method": method, "quasi": quasi, **SPANS, **rules}}


@pytest.mark.parametrize("method", TUPLE_METHODS)
def test_it_holds_in_every_class(method):
    table = stream()
    free = released(made(method, None), table)
    assert largest_share(*free, table) > 0.6, "the cap has nothing to do"
    capped = released(made(method, CAP), table)
    assert largest_share(*capped, table) <= CAP
    report = audit(capped[0], truth=table, trace=capped[1], policy=promised(method, CAP))
    assert report.ok, report.text()
    assert f"no person has more than {CAP} of the rows" in made(method, CAP).guarantee.statement


@pytest.mark.parametrize("method", ["fads", "castle"])
def test_the_auditor_convicts_what_was_published_without_it(method):
    table = stream()
    rows, trace = released(made(method, None), table)
    report = audit(rows, truth=table, trace=trace, policy=promised(method, CAP))
    assert {found.code for found in report.violations} == {"above-max-share"}


@pytest.mark.parametrize("method", ["fads", "fast", "castle", "least-loss"])
def test_it_outlives_a_snapshot(method):
    """What counts for the cap is restored: the stream goes on as if it had not been stopped."""
    table = stream()
    whole = released(made(method, CAP), table)
    first = made(method, CAP)
    before = [first.push_batch(batch) for batch in table.slice(0, 150).to_batches(max_chunksize=50)]
    again = shoal.restore(first.snapshot(), key=KEY)
    after = [again.push_batch(batch) for batch in table.slice(150).to_batches(max_chunksize=50)]
    rows = pa.Table.from_batches([release.rows for release in (*before, *after, again.flush())])
    assert rows == whole[0]


def test_memory_for_it_is_bounded():
    """Rows of clusters that are too old to be reused are forgotten."""
    anonymizer = made("fads", CAP)
    sizes = []
    for lap in range(30):
        anonymizer.push_batch(stream().set_column(0, "id", [[f"p{lap}-{n}" for n in range(300)]]))
        sizes.append(anonymizer.state_bytes)
    assert sizes[-1] == sizes[4]


def test_clusters_dealt_to_lanes_keep_their_counts():
    """One person's rows are on both sides of the cut: a wide cluster belongs to one lane, with all its rows."""
    persons = [f"p{n}" for n in range(160)] + ["h"] * 240
    places = [n / 159 for n in range(160)] + [0.1, 0.9] * 120
    table = pa.table({"id": persons, "x": places})
    schema = Schema(person="id", quasi=[Numeric("x", 0, 1)])
    fast = shoal.Fast(schema, k=4, deadline=128, reuse=400, max_share=0.5, threads=2, round=20, key=KEY)
    rows, trace = released(fast, table, size=50)
    assert fast.metrics["reused"] > 0
    assert largest_share(rows, trace, table) <= 0.5
