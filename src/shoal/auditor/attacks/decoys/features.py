"""All that an attacker without the key can see of a record in the internal store, as numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.numbers import Floats

_NEAREST: Final = (1, 2, 3, 5, 8)
_VALUES: Final = 12
_PIECE: Final = 1000


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the store."""

    code: Ints
    """Equal values have equal numbers."""
    value: Floats | None
    """Numbers as they are, moments in seconds; None for texts."""
    is_normal: bool
    """Whether the records of a group share it."""


@dataclass(frozen=True, slots=True)
class StoredRecords:
    """The internal store as it can be read, and the truth about it."""

    columns: Mapping[str, Column]
    person: Ints
    """The id of every record."""
    cell: Ints
    """The group of every record: equal normal quasi-identifiers, numbers and moments by the cells of their grid."""
    time: Floats | None
    """In seconds."""
    together: Ints
    """The ids that appear together, as a number for every record; they are on one side of training and test."""
    is_real: Bools


def features(store: StoredRecords) -> tuple[Floats, list[str]]:
    """Return one line of numbers per record, and what they are."""
    person = store.person
    found: dict[str, Floats] = {"group size": _distinct(store.cell, person), "records of id": _counts(person)}
    for name, column in store.columns.items():
        if column.value is not None:
            found[name] = column.value
            found[f"{name}: in its minute"] = np.mod(column.value, 60.0)
            found[f"{name}: in its hour"] = np.mod(column.value, 3600.0)
            found[f"{name}: behind the point"] = np.mod(column.value, 1.0)
        else:
            for value in np.argsort(-np.bincount(column.code))[:_VALUES]:
                found[f"{name}: value {value}"] = (column.code == value).astype(np.float64)
        found[f"{name}: how often"] = _counts(column.code)
        found[f"{name}: different ones of id"] = _distinct(person, column.code)
        found[f"{name}: people with it"] = _distinct(column.code, person)
    found |= _neighbours(store)
    for first, second in combinations(store.columns, 2):
        one, other = store.columns[first].code, store.columns[second].code
        found[f"{first} + {second}: how often"] = _counts(one * (int(other.max(initial=0)) + 1) + other)
    if store.time is not None:
        kinds = {name: column.code for name, column in store.columns.items() if column.value is None}
        found |= _gaps(store.time, person, kinds)
    return np.stack(list(found.values()), axis=1), list(found)


def _counts(code: Ints) -> Floats:
    _, back, counts = np.unique(code, return_inverse=True, return_counts=True)
    return counts[back].astype(np.float64)


def _distinct(of: Ints, what: Ints) -> Floats:
    """Return how many different `what` go with each `of`."""
    width = int(what.max(initial=0)) + 1
    pairs = np.unique(of * width + what) // width
    return np.bincount(pairs, minlength=int(of.max(initial=0)) + 1)[of].astype(np.float64)


def _neighbours(store: StoredRecords) -> dict[str, Floats]:
    """How near the nearest records are that agree in the texts: copies lie around what they were copied from."""
    others = [column for column in store.columns.values() if not column.is_normal]
    points = [_spread(column.value) for column in others if column.value is not None]
    if not points:
        return {}
    alike = np.zeros(len(store.person), np.int64)
    for column in others:
        if column.value is None:
            alike = np.unique(alike * (int(column.code.max(initial=0)) + 1) + column.code, return_inverse=True)[1]
    x = np.stack(points, axis=1)
    found = {f"distance to neighbour {at}": np.full(len(x), 10.0) for at in _NEAREST}
    for value in np.unique(alike):
        rows = np.flatnonzero(alike == value)
        for part in np.array_split(rows, max(1, len(rows) // _PIECE)):
            far = np.sort(np.sqrt(((x[part][:, None] - x[rows][None]) ** 2).sum(axis=2)), axis=1)
            for at in _NEAREST:
                if at < far.shape[1]:
                    found[f"distance to neighbour {at}"][part] = far[:, at]
    return found


def _spread(values: Floats) -> Floats:
    values = np.log(values) if values.min(initial=1.0) > 0 else values
    found: Floats = (values - values.mean()) / (values.std() or 1.0)
    return found


def _gaps(seconds: Floats, person: Ints, kinds: Mapping[str, Ints]) -> dict[str, Floats]:
    """Times between the records of an id, and those in which something else became different."""
    order = np.lexsort((seconds, person))
    gap = np.diff(seconds[order], prepend=np.nan)
    gap[np.append(True, np.diff(person[order]) != 0)] = np.nan
    steps = {"gap before": gap, "gap after": np.append(gap[1:], np.nan)}
    for name, code in kinds.items():
        has_changed = np.append(False, np.diff(code[order]) != 0)
        steps[f"gap in which {name} changed"] = np.where(has_changed, gap, np.nan)
        steps[f"gap in which {name} did not change"] = np.where(has_changed, np.nan, gap)
    found = {}
    for name, values in steps.items():
        found[name] = np.empty(len(gap))
        found[name][order] = np.nan_to_num(values, nan=-1.0)
        shortest = np.full(int(person.max(initial=0)) + 1, np.inf)
        np.minimum.at(shortest, person[order], np.nan_to_num(values, nan=np.inf))
        found[f"shortest {name} of id"] = np.minimum(shortest, 1e12)[person]
    mean = np.bincount(person[order], weights=np.nan_to_num(gap)) / np.maximum(np.bincount(person) - 1, 1)
    return found | {"mean gap of id": mean[person]}
