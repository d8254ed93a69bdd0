"""How far a micro-batch reads partitions, so that none of them gets ahead of another: as one machine merges them.

Records are in the order of (running maximum of event time in the partition, partition, offset). A micro-batch ends in
every partition at the frontier: the place in this order up to which all partitions were read. What a later micro-batch
reads is behind it, so a partition that lags has no late records that one machine would not call late.
:mod:`shoal.sources.merging` has the same rules for one machine, record by record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

Place = tuple[str, int]
"""A topic and the number of a partition."""
_ENDED: Final = int(np.iinfo(np.int64).max)


class Frontier(NamedTuple):
    """A place in the merged order: records of this time are before it only in partitions up to this one."""

    time: int
    log: int
    """The number of the partition that is waited for, among all partitions of all topics."""

    def passes(self, time: int, log: int) -> bool:
        """Whether records of a partition with this running maximum of event time are taken."""
        return (time, log) <= self


EVERYTHING: Final = Frontier(_ENDED, _ENDED)


@dataclass(slots=True)
class Log:
    """A partition before a micro-batch, and what was found in it."""

    place: Place
    number: int
    """Among all partitions of all topics, in the order of the stream."""
    start: int
    end: int
    """Behind the last message that may be read now."""
    newest: int
    """Running maximum of event time up to `start`."""
    is_idle: bool
    """Whether it is silent and no longer waited for."""
    has_ended: bool
    """Whether nothing will come after `end`."""
    is_silent: bool
    """Whether there are no messages from `start` on, also none behind `end`."""
    until: int = -1
    """Up to where it was looked through for this micro-batch."""
    count: int = 0
    """Messages from `start` up to `until`."""
    read: int = 0
    """Running maximum of event time up to `until`; if nothing was read, at least that of what is next."""

    def __post_init__(self) -> None:
        self.until, self.read = self.start, self.newest

    @property
    def is_pending(self) -> bool:
        """Whether there may be messages to read."""
        return self.start < self.end

    @property
    def limit(self) -> Frontier | None:
        """Up to where it lets others go; None if it does not hold them back."""
        if (self.is_idle and not self.count) or (self.has_ended and self.until == self.end):
            return None
        return Frontier(self.read, self.number)


def frontier(logs: Iterable[Log]) -> Frontier:
    """The least place up to which partitions were read; idle ones and those that have ended hold nothing back."""
    return min((limit for log in logs if (limit := log.limit) is not None), default=EVERYTHING)


class Silence:
    """Since when partitions are silent.

    Parameters
    ----------
    idle_seconds
        How long a partition at its end may hold others back: the setting ``idle_partition``.
    """

    def __init__(self, idle_seconds: float) -> None:
        self._idle_seconds = idle_seconds
        self._seen: dict[Place, tuple[int, float]] = {}

    def note(self, ends: Mapping[Place, int], now: float) -> None:
        """Partitions end here at this time, in seconds of any clock."""
        self._seen = {
            place: seen if (seen := self._seen.get(place)) is not None and seen[0] == end else (end, now)
            for place, end in ends.items()
        }

    def restart(self) -> None:
        """Count silence from the next look on: until now the system was unreachable."""
        self._seen.clear()

    def is_over(self, place: Place, now: float) -> bool:
        """Whether a partition has been silent for too long to be waited for."""
        return now - self._seen[place][1] >= self._idle_seconds
