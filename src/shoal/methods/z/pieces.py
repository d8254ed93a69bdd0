"""A large batch in pieces: all threads read, count and publish them, every step as soon as those before it are done.

```text
  read 0 ──▶ admit 0 ──▶ count 0, by shard ──▶ settle 0 ──▶ publish 0
                │                │                │
  read 1 ──▶ admit 1 ──▶ count 1, by shard ──▶ settle 1 ──▶ publish 1
```

Admission, each shard and the place of a row in the output depend on the pieces before; nothing else does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from shoal.kernels.text_hashes import DIGITS
from shoal.methods.text_keys import Bools
from shoal.methods.z.admission import Admission, Admitted
from shoal.methods.z.judge import Counting, Judge, Judged, Shard
from shoal.methods.z.publisher import Publisher
from shoal.methods.z.reader import Reader
from shoal.methods.z.task_graph import Task, run_all

_AT_ONCE, _COUNT, _READ, _PUBLISH = range(4)
"""The urgency of a step: others wait for counting; publishing fills the time of threads with nothing else to do."""
_MOST: Final = 6
"""Pieces in memory at the same time."""


class PublishedPieces:
    """The rows of one call, published piece by piece.

    The pseudonyms, the largest part of the output, are written to one buffer, so that they are not copied at the end.
    """

    def __init__(self, publisher: Publisher, rows: int) -> None:
        self._publisher = publisher
        self._names = np.empty(DIGITS * rows, dtype=np.uint8)
        self._used = 0
        self._parts: list[list[pa.Array]] = []

    def add(self, judged: Judged, which: Bools) -> Callable[[], None]:
        """Reserve a place for some of the rows judged; the returned function publishes them."""
        start, self._used = self._used, self._used + DIGITS * int(np.count_nonzero(which))
        names = self._names[start : self._used]
        columns: list[pa.Array] = []
        self._parts.append(columns)

        def publish() -> None:
            columns[:] = self._publisher.columns(judged, which, names)

        return publish

    def joined(self) -> pa.RecordBatch:
        """All rows added and published."""
        return self._publisher.joined(self._parts, self._names[: self._used])


class PieceWork:
    """Steps from the pieces of a batch to their published rows; nothing in them waits, and time does not start over."""

    def __init__(
        self, reader: Reader, admission: Admission, judge: Judge, published: PublishedPieces,
        *, note: Callable[[Judged, Admitted], None],
    ) -> None:  # fmt: skip
        self.reader, self.admission, self.judge, self.published = reader, admission, judge, published
        self.note = note
        """Gets what is decided about each piece, in order."""

    def run(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Do all steps of all pieces, in all threads."""
        steps: list[_Steps] = []
        for number, batch in enumerate(batches):
            room = [steps[-_MOST].publish] if len(steps) >= _MOST else []
            steps.append(_Steps.of(_Piece(self, batch), number, steps[-1] if steps else None, room))
        run_all([task for one in steps for task in one.tasks])
        self.judge.settle()


class _Piece:
    """One piece and what is known about it so far."""

    _admitted: Admitted
    _counting: Counting
    _publish: Callable[[], None]

    def __init__(self, work: PieceWork, batch: pa.RecordBatch) -> None:
        self._work, self._batch = work, batch
        self.shards = work.judge.shards

    def read(self) -> None:
        self._arrivals = self._work.reader.read(self._batch)

    def admit(self) -> None:
        self._admitted = self._work.admission.admit(self._arrivals)
        self._counting = self._work.judge.begin(self._admitted.rows)

    def count(self, shard: Shard) -> None:
        self._counting.count(shard)

    def settle(self) -> None:
        judged = self._counting.judged()
        self._work.note(judged, self._admitted)
        self._publish = self._work.published.add(judged, judged.passed)

    def publish(self) -> None:
        self._publish()
        del self._arrivals, self._admitted, self._counting, self._publish  # the memory is not needed any more


@dataclass(frozen=True, slots=True)
class _Steps:
    """The tasks of one piece."""

    read: Task
    admit: Task
    counts: list[Task]
    settle: Task
    publish: Task

    @classmethod
    def of(cls, piece: _Piece, number: int, last: _Steps | None, room: list[Task]) -> _Steps:
        """Tasks that follow those of the last piece; reading waits until there is room."""
        read = Task((_READ, number), piece.read, room)
        admit = Task((_AT_ONCE, number), piece.admit, [read, *([last.admit] if last else [])])
        counts = [
            Task((_COUNT, number), partial(piece.count, shard), [admit, *([last.counts[at]] if last else [])])
            for at, shard in enumerate(piece.shards)
        ]
        settle = Task((_AT_ONCE, number), piece.settle, [*counts, *([last.settle] if last else [])])
        return cls(read, admit, counts, settle, Task((_PUBLISH, number), piece.publish, [settle]))

    @property
    def tasks(self) -> list[Task]:
        return [self.read, self.admit, *self.counts, self.settle, self.publish]
