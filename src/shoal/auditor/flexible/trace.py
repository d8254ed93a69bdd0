"""The trace next to the records: every usable record is released or pending, and every other one refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from shoal.auditor.checks import Check, Found, look
from shoal.auditor.counting import combined, people_of
from shoal.auditor.findings import Finding
from shoal.auditor.flexible.checks import held_back, lost, still_pending
from shoal.auditor.flexible.crowds import counted
from shoal.auditor.flexible.density import needed_k
from shoal.auditor.flexible.promise import FlexiblePromise
from shoal.auditor.flexible.quasi import FlexibleLabels, FlexibleQuasi
from shoal.auditor.reading.columns import Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.relation import Relation, Shape, Texts
from shoal.auditor.rows.texts import matched, stacked, texts_of
from shoal.auditor.trace import DEAD, RELEASED

DETAILS: Final = ("group", "delay", "k", "k_s")
"""Columns of numbers of a trace; -1 for none."""
ENTRY: Final[Shape] = {**dict.fromkeys(DETAILS, int), "reason": str}
ARRIVAL: Final[Shape] = {
    "entry": int, "record": int, "verdict": int, "delay": int, "usable": bool, "exists": bool, "is_first": bool
}  # fmt: skip
DECISION: Final[Shape] = {**ARRIVAL, "group": int, "reason": str}


def details(trace: Rows) -> dict[str, Any]:
    """What entries say besides a verdict."""
    return {**{name: trace.numbers(name) for name in DETAILS}, "reason": texts_of(trace, "reason")}


def alone(entries: Relation) -> Relation:
    """Entries where there is no truth: every number may be that of a record."""
    every = entries.having(exists=entries["record"] >= 0, usable=np.zeros(len(entries), np.bool_))
    return _with_first(every).only(*DECISION)


def decided(entries: Relation, records: Relation) -> Relation:
    """Every entry next to its record, and every record without one."""
    known = records.having(exists=np.ones(len(records), np.bool_)).only("record", "usable", "exists")
    left = known.take(~np.isin(known["record"], entries["record"]))
    return stacked([_with_first(matched(entries, known, "record")).only(*DECISION), undecided(left)])


def undecided(records: Relation) -> Relation:
    """Records without an entry, as entry -1."""
    nothing, yes = np.full(len(records), -1), np.ones(len(records), np.bool_)
    entry = {"entry": nothing, "verdict": nothing, "group": nothing, "delay": nothing, "reason": Texts(nothing, [])}
    return records.having(**entry, exists=yes, is_first=yes).only(*DECISION)


def _with_first(entries: Relation) -> Relation:
    """Mark the first entry about each record."""
    order = np.lexsort((entries["entry"], entries["record"]))
    record, is_first = entries["record"][order], np.zeros(len(order), np.bool_)
    is_first[order] = np.append(True, record[1:] != record[:-1])[: len(order)]
    return entries.having(is_first=is_first)


@dataclass(slots=True)
class Decisions:
    """What was found in a part of the trace."""

    found: Found
    delays: Counter[int] = field(default_factory=Counter)


def look_at_decisions(checks: Sequence[Check], rows: Relation) -> Decisions:
    """Check entries, and records without one."""
    entries, undecided = rows.take(rows["entry"] >= 0), rows.take(rows["entry"] < 0)
    found = Found([*look(entries, checks), *look(undecided, (lost, still_pending))])
    is_released, is_dead = entries["verdict"] == RELEASED, entries["verdict"] == DEAD
    found.sums = {
        "released": int(is_released.sum()),
        "dead": int(is_dead.sum()),
        "pending": int(undecided["usable"].sum()),
        "without reason": int((is_dead & entries["exists"] & (entries.codes("reason") < 0)).sum()),
        "strangers": int((is_released & ~entries["exists"]).sum()),
    }
    delay = entries["delay"][is_released]
    return Decisions(found, counted(delay[delay >= 0]))


# ---- when records came


@dataclass(slots=True)
class Arrivals:
    """Usable records in the order in which they came; a delay is counted in them."""

    usable: int = 0
    before_first: int | None = None
    """How many had come when the first row was released."""
    last_pending: int = 0
    """How many had come with the last one that was pending and then released."""

    def seen(self, window: int) -> int:
        """How many were there in a round of grouping: after every window, and at a flush."""
        full = self.usable // window * window
        return self.usable if self.last_pending > full else full


def count_arrivals(parts: Iterable[Relation]) -> Arrivals:
    """Count along decisions, in the order of their records."""
    found = Arrivals()
    for rows, arrived in _arrived(parts):
        released = rows["exists"] & (rows["verdict"] == RELEASED)
        at, delay = arrived[released], rows["delay"][released]
        soonest = [int((at + delay).min())] if len(at) else []
        found.usable = int(arrived[-1])
        found.before_first = min((*soonest, *_known(found.before_first)), default=None)
        found.last_pending = max(found.last_pending, int(at[delay > 0].max(initial=0)))
    return found


def _known(number: int | None) -> tuple[int, ...]:
    return () if number is None else (number,)


def _arrived(parts: Iterable[Relation]) -> Iterator[tuple[Relation, Ints]]:
    """Every part with the number of usable records up to each row; a record counts once."""
    before = 0
    for rows in parts:
        if len(rows):
            arrived = before + np.cumsum(rows["usable"] & rows["is_first"])
            before = int(arrived[-1])
            yield rows, arrived


def last_of(counts: Sequence[int], parts: Iterable[Relation]) -> list[int]:
    """The records with which so many usable ones had come; -1 if they never had."""
    found = [-1] * len(counts)
    for rows, arrived in _arrived(parts):
        for place, count in enumerate(counts):
            if found[place] < 0 and 0 < count <= arrived[-1]:
                found[place] = int(rows["record"][np.searchsorted(arrived, count)])
    return found


# ---- pending records


def finest_shape(quasi: Sequence[FlexibleQuasi]) -> Shape:
    """The columns in which records are equal that no published value distinguishes."""
    return {f"{one.name}: finest": str if isinstance(one, FlexibleLabels) else int for one in quasi}


def pending(
    quasi: Sequence[FlexibleQuasi], promise: FlexiblePromise, last: int, records: Relation, entries: Relation
) -> Relation:
    """Usable records up to the last one that a round of grouping saw, without an entry of the trace."""
    left = ~np.isin(records["record"], entries["record"])
    rows = records.take(left & records["usable"] & (records["record"] <= last))
    finest = {name: one.finest(rows) for name, one in zip(finest_shape(quasi), quasi, strict=True)}
    own_k = needed_k(promise, quasi, rows, np.ones(len(rows), np.bool_))
    return Relation({"person": rows["person"], "own_k": own_k, **finest})


def look_at_pending(names: Sequence[str], rows: Relation) -> list[Finding]:
    """Count the people of pending records with the same values."""
    alike = combined([rows.codes(name) for name in names], len(rows))
    people = people_of(alike, rows.codes("person"))
    needed = np.zeros(len(people), np.int64)
    np.maximum.at(needed, alike, rows["own_k"])
    return held_back(rows.having(people=people[alike], needed=needed[alike]))
