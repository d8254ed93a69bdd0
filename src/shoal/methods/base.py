"""The contract every stream anonymizer keeps; its laws are functions in shoal.testing.laws."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self, TypeAlias

import pyarrow as pa

RELEASED: Final = "released"
SUPPRESSED: Final = "suppressed"
DEAD: Final = "dead"
VERDICTS: Final = (RELEASED, SUPPRESSED, DEAD)

Record = Mapping[str, Any]
_Made: TypeAlias = "pa.RecordBatch | Callable[[], pa.RecordBatch]"
"""A batch, or how to make it when somebody asks."""


class Release:
    """What one call decided.

    ``rows`` may be published; they stand in release order and have the full output schema even when there are
    none. ``trace`` is private: one row for every record decided (``row`` is the record's number in the order
    pushed, from 0), its ``verdict`` (released, suppressed, dead), the ``reason`` of a dead one, ``group`` and
    ``delay``. It goes sideways to the auditor, never to a sink, and is only made when somebody asks for it.
    """

    __slots__ = ("_rows", "_trace")

    def __init__(self, rows: _Made, trace: _Made) -> None:
        self._rows = rows
        self._trace = trace

    @property
    def rows(self) -> pa.RecordBatch:
        """What may be published."""
        if callable(self._rows):
            self._rows = self._rows()
        return self._rows

    @property
    def trace(self) -> pa.RecordBatch:
        """What was decided, for the auditor."""
        if callable(self._trace):
            self._trace = self._trace()
        return self._trace

    def made(self) -> Self:
        """The same, its rows made by now."""
        self.rows  # noqa: B018 - asking makes them
        return self

    def __repr__(self) -> str:
        return f"<Release of {self.rows.num_rows} rows>"


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What a method promises, in words and numbers."""

    method: str
    statement: str
    parameters: Mapping[str, object]
    max_delay_ns: int | None
    """Longest event time a record may be held; None where the method declares none."""
    max_held: int | None
    """Most records held at once; None where time alone bounds them."""
    max_delay_arrivals: int | None = None
    """Most arrivals a record may be held for; None where arrivals do not bound it."""
    keeps_pending: bool = False
    """Whether a flush may leave records pending, because they may neither leave nor be suppressed."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a record was put among the dead letters: the column to look at and what to do."""

    column: str | None
    sentence: str


class Anonymizer(ABC):
    """A stream anonymizer: records in arrival order go in, publishable rows come out.

    Nothing depends on where a batch ends. There is no clock, file, environment or logger inside: time is the
    records' own, moved on by :meth:`advance` where no record comes.
    """

    method: ClassVar[str]
    """The name a policy uses."""
    kernel: ClassVar[Any] = None
    """The compiled function that every stream needs: as long as it is not cached, the first batch takes a while."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Names of the input columns this anonymizer reads."""

    @property
    @abstractmethod
    def input_schema(self) -> pa.Schema:
        """Columns read, with the types seen (or assumed, before anything was seen)."""

    @property
    @abstractmethod
    def output_schema(self) -> pa.Schema:
        """Columns of every Release.rows."""

    @property
    @abstractmethod
    def trace_schema(self) -> pa.Schema:
        """Columns of every Release.trace."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What is promised of every row that leaves."""

    @property
    @abstractmethod
    def held(self) -> int:
        """Records taken in and not decided yet."""

    @property
    @abstractmethod
    def counts(self) -> dict[str, int]:
        """Records so far by what became of them: pushed, released, suppressed, dead, held, and dead by reason."""

    @abstractmethod
    def bind(self, schema: pa.Schema) -> None:
        """Fix the input types; raise InputError when a column is missing or of a type that cannot be used."""

    @abstractmethod
    def push(self, record: Record) -> list[dict[str, Any]]:
        """Take one record; return the rows that may be published now."""

    @abstractmethod
    def push_batch(self, batch: Any) -> Release:
        """Take a batch (or anything with the Arrow interface) in arrival order."""

    @abstractmethod
    def advance(self, now: object) -> Release:
        """Let time pass without a record."""

    @abstractmethod
    def flush(self) -> Release:
        """Decide everything held: release or suppress, never weaken."""

    @abstractmethod
    def snapshot(self) -> bytes:
        """All of the state, sealed: a versioned header and named arrays."""

    @abstractmethod
    def restore(self, state: bytes) -> Self:
        """Take over the state of a snapshot of the same method and parameters; return self."""

    @abstractmethod
    def explain(self, reason: str) -> Refusal:
        """Say in words why a record with this reason in the trace is dead."""
