"""A small measurement campaign with planted names, the policy that sanitizes it, and a look into every store."""

from __future__ import annotations

import json
import os
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.policy import load_policy
from shoal.sanitize.intake import make_tags
from shoal.sanitize.process import Sanitizer
from shoal.sanitize.stores.columns import column_blocks, from_plain
from shoal.sanitize.workspace import ID, PERSON, PII, TAG, Workspace

KEY = "a key of more than sixteen bytes"
PLANTED = ("CANARY", "acc-", "imei-", "@secret.example")
PLACES = ("centre", "harbour", "hill", "village")
NETWORKS = ("3G", "4G", "5G")
HEADER = "account,imei,email,time,place,network,device,mbps,serial"


def lines(people: int, records: int, seed: int, *, first: int = 0) -> list[str]:
    """Records of people with a device and a home each, some moving about, in order of time."""
    draw = random.Random(seed)
    home = {person: draw.choice(PLACES) for person in range(people)}
    device = {person: f"model {draw.randrange(8)}" for person in range(people)}
    made = []
    for number in range(first, first + records):
        person = draw.randrange(people)
        place = home[person] if draw.random() < 0.8 else draw.choice(PLACES)
        minute = number * 7 + draw.randrange(5)
        day, hour = 1 + minute // 1440 % 28, minute // 60 % 24
        time = f"2026-03-{day:02d}T{hour:02d}:{minute % 60:02d}:{draw.randrange(60):02d}Z"
        mbps = round(draw.lognormvariate(3, 0.6), 2)
        made.append(
            f"acc-CANARY-{person},imei-{person:04d},p{person}@secret.example,{time},{place},{draw.choice(NETWORKS)},"
            f"{device[person]},{mbps},{number}"
        )
    return made


FADS = 'method = "fads"\ndeadline = 60\nreuse = 0'
FLEXIBLE = 'method = "flexible-k"\nwindow = 100'
DEVICE = """
[anonymize.quasi.device]
kind = "ontology"
ontology = { kind = "table", path = "devices.csv", value = "model", properties = ["brand"], tag = "sparse" }
"""


def policy_text(internal: str, external: str, *, k: int = 3, more: str = "", flexible: bool = False) -> str:
    """A policy; `internal` and `external` are the lines of their tables."""
    return f"""
[stream]
time = "time"
carry = ["mbps", "serial"{"" if flexible else ', "device"'}]
carry_identifying = true
[source]
kind = "csv"
path = "in-*.csv"
types = {{ mbps = "float64", serial = "int64" }}
[anonymize]
{FLEXIBLE if flexible else FADS}
k = {k}
[anonymize.quasi.time]
kind = "numeric"
low = "2026-01-01"
high = "2027-01-01"
grid = "6h"
[anonymize.quasi.place]
kind = "categorical"
hierarchy = {{ kind = "flat", values = {json.dumps(list(PLACES))}, root = "city" }}
[anonymize.quasi.network]
kind = "categorical"
hierarchy = {{ kind = "flat", values = {json.dumps(list(NETWORKS))}, root = "network" }}
{DEVICE if flexible else ""}
[sanitize]
pii = ["account", "imei", "email"]
maid = ["email", "imei"]
keep = "7d"
sealed = "pii.sealed"
{more}
[sanitize.internal]
{internal}
[sanitize.external]
{external}
"""


SQLITE = ('path = "internal.db"', 'path = "external.db"')


@dataclass
class Scene:
    """A folder in which the process runs."""

    folder: Path
    stores: tuple[str, str] = SQLITE
    more: str = ""
    k: int = 3
    flexible: bool = False
    files: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.folder / "key.txt").write_text(KEY)
        (self.folder / "key.txt").chmod(0o600)
        os.environ["SHOAL_KEY_FILE"] = str(self.folder / "key.txt")
        brands = [f"model {number},brand {number % 3}" for number in range(8)]
        (self.folder / "devices.csv").write_text("\n".join(["model,brand", *brands]) + "\n")
        self.policy.write_text(policy_text(*self.stores, k=self.k, more=self.more, flexible=self.flexible))

    @property
    def policy(self) -> Path:
        return self.folder / "policy.toml"

    def write(self, name: str, rows: list[str]) -> None:
        """An input file; its name begins with in-."""
        (self.folder / name).write_text("\n".join([HEADER, *rows]) + "\n")

    def append(self, name: str, text: str) -> None:
        """Add to an input file."""
        with (self.folder / name).open("a") as file:
            file.write(text)

    def run(self, stop_at: str = "", times: int = 1, **options: Any) -> Any:
        """Run the process; `stop_at` names a step to die at, and how often it is reached before."""
        sanitizer = Sanitizer.from_policy(self.policy)
        sanitizer.reach = Stop(stop_at, times)
        return sanitizer.run(**options)

    def sanitizer(self) -> Sanitizer:
        return Sanitizer.from_policy(self.policy)

    def published(self) -> pa.Table:
        """Rows of the external store."""
        with Workspace(load_policy(self.policy)) as workspace:
            schema = workspace.schema_of(workspace.external)
            if schema is None:
                return pa.table({"serial": pa.array([], pa.int64())})
            layout = workspace.published(schema)
            return from_plain(workspace.external.read(layout, layout.names), schema)

    def serials(self) -> list[int]:
        """Which records were published."""
        return sorted(self.published().column("serial").to_pylist())

    def internal(self) -> Inside:
        """The internal store, as seen with the key."""
        with Workspace(load_policy(self.policy)) as workspace:
            schema = workspace.schema_of(workspace.internal)
            assert schema is not None
            layout = workspace.records(schema)
            rows = workspace.internal.read(layout, layout.names)
            tags = make_tags(workspace)
            ids, tag = column_blocks(rows.column(ID)), column_blocks(rows.column(TAG))
            is_real, arrivals = tags.read_real(ids, tag)
            assert np.array_equal(~is_real, tags.are_decoys(ids, tag))
            return Inside(from_plain(rows, schema), rows.select([PERSON, PII, ID]), is_real, arrivals)

    def holding(self, words: tuple[str, ...] = PLANTED) -> list[str]:
        """Files, but the input, in which one of these words can be read."""
        paths = [path for path in self.folder.rglob("*") if path.is_file() and not path.name.startswith("in-")]
        skip = {self.policy, self.folder / "key.txt"}
        return [
            path.name
            for path in paths
            if path not in skip and any(word.encode() in path.read_bytes() for word in words)
        ]

    def everything(self) -> dict[str, bytes]:
        """All files but locks."""
        return {
            path.name: path.read_bytes() for path in self.folder.rglob("*") if path.is_file() and path.suffix != ".lock"
        }


@dataclass(frozen=True)
class Inside:
    """Internal records: what they say, their ids, and which are real."""

    data: pa.Table
    ids: pa.Table
    is_real: Any
    arrivals: Any


class Died(Exception):
    """The process was stopped on purpose."""


class Stop:
    """Dies when a step is reached for the n-th time; records all steps."""

    def __init__(self, at: str = "", times: int = 1) -> None:
        self._at, self._left = at, times
        self.steps: list[str] = []

    def __call__(self, step: str) -> None:
        self.steps.append(step)
        if step == self._at:
            self._left -= 1
            if not self._left:
                raise Died(step)
