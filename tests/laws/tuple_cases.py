"""The tuple methods in many configurations, each with a stream that meets every corner."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.hierarchies import Hierarchy
from shoal.methods.base import StreamMethod
from shoal.methods.registry import METHODS, methods_of
from shoal.schema import Categorical, Numeric, Schema
from tests.laws.cases import KEY, Case, Odd, recast

TREE = {"land": {"coast": ["cliff", "dune", "port"], "inland": {"hills": ["peak"], "plain": ["farm", "mill"]}}}
TOWNS = ("cliff", "dune", "port", "peak", "farm", "mill")
ILLS = ("ill-cough", "ill-fever", "ill-gout", "ill-none", None)
BEGIN = 1_770_000_000
SCHEMA = pa.schema(
    [("id", pa.string()), ("ts", pa.timestamp("ms")), ("age", pa.int64()), ("height", pa.float64()),
     ("town", pa.string()), ("ill", pa.string()), ("score", pa.int16()), ("note", pa.string())]
)  # fmt: skip
QUASI = {
    "age": {"kind": "numeric", "low": 0, "high": 100, "weight": 2},
    "height": {"kind": "numeric", "low": 0.5, "high": 2.5, "grid": 0.25, "outside": "clamp"},
    "town": {"kind": "categorical", "hierarchy": {"kind": "nested", "tree": TREE}},
}
SENSITIVE, CARRY = ["ill", "score"], ["note"]
TIMED = {"deadline": "40s", "reuse": "30s"}
DECLARED = {"ill": {name: 1 for name in ILLS if name}, "score": {"5": 1, "0": 2, "2": 1}}
OWN = {
    "castle": {"beta": 6, "mu": 4},
    "fast": {"threads": 2, "round": 3},
    "k-varp": {"likeness": 0.3},
    "fads-varied": {"late_penalty": 0.01},
}


def people(rows: int, *, seed: int = 1, missing: float = 0.15, wrong_start: bool = False) -> pa.Table:
    """Records of a few people who come back, some with holes, some that cannot be used."""
    random = np.random.default_rng(seed)
    seconds = BEGIN + np.cumsum(random.choice([0, 1, 3, 11], size=rows))
    seconds = seconds - np.where(random.random(rows) < 0.15, random.integers(0, 20, rows), 0)
    records = []
    for number, when in enumerate(seconds.tolist()):
        ill = ILLS[random.integers(len(ILLS))]
        row = {"id": f"person-{random.integers(25)}@mail.example", "ts": 1000 * when}
        row |= {"age": int(random.integers(20, 40)), "height": float(random.choice([0.3, 1.5, 1.61, 1.75, 9.0]))}
        row |= {"town": TOWNS[random.integers(len(TOWNS))], "ill": ill, "score": int(random.choice([0, 2, 5]))}
        for name in ("age", "height", "town"):
            if random.random() < missing:
                row[name] = None
        records.append({**row, "note": f"note {number}"})
    _break(records, wrong_start=wrong_start)
    return pa.Table.from_pylist(records, schema=SCHEMA)


def mostly_one(table: pa.Table) -> pa.Table:
    """The same records, two of three of them one person's."""
    persons = table["id"].to_pylist()
    changed = ["person-0@mail.example" if place % 3 and name else name for place, name in enumerate(persons)]
    return table.set_column(0, "id", pa.array(changed, pa.string()))


def _break(records: list[dict[str, Any]], *, wrong_start: bool) -> None:
    rows = len(records)
    for at, (name, value) in {
        5: ("id", None), 9: ("id", ""), 14: ("age", 101), 15: ("age", -1), 22: ("town", "coast"), 23: ("town", "ghost"),
        30: ("height", float("nan")), 31: ("ts", None), 36: ("ts", 16_000_000_000_000), 41: ("score", None),
        rows // 2: ("ts", 1000 * (BEGIN + 90 * 86_400)),
    }.items():  # fmt: skip
        records[at][name] = value
    if wrong_start:
        for record in records[:2]:
            record |= {"ts": 1000 * (BEGIN + 90 * 86_400), "id": "person-0@mail.example"}


