"""Partitions of one topic merged into one stream, in event time.

The order is that of (running maximum of event time in the partition, partition, place in the partition's log). It
depends on the logs alone, not on how they are fetched: records are handed out only up to the least of the partitions'
newest times, because no record that comes later can sort before those.

A silent partition holds the others back. After a time-out it is declared **idle** and no longer waited for, until it
has records again. Both are decisions that a second reading would not repeat, so both are part of `position`, and the
source returns a :class:`~shoal.sources.base.Mark` before it hands out anything that depends on them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.decode.base import BATCH_ROWS, Decoded, Refused

Int64s = npt.NDArray[np.int64]

NO_TIME: Final = np.iinfo(np.int64).min
"""The time of a record without a usable one: it keeps its place behind the record before it."""
_ENDED: Final = np.iinfo(np.int64).max
_BATCH_BYTES: Final = 2**30
"""Text of more than 2 GiB does not fit in one Arrow array."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive records of one partition."""

    decoded: Decoded
    times: Int64s
    """Event time of every record in nanoseconds, refused ones included; NO_TIME where there is none."""
    ids: npt.NDArray[Any]
    """Where every record is in the partition, such as its offset."""


@dataclass(frozen=True, slots=True)
class Merged:
    """Records of all partitions, in order."""

    decoded: Decoded
    partitions: npt.NDArray[np.intp]
    """The partition of every record, refused ones included."""
    ids: npt.NDArray[Any]
    """Where every record is in its partition."""


@dataclass(slots=True)
class _Partition:
    """What was read of one partition and not handed out yet."""

    read: int = NO_TIME
    """Running maximum of event time of what was read."""
    handed_out: int = NO_TIME
    """The same of what was handed out."""
    is_idle: bool = False
    has_ended: bool = False
    silent_since: float | None = None
    """When its end was reached; None if records may be on their way."""
    rows: int = 0
    nbytes: int = 0


