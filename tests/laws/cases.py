"""Methods in many configurations, each with a stream that meets every corner."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.hierarchies import Hierarchy
from shoal.methods.base import StreamMethod
from shoal.methods.z.z_anonymity import ZAnonymity
from shoal.models.z.target.target import KTarget

KEY = bytes(range(32))
WINDOW_S = 60
TREE = {
    "web": {
        "news": ["a.news", "b.news", "c.news"],
        "shop": {"food": ["d.shop"], "books": ["e.shop", "f.shop"]},
    }
}
SITES = ("a.news", "b.news", "c.news", "d.shop", "e.shop", "f.shop", "shop")
PEOPLE = tuple(f"person-{name}@mail.example" for name in ("ann", "bob", "cat", "dan", "eve", "fay", "gus"))
SCHEMA = pa.schema([("ts", pa.timestamp("ms")), ("user", pa.string()), ("site", pa.string()), ("device", pa.string())])
HIERARCHIES = {
    "closed": ({"kind": "nested", "tree": TREE}, Hierarchy.from_nested(TREE)),
    "suffix": ({"kind": "suffix"}, Hierarchy.by_suffix()),
    "prefix": ({"kind": "prefix", "separator": "."}, Hierarchy.by_prefix(".")),
    "geo": ({"kind": "geo", "cells": [0.5, 1, 10]}, Hierarchy.geo([0.5, 1, 10])),
    "bins": ({"kind": "bins", "widths": [50, 1000]}, Hierarchy.bins([50, 1000])),
    "ip": ("ip", Hierarchy.ip()),
}
COORDINATES = ("40.71,-74.01", "40.72,-74.02", "40.21,-74.9", "41.5,-73.2", "-33.9,151.2", "40.71, -74.01", "north")
NUMBERS = ("70010", "70010.5", "70040", "70120", "-30050", "7e4", "seventy")
ADDRESSES = ("192.0.2.1", "192.0.2.9", "192.0.7.1", "198.51.100.4", "2001:db8::1", "2001:db8::2", "192.0.2")


def stream(rows: int = 160, *, seed: int = 1, jitter_s: float = 4, wrong_start: bool = False) -> pa.Table:
    """Events of a few people, some late, some from a wrong clock, some with missing values."""
    random = np.random.default_rng(seed)
    seconds = 1_770_000_000 + np.cumsum(random.choice([0, 0, 1, 3, 20], size=rows))
    seconds = seconds - np.where(random.random(rows) < 0.15, random.uniform(0, jitter_s, rows), 0)
    records = [
        {
            "ts": int(1000 * when),
            "user": PEOPLE[random.integers(len(PEOPLE))],
            "site": SITES[min(random.geometric(0.4), len(SITES)) - 1],
            "device": ("phone", "laptop")[random.integers(2)],
        }
        for when in seconds.tolist()
    ]
    for row in random.choice(rows, size=6, replace=False).tolist():
        records[row][("user", "ts", "site")[row % 3]] = None
    records[rows // 2]["ts"] = int(1000 * (seconds[0] + 90 * 86_400))  # one wrong clock
    if wrong_start:
        records[0]["ts"] = records[1]["ts"] = int(1000 * (seconds[0] + 90 * 86_400))
        records[0]["user"] = records[1]["user"] = PEOPLE[0]
    return pa.Table.from_pylist(records, schema=SCHEMA)


def busy(rows: int = 1000, *, people: int = 90, seed: int = 1, jitter_s: float = 4) -> pa.Table:
    """Many people at a few sites, for some eight windows; the crowd doubles on the way."""
    random = np.random.default_rng(seed)
    seconds = 1_770_000_000 + np.sort(random.uniform(0, 8 * WINDOW_S, size=rows))
    seconds -= np.where(random.random(rows) < 0.1, random.uniform(0, jitter_s, rows), 0)
    crowd = np.where(np.arange(rows) < rows // 2, people // 2, people)
    sites = np.minimum(random.geometric(0.5, rows), len(SITES)) - 1
    records = [
        {"ts": int(1000 * when), "user": f"person-{who}@mail.example", "site": SITES[site], "device": "phone"}
        for when, who, site in zip(seconds, random.integers(crowd), sites, strict=True)
    ]
    for row in random.choice(rows, size=6, replace=False).tolist():
        records[row][("user", "ts", "site")[row % 3]] = None
    return pa.Table.from_pylist(records, schema=SCHEMA)


def steady(lap: int, *, rows: int = 300) -> pa.Table:
    """Equal stretches of a stream whose people and values never come back: what is idle must go."""
    numbers = lap * rows + np.arange(rows)
    seconds = 1_770_000_000 + numbers
    return pa.table(
        {
            "ts": pa.array(1000 * seconds, pa.timestamp("ms")),
            "user": pa.array([f"person-{number // 2}" for number in numbers]),
            "site": pa.array([f"{number // 3}.news" for number in numbers]),
            "device": pa.array(["phone"] * rows),
        }
    )


class Odd:
    """A value that no column can store, with a repr that reveals it."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def odd_visits() -> list[dict[str, Any]]:
    return [
        {"ts": "no time, said person-ann", "user": PEOPLE[0], "site": SITES[0]},
        {"ts": 1, "user": "person-\ud800-ann", "site": SITES[0]},
        {"ts": 1, "user": PEOPLE[0], "site": "a.news\ud800"},
        {"ts": 1, "user": 3 + 4j, "site": SITES[0]},
        {"ts": 1_770_009_000, "user": PEOPLE[0], "site": SITES[0], "device": Odd(PEOPLE[0])},
        {"ts": 1_770_009_000, "user": PEOPLE[0], "site": SITES[0], "device": PEOPLE[0] + "\ud800"},
        {},
    ]


