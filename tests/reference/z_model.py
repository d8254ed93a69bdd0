"""All of z-anonymity as plain lists and sets: sorting by lateness, clock, counting, generalizing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.reference.clock import RESTART, TAKEN, NaiveClock
from tests.reference.residual import Exposure, level_of

Path = Callable[[str], tuple[str, ...]]


@dataclass(frozen=True)
class Column:
    """An attribute column; `path` gives the labels of a value, none for one the hierarchy does not know."""

    name: str
    z: int
    window: int
    path: Path = lambda value: (value,)
    strict: bool = True


@dataclass(frozen=True)
class Verdict:
    """What became of one record: its number, the verdict, a reason if dead, the labels it leaves under."""

    row: int
    verdict: str
    reason: str | None = None
    labels: tuple[str | None, ...] = ()


@dataclass
class NaiveZ:
    """Records are dicts; times are whole nanoseconds or None."""

    columns: tuple[Column, ...]
    lateness: int = 0
    max_gap: int = 86_400 * 10**9
    keeps_blank: bool = False
    seen: int = 0
    held: list[tuple[int, int, Mapping[str, Any]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock = NaiveClock(self.lateness, self.max_gap)
        self.past: dict[str, list[Exposure]] = {column.name: [] for column in self.columns}

    def push(self, record: Mapping[str, Any]) -> list[Verdict]:
        row, self.seen = self.seen, self.seen + 1
        reason = self._trouble(record)
        if reason is not None:
            return [Verdict(row, "dead", reason)]
        code = self.clock.admit(record["person"], record["time"])
        refused = []
        if code == RESTART:
            refused = self._forget()
        elif code != TAKEN:
            return [Verdict(row, "dead", code)]
        self.held.append((record["time"], row, record))
        return refused + self._decide_until(self.clock.newest - self.lateness)

    @property
    def waits(self) -> int:
        """How many records have no verdict yet."""
        return len(self.held)

    def _forget(self) -> list[Verdict]:
        refused = [Verdict(held, "dead", "ahead") for _, held, _ in sorted(self.held, key=lambda one: one[:2])]
        self.held = []
        self.past = {column.name: [] for column in self.columns}
        return refused

    def advance(self, now: int) -> list[Verdict]:
        self.clock.advance(now)
        return self._decide_until(self.clock.newest - self.lateness)

    def flush(self) -> list[Verdict]:
        if not self.held:
            return []
        last = max(time for time, _, _ in self.held)
        verdicts = self._decide_until(last)
        self.clock.close(last)
        return verdicts

    def _trouble(self, record: Mapping[str, Any]) -> str | None:
        if not record["person"]:
            return "null-person"
        if record["time"] is None:
            return "null-time"
        for column in self.columns:
            value = record[column.name]
            if value is not None and not column.path(value):
                return f"unknown-value.{column.name}"
        return None

    def _decide_until(self, limit: int) -> list[Verdict]:
        ready = sorted((one for one in self.held if one[0] <= limit), key=lambda one: one[:2])
        self.held = [one for one in self.held if one[0] > limit]
        return [self._decide(*one) for one in ready]

    def _decide(self, time: int, row: int, record: Mapping[str, Any]) -> Verdict:
        labels = tuple(self._label(column, record[column.name], record["person"], time) for column in self.columns)
        if self.keeps_blank or any(label is not None for label in labels):
            return Verdict(row, "released", None, labels)
        return Verdict(row, "suppressed")

    def _label(self, column: Column, value: str | None, person: Any, time: int) -> str | None:
        if value is None:
            return None
        past, path = self.past[column.name], column.path(value)
        recent = [one for one in past if one.time >= time - column.window]
        level = level_of(recent, Exposure(time, person, path, None), z=column.z, strict=column.strict)
        label = path[level] if level >= 0 else None
        past.append(Exposure(time, person, path, label))
        return label
