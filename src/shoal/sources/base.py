"""The contract of every source: records of one system, decoded, in order, from any position.

A source returns decoded records. A source of bytes (files, standard input) is composed of the files and a function that
opens the decoder of a file, so it knows no format; a source of messages (a broker) composes a decoder of messages in
the same way. One system per file; :mod:`shoal.sources.files` is the example to follow. The run does not know which
system it reads from.

A source that ends derives from :class:`FiniteSource`. A **live** source (a broker) does not end: `poll` returns within
about half a second, with :class:`Idle` if there is nothing. Reading again from a position must return the same records
in the same order. Where a live source decides something that a second reading would not decide alike, such as "this
partition is silent, do not wait for it", it puts the decision into `position` and returns :class:`Mark` before
anything that depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import pyarrow as pa

from shoal.decode.base import Decoded, Position

__all__ = ["Decoded", "End", "FiniteSource", "Idle", "Mark", "Polled", "Position", "Source"]


@dataclass(frozen=True, slots=True)
class Idle:
    """No record is waiting now, but more may come.

    The run passes this time to the method, so that deadlines are kept while nothing arrives. It also serves signals and
    timers, so a live source returns this at least twice a second while it has no records.
    """

    now: int | None
    """Time for the method, in nanoseconds since 1970, by the clock that the records' times come from.

    A live source returns the current time minus its `lag`, because a record that is on its way must not be late; None
    if no time is to be passed, such as while the system is unreachable or records wait for another partition.
    """


@dataclass(frozen=True, slots=True)
class Mark:
    """The source decided something that a second reading would not decide alike; its `position` has the decision.

    The run commits before it polls again.
    """


@dataclass(frozen=True, slots=True)
class End:
    """There will be no more records."""


Polled = Decoded | Idle | Mark | End


class Source(Protocol):
    """Where records come from. Call `open`, then `schema`, then `poll`; `first_rows` may be called before."""

    @property
    def name(self) -> str:
        """The name used in messages."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of every batch; InputError where a needed one is missing."""

    @property
    def inputs(self) -> int:
        """How many inputs there are, such as files."""

    @property
    def numbers_rows(self) -> bool:
        """Whether every record counts as one person, because no column names them."""

    @property
    def is_live(self) -> bool:
        """Whether more records may always come, as from a broker."""

    def identity(self) -> dict[str, str]:
        """Names and fingerprints of the inputs: a checkpoint of other input is refused.

        A live source names the system and its topics, not their contents.
        """

    def first_rows(self, columns: tuple[str, ...], count: int) -> pa.Table | None:
        """These columns of the first records, for checks before a run; None if records can be read only once.

        What cannot be read is left out: the run reports it.
        """

    def open(self, columns: tuple[str, ...], position: Position | None) -> None:
        """Start to read these columns at a position of this source, from this or an earlier process.

        None is the beginning.
        """

    def poll(self) -> Polled:
        """The next records, in order; a live source returns within about half a second.

        InputError if the source cannot be read any further; what was returned before stays valid.
        """

    @property
    def position(self) -> Position:
        """Where the record after the last returned one is, as values that fit in JSON.

        It also holds what must not be decided again: inferred types, where `start = "latest"` was, decisions of marks.
        """

    def keep(self, position: Position) -> None:
        """A checkpoint with this position counts now: no earlier one will be asked for, apart from the one before.

        A place to acknowledge, or to report offsets to tools. The truth is in the checkpoint.
        """

    def leave(self, position: Position) -> None:
        """The run has ended: everything up to this position is decided, and the checkpoint says so.

        A place to tell those who continue here. It may be called without `open`, after a crash.
        """

    def lag(self) -> int | None:
        """Records in the system that were not returned yet, if that is known and cheap to ask; for metrics."""

    def place(self, row: int) -> dict[str, Any]:
        """Where a record is, for its dead letter: such as its file and its number there, from 1.

        `row` is its number in the stream, from 0. It may be any record since the beginning; a live source is asked
        only about records of its last poll.
        """

    def close(self) -> None:
        """Close what is open."""


class FiniteSource:
    """The part of the contract that a source which ends, such as files, does not need."""

    is_live: ClassVar[bool] = False

    def keep(self, position: Position) -> None:
        """Nothing to do: files keep their records."""

    def leave(self, position: Position) -> None:
        """Nothing to do: no run continues here."""

    def lag(self) -> int | None:
        """Unknown."""
        return None