def make_z(settings: Mapping[str, Any], hierarchies: Mapping[str, str]) -> ZAnonymity:
    """A z-anonymity whose hierarchies are named, so that another process can make it too."""
    settings = {"z": 2, "window": WINDOW_S, "person": "user", "time": "ts", "attribute": "site", **settings}
    if isinstance(settings["attribute"], Mapping):
        settings["attribute"] = {
            name: {
                **rules,
                **({"hierarchy": HIERARCHIES[hierarchies[name]][1]} if name in hierarchies else {}),
            }
            for name, rules in settings["attribute"].items()
        }
    elif "site" in hierarchies:
        settings["hierarchy"] = HIERARCHIES[hierarchies["site"]][1]
    if "target" in settings:
        settings["target"], settings["z"] = KTarget(**settings["target"]), None
    return ZAnonymity(**settings, key=KEY)


@dataclass(frozen=True)
class Case:
    """A method with parameters, a stream for it, and the policy an auditor would read."""

    name: str
    make: Callable[[], StreamMethod]
    stream: pa.Table
    policy: dict[str, Any]
    steady: Callable[[int], pa.Table] | None = field(default=steady)
    person: str = "user"
    secret: tuple[str, ...] = ("user", "site")
    """Columns with values that no error may show."""
    odd: Callable[[], list[dict[str, Any]]] = odd_visits
    """Records that cannot be used."""
    time: str | None = "ts"
    by_clock: bool = False
    """Whether records wait from the stream's time on, not from their own."""

    @property
    def method(self) -> str:
        return self.make().method


def z_case(
    name: str,
    settings: Mapping[str, Any] | None = None,
    hierarchies: Mapping[str, str] | None = None,
    *,
    data: pa.Table | None = None,
    lap: Callable[[int], pa.Table] | None = steady,
) -> Case:
    settings, hierarchies = dict(settings or {}), dict(hierarchies or {})
    rules = {"method": "z-anonymity", "attribute": "site", "z": 2, "window": WINDOW_S, **settings}
    carry = rules.pop("carry", ())
    if "target" in rules:
        del rules["z"]
    if isinstance(rules["attribute"], Mapping):
        rules["attribute"] = {
            column: {
                **own,
                **({"hierarchy": HIERARCHIES[hierarchies[column]][0]} if column in hierarchies else {}),
            }
            for column, own in rules["attribute"].items()
        }
    elif "site" in hierarchies:
        rules["hierarchy"] = HIERARCHIES[hierarchies["site"]][0]
    policy = {"stream": {"person": "user", "time": "ts", "carry": list(carry)}, "anonymize": rules}
    make = partial(make_z, settings, hierarchies)
    return Case(f"z-{name}", make, stream() if data is None else data, policy, lap)


def recast(table: pa.Table, **types: pa.DataType) -> pa.Table:
    for name, kind in types.items():
        table = table.set_column(table.schema.get_field_index(name), name, table.column(name).cast(kind))
    return table


def renamed(table: pa.Table, names: tuple[str, ...]) -> pa.Table:
    """The same events with other sites; the last name is no value of the hierarchy."""
    sites = table["site"].to_pylist()
    number = {site: place for place, site in enumerate(sorted({site for site in sites if site is not None}))}
    chosen = [None if site is None else names[number[site] % len(names)] for site in sites]
    return table.set_column(table.column_names.index("site"), "site", pa.array(chosen, type=pa.string()))


def numbered(table: pa.Table) -> pa.Table:
    """The same stream with whole numbers for people and values."""
    for name, known, first in (("user", PEOPLE, 7_000_000_001), ("site", SITES, 5_550_000_001)):
        numbers = [None if text is None else first + known.index(text) for text in table[name].to_pylist()]
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(numbers, pa.int64()))
    return table


