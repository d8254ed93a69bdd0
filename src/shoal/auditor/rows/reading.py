"""Read a release of rows with quasi-identifiers, and its truth, into relations.

Released rows: ``row``, ``broken``, ``faults`` (see `has_fault`), the columns of the quasi-identifiers, and each column
that is published unchanged as ``NAME: shown``. Records: ``record``, ``person``, ``usable``, ``time`` if asked for, the
values of the quasi-identifiers, and each unchanged column as ``NAME: true``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from shoal.auditor.engine import Place
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.numbers import read_numbers, read_ranges
from shoal.auditor.reading.rows import Rows
from shoal.auditor.relation import Relation, Shape, Texts
from shoal.auditor.rows.attributes import Attribute
from shoal.auditor.rows.quasi import FAULTS, Quasi, RangeFacts, quasi_of
from shoal.auditor.rows.rules import NumberRule, RowPromise, Rule
from shoal.auditor.rows.texts import texts_of
from shoal.errors import InputError


def shown(name: str) -> str:
    """What a relation calls a column of the release that is published unchanged."""
    return f"{name}: shown"


def true(name: str) -> str:
    """What a relation calls the same column of the truth."""
    return f"{name}: true"


def has_fault(rows: Relation, fault: str) -> Bools:
    """Mark rows with a fault in some quasi-identifier; rows that cannot be read are reported as such."""
    found: Bools = (rows["faults"] >> FAULTS.index(fault) & 1 > 0) & ~rows["broken"]
    return found


@dataclass(frozen=True, slots=True)
class RowReader:
    """Reads files of rows."""

    promise: RowPromise
    quasi: tuple[Quasi, ...]
    time: str | None = None
    """The column that records are decided by, if any."""
    more: tuple[str, ...] = ()
    """Further columns of the truth to read as texts."""

    @property
    def unchanged(self) -> tuple[str, ...]:
        """The columns that are published unchanged."""
        return tuple(dict.fromkeys((*self.promise.sensitive, *self.promise.carry)))

    @property
    def released_shape(self) -> Shape:
        """The columns of released rows."""
        texts = dict.fromkeys(map(shown, self.unchanged), str)
        return {"row": int, "broken": bool, "faults": int} | _shapes(one.shown for one in self.quasi) | texts

    @property
    def record_shape(self) -> Shape:
        """The columns of records."""
        time = {"time": int} if self.time is not None else {}
        texts = dict.fromkeys(map(true, (*self.unchanged, *self.more)), str)
        return {"record": int, "person": str, "usable": bool} | time | _shapes(one.true for one in self.quasi) | texts

    def released(self, rows: Rows, first: int) -> Relation:
        """Read released rows."""
        columns: dict[str, Any] = {"row": first + np.arange(len(rows)), "broken": rows.broken}
        faults = np.zeros(len(rows), np.int64)
        for one in self.quasi:
            found, wrong = one.read_shown(rows)
            columns |= found
            for name, marked in wrong.items():
                faults |= marked.astype(np.int64) << FAULTS.index(name)
        unchanged = {shown(name): texts_of(rows, name) for name in self.unchanged}
        return Relation({**columns, "faults": faults, **unchanged})

    def records(self, rows: Rows, first: int) -> Relation:
        """Read records; a usable one has a person (and a time, if that is asked for) and only allowed values."""
        person = persons_of(rows, self.promise.person)
        usable, columns = ~rows.broken & (person.codes >= 0), dict[str, Any]()
        for one in self.quasi:
            found, is_allowed = one.read_true(rows)
            columns |= found
            usable &= is_allowed
        if self.time is not None:
            columns["time"], has_time = rows.moments(self.time)
            usable &= has_time
        columns |= {true(name): texts_of(rows, name) for name in (*self.unchanged, *self.more)}
        return Relation({"record": first + np.arange(len(rows)), "person": person, "usable": usable, **columns})


def _shapes(shapes: Any) -> dict[str, type]:
    return {name: kind for shape in shapes for name, kind in shape.items()}


def persons_of(rows: Rows, name: str) -> Texts:
    """The persons of records; an empty identifier is nobody's."""
    found = texts_of(rows, name)
    return Texts(np.where(found.codes == found.of(""), -1, found.codes), found.texts)


def require_columns(place: Place, *names: str) -> None:
    """Raise InputError when the truth has rows and lacks a column."""
    outline = place.outline("truth")
    missing = [name for name in names if name not in outline.columns]
    if outline.rows and missing:
        raise InputError(f"truth: no column {', '.join(missing)}; check the policy and the file")


Make = Callable[[Rule, RangeFacts], Quasi]


def quasi_identifiers(place: Place, rules: Sequence[Rule], make: Make = quasi_of) -> tuple[Quasi, ...]:
    """The quasi-identifiers of a policy, after a look at how all files write their numbers."""
    numbers = tuple(rule.name for rule in rules if isinstance(rule, NumberRule))
    found = dict.fromkeys((rule.name for rule in rules), RangeFacts())
    for role in ("release", "truth") if numbers else ():
        for facts in place.facts(role, partial(_facts, numbers, is_release=role == "release")):
            found |= {name: found[name] | own for name, own in facts.items()}
    return tuple(make(rule, found[rule.name]) for rule in rules)


def _facts(names: Sequence[str], rows: Rows, *, is_release: bool) -> dict[str, RangeFacts]:
    if is_release:
        return {name: RangeFacts.of_ranges(read_ranges(rows.pieces(name))) for name in names}
    return {name: RangeFacts.of_numbers(read_numbers(rows.pieces(name))) for name in names}


# ---- the truth alone, as attacks look at it


@dataclass(frozen=True, slots=True)
class Records:
    """The truth's records; none without a truth."""

    person: Ints
    """-1 for a missing person."""
    usable: Bools
    time: Ints | None


def read_records(person: str, time: str | None, truth: Rows, attributes: Sequence[Attribute]) -> Records:
    """Read the records; a usable one has a person (and a time, if a column is named) and only allowed values."""
    code = persons_of(truth, person).codes
    usable = np.logical_and.reduce([code >= 0, ~truth.broken, *(attribute.usable for attribute in attributes)])
    moments = None
    if time is not None and len(truth):
        moments, has_time = truth.moments(time)
        usable &= has_time
    return Records(code, usable, moments)
