"""A release of rows as an attacker sees it: classes of equal rows, and which of them fit a person's true values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.auditor.counting import combined, spelt_codes
from shoal.auditor.evidence import Evidence
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.numbers import Floats
from shoal.auditor.reading.rows import Rows
from shoal.auditor.rows.attributes import Attribute, Labels, Spans
from shoal.auditor.rows.reading import Records, read_records
from shoal.auditor.rows.rules import RowPromise, Rule
from shoal.auditor.trace import read_verdicts

_CELLS: Final = 8_000_000
"""How many pairs of people and classes are compared at once."""
Fits = npt.NDArray[np.bool_]
"""One line per target, one column per class."""
ReadAttribute = Callable[[Rule, Rows, Rows], Attribute]


@dataclass(frozen=True, slots=True)
class Released:
    """The released rows as classes of rows with equal quasi-identifiers."""

    of_row: Ints
    """The class of every released row."""
    rows: Ints
    """How many rows each class has."""
    first: Ints
    """A released row of each class."""
    volume: Floats
    """For each class the log of how many different people its ranges and labels could be of."""


@dataclass(frozen=True, slots=True)
class People:
    """Records, with their quasi-identifiers next to the released ones."""

    attributes: tuple[Attribute, ...]
    records: Records
    targets: Ints
    """The records that are attacked: one of each chosen person."""
    sensitive: dict[str, tuple[Ints, Ints, list[str]]]
    """For every sensitive column the values of the records, of the released rows, and their names; null is -1."""

    @property
    def person(self) -> Ints:
        """The person of every record; -1 for a missing one."""
        return self.records.person

    @property
    def count(self) -> int:
        """How many people have a record that can be used."""
        return len(np.unique(self.person[self.records.usable]))

    @property
    def knowledge(self) -> str:
        """What attackers know who know all quasi-identifiers."""
        return "the person's true " + ", ".join(attribute.name for attribute in self.attributes)

    def values_of(self, name: str, names: list[str]) -> Ints | None:
        """The values of a sensitive column by their place in `names` from 1 on: 0 is null, -1 any other."""
        if name not in self.sensitive:
            return None
        values, _, texts = self.sensitive[name]
        number = {text: place for place, text in enumerate(names, 1)}
        return np.array([*(number.get(text, -1) for text in texts), 0], np.int64)[values]  # code -1 picks the last


@dataclass(frozen=True, slots=True)
class RowEvidence:
    """Everything that attacks on rows use."""

    released: Released
    members: People
    outsiders: People | None
    """People who are not in the data."""
    record_of: Ints | None
    """The record of every released row, from the trace (-1: none); None without a trace."""
    class_of: Ints | None
    """The class of every record; -1 if it was not published."""
    event: Ints | None
    """The arrival at which each row was published."""
    promise: Any
    random: np.random.Generator

    @property
    def rows(self) -> int:
        """How many rows were released."""
        return len(self.released.of_row)

    def rows_by_person(self) -> tuple[Ints, Ints, Ints]:
        """The records with a row, by person; where those of each person begin; and how many there are.

        Without a trace: all that can be used.
        """
        usable = self.members.records.usable
        rows = np.flatnonzero(usable if self.class_of is None else usable & (self.class_of >= 0))
        order = rows[np.argsort(self.members.person[rows], kind="stable")]
        _, start, size = np.unique(self.members.person[order], return_index=True, return_counts=True)
        return order, start, size

    def own_rows(self, targets: Ints, classes: Ints) -> Ints:
        """Count, for pairs of a target and a class, the rows of the class that are of the target's person."""
        assert self.record_of is not None
        shown = np.flatnonzero(self.record_of >= 0)
        width = len(self.released.rows)
        pairs, counts = np.unique(
            self.members.person[self.record_of[shown]] * width + self.released.of_row[shown], return_counts=True
        )
        asked = self.members.person[targets] * width + classes
        place = np.minimum(np.searchsorted(pairs, asked), max(len(pairs) - 1, 0))
        return np.where(pairs[place] == asked, counts[place], 0) if len(pairs) else np.zeros(len(asked), np.int64)


def read_row_evidence(
    evidence: Evidence, promise: RowPromise, control: Rows | None, read_attribute: ReadAttribute,
    *, knows: Sequence[str] | None, targets: int, seed: int,
) -> RowEvidence:  # fmt: skip
    """Read a release and its truth; ``knows`` names the quasi-identifiers that attackers know (None: all)."""
    assert evidence.truth is not None
    random = np.random.default_rng(seed)
    rules = [rule for rule in promise.quasi if knows is None or rule.name in knows]
    time = getattr(promise, "time", None)
    members = _people(evidence.release, evidence.truth, promise, rules, read_attribute, time)
    released = _classes(members.attributes, len(evidence.release))
    record_of = event = class_of = None
    if evidence.trace is not None:
        record_of, event = _link(evidence.trace, len(evidence.truth), len(evidence.release), promise)
    if record_of is not None:
        class_of = np.full(len(evidence.truth), -1, np.int64)
        shown = np.flatnonzero(record_of >= 0)
        class_of[record_of[shown]] = released.of_row[shown]
    outsiders = None
    if control is not None:
        outsiders = _people(evidence.release, control, promise, rules, read_attribute, None)
        outsiders = _with_targets(outsiders, outsiders.records.usable, targets, random)
    attackable = members.records.usable if class_of is None else members.records.usable & (class_of >= 0)
    return RowEvidence(
        released=released,
        members=_with_targets(members, attackable, targets, random),
        outsiders=outsiders,
        record_of=record_of,
        class_of=class_of,
        event=event,
        promise=promise,
        random=random,
    )


