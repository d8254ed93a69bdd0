"""Judge a plain table: count its classes, measure the models, and compare with what is promised."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
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
class _Sizes:
    """What is known of the classes of all parts."""

    people: list[Ints] = field(default_factory=list)
    rows: list[Ints] = field(default_factory=list)
    exposed: list[Ints] = field(default_factory=list)
    """People in a class of fewer than k."""


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
        if not self.promise.is_promised:
            self.notes.skip(
                "Nothing is promised about this table, so nothing is broken: name what must hold, such as k."
            )
        self.notes.warning("no-rows", "The table has no row.", count=int(self._count == 0))
        self.notes.metrics.update(self._counts())
        divided = self._rows.is_on_disk or self._population.is_on_disk
        sizes, presence = _Sizes(), _Presence(self.promise)
        everyone = self._population.parts(divided=divided)
        for rows in self._rows.parts(divided=divided):
            others = next(everyone)
            key, size = packed(self._columns(rows), self._widths())
            self._count_classes(rows, key, sizes)
            for column in self._sensitive:
                column.measure(key, size, rows)
            if self._knows_population:
                presence.compare(rows[:, : len(self._quasi)], others, self._widths())
        self._check_k(sizes)
        for column in self._sensitive:
            column.report(self.notes)
        if self._knows_population:
            presence.report(self.notes)
        self._check_m()

    def _counts(self) -> Mapping[str, Any]:
        found: dict[str, Any] = {"released_rows": self._count}
        if self.promise.suppressed is not None:
            found["suppressed_rows"] = self._suppressed
        return found

    def _columns(self, rows: Matrix) -> list[Any]:
        return [rows[:, place] for place in range(len(self._quasi))]

    def _widths(self) -> list[int]:
        return [max(len(codes), 1) for codes in self._quasi]

    def _person(self, rows: Matrix) -> tuple[Any, int]:
        if self.promise.person is None:
            return None, 0
        return rows[:, -1], max(len(self._codes[self.promise.person]), 1)

    def _count_classes(self, rows: Matrix, key: Ints, sizes: _Sizes) -> None:
        person, width = self._person(rows)
        classes, count, people = class_sizes(key, person, width)
        sizes.people.append(people)
        sizes.rows.append(count)
        if person is not None and self.promise.k is not None:
            small = people < self.promise.k
            exposed = np.unique(person[small[np.searchsorted(classes, key)]]) if small.any() else person[:0]
            sizes.exposed.append(exposed[exposed >= 0].astype(np.int64))

    def _check_k(self, sizes: _Sizes) -> None:
        people, rows = np.concatenate(sizes.people), np.concatenate(sizes.rows)
        metrics, k = self.notes.metrics, self.promise.k
        metrics["classes"] = len(people)
        metrics["smallest_k"] = int(people.min()) if len(people) else None
        metrics["counted_in_classes"] = "rows (at least as many as people)" if self.promise.person is None else "people"
        metrics["unique_rows"] = int((rows == 1).sum())
        if self.promise.person is not None:
            codes = self._codes[self.promise.person]
            metrics["released_people"] = len(codes) - (codes.of(None) >= 0)
        if k is None:
            return
        below = int(rows[people < k].sum())
        metrics["rows_below_k_share"] = below / int(rows.sum()) if len(rows) else None
        if self.promise.person is not None:
            exposed = len(np.unique(np.concatenate(sizes.exposed)))
            metrics["people_below_k_share"] = exposed / metrics["released_people"] if exposed else 0.0
        self.notes.violation(
            "below-k", f"Rows are in classes of fewer than {k} {self._unit}; generalize or remove them.", count=below
        )

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


class _Presence:
    """Compares the classes of the table with those of the population: δ-presence."""

    def __init__(self, promise: TablePromise) -> None:
        self._promised = promise.presence
        self._least: list[float] = []
        self._most: list[float] = []
        self._outside = self._unknown = 0

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
