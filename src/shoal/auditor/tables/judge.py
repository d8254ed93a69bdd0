"""Judge a plain table: count its classes, measure the models, and compare with what is promised."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from shoal.auditor.findings import AuditReport, Notes
from shoal.auditor.policy import Policy
from shoal.auditor.reading.batches import Columns, read_batches
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.paths import Format
from shoal.auditor.tables.classes import MOST, TooManyValues, class_sizes, packed, runs
from shoal.auditor.tables.coded_rows import CodedRows, Matrix
from shoal.auditor.tables.coding import Codes, exact_key, person_key
from shoal.auditor.tables.promise import TablePromise, read_promise
from shoal.auditor.tables.sensitive import SensitiveColumn


def judge_table(policy: Policy, table: Any) -> AuditReport:
    """Check a table against ``[table]`` of a policy. Rows are read once, in batches."""
    promise, notes = read_promise(policy), Notes()
    notes.counts_rows = promise.person is None
    expected = Format.of(policy.section("sink"))
    population = policy.section("table").get("population")
    with ExitStack() as stack:
        judge = _Judge(promise, notes, stack)
        judge.read(table, "table", expected)
        if population is not None:
            judge.read_population(_located(population, policy.folder), expected)
        judge.judge()
    return notes.report("table")


def _located(population: Any, folder: Path) -> Any:
    return folder / population if isinstance(population, str | Path) else population


@dataclass(slots=True)
class Sizes:
    """What is known of the classes of all parts."""

    classes: int = 0
    smallest: int | None = None
    unique: int = 0
    rows: int = 0
    below: int = 0
    """Rows in a class of fewer than k."""

    def add(self, people: Ints, rows: Ints, k: int | None) -> None:
        """Add the classes of a part: people and rows of each."""
        below = 0 if k is None else int(rows[people < k].sum())
        smallest = int(people.min()) if len(people) else None
        self.merge(Sizes(len(people), smallest, int((rows == 1).sum()), int(rows.sum()), below))

    def merge(self, other: Sizes) -> None:
        """Add other classes."""
        found = [size for size in (self.smallest, other.smallest) if size is not None]
        self.smallest = min(found, default=None)
        self.classes += other.classes
        self.unique += other.unique
        self.rows += other.rows
        self.below += other.below

    def report(self, promise: TablePromise, people: int | None, exposed: int, notes: Notes) -> None:
        """Report the sizes of classes. `people` are all people, `exposed` those in classes of fewer than k."""
        metrics, k = notes.metrics, promise.k
        metrics["classes"] = self.classes
        metrics["smallest_k"] = self.smallest
        metrics["counted_in_classes"] = "rows (at least as many as people)" if promise.person is None else "people"
        metrics["unique_rows"] = self.unique
        if people is not None:
            metrics["released_people"] = people
        if k is None:
            return
        metrics["rows_below_k_share"] = self.below / self.rows if self.classes else None
        if people is not None:
            metrics["people_below_k_share"] = exposed / people if exposed else 0.0
        unit = "rows" if promise.person is None else "people"
        sentence = f"Rows are in classes of fewer than {k} {unit}; generalize or remove them."
        notes.violation("below-k", sentence, count=self.below)


def note_counts(promise: TablePromise, count: int, suppressed: int, notes: Notes) -> None:
    """Report how many rows there are, and if nothing is promised about them."""
    if not promise.is_promised:
        notes.skip("Nothing is promised about this table, so nothing is broken: name what must hold, such as k.")
    notes.warning("no-rows", "The table has no row.", count=int(count == 0))
    notes.metrics["released_rows"] = count
    if promise.suppressed is not None:
        notes.metrics["suppressed_rows"] = suppressed


class _Judge:
    def __init__(self, promise: TablePromise, notes: Notes, stack: ExitStack) -> None:
        self.promise, self.notes = promise, notes
        self._codes = {
            name: Codes(name, person_key if name == promise.person else exact_key) for name in promise.columns
        }
        self._quasi = [self._codes[name] for name in promise.quasi]
        self._sensitive = [
            SensitiveColumn(self._codes[name], place, promise)
            for place, name in enumerate(promise.sensitive, len(promise.quasi))
        ]
        self._rows = stack.enter_context(CodedRows(len(self._quasi)))
        self._population = stack.enter_context(CodedRows(len(self._quasi)))
        self._knows_population = False
        self._count = self._suppressed = 0

    def read(self, table: Any, name: str, expected: Format) -> None:
        """Read the table and number its values."""
        for columns in read_batches(table, self.promise.columns, name=name, expected=expected):
            rows = self._coded(columns, self.promise.columns)
            shown = self._shown(rows)
            self._count += len(rows)
            self._suppressed += int((~shown).sum())
            rows = rows[shown] if not shown.all() else rows
            if self.promise.person is not None:
                person = rows[:, -1]
                person[person == self._codes[self.promise.person].of(None)] = -1  # no person
            for column in self._sensitive:
                column.see(rows)
            self._rows.add(rows)

    def read_population(self, table: Any, expected: Format) -> None:
        """Read the quasi-identifiers of everyone who could be in the table."""
        self._knows_population = True
        for columns in read_batches(table, self.promise.quasi, name="population", expected=expected):
            self._population.add(self._coded(columns, self.promise.quasi))

    def _coded(self, columns: Columns, names: tuple[str, ...]) -> Matrix:
        coded = [self._codes[name].encode(columns[name]) for name in names]
        rows = np.empty((len(coded[0]), len(names)), np.int32)
        for place, numbers in enumerate(coded):
            rows[:, place] = numbers
        return rows

    def _shown(self, rows: Matrix) -> Bools:
        word = self.promise.suppressed
        if word is None:
            return np.ones(len(rows), np.bool_)
        shown = np.zeros(len(rows), np.bool_)
        for place, codes in enumerate(self._quasi):
            shown |= rows[:, place] != codes.of(word)
        return shown

    def judge(self) -> None:
        """Measure and check everything, part by part."""
        note_counts(self.promise, self._count, self._suppressed, self.notes)
        divided = self._rows.is_on_disk or self._population.is_on_disk
        sizes, presence = Sizes(), Presence(self.promise)
        exposed: list[Ints] = [np.zeros(0, np.int64)]
        everyone = self._population.parts(divided=divided)
        for rows in self._rows.parts(divided=divided):
            others = next(everyone)
            key, size = packed(self._columns(rows), self._widths())
            exposed.append(self._count_classes(rows, key, sizes))
            for column in self._sensitive:
                column.measure(key, size, rows)
            if self._knows_population:
                presence.compare(rows[:, : len(self._quasi)], others, self._widths())
        people = None
        if self.promise.person is not None:
            codes = self._codes[self.promise.person]
            people = len(codes) - (codes.of(None) >= 0)
        sizes.report(self.promise, people, len(np.unique(np.concatenate(exposed))), self.notes)
        for column in self._sensitive:
            column.report(self.notes)
        if self._knows_population:
            presence.report(self.notes)
        self._check_m()

    def _columns(self, rows: Matrix) -> list[Any]:
        return [rows[:, place] for place in range(len(self._quasi))]

    def _widths(self) -> list[int]:
        return [max(len(codes), 1) for codes in self._quasi]

    def _person(self, rows: Matrix) -> tuple[Any, int]:
        if self.promise.person is None:
            return None, 0
        return rows[:, -1], max(len(self._codes[self.promise.person]), 1)

    def _count_classes(self, rows: Matrix, key: Ints, sizes: Sizes) -> Ints:
        """Count the classes of a part; return the people who are in a class of fewer than k."""
        person, width = self._person(rows)
        classes, count, people = class_sizes(key, person, width)
        sizes.add(people, count, self.promise.k)
        if person is None or self.promise.k is None:
            return np.zeros(0, np.int64)
        return exposed_people(person, key, classes, people < self.promise.k)

    @property
    def _unit(self) -> str:
        return "rows" if self.promise.person is None else "people"

    def _check_m(self) -> None:
        """Count the groups of every m quasi-identifiers; groups of fewer ones are larger."""
        m, k = self.promise.m, self.promise.k
        if m is None or k is None:
            return
        smallest, sets, broken = None, 0, 0
        for places in combinations(range(len(self._quasi)), m):
            try:
                people = self._group_people(places)
            except TooManyValues:
                self.notes.skip(f"any {m} known values: the columns have too many different values to be counted")
                return
            if len(people):
                smallest = min(int(people.min()), smallest or int(people.min()))
            sets += len(people)
            broken += int((people < k).sum())
        self.notes.metrics["smallest_k_knowing_m"] = smallest
        self.notes.metrics["combinations_of_m"] = sets
        self.notes.violation(
            "below-k-knowing-m",
            f"Combinations of {m} values are shared by fewer than {k} {self._unit}; generalize or remove them.",
            count=broken,
        )

    def _group_people(self, places: tuple[int, ...]) -> Ints:
        """Return the people of every combination of values in some columns, over all parts."""
        keys, weights = [], []
        widths = [self._widths()[place] for place in places]
        for rows in self._rows.parts():
            key, size = packed([rows[:, place] for place in places], widths, renumber=False)
            person, people = self._person(rows)
            if person is not None:
                if size * people > MOST:
                    raise TooManyValues
                key = np.unique((key * people + person)[person >= 0])
            ordered = np.sort(key)
            starts, count = runs(ordered)
            keys.append(ordered[starts])
            weights.append(count)
        found, place = np.unique(np.concatenate(keys), return_inverse=True)
        if self.promise.person is not None:  # a key names a person, who counts once
            return runs(found // max(len(self._codes[self.promise.person]), 1))[1]
        return np.bincount(place, weights=np.concatenate(weights), minlength=len(found)).astype(np.int64)


def exposed_people(person: Any, key: Ints, classes: Ints, small: Bools) -> Ints:
    """Return the different people of small classes, given by their keys; -1 means that the person is missing."""
    found = np.unique(person[small[np.searchsorted(classes, key)]]) if small.any() else person[:0]
    return np.asarray(found[found >= 0], np.int64)


class Presence:
    """Compares the classes of the table with those of the population: δ-presence."""

    def __init__(self, promise: TablePromise) -> None:
        self._promised = promise.presence
        self._least: list[float] = []
        self._most: list[float] = []
        self._outside = self._unknown = 0

    @property
    def found(self) -> tuple[list[float], list[float], int, int]:
        """The least and the largest shares of parts, rows outside the promise, and rows that are not known."""
        return self._least, self._most, self._outside, self._unknown

    def merge(self, least: list[float], most: list[float], outside: int, unknown: int) -> None:
        """Add what was found in another part of both tables."""
        self._least += least
        self._most += most
        self._outside += outside
        self._unknown += unknown

    def compare(self, rows: Matrix, population: Matrix, widths: list[int]) -> None:
        """Compare one part of both tables."""
        both = np.concatenate([rows, population[:, : rows.shape[1]]])
        key = packed([both[:, place] for place in range(both.shape[1])], widths)[0]
        classes, place = np.unique(key, return_inverse=True)
        here = np.bincount(place[: len(rows)], minlength=len(classes))
        there = np.bincount(place[len(rows) :], minlength=len(classes))
        self._unknown += int(here[here > there].sum())
        known = there > 0
        share = here[known] / there[known]
        if len(share):
            self._least.append(float(share.min()))
            self._most.append(float(share.max()))
        if self._promised is not None:
            low, high = self._promised
            self._outside += int(there[known][(share < low) | (share > high)].sum())

    def report(self, notes: Notes) -> None:
        """Add the shares and what is outside the promise."""
        notes.metrics["presence"] = {"least": min(self._least, default=None), "largest": max(self._most, default=None)}
        notes.violation(
            "not-in-population",
            "Rows are in classes that have fewer rows in the population: it is not everyone who could be in the table, "
            "or its values are spelt or generalized in another way.",
            count=self._unknown,
        )
        if self._promised is not None:
            low, high = self._promised
            sentence = f"People of the population are in the table with a probability outside {low} to {high}."
            notes.violation("outside-presence", sentence, count=self._outside)
