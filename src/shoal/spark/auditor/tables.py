"""A plain table on Spark: rows with equal quasi-identifiers meet in one task, which counts them as one machine does."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.auditor.findings import AuditReport, Notes
from shoal.auditor.policy import Policy
from shoal.auditor.reading.batches import Columns, read_batches
from shoal.auditor.reading.memory import limited
from shoal.auditor.reading.paths import Format
from shoal.auditor.tables.classes import class_sizes, packed
from shoal.auditor.tables.coded_rows import Matrix
from shoal.auditor.tables.coding import Codes, Entry, exact_key, person_key
from shoal.auditor.tables.judge import Presence, Sizes, exposed_people, note_counts
from shoal.auditor.tables.promise import TablePromise, read_promise
from shoal.auditor.tables.sensitive import SensitiveColumn
from shoal.spark.auditor.engine import Engine, Message, Step, result
from shoal.spark.auditor.hashing import bins_for, mixed, of_text
from shoal.spark.auditor.people import People, count_people, mark_of, to_people
from shoal.spark.auditor.shares import Share, shares_of

_TABLE, _POPULATION = "table", "population"
Hashes = npt.NDArray[np.uint64]


def audit_table(engine: Engine, policy: Policy, table: Any, max_memory: int | None) -> AuditReport:
    """Check a table against ``[table]`` of a policy."""
    promise, notes = read_promise(policy), Notes()
    notes.counts_rows = promise.person is None
    expected = Format.of(policy.section("sink"))
    shares = shares_of(table, _TABLE, expected, max_memory)
    population = policy.section("table").get("population")
    others = []
    if population is not None:
        place = policy.folder / population if isinstance(population, str) else population
        others = shares_of(place, _POPULATION, expected, max_memory)
    totals, found = _run(engine, promise, shares, others)
    _report(promise, totals, found, notes)
    return notes.report("table")


def count_classes(engine: Engine, promise: TablePromise, shares: Sequence[Share]) -> tuple[Sizes, int]:
    """Count the rows of every class of some files, and the different people."""
    sizes, people = Sizes(), 0
    for part in _run(engine, promise, shares, [])[1]:
        if isinstance(part, People):
            people += part.all
        else:
            sizes.merge(part.sizes)
    return sizes, people


def count_rows(engine: Engine, promise: TablePromise, shares: Sequence[Share]) -> int:
    """Count the rows of some files."""
    return sum(part.rows for part in engine.run(shares, CountValues(promise)))


def _run(
    engine: Engine, promise: TablePromise, shares: Sequence[Share], others: Sequence[Share]
) -> tuple[_Totals, list[Any]]:
    totals = _Totals()
    for part in engine.run(shares, CountValues(promise)):
        totals.merge(part)
    bins = bins_for(totals.rows, engine.tasks)
    divide, count = DivideRows(promise, bins), CountClasses(promise, totals.values, bins, knows_population=bool(others))
    return totals, engine.run([*shares, *others], divide, Step(bins, count), Step(bins, count_people))


def _report(promise: TablePromise, totals: _Totals, found: Sequence[Any], notes: Notes) -> None:
    sizes, presence = Sizes(), Presence(promise)
    people = exposed = 0
    columns = [_column(name, promise, totals.values[name]) for name in promise.sensitive]
    knows_population = False
    for part in found:
        if isinstance(part, People):
            people, exposed = people + part.all, exposed + part.exposed
            continue
        sizes.merge(part.sizes)
        for column, own in zip(columns, part.sensitive, strict=True):
            column.merge(*own)
        if part.presence is not None:
            knows_population = True
            presence.merge(*part.presence)
    note_counts(promise, totals.rows, totals.suppressed, notes)
    sizes.report(promise, None if promise.person is None else people, exposed, notes)
    for column in columns:
        column.report(notes)
    if knows_population:
        presence.report(notes)
    if promise.m is not None:
        notes.skip(f"Whether k holds for anyone who knows {promise.m} values was not counted: not on Spark yet.")


# ---- first: how often each sensitive value is in the table


@dataclass(slots=True)
class _Totals:
    """Counts of rows, and of the sensitive values of rows that are not suppressed."""

    rows: int = 0
    suppressed: int = 0
    values: dict[str, Counter[Entry]] = field(default_factory=dict)

    def merge(self, other: _Totals) -> None:
        self.rows += other.rows
        self.suppressed += other.suppressed
        for name, counts in other.values.items():
            self.values.setdefault(name, Counter()).update(counts)


@dataclass(frozen=True, slots=True)
class CountValues:
    """Counts the rows and the sensitive values of a file."""

    promise: TablePromise

    def __call__(self, share: Share) -> Iterator[Message]:
        found, promise = _Totals(values={name: Counter() for name in self.promise.sensitive}), self.promise
        for columns in _read(share, promise.columns):
            shown = _shown(columns, promise)
            found.rows += len(shown)
            found.suppressed += int((~shown).sum())
            for name in promise.sensitive:
                codes = Codes(name)
                counts = np.bincount(codes.encode(columns[name])[shown], minlength=len(codes)).tolist()
                found.values[name].update({key: n for key, n in zip(codes.entries, counts, strict=True) if n})
        yield result(found)


def _read(share: Share, names: tuple[str, ...]) -> Iterator[Columns]:
    with limited(share.max_memory):
        yield from read_batches(share.path, names, name=share.role, expected=share.expected)


def _shown(columns: Columns, promise: TablePromise) -> npt.NDArray[np.bool_]:
    """Return which rows are not suppressed."""
    length = len(columns[promise.quasi[0]])
    if promise.suppressed is None:
        return np.ones(length, np.bool_)
    shown = np.zeros(length, np.bool_)
    for name in promise.quasi:
        codes = Codes(name)
        numbers = codes.encode(columns[name])
        shown |= numbers != codes.of(promise.suppressed)
    return shown


# ---- second: rows to the bin of their class


@dataclass(frozen=True, slots=True)
class DivideRows:
    """Sends the rows of a file to the bins of their classes."""

    promise: TablePromise
    bins: int

    def __call__(self, share: Share) -> Iterator[Message]:
        promise = self.promise
        names = promise.quasi if share.role == _POPULATION else promise.columns
        for columns in _read(share, names):
            coded = _Coded.of(columns, names, promise.person)
            of = mixed([coded.hashes[name] for name in promise.quasi]) % np.uint64(self.bins)
            shown = np.ones(len(of), np.bool_) if share.role == _POPULATION else _shown(columns, promise)
            for number in np.unique(of).tolist():
                rows = np.flatnonzero((of == number) & shown)
                kind = _POPULATION if share.role == _POPULATION else _TABLE
                yield Message(int(number), kind, coded.rows(rows))
            hidden = np.flatnonzero(~shown)
            if promise.person is not None and len(hidden):
                yield Message(0, "persons", pickle.dumps(_persons_of(coded, promise.person, hidden)))


def _codes(name: str, person: str | None, known: Iterable[Entry] = ()) -> Codes:
    return Codes(name, person_key if name == person else exact_key, known)


@dataclass(frozen=True, slots=True)
class _Coded:
    """Columns as numbers, with the values that the numbers stand for."""

    keys: dict[str, list[Entry]]
    numbers: dict[str, npt.NDArray[np.int32]]
    hashes: dict[str, Hashes]

    @classmethod
    def of(cls, columns: Columns, names: Sequence[str], person: str | None) -> _Coded:
        keys, numbers, hashes = {}, {}, {}
        for name in names:
            codes = _codes(name, person)
            numbers[name] = codes.encode(columns[name]).astype(np.int32)
            keys[name] = codes.entries
            hashes[name] = np.array([of_text(repr(key)) for key, _ in codes.entries], np.uint64)[numbers[name]]
        return cls(keys, numbers, hashes)

    def rows(self, rows: npt.NDArray[np.int64]) -> bytes:
        """Some rows as bytes, with the values they have."""
        found = {}
        for name, numbers in self.numbers.items():
            used, places = np.unique(numbers[rows], return_inverse=True)
            found[name] = [self.keys[name][at] for at in used.tolist()], places.astype(np.int32)
        return pickle.dumps(found)


def _persons_of(coded: _Coded, name: str, rows: npt.NDArray[np.int64]) -> list[bytes]:
    return [mark_of(coded.keys[name][at][0]) for at in np.unique(coded.numbers[name][rows]).tolist()]


# ---- third: classes


@dataclass(frozen=True, slots=True)
class Counted:
    """What was found in the classes of a bin."""

    sizes: Sizes
    sensitive: list[tuple[dict[str, float], dict[str, int], str | None]]
    presence: tuple[list[float], list[float], int, int] | None


def _column(name: str, promise: TablePromise, counts: Mapping[Entry, int], place: int = 0) -> SensitiveColumn:
    column = SensitiveColumn(Codes(name, known=counts), place, promise)
    column.expect(np.array(list(counts.values()), np.int64))
    return column


@dataclass(frozen=True, slots=True)
class CountClasses:
    """Counts the classes of a bin; sends the people on to bins of people."""

    promise: TablePromise
    values: Mapping[str, Mapping[Entry, int]]
    bins: int
    knows_population: bool

    def __call__(self, number: int, kinds: dict[str, list[bytes]]) -> Iterator[Message]:
        promise, width = self.promise, len(self.promise.quasi)
        codes = {name: _codes(name, promise.person, self.values.get(name, ())) for name in promise.columns}
        rows = _numbered(kinds.get(_TABLE, ()), promise.columns, codes)
        others = _numbered(kinds.get(_POPULATION, ()), promise.quasi, codes)
        widths = [max(len(codes[name]), 1) for name in promise.quasi]
        key, size = packed([rows[:, at] for at in range(width)], widths)
        person = None
        if promise.person is not None:
            person = np.where(rows[:, -1] == codes[promise.person].of(None), -1, rows[:, -1])
        classes, count, people = class_sizes(
            key, person, 1 if person is None else max(len(codes[str(promise.person)]), 1)
        )
        sizes = Sizes()
        sizes.add(people, count, promise.k)
        found = []
        for place, name in enumerate(promise.sensitive, width):
            column = _column(name, promise, self.values[name], place)
            column.measure(key, size, rows)
            found.append(column.found)
        presence = Presence(promise)
        if self.knows_population:
            presence.compare(rows[:, :width], others, widths)
        yield result(Counted(sizes, found, presence.found if self.knows_population else None))
        if person is not None:
            small, people_of = people < (promise.k or 0), codes[str(promise.person)].entries
            exposed = set(exposed_people(person, key, classes, small).tolist())
            marks = [(mark_of(people_of[at][0]), at in exposed) for at in np.unique(person[person >= 0]).tolist()]
            marks += [(mark, False) for data in kinds.get("persons", ()) for mark in pickle.loads(data) if mark]
            yield from to_people(marks, self.bins)


def _numbered(parts: Sequence[bytes], names: Sequence[str], codes: Mapping[str, Codes]) -> Matrix:
    """The rows of several parts, as numbers that all parts share."""
    found = [np.zeros((0, len(names)), np.int32)]
    for data in parts:
        part = pickle.loads(data)
        columns = []
        for name in names:
            keys, places = part[name]
            columns.append(codes[name].add(keys)[places])
        found.append(np.stack(columns, axis=1).astype(np.int32))
    return np.concatenate(found)
