"""What was decided about records: releases, verdicts, refusals, and how many there are of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, TypeAlias

import pyarrow as pa

RELEASED: Final = "released"
SUPPRESSED: Final = "suppressed"
DEAD: Final = "dead"
VERDICTS: Final = (RELEASED, SUPPRESSED, DEAD)
IS_RELEASED, IS_SUPPRESSED, IS_DEAD = range(3)
"""Indices of VERDICTS."""
NO_REASON: Final = -1
"""The index of the reason of a record that is not dead."""
UNREADABLE: Final = "unreadable"
_NO_PERSON: Final = "null-person"
_Made: TypeAlias = "pa.RecordBatch | Callable[[], pa.RecordBatch]"
"""A batch, or a function that builds it when it is needed."""


class Release:
    """What one call decided.

    ``rows`` may be published; they are in release order and have the full output schema even when there are none.
    ``trace`` is private: one row for every record decided (``row`` is the record's number in the order pushed, from 0),
    its ``verdict`` (released, suppressed, dead), the ``reason`` of a dead one, ``group`` and ``delay``. It is for the
    auditor, never for a sink, and is built only if it is used.
    """

    __slots__ = ("_rows", "_trace")

    def __init__(self, rows: _Made, trace: _Made) -> None:
        self._rows = rows
        self._trace = trace

    @property
    def rows(self) -> pa.RecordBatch:
        """What may be published."""
        made = self._rows
        if callable(made):
            made = self._rows = made()
        return made

    @property
    def trace(self) -> pa.RecordBatch:
        """What was decided, for the auditor."""
        made = self._trace  # an observer may ask for it in another thread, at the same time
        if callable(made):
            made = self._trace = made()
        return made

    def made(self) -> Self:
        """The same release, after its rows are made."""
        self.rows  # noqa: B018 - asking makes them
        return self

    def __repr__(self) -> str:
        found = {one["values"]: one["counts"] for one in self.trace.column("verdict").value_counts().to_pylist()}
        kept_back = f"{found.get(SUPPRESSED, 0):,} suppressed, {found.get(DEAD, 0):,} refused"
        return f"<Release: {self.rows.num_rows:,} rows released, {kept_back}>"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a record is refused: the column to look at and what to do."""

    column: str | None
    sentence: str

    @property
    def words(self) -> str:
        """The sentence, after the column if there is one."""
        return f"column {self.column!r}: {self.sentence}" if self.column else self.sentence


class Counts:
    """Records so far: pushed, released, suppressed, refused by reason, and clamped values."""

    def __init__(self, reasons: Sequence[str]) -> None:
        self.reasons = tuple(reasons)
        self.pushed = 0
        self.released = 0
        self.suppressed = 0
        self.clamped = 0
        self._unreadable = 0
        self._refused = dict.fromkeys(self.reasons, 0)

    def refuse(self, reason: int, count: int = 1) -> None:
        """Count refused records by the index of their reason."""
        self._refused[self.reasons[reason]] += count

    def refuse_all(self, reasons: Iterable[int]) -> None:
        """Count one refused record for each index of a reason."""
        for reason, count in Counter(reasons).items():
            self.refuse(reason, count)

    def note_unreadable(self, count: int) -> None:
        """Count records that the source could not decode as `unreadable` instead of `null-person`."""
        if count:
            self._unreadable += count
            self._refused[_NO_PERSON] -= count

    def shown(self, pending: int) -> dict[str, int]:
        """The counts as a method reports them; `pending` records are not decided yet."""
        all_refused = {UNREADABLE: self._unreadable, **self._refused}
        refused = {reason: count for reason, count in all_refused.items() if count}
        return {
            "pushed": self.pushed,
            RELEASED: self.released,
            SUPPRESSED: self.suppressed,
            DEAD: sum(refused.values()),
            "pending": pending,
            **refused,
        }

    def dump(self) -> dict[str, Any]:
        """The counts as plain values for a snapshot."""
        return {
            "pushed": self.pushed, "released": self.released, "suppressed": self.suppressed, "clamped": self.clamped,
            "unreadable": self._unreadable, "refused": self._refused,
        }  # fmt: skip

    def load(self, dumped: Mapping[str, Any]) -> None:
        """Take over what dump() returned."""
        self.pushed, self.released = dumped["pushed"], dumped["released"]
        self.suppressed, self.clamped = dumped["suppressed"], dumped["clamped"]
        self._unreadable, self._refused = dumped["unreadable"], dict(dumped["refused"])


def refused_by_reason(counts: Mapping[str, int]) -> dict[str, int]:
    """The refused records by reason, of the counts that a method reports."""
    return {name: count for name, count in counts.items() if name not in ("pushed", *VERDICTS, "pending")}
