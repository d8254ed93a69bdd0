"""Small runs of every family from the command line: what their audits are given, to change it and audit again."""

from __future__ import annotations

import random
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.e2e.scene import shoal

HOUR = 3_600
TOWNS = {"all": {"north": ["Aa", "Bo", "Cu"], "south": ["Da", "Eb", "Fo"]}}
MODELS = {"device": {"maker one": ["one-a", "one-b", "one-c"], "maker two": ["two-a", "two-b", "two-c"]}}
ITEMS = {"all": {"ab": ["a", "b"], "cd": ["c", "d"], "ef": ["e", "f"]}}


@dataclass(frozen=True)
class Run:
    """What a run was given and what it wrote."""

    policy: dict[str, Any]
    truth: pa.Table
    release: pa.Table
    trace: pa.Table | None


def events() -> list[dict[str, Any]]:
    """A day of visits, sites of very different popularity."""
    draw = random.Random(1)
    rows, time = [], 1_000_000
    for _ in range(1_500):
        time += draw.randrange(0, 60)
        person = draw.randrange(120)
        site = f"s{min(int(draw.expovariate(0.25)), 40)}"
        rows.append({"ts": time, "user": f"person {person:03}", "site": site, "country": f"land {person % 3}"})
    return rows


def tuples() -> list[dict[str, Any]]:
    """Rows of 300 people, some of whom come twice."""
    draw = random.Random(2)
    return [
        {
            "id": f"citizen {draw.randrange(300):03}",
            "age": draw.randrange(18, 90) if draw.random() < 0.9 else None,
            "town": draw.choice(["Aa", "Bo", "Cu", "Da", "Eb", "Fo"]),
            "illness": draw.choice(["flu", "asthma", "gout", "none"]),
            "ward": draw.choice(["east", "west"]),
        }
        for _ in range(600)
    ]  # fmt: skip


def measurements() -> list[dict[str, Any]]:
    """Devices, a few of them rare."""
    draw = random.Random(3)
    models = ["one-a"] * 30 + ["two-a"] * 30 + ["one-b"] * 10 + ["two-b"] * 10 + ["one-c", "two-c"]
    return [
        {
            "maid": f"agent {draw.randrange(250):03}",
            "model": draw.choice(models),
            "town": draw.choice(["Aa", "Bo", "Da", "Eb"]),
            "speed": draw.choice([10, 20, 50]),
        }
        for _ in range(500)
    ]


def baskets() -> list[dict[str, Any]]:
    """One row for every item of 60 people."""
    draw = random.Random(4)
    rows = []
    for person in range(60):
        items = draw.sample("abcdef", draw.randrange(1, 4))
        rows += [{"user": f"buyer {person:02}", "item": item} for item in items]
    return rows


def _inline(tree: Any) -> str:
    """A tree as an inline table of TOML."""
    if isinstance(tree, list):
        return "[" + ", ".join(f'"{leaf}"' for leaf in tree) + "]"
    return "{ " + ", ".join(f'"{label}" = {_inline(below)}' for label, below in tree.items()) + " }"


_FILES = """
[source]
kind = "parquet"
path = "in.parquet"
[sink]
kind = "parquet"
path = "out.parquet"
"""
_TRACE = """
[trace]
path = "trace.parquet"
"""
_Z = """
[stream]
person = "user"
time = "ts"
carry = ["country"]
[anonymize]
method = "z-anonymity"
attribute = "site"
z = 5
window = "2h"
rotation = "2h"
"""
_TUPLES = f"""
[stream]
person = "id"
carry = ["ward"]
[anonymize]
method = "fads"
k = 5
l = 2
deadline = 80
reuse = 60
sensitive = ["illness"]
[anonymize.quasi.age]
kind = "numeric"
low = 15
high = 90
grid = 5
[anonymize.quasi.town]
kind = "categorical"
hierarchy = {{ kind = "nested", tree = {_inline(TOWNS)} }}
"""
_FLEXIBLE = f"""
[stream]
person = "maid"
carry = ["speed"]
[anonymize]
method = "flexible-k"
k = 4
window = 150
sparse = ["model"]
root = true
[anonymize.quasi.model]
kind = "categorical"
hierarchy = {{ kind = "nested", tree = {_inline(MODELS)} }}
[anonymize.quasi.town]
kind = "categorical"
hierarchy = {{ kind = "nested", tree = {_inline(TOWNS)} }}
"""
_SETS = f"""
[stream]
person = "user"
[anonymize]
method = "k^m"
item = "item"
k = 4
m = 2
sigma = 1
[anonymize.generalize]
hierarchy = {{ kind = "nested", tree = {_inline(ITEMS)} }}
"""
_POLICIES = {
    "z": (events, _Z + _TRACE),
    "tuples": (tuples, _TUPLES + _TRACE),
    "flexible": (measurements, _FLEXIBLE + _TRACE),
    "sets": (baskets, _SETS + _TRACE),
}


def run(family: str, folder: Path) -> Run:
    """Run a family in a folder."""
    records, policy = _POLICIES[family]
    pq.write_table(pa.Table.from_pylist(records()), folder / "in.parquet")
    (folder / "policy.toml").write_text(policy + _FILES, encoding="utf-8")
    ended = shoal("run", folder / "policy.toml", "--quiet")
    assert ended.code == 0, ended.err
    read = {name: pq.read_table(folder / f"{name}.parquet") for name in ("in", "out", "trace")}
    return Run(tomllib.loads(policy + _FILES), read["in"], read["out"], read["trace"])