GENERALIZE = {"on_private": "generalize"}
LATE = {"lateness": "3s"}
TABLE = {"attribute": {"site": {"z": 2}, "device": {"z": 4, "window": 30}}}
TABLE_OF_TREES = {"attribute": {"site": {"z": 2, **GENERALIZE}, "device": {"z": 3}}}
COMBINE = {"combine": "k", "k": 2, "rotation": "120s"}
DICTIONARY = pa.dictionary(pa.int32(), pa.string())
VIEWS = recast(stream(), user=pa.string_view(), site=pa.string_view(), device=pa.string_view())

Z_CASES = [
    z_case("drop", {"carry": ["device"]}),
    z_case("strict", {"z": 4}, data=stream(seed=2)),
    z_case("everyone", {"z": 1, "rotation": "10s"}),
    z_case("blank", {"on_private": "blank", "carry": ["device"]}),
    z_case("closed", GENERALIZE, {"site": "closed"}, data=stream(seed=3), lap=None),
    z_case("suffix", {**GENERALIZE, "z": 3}, {"site": "suffix"}, data=stream(seed=4)),
    z_case("suffix-loose", {**GENERALIZE, "residual": "loose"}, {"site": "suffix"}, data=stream(seed=4), lap=None),
    z_case("prefix", {**GENERALIZE, "carry": ["device"]}, {"site": "prefix"}, data=stream(seed=5)),
    z_case("geo", {**GENERALIZE, "z": 3}, {"site": "geo"}, data=renamed(stream(seed=14), COORDINATES), lap=None),
    z_case("bins", {**GENERALIZE, "z": 3}, {"site": "bins"}, data=renamed(stream(seed=15), NUMBERS), lap=None),
    z_case("late-ip", {**LATE, **GENERALIZE}, {"site": "ip"}, data=renamed(stream(seed=16), ADDRESSES), lap=None),
    z_case("table", TABLE),
    z_case("table-of-trees", TABLE_OF_TREES, {"site": "suffix"}, data=stream(seed=6)),
    z_case("late", {**LATE, "carry": ["device"]}),
    z_case("late-blank", {**LATE, "on_private": "blank"}, data=stream(seed=7)),
    z_case("late-closed", {**LATE, **GENERALIZE}, {"site": "closed"}, data=stream(seed=8), lap=None),
    z_case("late-suffix", {**LATE, **GENERALIZE, "z": 3}, {"site": "suffix"}, data=stream(seed=9)),
    z_case("late-table", {**LATE, **TABLE, "carry": []}, data=stream(seed=10)),
    z_case("wrong-start", {"carry": ["device"]}, data=stream(wrong_start=True)),
    z_case("late-wrong-start", LATE, data=stream(wrong_start=True)),
    z_case("numbers", {}, data=numbered(stream()), lap=None),
    z_case("late-numbers", LATE, data=numbered(stream()), lap=None),
    z_case("dictionaries", {}, data=recast(stream(), user=DICTIONARY, site=DICTIONARY, device=DICTIONARY)),
    z_case(
        "views",
        {**LATE, **GENERALIZE, "carry": ["device"]},
        {"site": "suffix"},
        data=VIEWS,
        lap=None,
    ),
    z_case("combine", {**COMBINE, "carry": ["device"]}),
    z_case("combine-blank", {**COMBINE, **LATE, "on_private": "blank"}, data=stream(wrong_start=True), lap=None),
    z_case("combine-trees", {**COMBINE, **LATE, **TABLE_OF_TREES}, {"site": "suffix"}, data=stream(seed=6), lap=None),
    z_case("target", {"target": {"k": 2, "p": 0.9}, "carry": ["device"]}, data=busy(), lap=None),
    z_case(
        "target-late",
        {**LATE, "target": {"k": 3, "p": 0.6, "start": 4}, "rotation": 40},
        data=busy(seed=2),
        lap=None,
    ),
    z_case("target-blank", {"target": {"k": 2, "p": 0.8}, "on_private": "blank"}, data=busy(seed=3), lap=None),
    z_case(
        "target-table",
        {"target": {"k": 2, "p": 0.9, "floor": 5}, "attribute": {"site": {}, "device": {"window": 90}}},
        data=busy(seed=4),
        lap=None,
    ),
    z_case("target-wrong-start", {"target": {"k": 2, "p": 0.9, "start": 2}}, data=stream(wrong_start=True), lap=None),
    z_case("large-texts", {}, data=recast(stream(), user=pa.large_string(), site=pa.large_string()), lap=None),
]
