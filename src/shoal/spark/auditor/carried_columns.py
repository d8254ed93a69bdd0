"""Columns published unchanged: all rows with one value meet in one task, which counts the people who have it."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from shoal.auditor.counting import dense
from shoal.auditor.findings import Notes
from shoal.auditor.identifying_columns import ColumnCrowds, allows_identifying, measure_crowds, note_identifying
from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import Ints
from shoal.auditor.reading.rows import Rows
from shoal.spark.auditor.engine import Message, result
from shoal.spark.auditor.hashing import Hashes, mixed, of_text, of_texts

_JOINT: Final = "\0joint"
"""All carried columns together."""


@dataclass(frozen=True, slots=True)
class ColumnPart:
    """The crowds of some values of a column."""

    name: str
    crowds: ColumnCrowds


def send_values(
    release: Rows, carry: Sequence[str], sensitive: Sequence[str], known: Ints, person: Hashes, of_class: Hashes,
    position: Ints, bins: range,
) -> Iterator[Message]:  # fmt: skip
    """Send rows whose person is known to the bins of their values; all arrays but `known` are of these rows."""
    columns = {name: of_texts(release.text(name))[known] for name in dict.fromkeys((*carry, *sensitive))}
    if len(carry) > 1:
        columns[_JOINT] = mixed([columns[name] for name in carry])
    for name, values in columns.items():
        of = mixed([values, np.full(len(values), of_text(name), np.uint64)]) % np.uint64(len(bins))
        order = np.argsort(of, kind="stable")
        ends = np.cumsum(np.bincount(of.astype(np.int64), minlength=len(bins)))[:-1]
        for number, rows in enumerate(np.split(order, ends)):
            if len(rows):
                data = values[rows], person[rows], of_class[rows], position[rows]
                yield Message(bins[number], f"column {name}", pickle.dumps(data))


def judge_values(kinds: dict[str, list[bytes]], k: int) -> Iterator[Message]:
    """Count the people of the values of a bin."""
    for kind, parts in kinds.items():
        if not kind.startswith("column "):
            continue
        value, person, of_class, position = (
            np.concatenate(columns) for columns in zip(*map(pickle.loads, parts), strict=True)
        )
        order = np.argsort(position)
        values, people, classes = (dense(column[order]) for column in (value, person, of_class))
        crowds = measure_crowds(values, people, classes, position[order], k)
        yield result(ColumnPart(kind.removeprefix("column "), crowds))


def note_columns(
    parts: Sequence[ColumnPart], policy: Policy, promise: Any, k: tuple[str, int], people: int, notes: Notes,
    sensitive: tuple[str, ...] = (),
) -> None:  # fmt: skip
    """Report what was counted in all bins."""
    allowed = allows_identifying(policy)
    if not promise.carry and not sensitive:
        return
    found = {name: ColumnCrowds() for name in (*promise.carry, *sensitive, _JOINT)}
    for part in parts:
        found[part.name] += part.crowds
    note_identifying(found, found[_JOINT], promise.carry, sensitive, k, people, notes, allowed=allowed)
