"""The contract of a message system that is read: it fetches messages of its logs, behind any place in them.

One system per file; :class:`shoal.sources.live.LiveSource` makes a source of any of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy.typing as npt

from shoal.decode.messages import Messages

Id = int | str
"""Where a message is in its log, as a value that fits in JSON."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """Consecutive messages of one log."""

    log: int
    messages: Messages
    ids: npt.NDArray[Any]
    """Where each message is."""
    refused: Mapping[int, str] = field(default_factory=dict)
    """Messages that the reader refuses, by their place in this list, with the reason."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What is needed of messages besides their values."""

    keys: bool = False
    headers: bool = False
    times: bool = False
    """When the broker took them."""


class Reader(Protocol):
    """Reads the logs of one system in their order."""

    @property
    def name(self) -> str:
        """The system and its address, for messages."""

    @property
    def topics(self) -> Sequence[str]:
        """What the policy names: topics or streams."""

    def connect(self) -> Sequence[str]:
        """The names of the logs, such as the partitions of all topics. Unreachable: call it again."""

    def open(self, after: Sequence[Id | None], needs: Needs) -> Sequence[Id]:
        """Read every log behind this message; None: from where the settings say. Returns where that is.

        InputError if messages behind it were removed. Unreachable: nothing has changed, call it again.
        """

    def fetch(self, logs: Collection[int], seconds: float) -> Iterable[Fetched]:
        """The next messages of these logs; waits this long at most for the first of them.

        Unreachable: no message was taken, call it again.
        """

    def is_read(self, log: int) -> bool:
        """Whether everything was fetched that the log is known to hold."""

    def has_ended(self, log: int) -> bool:
        """Whether everything was fetched up to the end as it was at the start, if reading is to end there."""

    def keep(self, after: Sequence[Id]) -> None:
        """Messages up to these are not needed any more."""

    def leave(self, after: Mapping[str, Id]) -> None:
        """The run has ended: everything up to these is decided, by the name of the log. Unreachable: call it again.

        It may be called without `connect`.
        """

    def lag(self) -> int | None:
        """Messages that were not fetched yet, if that is known."""

    def place(self, log: int, at: Id) -> dict[str, Any]:
        """Where a message is, for its dead letter."""

    def close(self) -> None:
        """Close the connection."""
