"""Released rows, each next to its entry of the trace and its record, as far as these are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np

from shoal.auditor.checks import Found, look
from shoal.auditor.engine import Place, Table
from shoal.auditor.findings import Notes
from shoal.auditor.flexible.calibration import Calibration
from shoal.auditor.flexible.density import needed_k
from shoal.auditor.flexible.promise import FlexiblePromise
from shoal.auditor.relation import Relation, Shape
from shoal.auditor.rows.checks import OF_RELEASE, count_filled
from shoal.auditor.rows.entries import Entries
from shoal.auditor.rows.quasi import Quasi
from shoal.auditor.rows.reading import RowReader
from shoal.auditor.rows.texts import matched

_OF_TRACE: Final[Shape] = {"record": int, "group": int, "k": int, "k_s": int}
_OF_RECORD: Final[Shape] = {"is_there": bool, "is_root": bool}


@dataclass(frozen=True, slots=True)
class Linked:
    """Released rows: ``judged`` if they can be read, and ``own_k``, what the record needs (the lowest if unknown)."""

    table: Table
    shape: Shape

    @property
    def have_entries(self) -> bool:
        """Whether rows have the ``record``, ``group``, ``k`` and ``k_s`` of their entries of the trace."""
        return "group" in self.shape

    @property
    def have_records(self) -> bool:
        """Whether rows have ``person``, ``usable`` and true values; ``is_there`` says which really have a record."""
        return "person" in self.shape


def link(
    place: Place, reader: RowReader, promise: FlexiblePromise, entries: Entries | None, released: Table, records: Table
) -> Linked:
    """Bring released rows together with the trace and the truth."""
    shape: Shape = {**reader.released_shape, "judged": bool, "own_k": int}
    if entries is None or not entries.is_linked:
        return Linked(place.each(released, partial(_alone, promise), shape), shape)
    shape = {**shape, **_OF_TRACE}
    rows = place.both(released, entries.table, ("row",), partial(_with_entry, promise), shape)
    if records is None:
        return Linked(rows, shape)
    shape = {**shape, **reader.record_shape, **_OF_RECORD}
    return Linked(place.both(rows, records, ("record",), partial(_with_record, reader.quasi, promise), shape), shape)


def _alone(promise: FlexiblePromise, rows: Relation) -> Relation:
    return rows.having(judged=~rows["broken"], own_k=needed_k(promise, (), rows, np.zeros(len(rows), np.bool_)))


def _with_entry(promise: FlexiblePromise, rows: Relation, entries: Relation) -> Relation:
    shown = entries.take(entries["row"] >= 0).only("row", *_OF_TRACE)
    return _alone(promise, matched(rows, shown, "row"))


def _with_record(quasi: Sequence[Quasi], promise: FlexiblePromise, rows: Relation, records: Relation) -> Relation:
    found = matched(rows, records.having(is_there=np.ones(len(records), np.bool_)), "record")
    own_k = needed_k(promise, quasi, found, found["is_there"])
    return found.having(own_k=own_k, is_root=np.zeros(len(rows), np.bool_))


@dataclass(slots=True)
class RowsFound:
    """What was found in some rows, and the sum of their losses by column."""

    found: Found
    losses: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RowChecks:
    """What is checked of rows one by one."""

    quasi: tuple[Quasi, ...]
    promise: FlexiblePromise
    calibration: Calibration
    alone: tuple[Any, ...]
    in_force: tuple[Any, ...]
    of_record: tuple[Any, ...]

    def __call__(self, rows: Relation) -> RowsFound:
        """Look at some rows."""
        found = count_filled(rows, self.quasi, self.promise) if self.of_record else Found()
        found.findings += look(rows, OF_RELEASE)
        found.findings += look(rows, self.alone, self.quasi)
        found.findings += look(rows, self.in_force, self.calibration)
        found.findings += look(rows, self.of_record, self.quasi, self.promise)
        judged, losses = rows.take(rows["judged"]), {}
        for one in self.quasi:
            found.sums[f"shown {one.name}"] = int(one.is_shown(judged).sum())
            losses[one.name] = float(one.loss(judged).sum())
        return RowsFound(found, losses)


def note_losses(parts: Sequence[RowsFound], found: Found, quasi: Sequence[Quasi], notes: Notes) -> None:
    """Note the average loss, from 0 to 1: the share of other values a label covers, or the width of a range.

    By column over the rows with a value there; over all columns a missing value counts as no loss.
    """
    rows = found.sums.get("judged", 0)
    if rows:
        losses = {one.name: math.fsum(part.losses[one.name] for part in parts) for one in quasi}
        shown = {one.name: found.sums[f"shown {one.name}"] for one in quasi}
        total = sum(one.weight * losses[one.name] for one in quasi)
        notes.metrics["loss"] = {"all": total / rows / sum(one.weight for one in quasi)}
        means = {name: losses[name] / count if count else None for name, count in shown.items()}
        notes.metrics["loss_by_column"] = means
