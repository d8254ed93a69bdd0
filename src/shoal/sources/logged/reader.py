"""Reading a log of our own: what all systems have in common that keep no messages themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from shoal.sources.logged.logged import LOG, LoggedMessages
from shoal.sources.reader import Fetched, Id


class LoggedReader:
    """The part of a :class:`~shoal.sources.reader.Reader` that reads the log; a system adds how messages get into it.

    The place of a message is its number in the log.
    """

    def __init__(self, logged: LoggedMessages) -> None:
        self._logged = logged

    def connect(self) -> Sequence[str]:
        return (LOG,)

    def fetch(self, logs: Collection[int], seconds: float) -> Iterable[Fetched]:
        return self._logged.fetch(seconds) if logs else []

    def is_read(self, log: int) -> bool:
        return self._logged.is_read

    def has_ended(self, log: int) -> bool:
        return False

    def keep(self, after: Sequence[Id]) -> None:
        self._logged.keep(after[0])

    def leave(self, after: Mapping[str, Id]) -> None:
        """Nothing to do: there is no end to continue behind."""

    def lag(self) -> int | None:
        """Messages in the log; what the system still holds is unknown."""
        return self._logged.lag()

    def place(self, log: int, at: Id) -> dict[str, Any]:
        return {"log": at}

    def close(self) -> None:
        self._logged.close()
