"""z-anonymity and its naive twin side by side."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from shoal.hierarchies import Hierarchy
from shoal.methods.z.z_anonymity import ZAnonymity
from shoal.testing.strategies import EVENT_SCHEMA, SECOND
from tests.reference.open_paths import open_path
from tests.reference.z_model import Column, NaiveZ

WINDOW, LATENESS, GAP = 10 * SECOND, 4 * SECOND, 100 * SECOND
KEY = bytes(range(16))
TREE = Hierarchy.from_nested({"web": {"news": ["a.news", "b.news"], "shop": ["c.shop", "d.shop"]}})
SITES = ("a.news", "b.news", "c.shop", "d.shop", "news", "elsewhere")


def tree_path(value):
    return TREE.path(value) if value in TREE else ()


def suffix_path(value):
    return open_path(value, separator=".", side="suffix", root="*")


def configurations():
    """(settings of ZAnonymity, columns of the twin, whether private values leave blank)."""
    site = {"attribute": "site", "z": 2, "window": "10s"}
    generalize = {**site, "on_private": "generalize"}
    tables = {"attribute": {"site": {"z": 2, "window": "10s"}, "device": {"z": 3, "window": "5s"}}}
    trees = {
        "attribute": {
            "site": {"z": 2, "window": "10s", "on_private": "generalize", "hierarchy": TREE},
            "device": {"z": 2, "window": "10s", "on_private": "generalize", "hierarchy": Hierarchy.flat(["a", "b"])},
        }
    }
    device_path = lambda value: (value, "*") if value in ("a", "b") else ("*",) if value == "*" else ()  # noqa: E731
    plain = (Column("site", 2, WINDOW),)
    return {
        "drop": (site, plain, False),
        "blank": ({**site, "on_private": "blank"}, plain, True),
        "closed": ({**generalize, "hierarchy": TREE}, (Column("site", 2, WINDOW, tree_path),), False),
        "suffix": (
            {**generalize, "z": 3, "hierarchy": Hierarchy.by_suffix()},
            (Column("site", 3, WINDOW, suffix_path),),
            False,
        ),
        "loose": (
            {**generalize, "hierarchy": TREE, "residual": "loose"},
            (Column("site", 2, WINDOW, tree_path, strict=False),),
            False,
        ),
        "table": (tables, (Column("site", 2, WINDOW), Column("device", 3, WINDOW // 2)), False),
        "trees": (trees, (Column("site", 2, WINDOW, tree_path), Column("device", 2, WINDOW, device_path)), False),
    }


def make_z(settings: dict[str, Any], *, lateness: int) -> ZAnonymity:
    return ZAnonymity(**settings, person="user", time="ts", lateness=lateness / SECOND, max_gap=GAP / SECOND, key=KEY)


def make_twin(columns: tuple[Column, ...], *, keeps_blank: bool, lateness: int) -> NaiveZ:
    return NaiveZ(columns, lateness=lateness, max_gap=GAP, keeps_blank=keeps_blank)


def for_twin(record: dict[str, Any]) -> dict[str, Any]:
    return {**record, "person": record["user"], "time": record["ts"]}


def as_batch(records: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(records, schema=EVENT_SCHEMA)


def found_in(release, columns):
    """(row, verdict, reason, labels) of a release, as the twin says it."""
    shown = iter(release.rows.to_pylist())
    for row in release.trace.to_pylist():
        labels = ()
        if row["verdict"] == "released":
            leaving = next(shown)
            labels = tuple(leaving[column.name] for column in columns)
        yield row["row"], row["verdict"], row["reason"], labels
    assert next(shown, None) is None


def expected_in(verdicts):
    return [(one.row, one.verdict, one.reason, one.labels) for one in verdicts]
