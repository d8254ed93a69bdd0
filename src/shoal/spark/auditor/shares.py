"""The files of an audit: each is read by one task, with the auditor's own reader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shoal.auditor.evidence import source_format
from shoal.auditor.policy import Policy
from shoal.auditor.reading.files import read
from shoal.auditor.reading.memory import limited
from shoal.auditor.reading.paths import Format, table_paths
from shoal.auditor.reading.rows import Rows
from shoal.auditor.task_files import Opener, Sealed
from shoal.errors import InputError


@dataclass(frozen=True, slots=True)
class Share:
    """What one task reads: a file, or a piece of a sealed one."""

    role: str
    """release, truth or trace."""
    number: int
    """Its place among the shares of its role."""
    path: str
    expected: Format
    max_memory: int | None
    piece: int = 0
    opener: Opener | None = None

    def read(self) -> Rows:
        """Read it."""
        with limited(self.max_memory):
            what = self.path if self.opener is None else self.opener(self.path, self.piece)
            return read(what, name=self.role, expected=self.expected)


@dataclass(frozen=True, slots=True)
class Files:
    """What tasks read of the release, the truth and the trace."""

    release: list[Share]
    truth: list[Share]
    trace: list[Share]


def files_of(policy: Policy, what: str, release: Any, truth: Any, trace: Any, max_memory: int | None) -> Files:
    """The files of an audit of `what`, in the formats of the policy; all three must be given."""
    if truth is None or trace is None:
        raise InputError(f"on Spark a release of {what} is audited with its truth and its trace; give both")
    source = source_format(policy)
    sink = replace(Format.of(policy.section("sink")), names_once=True)
    return Files(
        shares_of(release, "release", sink, max_memory),
        shares_of(truth, "truth", source, max_memory),
        shares_of(trace, "trace", Format(), max_memory),
    )


def shares_of(what: Any, role: str, expected: Format, max_memory: int | None) -> list[Share]:
    """The files that something names, as absolute paths, in the order in which they are read."""
    return [
        Share(role, number, path, expected, max_memory, piece, opener)
        for number, (path, piece, opener) in enumerate(_files(what, role))
    ]


def _files(what: Any, role: str) -> Iterator[tuple[str, int, Opener | None]]:
    if isinstance(what, Sealed):
        yield from ((what.path, piece, what.opener) for piece in range(what.pieces))
    elif isinstance(what, str | Path):
        yield from ((str(path.absolute()), 0, None) for path in table_paths(what, role))
    elif isinstance(what, Sequence):
        for one in what:
            yield from _files(one, role)
    else:
        raise InputError(f"{role}: on Spark give paths that every machine has; audit tables in memory with shoal.audit")
