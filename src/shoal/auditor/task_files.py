"""The files of an audit on many machines: each, or each piece of a sealed one, is read by one task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from shoal.auditor.layout import count_odd_rows
from shoal.auditor.policy import Policy
from shoal.auditor.reading.files import Reader, read
from shoal.auditor.reading.outline import Outline
from shoal.auditor.reading.paths import Format, table_paths
from shoal.auditor.reading.rows import Rows, by_stream
from shoal.errors import InputError

Opener = Callable[[str, int], Any]
"""Opens a piece of a sealed file in a task, given its path and number; returns an Arrow table."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """A sealed file: how many pieces it has, and what opens them."""

    path: str
    pieces: int
    opener: Opener


@dataclass(frozen=True, slots=True)
class File:
    """What one task reads: a file, or a piece of a sealed one."""

    role: str
    """release, truth or trace."""
    path: str
    expected: Format
    reader: Reader = read
    piece: int = 0
    opener: Opener | None = None

    def read(self) -> Rows:
        """Read it."""
        what = self.path if self.opener is None else self.opener(self.path, self.piece)
        return self.reader(what, name=self.role, expected=self.expected)

    def outline(self, policy: Policy) -> Outline:
        """Read it, and return what it shows before any row is looked at."""
        odd_rows = count_odd_rows(self.path, policy, self.expected) if self.expected.names_once else 0
        return Outline.of(replace(self.read(), odd_rows=odd_rows))


def files_of(what: Any, role: str, expected: Format, reader: Reader = read) -> list[File]:
    """The files that something names, as absolute paths, in the order in which they are read."""
    if isinstance(what, Sealed):
        return [File(role, what.path, expected, reader, piece, what.opener) for piece in range(what.pieces)]
    if isinstance(what, str | Path):
        return [File(role, str(path.absolute()), expected, reader) for path in table_paths(what, role)]
    if isinstance(what, Sequence):
        return [file for one in what for file in files_of(one, role, expected, reader)]
    raise InputError(f"{role}: on Spark give paths that every machine has; audit tables in memory with shoal.audit")


@dataclass(frozen=True, slots=True)
class RowsOf:
    """Reads a file as a part of all files of its role: with the columns of all, its rows numbered on."""

    firsts: Sequence[int]
    outline: Outline
    stream: Mapping[str, Any]

    def __call__(self, number: int, file: File) -> Rows:
        """Read one."""
        rows, every = file.read(), self.outline.columns
        if file.role == "truth":
            rows = by_stream(rows, self.stream, self.firsts[number], numbers=self.outline.is_numbered)
        parts = [({name: pa.nulls(len(broken)) for name in every} | columns, broken) for columns, broken in rows.parts]
        return replace(rows, parts=tuple(parts))
