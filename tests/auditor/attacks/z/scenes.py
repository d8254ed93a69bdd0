"""Streams made by hand, and their pseudonymous releases."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from shoal import attack

HOUR = 3600
POLICY: dict[str, Any] = {
    "stream": {"person": "user", "time": "ts"},
    "anonymize": {"method": "z-anonymity", "attribute": "site", "z": 1, "window": "1h"},
}


def stream(values: Any, people: int = 30, epochs: int = 2, events: int = 4, *, same_moment: bool = False) -> pa.Table:
    """Everybody shows a few values in every epoch."""
    rows = [
        {"ts": epoch * HOUR + event * 100 + (0 if same_moment else person), "user": f"u{person}",
         "site": values(person, epoch, event)}
        for epoch in range(epochs) for event in range(events) for person in range(people)
    ]  # fmt: skip
    return pa.Table.from_pylist(sorted(rows, key=lambda row: row["ts"]))


def pseudonymous(truth: pa.Table) -> pa.Table:
    """Every row, with a pseudonym for each person and epoch."""
    users = truth.column("user").to_pylist()
    names = [
        f"{hash_of(user, ts // HOUR):032x}" for user, ts in zip(users, truth.column("ts").to_pylist(), strict=True)
    ]
    return truth.set_column(1, "user", pa.array(names))


def hash_of(user: str, epoch: int) -> int:
    return (int(user[1:]) * 7919 + epoch * 104_729 + 12_345) ** 5 % 2**128


def trace_of(rows: int) -> pa.Table:
    return pa.table({"row": range(rows), "verdict": ["released"] * rows, "reason": pa.nulls(rows, pa.string())})


def attacked(truth: pa.Table, policy: dict[str, Any] = POLICY, release: pa.Table | None = None) -> Any:
    return attack(pseudonymous(truth) if release is None else release, truth, policy, trace=trace_of(len(truth)))
