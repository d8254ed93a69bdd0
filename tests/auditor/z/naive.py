"""A naive publisher after Algorithm 1 (dicts, one record at a time) and what it needs; no code of shoal."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

SECOND = 1_000_000_000
HOUR = 3600

Row = dict[str, Any]
Path = Callable[[str], tuple[str, ...]]


def just_itself(value: str) -> tuple[str, ...]:
    return (value,)


def policy(*, z: int = 3, window: Any = HOUR, attribute: Any = "site", **rules: Any) -> dict[str, Any]:
    stream = {"person": "user", "time": "ts", "carry": list(rules.pop("carry", ()))}
    method = {"method": "z-anonymity", "attribute": attribute, "z": z, "window": window}
    return {"stream": stream, "anonymize": {**method, **rules}}


def pseudonym(person: object, time_s: float, rotation_s: float) -> str:
    epoch = int(time_s * SECOND) // int(rotation_s * SECOND)
    return hashlib.sha256(f"secret/{epoch}/{person}".encode()).hexdigest()[:32]


def records(rows: Iterable[tuple[Any, ...]], names: tuple[str, ...] = ("ts", "user", "site")) -> list[Row]:
    return [dict(zip(names, row, strict=True)) for row in rows]


def table(rows: list[Row], columns: Iterable[str] = ("ts", "user", "site")) -> pa.Table:
    return pa.table({name: pa.array([row.get(name) for row in rows]) for name in columns})


@dataclass
class Publisher:
    """Decide records one by one; `released` and `trace` grow."""

    z: int
    window_s: float
    attributes: tuple[str, ...] = ("site",)
    paths: Mapping[str, Path] = field(default_factory=dict)
    carry: tuple[str, ...] = ()
    lateness_s: float = 0
    rotation_s: float | None = None
    blank: bool = False
    is_strict: bool = True
    released: list[Row] = field(default_factory=list)
    trace: list[Row] = field(default_factory=list)

    def run(self, stream: list[Row]) -> Publisher:
        newest, kept = None, []
        for number, record in enumerate(stream):
            if record["user"] is None or record["ts"] is None:
                self._note(number, "dead", "null-person" if record["user"] is None else "null-time")
            elif newest is not None and record["ts"] < newest - self.lateness_s:
                self._note(number, "dead", "late")
            else:
                newest = record["ts"] if newest is None else max(newest, record["ts"])
                kept.append((record["ts"], number, record))
        seen: dict[str, list[tuple[Any, Any, tuple[str, ...], str | None]]] = {name: [] for name in self.attributes}
        for time, number, record in sorted(kept, key=lambda entry: entry[:2]):
            self._decide(time, number, record, seen)
        return self

    def _decide(self, time: Any, number: int, record: Row, seen: dict[str, list[Any]]) -> None:
        labels = {}
        for name in self.attributes:
            value = record[name]
            path = self.paths.get(name, just_itself)(value) if value is not None else ()
            labels[name] = self._label(path, time, record["user"], seen[name])
            seen[name].append((time, record["user"], path, labels[name]))
        if any(label is not None for label in labels.values()) or self.blank:
            rotation = self.rotation_s or self.window_s
            person = pseudonym(record["user"], time, rotation)
            self.released.append({"ts": time, "user": person, **labels, **{name: record[name] for name in self.carry}})
            self._note(number, "released")
        else:
            self._note(number, "suppressed")

    def _label(self, path: tuple[str, ...], time: Any, user: Any, seen: list[Any]) -> str | None:
        recent = [*(one for one in seen if one[0] >= time - self.window_s), (time, user, path, None)]
        return next((level for level in path if len(self._people(level, recent)) >= self.z), None)

    def _people(self, level: str, recent: list[Any]) -> set[Any]:
        people = set()
        for _, who, other, label in recent:
            below = other[: other.index(level)] if level in other else None
            if below is None or label in below:
                continue
            if not self.is_strict or all(len(self._people(step, recent)) < self.z for step in below):
                people.add(who)
        return people

    def _note(self, number: int, verdict: str, reason: str | None = None) -> None:
        self.trace.append({"row": number, "verdict": verdict, "reason": reason, "z": self.z})

    @property
    def columns(self) -> tuple[str, ...]:
        return ("ts", "user", *self.attributes, *self.carry)

    @property
    def release_table(self) -> pa.Table:
        return table(self.released, self.columns)

    @property
    def trace_table(self) -> pa.Table:
        return trace_table(self.trace)


def trace_table(rows: list[Row]) -> pa.Table:
    kinds = {"row": pa.int64(), "verdict": pa.string(), "reason": pa.string(), "z": pa.int64()}
    return pa.table({name: pa.array([row.get(name) for row in rows], kind) for name, kind in kinds.items()})