def steady(lap: int, *, rows: int = 200) -> pa.Table:
    """Equal stretches of a stream whose people never come back."""
    numbers = lap * rows + np.arange(rows)
    return pa.table(
        {
            "id": [f"person-{number}" for number in numbers],
            "ts": pa.array(1000 * (BEGIN + numbers), pa.timestamp("ms")),
            "age": pa.array(numbers % 90),
            "height": pa.array(1 + (numbers % 7) / 7),
            "town": [TOWNS[number % len(TOWNS)] if number % 5 else None for number in numbers],
            "ill": [ILLS[number // 7 % len(ILLS)] for number in numbers],  # in step with no other column
            "score": pa.array(numbers % 3, pa.int16()),
            "note": [f"note {number}" for number in numbers],
        },
        schema=SCHEMA,
    )


def odd_people() -> list[dict[str, Any]]:
    whole = {"ts": BEGIN + 5000, "id": "person-1@mail.example", "age": 30, "height": 1.5, "town": "port",
             "ill": "ill-gout", "score": 2, "note": "-"}  # fmt: skip
    secret = "person-1@mail.example"
    return [
        {**whole, "age": secret},
        {**whole, "age": True},
        {**whole, "age": 30.5},
        {**whole, "height": secret},
        {**whole, "town": f"{secret}\ud800"},
        {**whole, "town": 3.5},
        {**whole, "id": f"{secret}\ud800"},
        {**whole, "id": Odd(secret)},
        {**whole, "ill": Odd(secret)},
        {**whole, "ill": "ill-gout\ud800"},
        {**whole, "score": secret},
        {**whole, "score": 10**30},
        {**whole, "note": {secret}},
        {**whole, "ts": secret},
        {},
    ]


def make_tuples(method: str, settings: Mapping[str, Any], *, timed: bool) -> StreamMethod:
    """An anonymizer that another process can make too."""
    roles = []
    for name, given in QUASI.items():
        kept = {key: value for key, value in given.items() if key not in ("kind", "hierarchy")}
        if given["kind"] == "numeric":
            roles.append(Numeric(name, **kept))
        else:
            roles.append(Categorical(name, Hierarchy.from_nested(TREE), **kept))
    schema = Schema(person="id", time="ts" if timed else None, quasi=roles, sensitive=SENSITIVE, carry=CARRY)
    made: StreamMethod = METHODS[method].load()(schema, **settings, key=KEY)
    return made


def tuple_case(method: str, name: str, settings: Mapping[str, Any], data: pa.Table, *, flat: bool = True) -> Case:
    timed = isinstance(settings.get("deadline"), str)
    given = {"k": 3, "deadline": 12, "reuse": 8, **OWN.get(method, {}), **settings}
    stream = {"person": "id", "carry": CARRY, **({"time": "ts"} if timed else {})}
    policy = {"stream": stream, "anonymize": {"method": method, "sensitive": SENSITIVE, "quasi": QUASI, **given}}
    return Case(
        f"{method}-{name}", partial(make_tuples, method, given, timed=timed), data, policy, steady if flat else None,
        person="id", secret=("id", "ill"), odd=odd_people, time="ts" if timed else None, by_clock=True,
    )  # fmt: skip


IN_GROUPS = {"groups": True, "suppressed": "root", "missing": "covered", "min_carriers": 3}
IN_LANES = {"k": 2, "deadline": 64, "reuse": 30}
"""Enough for two lanes."""
LEAST_LOSS, *OTHERS = methods_of("tuples")
TUPLE_METHODS = [*OTHERS, LEAST_LOSS]  # the order of the golden digests
DICTIONARIES = recast(people(80, seed=5), id=pa.dictionary(pa.int32(), pa.string()), town=pa.large_string())
MOSTLY_ONE = mostly_one(people(90, seed=11))
TUPLE_CASES = [
    case
    for method in TUPLE_METHODS
    for case in (
        tuple_case(method, "plain", {}, people(100)),
        tuple_case(method, "timed", {**TIMED, "l": 2, "suppressed": "root"}, people(100, seed=2)),
        tuple_case(method, "t", {"t": 0.6, "reference": 30, "missing": "hidden"}, people(80, seed=3), flat=False),
    )
] + [
    tuple_case("fads", "groups", IN_GROUPS, people(80, seed=4)),
    *(
        tuple_case(method, "covered", {"missing": "covered"}, people(100))
        for method in ("fads", "castle", "least-loss")
    ),
    tuple_case("fads", "dictionaries", {}, DICTIONARIES, flat=False),
    *(
        tuple_case(method, "max-share", {"max_share": 0.4, "reuse": 40}, mostly_one(people(100, seed=10)))
        for method in ("fads", "fast", "castle", "least-loss", "k-varp")
    ),
    tuple_case("fast", "max-share-timed", {**TIMED, "max_share": 0.5, "l": 2}, MOSTLY_ONE, flat=False),
    tuple_case("fast", "lanes", {**IN_LANES, "round": 10, "t": 0.8}, people(140, seed=12)),
    tuple_case("fast", "lanes-timed", {**IN_LANES, **TIMED, "round": 10, "l": 2}, people(140, seed=13), flat=False),
    tuple_case("least-loss", "lanes", {**IN_LANES, "threads": 3, "max_share": 0.6}, people(140, seed=14)),
    tuple_case("k-varp", "declared", {"t": 0.7, "reference": DECLARED}, people(80, seed=7), flat=False),
    tuple_case("k-varp", "entropy", {**TIMED, "entropy_l": 1.5}, people(80, seed=8), flat=False),
    tuple_case("iot-anonymization", "paper", {"missing": "paper"}, people(80, seed=9), flat=False),
]  # fmt: skip
WRONG_STARTS = [
    tuple_case(method, "wrong-start", TIMED, people(80, seed=6, wrong_start=True), flat=False)
    for method in ("fads", "castle", "fast")
]
"""Streams whose clock starts over; who looks at them later can only say that it did."""
PAPER_CASES = [
    tuple_case(method, "paper", {"missing": "paper"}, people(80, seed=9), flat=False) for method in ("fads", "k-varp")
]
"""What is published as in the papers is not k-anonymous where values are missing; the auditor must say so."""