class PartitionMerge:
    """Merges the records of partitions 0, 1, ... that are added in the order of their logs.

    Parameters
    ----------
    position
        Where an earlier merge was; its records are added again from there.
    idle_seconds
        How long a partition at its end may hold others back.
    """

    def __init__(self, partitions: int, *, idle_seconds: float, position: Mapping[str, Any] | None = None) -> None:
        self._idle_seconds = idle_seconds
        self._partitions = [_Partition() for _ in range(partitions)]
        self._pending: list[deque[_Piece]] = [deque() for _ in range(partitions)]
        self.has_decided = False
        """Whether a partition became idle or came back since `position` was last made durable; the source resets it."""
        for one, time in zip(self._partitions, (position or {}).get("newest", ()), strict=False):
            one.read = one.handed_out = NO_TIME if time is None else time
        for number in (position or {}).get("idle", ()):
            self._partitions[number].is_idle = True

    @property
    def position(self) -> dict[str, Any]:
        """The newest time handed out of every partition, and which partitions are idle."""
        newest = [None if one.handed_out == NO_TIME else int(one.handed_out) for one in self._partitions]
        return {"newest": newest, "idle": [number for number, one in enumerate(self._partitions) if one.is_idle]}

    def pending(self, partition: int) -> int:
        """Records of a partition that were read and not handed out."""
        return self._partitions[partition].rows

    def pending_bytes(self, partition: int) -> int:
        """How much memory the chunks take that these records came in."""
        return self._partitions[partition].nbytes

    @property
    def is_empty(self) -> bool:
        """Whether everything that was read is handed out."""
        return not any(one.rows for one in self._partitions)

    # ---- what the source reports

    def add(self, partition: int, chunk: Chunk) -> None:
        """Accept the next records of a partition."""
        if not len(chunk.times):
            return
        one = self._partitions[partition]
        keys = np.maximum.accumulate(np.maximum(chunk.times, one.read))
        one.read, one.silent_since = int(keys[-1]), None
        one.rows += len(keys)
        if one.is_idle:
            one.is_idle, self.has_decided = False, True
        piece = _Piece(chunk, keys, nbytes=int(chunk.decoded.batch.nbytes))
        one.nbytes += piece.nbytes
        self._pending[partition].append(piece)

    def reach_end(self, partition: int, now: float) -> None:
        """A partition has no more records at this time, in seconds of any clock."""
        if self._partitions[partition].silent_since is None:
            self._partitions[partition].silent_since = now

    def end(self, partition: int) -> None:
        """A partition has no more records and will not have any."""
        self._partitions[partition].has_ended = True

    def restart_silence(self, now: float) -> None:
        """Count silence from now on: until now the system was unreachable."""
        for one in self._partitions:
            if one.silent_since is not None:
                one.silent_since = now

    def is_silent(self, partition: int) -> bool:
        """Whether everything in the partition was read, as far as is known."""
        one = self._partitions[partition]
        return one.has_ended or one.silent_since is not None

    # ---- idle partitions

    def declare_idle(self, now: float) -> None:
        """Stop waiting for partitions that have held others back for too long."""
        if self.is_empty:
            return
        for one in self._partitions:
            is_waited_for = not (one.rows or one.is_idle or one.has_ended) and one.silent_since is not None
            if is_waited_for and now - (one.silent_since or 0.0) >= self._idle_seconds:
                one.is_idle = self.has_decided = True

    # ---- the merge

    def take(self, limit: int = BATCH_ROWS) -> Merged | None:
        """The next records in order, at most `limit`; None if all that was read must wait."""
        taken = [piece for number, last in self._last_keys() for piece in self._up_to(number, last, limit)]
        if not taken:
            return None
        keys = np.concatenate([piece.keys for _, piece in taken])
        # Pieces are in the order of partitions and logs, so a stable sort by key gives the order of all three.
        order = np.argsort(keys, kind="stable")[:limit]
        partitions = np.repeat([number for number, _ in taken], [len(piece.keys) for _, piece in taken])[order]
        ids = np.concatenate([piece.chunk.ids[piece.start : piece.start + len(piece.keys)] for _, piece in taken])[
            order
        ]
        parts = [piece.decoded() for _, piece in taken]
        if limit > 1 and sum(part.batch.nbytes for part in parts) > _BATCH_BYTES:
            return self.take(limit // 2)
        decoded = _reorder(parts, order)
        self._drop(np.bincount(partitions, minlength=len(self._partitions)))
        return Merged(decoded, partitions, ids)

    def _last_keys(self) -> list[tuple[int, int]]:
        """For each partition with records, the last key that may be handed out."""
        waited_for = [
            (_ENDED if one.has_ended else one.read, number)
            for number, one in enumerate(self._partitions)
            if not one.is_idle
        ]
        time, holder = min(waited_for, default=(_ENDED, len(self._partitions)))
        # A later record of the holder sorts behind (time, holder), so before records of that time in later partitions.
        return [
            (number, time if number <= holder or time == _ENDED else time - 1)
            for number, one in enumerate(self._partitions)
            if one.rows and (number <= holder or time > NO_TIME)
        ]

    def _up_to(self, partition: int, last: int, limit: int) -> list[tuple[int, _Piece]]:
        found: list[tuple[int, _Piece]] = []
        for piece in self._pending[partition]:
            count = min(int(np.searchsorted(piece.keys, last, side="right")), limit)
            limit -= count
            if count:
                found.append((partition, piece.first(count)))
            if count < len(piece.keys):
                break
        return found

    def _drop(self, counts: npt.NDArray[np.intp]) -> None:
        for number, count in enumerate(counts.tolist()):
            one, pieces = self._partitions[number], self._pending[number]
            one.rows -= count
            while count:
                piece = pieces.popleft()
                dropped = min(count, len(piece.keys))
                one.handed_out = int(piece.keys[dropped - 1])
                if dropped < len(piece.keys):
                    pieces.appendleft(piece.after(dropped))
                else:
                    one.nbytes -= piece.nbytes
                count -= dropped


@dataclass(frozen=True, slots=True)
class _Piece:
    """The records of a chunk from `start` on, as many as there are keys."""

    chunk: Chunk
    keys: Int64s
    """The running maximum of event time at each record."""
    start: int = 0
    nbytes: int = 0
    """Memory of the whole chunk."""

    @property
    def ids(self) -> npt.NDArray[Any]:
        return self.chunk.ids[self.start : self.start + len(self.keys)]

    def first(self, count: int) -> _Piece:
        return _Piece(self.chunk, self.keys[:count], self.start)

    def after(self, count: int) -> _Piece:
        return _Piece(self.chunk, self.keys[count:], self.start + count, self.nbytes)

    def decoded(self) -> Decoded:
        """Its records, numbered from 0."""
        whole, end = self.chunk.decoded, self.start + len(self.keys)
        if len(self.keys) == whole.rows:
            return whole
        before, behind = (bisect_left(whole.refused, row, key=attrgetter("row")) for row in (self.start, end))
        refused = whole.refused[before:behind]
        batch = whole.batch.slice(self.start - before, len(self.keys) - len(refused))
        moved = tuple(Refused(one.row - self.start, one.column, one.reason) for one in refused)
        return Decoded(batch, moved, {})


def _reorder(parts: Sequence[Decoded], order: npt.NDArray[np.intp]) -> Decoded:
    """The records of all parts in this order; `order` may leave some out."""
    if len(parts) == 1 and len(order) == parts[0].rows:
        return parts[0]  # the keys of one piece ascend already
    starts = np.cumsum([0, *(part.rows for part in parts)])
    refused = {int(start) + one.row: one for start, part in zip(starts, parts, strict=False) for one in part.refused}
    is_kept = np.ones(starts[-1], dtype=np.bool_)
    is_kept[list(refused)] = False
    rows = (np.cumsum(is_kept) - 1)[order[is_kept[order]]]
    table = pa.Table.from_batches([part.batch for part in parts]).combine_chunks()
    batch = next(iter(table.to_batches()), parts[0].batch.slice(0, 0))
    moved = tuple(
        Refused(int(row), refused[int(order[row])].column, refused[int(order[row])].reason)
        for row in np.flatnonzero(~is_kept[order])
    )
    return Decoded(batch.take(pa.array(rows)), moved, {})
