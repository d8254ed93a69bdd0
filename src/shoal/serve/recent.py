"""Recent records and what was released of them, in memory only: for measurements and trials, never shown."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.methods.release import DEAD, RELEASED

_MOST_ROWS: Final = 500_000
_MOST_BYTES: Final = 128 * 1024 * 1024

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Step:
    """Records that were pushed together, and the release that followed. References only: nothing is copied."""

    number: int
    """Of the step, from 0."""
    first: int
    """The number of the first record."""
    arrived: Any
    """A :class:`~shoal.decode.base.Decoded`, or None if only time passed."""
    release: Any
    """A :class:`~shoal.methods.release.Release`."""

    @property
    def batch(self) -> pa.RecordBatch | None:
        """The records that could be decoded."""
        return None if self.arrived is None else self.arrived.batch

    @property
    def numbers(self) -> Ints:
        """The number in the stream of every record of the batch."""
        return np.empty(0, np.int64) if self.arrived is None else np.asarray(self.arrived.kept + self.first)

    @property
    def size(self) -> int:
        """Records and released rows."""
        return (0 if self.arrived is None else int(self.arrived.rows)) + int(self.release.rows.num_rows)

    @property
    def nbytes(self) -> int:
        """About how much memory is referenced."""
        return int(self.release.rows.nbytes) + (0 if self.arrived is None else int(self.arrived.batch.nbytes))

    def shown(self) -> tuple[pa.RecordBatch, pa.RecordBatch] | None:
        """Published rows and, row by row, their entries in the trace; None if they cannot be matched."""
        return self._shown

    @cached_property
    def _shown(self) -> tuple[pa.RecordBatch, pa.RecordBatch] | None:
        rows, trace = self.release.rows, self.release.trace
        verdict = trace.column("verdict").cast(pa.string())
        for is_shown in (pc.equal(verdict, RELEASED), pc.not_equal(verdict, DEAD)):  # suppressed rows may be shown too
            found = trace.filter(is_shown)
            if found.num_rows == rows.num_rows:
                return rows, found
        return None


class RecentRows:
    """The last steps of a run, up to a number of rows and of bytes."""

    def __init__(self, *, most_rows: int = _MOST_ROWS, most_bytes: int = _MOST_BYTES) -> None:
        self._most_rows, self._most_bytes = most_rows, most_bytes
        self._steps: deque[tuple[Step, int, int]] = deque()
        self._rows = self._bytes = self._next = 0
        self._lock = Lock()
        self.is_resumed = False
        """Whether earlier processes saw records that are unknown here."""

    def begin_in_the_middle(self) -> None:
        """The run resumes from a checkpoint."""
        self.is_resumed = True

    def add(self, arrived: Any, first: int, release: Any) -> None:
        """Remember what arrived, if anything, and what was released after it."""
        step = Step(self._next, first, arrived, release)
        size, nbytes = step.size, step.nbytes
        if not size:
            return
        with self._lock:
            self._next += 1
            self._steps.append((step, size, nbytes))
            self._rows, self._bytes = self._rows + size, self._bytes + nbytes
            while len(self._steps) > 1 and (self._rows > self._most_rows or self._bytes > self._most_bytes):
                _, size, nbytes = self._steps.popleft()
                self._rows, self._bytes = self._rows - size, self._bytes - nbytes

    def steps(self) -> list[Step]:
        """The steps, oldest first."""
        with self._lock:
            return [step for step, _, _ in self._steps]


def newest(steps: list[Step], most_rows: int) -> list[Step]:
    """The last steps with at most this many rows, at least one."""
    found, rows = 0, 0
    for step in reversed(steps):
        rows += step.size
        if rows > most_rows and found:
            break
        found += 1
    return steps[len(steps) - found :]
