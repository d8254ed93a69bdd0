"""Which events may move time, with a list of claims instead of a ring in an array."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field

REMEMBERED = 8
TAKEN, RESTART, LATE, AHEAD = "taken", "restart", "late", "ahead"


@dataclass
class NaiveClock:
    """The stream's time; None before the first event."""

    lateness: int
    max_gap: int
    newest: int | None = None
    owner: Hashable | None = None
    """The one person whose word the time is; None once a second one agreed."""
    closed: int | None = None
    claims: deque[tuple[Hashable, int]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    def admit(self, person: Hashable, time: int) -> str:
        if self.newest is None:
            self._start(person, time)
            return TAKEN
        if time > self.newest + self.max_gap:
            if not any(who != person and abs(then - time) <= self.max_gap for who, then in self.claims):
                self._claim(person, time)
                return AHEAD
            self.claims.clear()
            self.owner = None
        elif self.owner is not None and person != self.owner:
            if time < self.newest - max(self.max_gap, self.lateness):
                self._start(person, time)
                return RESTART
            self.owner = None
        if time < self.newest - self.lateness or (self.closed is not None and time < self.closed):
            return LATE
        self.newest = max(self.newest, time)
        return TAKEN

    def advance(self, now: int) -> None:
        if self.newest is None or now > self.newest:
            self.newest, self.owner = now, None

    def close(self, time: int) -> None:
        """Everything up to this time was decided."""
        self.closed = time if self.closed is None else max(self.closed, time)

    def _claim(self, person: Hashable, time: int) -> None:
        for number, (who, _) in enumerate(self.claims):
            if who == person:
                self.claims[number] = (person, time)
                return
        self.claims.append((person, time))

    def _start(self, person: Hashable, time: int) -> None:
        self.newest, self.owner, self.closed = time, person, None
        self.claims.clear()