def _people(
    release: Rows, known: Rows, promise: RowPromise, rules: Sequence[Rule], read_attribute: ReadAttribute,
    time: str | None,
) -> People:  # fmt: skip
    known.require(*(rule.name for rule in rules))
    attributes = tuple(read_attribute(rule, release, known) for rule in rules)
    named = promise.person if promise.person in known.columns else None
    if named is None:
        count = len(known)
        records = Records(
            np.arange(count), np.logical_and.reduce([~known.broken, *(a.usable for a in attributes)]), None
        )
    else:
        records = read_records(named, time if time in known.columns else None, known, attributes)
    sensitive = {}
    for name in promise.sensitive:
        if name in known.columns and name in release.columns:
            names, true, shown = spelt_codes(name, known, release)
            sensitive[name] = (true, shown, names)
    return People(attributes, records, np.zeros(0, np.int64), sensitive)


def _with_targets(people: People, attackable: Bools, count: int, random: np.random.Generator) -> People:
    """Choose persons at random, and one record of each."""
    rows = random.permutation(np.flatnonzero(attackable))
    _, first = np.unique(people.person[rows], return_index=True)
    chosen = random.permutation(rows[first])[:count]
    return People(people.attributes, people.records, chosen, people.sensitive)


def _classes(attributes: Sequence[Attribute], count: int) -> Released:
    of_row = combined([attribute.code for attribute in attributes], count)
    different, first, of_row, rows = np.unique(of_row, return_index=True, return_inverse=True, return_counts=True)
    volume = np.zeros(len(different))
    for attribute in attributes:
        volume += np.log1p(attribute.loss[first] * max(_distinct(attribute) - 1, 0))
    return Released(of_row, rows, first, volume)


def _distinct(attribute: Attribute) -> int:
    if isinstance(attribute, Labels):
        return len(np.unique(attribute.true_code))
    return len(np.unique(attribute.true_value)) if isinstance(attribute, Spans) else 1


def _link(trace: Rows, records: int, released: int, promise: Any) -> tuple[Ints | None, Ints | None]:
    """Return the record and the event of every released row, if the trace fits the release."""
    if not {"row", "verdict"} <= set(trace.columns):
        return None, None
    shows = bool(getattr(promise, "shows_suppressed", False))
    found = read_verdicts(trace, records=records, released=released, shows_suppressed=shows)
    if not found.is_linked:
        return None, None
    event = trace.numbers("event")[found.is_shown] if "event" in trace.columns else None
    return np.where(found.exists, found.row, -1)[found.is_shown], event


def fitting(people: People, rows: Ints, shown: Ints) -> Fits:
    """Return which released rows may be of which records; a missing value, on either side, rules nothing out."""
    found = np.ones((len(rows), len(shown)), np.bool_)
    for attribute in people.attributes:
        found &= fitting_one(attribute, rows, shown)
    return found


def fitting_one(attribute: Attribute, rows: Ints, shown: Ints) -> Fits:
    """Return which released rows may be of which records, by one attribute."""
    if isinstance(attribute, Spans):
        value = attribute.true_value[rows][:, None]
        outside = (attribute.low[shown] > value + attribute.slack) | (attribute.high[shown] < value - attribute.slack)
        return ~outside  # NaN compares false
    assert isinstance(attribute, Labels)
    values, of_row = np.unique(attribute.true_code[rows], return_inverse=True)
    labels, of_shown = np.unique(attribute.code[shown], return_inverse=True)
    pairs = np.repeat(values, len(labels)), np.tile(labels, len(values))
    covers = (attribute.paths.level(*pairs) >= 0) | (pairs[0] < 0) | (pairs[1] < 0)
    found: Fits = covers.reshape(len(values), len(labels))[of_row][:, of_shown]
    return found


def chunks(targets: Ints, width: int) -> list[Ints]:
    """Split targets so that a line per target and ``width`` columns fit into memory."""
    step = max(_CELLS // max(width, 1), 1)
    return [targets[start : start + step] for start in range(0, len(targets), step)]


def raw_codes(people: People) -> npt.NDArray[np.int64]:
    """Number the true values: one line per record, one column per attribute; -1 is a missing value."""
    columns = []
    for attribute in people.attributes:
        if isinstance(attribute, Labels):
            columns.append(attribute.true_code)
        elif isinstance(attribute, Spans):
            code = np.unique(attribute.true_value, return_inverse=True)[1]
            columns.append(np.where(np.isnan(attribute.true_value), -1, code))
    return np.stack(columns, axis=1) if columns else np.zeros((len(people.person), 0), np.int64)


def equal_records(people: People) -> Ints:
    """Number the combinations of true values of usable records; -1 for records that cannot be used."""
    usable = people.records.usable
    found = np.full(len(usable), -1, np.int64)
    found[usable] = combined(list(raw_codes(people)[usable].T), int(usable.sum()))
    return found
