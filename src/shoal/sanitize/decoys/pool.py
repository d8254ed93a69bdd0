"""The real records that decoys copy, and which of them are similar to a person's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.sanitize.decoys.cells import column_of, is_number, numbers

_STAYS: Final = 0.1
"""A column is constant for a person if at most this share of further records has a new value."""
_LITTLE: Final = 0.02
_ENOUGH: Final = 2
_FEW_LIKE: Final = 5
_STEADY: Final = 0.9
Ints = npt.NDArray[np.int64]


class Index:
    """An index of rows by number."""

    def __init__(self, numbers_of_rows: Ints, size: int, draw: np.random.Generator | None = None) -> None:
        mixed = np.arange(len(numbers_of_rows)) if draw is None else draw.permutation(len(numbers_of_rows))
        self._order = mixed[np.argsort(numbers_of_rows[mixed], kind="stable")]
        self.counts = np.bincount(numbers_of_rows, minlength=size)
        self._ends = np.cumsum(self.counts)

    def draw(self, wanted: Ints, draw: np.random.Generator) -> Ints:
        """Return a random row of each number."""
        back = (draw.random(len(wanted)) * self.counts[wanted]).astype(np.int64)
        return np.asarray(self._order[self._ends[wanted] - 1 - back])

    def turn(self, wanted: Ints, turns: Ints) -> Ints:
        """Return the row of each number whose turn it is, cyclically."""
        return np.asarray(self._order[self._ends[wanted] - 1 - turns % self.counts[wanted]])

    def last(self, wanted: Ints) -> Ints:
        """Return the last row of each number."""
        return np.asarray(self._order[self._ends[wanted] - 1])


class Pool:
    """The real records that decoys copy, and their owners."""

    donors: Ints

    def __init__(
        self,
        records: pa.Table,
        owners: Ints,
        people: int,
        codes: npt.NDArray[np.int64],
        others: Sequence[str],
        draw: np.random.Generator,
    ) -> None:
        self.records = records
        self.owners = owners
        self._codes = codes
        self._by_person = Index(owners, people)
        others_codes = {name: code_of(records, name) for name in others}
        self.staying = {name for name, code in others_codes.items() if self._stays(records, name, code)}
        self._profile = np.zeros(len(owners), dtype=np.int64)
        for name in self.staying:
            mixed = self._profile * (others_codes[name].max(initial=0) + 1) + others_codes[name]
            self._profile = np.unique(mixed, return_inverse=True)[1]
        profiles = int(self._profile.max(initial=-1)) + 1
        self._by_profile = Index(self._profile, profiles, draw)
        self._weights = self._explained_by([name for name in others if name not in self.staying])
        self._main = codes[int(self._weights.argmax())] if len(codes) else np.zeros(len(owners), dtype=np.int64)
        self._mains = int(self._main.max(initial=-1)) + 1
        self._both = self._profile * self._mains + self._main
        self._by_both = Index(self._both, profiles * self._mains, draw)
        self._by_main = Index(self._main, self._mains)

    def _explained_by(self, names: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return how much of the spread of numbers each categorical normal column explains (network explains speed)."""
        weights = np.full(len(self._codes), _LITTLE)
        for name in names:
            column = column_of(self.records, name)
            if not is_number(column.type) or pa.types.is_timestamp(column.type):
                continue
            values = numbers(column)[0].astype(np.float64)
            values = np.log(values) if values.min(initial=1.0) > 0 else values
            whole = values.var()
            for at, code in enumerate(self._codes if whole > 0 else ()):
                sizes = np.bincount(code)
                means = np.bincount(code, weights=values) / np.maximum(sizes, 1)
                weights[at] = max(weights[at], (sizes * (means - values.mean()) ** 2).sum() / (whole * len(values)))
        return weights

    def _stays(self, records: pa.Table, name: str, code: Ints) -> bool:
        """Return whether a column hardly changes between records of a person; without evidence text does not."""
        pairs = len(np.unique(self.owners * (code.max(initial=0) + 1) + code))
        people = len(np.unique(self.owners))
        if len(self.owners) == people:
            return not is_number(records.schema.field(name).type)
        return bool((pairs - people) <= _STAYS * (len(self.owners) - people))

    def one_of(self, people: Ints, draw: np.random.Generator) -> Ints:
        """Return a random record of each of these people."""
        return self._by_person.draw(people, draw)

    def turn_of(self, people: Ints, turns: Ints) -> Ints:
        """Return the record of each of these people whose turn it is."""
        return self._by_person.turn(people, turns)

    def are_steady(self, places: npt.NDArray[np.float64], is_there: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return which people are always at about the same place of a cell; places are cyclic, from 0 to 1."""
        turned = np.exp(2j * np.pi * places) * is_there
        sums = np.bincount(self.owners, turned.real) + 1j * np.bincount(self.owners, turned.imag)
        return np.asarray(np.abs(sums) > _STEADY * np.bincount(self.owners, is_there.astype(np.float64)))

    def one_like(self, people: Ints, rows: Ints, turns: Ints) -> Ints:
        """Return records that equal theirs in constant columns, and `rows` in the most informative column."""
        profile = self._profile[self._by_person.last(people)]
        both = profile * self._mains + self._main[rows]
        made = self._by_profile.turn(profile, turns)
        is_there = self._by_both.counts[both] >= _ENOUGH
        made[is_there] = self._by_both.turn(both[is_there], turns[is_there])
        return made

    def one_there(self, rows: Ints, draw: np.random.Generator) -> Ints:
        """Return any record that agrees with each of these in the most informative column."""
        return self._by_main.draw(self._main[rows], draw)

    def means(self, values: npt.NDArray[np.float64], is_there: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """Return means over similar records that agree in the most informative column; if few, over all that agree."""
        weight = is_there.astype(np.float64)
        found = np.zeros(len(values))
        for code, least in ((self._main, 1), (self._both, _FEW_LIKE)):
            counts = np.bincount(code, weights=weight)
            sums = np.bincount(code, weights=values * weight)
            found = np.where(counts[code] >= least, (sums / np.maximum(counts, 1.0))[code], found)
        return found

    def plenty(self, people: Ints, rows: Ints) -> npt.NDArray[np.float64]:
        """Return how well the number of similar records covers what people need, up to 1."""
        needed = np.maximum(self._by_person.counts[people], 1)
        return np.asarray(1.0 * np.minimum(1.0, self._by_profile.counts[self._profile[rows]] / needed[:, None]))

    def likeness(self, rows: Ints, others: Ints) -> npt.NDArray[np.float64]:
        """Return in how many categorical normal columns records agree, weighted by how much they explain."""
        found = np.zeros(others.shape)
        for code, weight in zip(self._codes, self._weights, strict=True):
            found += weight * (code[others] == code[rows][:, None])
        return np.asarray(found / self._weights.max(initial=1.0))


def turns_of(numbers_of_rows: Ints) -> Ints:
    """Return how many earlier rows have the same number."""
    order = np.argsort(numbers_of_rows, kind="stable")
    counts = np.bincount(numbers_of_rows)
    made = np.empty(len(order), dtype=np.int64)
    made[order] = np.arange(len(order)) - (np.cumsum(counts) - counts)[numbers_of_rows[order]]
    return made


def code_of(records: pa.Table, name: str) -> Ints:
    """Return the codes of a column; null gets its own code."""
    coded = column_of(records, name).dictionary_encode(null_encoding="encode").indices
    return np.asarray(coded.to_numpy(zero_copy_only=False), dtype=np.int64)
