"""The flexible method in some configurations, each with a stream that meets every corner."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.hierarchies import Hierarchy
from shoal.hierarchies.ontology.ontology import Ontology
from shoal.methods.base import StreamMethod
from shoal.methods.flexible.flexible_k import FlexibleK
from shoal.schema import Categorical, Numeric, Schema
from tests.laws.cases import KEY, Case, Odd, recast

PLACES = {"city": {"north": {"n1": ["a", "b"], "n2": ["c"]}, "south": ["d", "e"]}}
NETWORKS = {"any": {"slow": ["2G", "3G"], "fast": ["4G", "5G"]}}
PHONES = Path(__file__).with_name("phones.csv")
MODELS = ("S3", "S4", "Note 2", "G2", "P8", "Mi 3", "6s", "Lumia 5")
BEGIN = 1_770_000_000
SCHEMA = pa.schema(
    [("maid", pa.string()), ("ts", pa.timestamp("ms", tz="UTC")), ("device", pa.string()), ("place", pa.string()),
     ("network", pa.string()), ("mbps", pa.float64())]
)  # fmt: skip
ONTOLOGY = {
    "kind": "table", "path": str(PHONES), "value": "model", "is_a": ["family", "brand"],
    "properties": ["os", "country"], "tag": "sparse",
}  # fmt: skip
QUASI = {
    "device": {"kind": "ontology", "ontology": ONTOLOGY},
    "place": {"kind": "categorical", "weight": 2, "hierarchy": {"kind": "nested", "tree": PLACES}},
    "network": {"kind": "categorical", "hierarchy": {"kind": "nested", "tree": NETWORKS}},
    "ts": {"kind": "numeric", "low": "2026-02-01", "high": "2026-03-01", "grid": "1h"},
}


def measurements(rows: int, *, seed: int = 1) -> pa.Table:
    """Records of people who come back with the same phone, some with holes, some that cannot be used."""
    random = np.random.default_rng(seed)
    phones = random.choice(MODELS, size=30, p=[0.3, 0.15, 0.1, 0.1, 0.1, 0.05, 0.15, 0.05])
    records = []
    for number in range(rows):
        person = int(random.integers(30))
        row = {"maid": f"maid-{person}-x", "ts": 1000 * (BEGIN + 40 * number), "device": str(phones[person])}
        row |= {"place": str(random.choice(list("abcde"))), "network": str(random.choice(["2G", "3G", "4G", "5G"]))}
        if random.random() < 0.05:
            row[str(random.choice(["device", "place", "ts"]))] = None
        records.append({**row, "mbps": float(number)})
    for at, (name, value) in {
        5: ("maid", None), 9: ("maid", ""), 14: ("device", "Samsung"), 15: ("device", "typewriter"),
        22: ("place", "north"), 23: ("ts", 1000), 30: ("mbps", None),
    }.items():  # fmt: skip
        records[at][name] = value
    return pa.Table.from_pylist(records, schema=SCHEMA)


def steady(lap: int, *, rows: int = 200) -> pa.Table:
    """Equal stretches of a stream whose people never come back."""
    numbers = lap * rows + np.arange(rows)
    return pa.table(
        {
            "maid": [f"maid-{number}" for number in numbers],
            "ts": pa.array(np.full(rows, 1000 * BEGIN), pa.timestamp("ms", tz="UTC")),
            "device": [MODELS[number % 3] for number in numbers],
            "place": ["abcde"[number % 5] for number in numbers],
            "network": [("3G", "4G")[number % 2] for number in numbers],
            "mbps": numbers.astype(np.float64),
        },
        schema=SCHEMA,
    )


def odd_records() -> list[dict[str, Any]]:
    secret = "maid-1-x"
    whole = {"maid": secret, "ts": None, "device": "S3", "place": "a", "network": "3G", "mbps": 1.0}
    return [
        {**whole, "device": f"{secret}\ud800"},
        {**whole, "device": 3.5},
        {**whole, "place": Odd(secret)},
        {**whole, "maid": Odd(secret)},
        {**whole, "maid": f"{secret}\ud800"},
        {**whole, "mbps": {secret}},
        {**whole, "ts": secret},
        {},
    ]


def make_flexible(settings: Mapping[str, Any]) -> StreamMethod:
    """An anonymizer that another process can make too."""
    roles = [
        Categorical("device"),
        Categorical("place", Hierarchy.from_nested(PLACES), weight=2),
        Categorical("network", Hierarchy.from_nested(NETWORKS)),
        Numeric("ts", low="2026-02-01", high="2026-03-01", grid="1h"),  # type: ignore[arg-type]
    ]
    described = {name: value for name, value in ONTOLOGY.items() if name not in ("kind", "path")}
    ontology = Ontology.from_table(PHONES, attribute="device", **described)  # type: ignore[arg-type]
    schema = Schema(person="maid", time="ts", quasi=roles, carry=["mbps"])
    return FlexibleK(schema, ontology, **settings, key=KEY)


def flexible_case(name: str, settings: Mapping[str, Any], data: pa.Table, *, flat: bool = False) -> Case:
    given = {"k": 3, "window": 30, **settings}
    policy = {
        "stream": {"person": "maid", "time": "ts", "carry": ["mbps"]},
        "anonymize": {"method": "flexible-k", "quasi": QUASI, **given},
    }
    return Case(
        f"flexible-k-{name}", partial(make_flexible, given), data, policy, steady if flat else None, person="maid",
        secret=("maid",), odd=odd_records,
    )  # fmt: skip


CELLS = {"place": {"level": 2, "classes": [{"fewer_than": 6, "k": 6}, {"fewer_than": 11, "k": 4}]}}
DENSITY = {"place": {"north": 4, "a": 2}}
FLEXIBLE_CASES = [
    flexible_case("plain", {}, measurements(160), flat=True),
    flexible_case("refusing", {"unknown": "refuse", "k_s": 2}, measurements(120, seed=2)),
    flexible_case("density", {"density": DENSITY, "root": True}, measurements(160, seed=3)),
    flexible_case("density-from-data", {"density_from_data": CELLS}, measurements(160, seed=8)),
    flexible_case("two-sparse", {"sparse": ["device", "network"], "p_sparse": 0.5}, measurements(140, seed=4)),
    flexible_case("normal", {"sparse": [], "k": 2}, measurements(120, seed=5)),
    flexible_case("forgetful", {"remember": 4, "window": 20}, measurements(160, seed=6), flat=True),
    flexible_case(
        "dictionaries", {}, recast(measurements(80, seed=7), maid=pa.dictionary(pa.int32(), pa.string()),
                                   device=pa.large_string()),
    ),
]  # fmt: skip
