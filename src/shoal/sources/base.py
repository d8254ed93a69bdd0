"""The contract of every source: records of one system, decoded, in order, from any position.

A source returns decoded records. A source of bytes (files, standard input) is composed of the files and a function that
opens the decoder of a file, so it knows no format; a source of messages (a broker) composes a decoder of messages in
the same way. One system per file; :mod:`shoal.sources.files` is the example to follow. The run does not know which
system it reads from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from shoal.decode.base import Decoded, Position

__all__ = ["Decoded", "End", "Idle", "Position", "Source"]


@dataclass(frozen=True, slots=True)
class Idle:
    """There is no record now, but more may come.

    The run passes this time to the method, so that deadlines are kept while nothing arrives.
    """

    now: int
    """The current time in nanoseconds since 1970, by the clock that the records' times come from."""


@dataclass(frozen=True, slots=True)
class End:
    """There will be no more records."""


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
        """Whether every record counts as one person, because there is no column that names them."""

    def identity(self) -> dict[str, str]:
        """Names and fingerprints of the inputs: a checkpoint of other input is refused."""

    def first_rows(self, columns: tuple[str, ...], count: int) -> pa.Table | None:
        """These columns of the first records, for checks before a run; None if records can be read only once.

        What cannot be read is left out: the run reports it.
        """

    def open(self, columns: tuple[str, ...], position: Position | None) -> None:
        """Start to read these columns at a position of this source, from this or an earlier process.

        None is the beginning.
        """

    def poll(self) -> Decoded | Idle | End:
        """The next records, in order.

        InputError if the source cannot be read any further; what was returned before stays valid.
        """

    @property
    def position(self) -> Position:
        """Where the next record is, as values that fit in JSON."""

    def place(self, row: int) -> dict[str, Any]:
        """Where a record is, for its dead letter: such as its file and its number there, from 1.

        `row` is its number in the stream, from 0. It may be any record since the beginning.
        """

    def close(self) -> None:
        """Close what is open."""
