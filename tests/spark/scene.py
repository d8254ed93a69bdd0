"""Rows about synthetic people in several files, policies for them, and Spark sessions for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from shoal.crypto.keys import as_secret
from shoal.encode.sealed import read_sealed_trace
from shoal.policy import load_policy

KEY = b"0123456789abcdef0123456789abcdef"
SCHOOLS = {"any": {"lower": ["primary", "secondary"], "upper": ["bachelor", "master"]}}
LEAVES = ["primary", "secondary", "bachelor", "master"]
SETTINGS = {
    "spark.driver.memory": "4g", "spark.executor.memory": "1g", "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.sql.shuffle.partitions": "2",
}  # fmt: skip
TUPLES: dict[str, Any] = {
    "method": "least-loss", "k": 5, "deadline": 200, "reuse": 20, "sensitive": ["work"],
    "quasi": {
        "age": {"kind": "numeric", "low": 17, "high": 90},
        "income": {"kind": "numeric", "low": 0, "high": 1000},
        "school": {"kind": "categorical", "hierarchy": {"kind": "nested", "tree": SCHOOLS}},
    },
}  # fmt: skip
DIVERSE: dict[str, Any] = {
    "l": 3, "entropy_l": 2.5, "t": 0.3, "reference": {"work": {"w0": 0.34, "w1": 0.33, "w2": 0.33}},
}  # fmt: skip
"""What may be asked of the sensitive values of tuples."""

EVENTS: dict[str, Any] = {
    "method": "z-anonymity", "attribute": "site", "z": 3, "window": "10min",
}  # fmt: skip


def events(count: int) -> list[dict[str, Any]]:
    """Visits of people to sites and uses of apps; some come late, some lack a person or a time, one is far ahead."""
    found = [
        {
            "id": None if number % 211 == 9 else f"p{number * 7919 % 83}",
            "ts": 1_700_000_000 + number - (number * 31 % 90 if number % 6 == 0 else 0),
            "site": None if number % 53 == 0 else f"s{(number * number) % 97 % (3 + number % 60)}",
            "app": f"a{number * 13 % 29}" if number % 4 else None,
        }
        for number in range(count)
    ]
    found[count // 2]["ts"] += 10_000_000
    return found


def people(count: int) -> list[dict[str, Any]]:
    """Rows that differ; some values are missing, some rows are refused, some people come again."""
    return [
        {
            "id": "" if number % 97 == 5 else f"p{number % 50 if number % 9 == 0 else number}",
            "age": None if number % 7 == 3 else 20 + number * 13 % 50,
            "income": 1500 if number % 101 == 7 else number * 37 % 1000,
            "school": "kindergarten" if number % 89 == 4 else LEAVES[number * 7 // 3 % 4],
            "ts": 1_700_000_000 + 10 * (number - number % 5),
            "work": f"w{number % 3}",
        }
        for number in range(count)
    ]


class Stage:
    """A folder with input files and a policy."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "in").mkdir(parents=True)
        self.key = folder / "key"
        self.key.write_bytes(KEY)
        self.key.chmod(0o600)

    def write(self, rows: list[dict[str, Any]], *, files: int, kind: str = "csv") -> None:
        """Divide rows among files."""
        size = -(-len(rows) // files)
        for number in range(files):
            table = pa.Table.from_pylist(rows[number * size : (number + 1) * size])
            path = self.folder / "in" / f"part-{number}.{kind}"
            if kind == "csv":
                pyarrow.csv.write_csv(table, path)
            else:
                pq.write_table(table, path)

    def policy(self, anonymize: Mapping[str, Any], out: str, *, kind: str = "csv", time: bool = False) -> Path:
        """A policy file that writes to a folder of this name."""
        sections = {
            "stream": {"person": "id", **({"time": "ts"} if time else {})},
            "source": {"kind": kind, "path": "in/"},
            "anonymize": anonymize,
            "sink": {"kind": "parquet", "path": f"{out}/"},
            "trace": {"path": f"{out}.trace.parquet"},
            "dead_letters": {"path": f"{out}.dead.jsonl"},
        }
        path = self.folder / f"{out}.toml"
        path.write_text("\n".join(toml(sections)))
        load_policy(path)
        return path

    def rows(self, out: str) -> pa.Table:
        """What was published."""
        return pa.concat_tables([pq.read_table(part) for part in sorted((self.folder / out).glob("part-*.parquet"))])

    def letters(self, out: str) -> list[dict[str, Any]]:
        """The dead letters."""
        return [json.loads(line) for line in (self.folder / f"{out}.dead.jsonl").read_text().splitlines()]

    def trace(self, out: str) -> pa.Table:
        """The trace, opened."""
        return read_sealed_trace(self.folder / f"{out}.trace.parquet", as_secret(KEY))


def toml(table: Mapping[str, Any], path: tuple[str, ...] = ()) -> list[str]:
    lines = [f"[{'.'.join(path)}]"] if path else []
    lines += [
        f"{json.dumps(key)} = {json.dumps(value)}" for key, value in table.items() if not isinstance(value, Mapping)
    ]
    for key, value in table.items():
        if isinstance(value, Mapping):
            lines += toml(value, (*path, json.dumps(key)))
    return lines
