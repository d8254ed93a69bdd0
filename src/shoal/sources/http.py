"""Records that are sent to us over HTTP: stored in a log of our own before they are accepted, then read by the run.

The web server is not part of this: :mod:`shoal.serve` has it and calls `accept`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from shoal.clients.trouble import Unreachable
from shoal.errors import InputError
from shoal.sources.logged.logged import LoggedMessages
from shoal.sources.logged.reader import LoggedReader
from shoal.sources.reader import Fetched, Id, Needs

EVENTS: Final = "/events"
_TOPIC: Final = ""


class HttpReader(LoggedReader):
    """Accepts records in the threads of a web server, and hands them to the run.

    Parameters
    ----------
    logged
        The log that records are appended to.
    most_waiting
        Records that may wait to be read; beyond them, there is no room.
    max_log_bytes
        There is no room either while the log is longer.
    """

    topics: Sequence[str] = (EVENTS,)

    def __init__(
        self, logged: LoggedMessages, *, name: str, most_waiting: int = 100_000, max_log_bytes: int = 2**30
    ) -> None:
        super().__init__(logged)
        self.name = name
        self._most_waiting, self._max_log_bytes = most_waiting, max_log_bytes
        self._has_failed = False
        self.is_served = False
        """Whether a web server passes records on."""

    # ---- called by the web server

    @property
    def is_open(self) -> bool:
        """Whether records can be accepted: the run has opened the log, and it can be written."""
        return self._logged.is_open and not self._has_failed

    @property
    def has_room(self) -> bool:
        """Whether few enough records wait."""
        return self._logged.lag() < self._most_waiting and self._logged.size < self._max_log_bytes

    def accept(self, records: Sequence[bytes]) -> None:
        """Store records; they survive a crash once this returns. Unreachable: nothing was stored."""
        try:
            self._logged.append([(_TOPIC, record) for record in records])
        except OSError as error:  # the run ends, so that someone makes room; records are sent again to the next one
            self._has_failed = True
            self._logged.note(error)
            raise Unreachable(error.strerror or "the log cannot be written") from None

    # ---- called by the run

    def open(self, after: Sequence[Id | None], needs: Needs) -> Sequence[Id]:
        return [self._logged.open(after[0])]

    def fetch(self, logs: Collection[int], seconds: float) -> Iterable[Fetched]:
        if not self.is_served:
            raise InputError(f"{self.name}: needs a web server; start it with shoal run or shoal serve")
        return super().fetch(logs, seconds)
