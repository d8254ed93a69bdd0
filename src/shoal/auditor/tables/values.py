"""The values of a sensitive column in the whole table: how often each is there, what it means, and their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.relation import Texts
from shoal.auditor.tables.coding import text_of
from shoal.auditor.tuples.diversity.sensitive import meaning
from shoal.errors import PolicyError


@dataclass(frozen=True, slots=True)
class Values:
    """The values of a sensitive column, numbered in their order."""

    name: str
    number: Mapping[str | None, int]
    """Of a value as it is coded; None is a missing one."""
    rows: Ints
    """How many rows of the table have each value."""
    same: Ints | None
    """For every value the first one that means the same; None if all differ."""
    is_missing: Bools
    """Which values are none, such as blank texts: they protect nobody."""
    rank: Ints | None
    """The place of every value if all are numbers and t is a distance between ranks; else None."""

    @classmethod
    def of(cls, name: str, counts: Mapping[str | None, int], distance: str | None) -> Values:
        """Number values that so many rows have; `distance` is the one that the policy asks for."""
        spelt = sorted(counts, key=lambda one: (one is not None, one or ""))
        numbers = None if distance == "equal" else _finite([text_of(one) for one in spelt])
        if distance == "ordered" and numbers is None:
            raise PolicyError(f'[table] t_distance: column {name} has values that are not numbers; use "equal"')
        rank = None
        if numbers is not None:
            spelt = [spelt[at] for at in np.argsort(numbers, kind="stable").tolist()]
            rank = np.unique(np.sort(numbers), return_inverse=True)[1]
        texts = [text_of(one) for one in spelt]
        means = [None if text is None else meaning(text) for text in texts]
        first: dict[str | None, int] = {}
        same = np.array([first.setdefault(one, at) for at, one in enumerate(means)], np.int64)
        rows = np.array([counts[one] for one in spelt], np.int64)
        is_missing = np.array([one is None for one in means], np.bool_)
        number = {one: at for at, one in enumerate(spelt)}
        return cls(name, number, rows, None if len(first) == len(same) else same, is_missing, rank)

    @property
    def distance(self) -> str | None:
        """The distance that t is measured in."""
        return None if not len(self.rows) else "equal" if self.rank is None else "ordered"

    def of_rows(self, column: Texts) -> Ints:
        """The number of the value of every row."""
        known = [self.number.get(text, 0) for text in (*column.texts, None)]  # code -1, missing, picks the last
        found: Ints = np.array(known, np.int64)[column.codes]
        return found


def _finite(texts: Sequence[str | None]) -> Any:
    """Return finite numbers, or None if a text is not one."""
    try:
        found = np.array([np.nan if text is None else float(text) for text in texts])
    except ValueError:
        return None
    return found if np.isfinite(found).all() else None
