"""Messages of a system that keeps none itself: one thread appends them to a log of our own, the run reads them."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Final

import numpy as np
import orjson

from shoal.clients.trouble import Unreachable
from shoal.decode.messages import Messages
from shoal.errors import InputError
from shoal.sources.logged.message_log import LoggedMessage, MessageLog
from shoal.sources.reader import Fetched, Id

LOG: Final = "log"
"""The name of the only log."""
REPEATED: Final = "repeats a message that arrived before"
_READ: Final = 10_000


class LoggedMessages:
    """A message log and how far the run has read it. The place of a message is its number there.

    Parameters
    ----------
    name
        The system, for errors.
    open_log
        Makes the log; called when reading starts.
    repeats
        Recognizes messages that arrived before; None to accept every message.
    """

    def __init__(self, name: str, open_log: Callable[[], MessageLog], *, repeats: Repeats | None = None) -> None:
        self._name, self._open_log, self._repeats = name, open_log, repeats
        self._log: MessageLog | None = None
        self._news = threading.Condition()
        self._failure: Exception | None = None
        self._after = -1
        self._kept = 0

    def open(self, after: Id | None) -> int:
        """Begin to read after this message, or with the oldest one if it is None; returns where that is."""
        log = self._open_log()
        start = log.first - 1 if after is None else int(after)
        if not log.first <= start + 1 <= log.next:
            log.close()
            raise InputError(
                f"{self._name}: the message log next to the checkpoints has messages {log.first} to {log.next - 1}, "
                f"and {start + 1} is the next to be read; restore the folder, or start over with a new one"
            )
        if self._repeats is not None:
            for _, message in log.read(max(log.first, log.next - self._repeats.window), log.next):
                self._repeats.is_repeat(message.value)
        with self._news:
            self._after, self._kept, self._log = start, start + 1, log
        return start

    # ---- called by the thread that receives

    def append(self, messages: Sequence[tuple[str, bytes]]) -> None:
        """Append topics and values; they are on disk when this returns.

        Unreachable: the log is closed. After an OSError the log has none of them, but ids of repeats are remembered:
        the run must end.
        """
        now, repeats = time.time_ns(), self._repeats
        with self._news:
            if self._log is None:
                raise Unreachable("it is closed")
            self._log.append(
                [
                    LoggedMessage(topic, now, value, repeats is not None and repeats.is_repeat(value))
                    for topic, value in messages
                ]
            )
            self._news.notify_all()

    def note(self, failure: Exception | None) -> None:
        """Let the next `fetch` without messages raise this."""
        with self._news:
            self._failure = failure
            self._news.notify_all()

    @property
    def is_open(self) -> bool:
        """Whether messages can be appended."""
        return self._log is not None

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return 0 if self._log is None else self._log.size

    # ---- called by the run

    def fetch(self, seconds: float) -> list[Fetched]:
        """The next messages; waits this long at most for the first of them."""
        with self._news:
            if not self._news.wait_for(lambda: self._has_messages or self._failure is not None, seconds):
                return []
            if not self._has_messages:
                self._report()
                return []
            assert self._log is not None
            found = list(self._log.read(self._after + 1, _READ))
        self._after = found[-1][0]
        messages = Messages(
            [one.value for _, one in found],
            [one.topic for _, one in found],
            [one.time for _, one in found],
        )
        refused = {row: REPEATED for row, (_, one) in enumerate(found) if one.is_repeat}
        ids = np.array([number for number, _ in found], dtype=np.int64)
        return [Fetched(0, messages, ids, refused)]

    @property
    def _has_messages(self) -> bool:
        return self._log is not None and self._after + 1 < self._log.next

    def _report(self) -> None:
        failure = self._failure
        if isinstance(failure, OSError):
            raise InputError(f"{self._name}: the message log cannot be written ({failure.strerror}); make room")
        if failure is not None:
            raise failure

    @property
    def is_read(self) -> bool:
        """Whether everything was fetched."""
        return not self._has_messages

    def keep(self, after: Id) -> None:
        """Remove what neither this checkpoint nor the one before it needs, nor the recognition of repeats."""
        kept, self._kept = self._kept, int(after) + 1
        if self._log is not None:
            window = self._repeats.window if self._repeats is not None else 0
            with self._news:
                self._log.drop(min(kept, self._log.next - window))
                self._log.reseal()  # a checkpoint with the new key counts now

    def lag(self) -> int:
        """Messages that were not fetched yet."""
        return 0 if self._log is None else self._log.next - 1 - self._after

    def close(self) -> None:
        """Close the log."""
        with self._news:
            log, self._log = self._log, None
        if log is not None:
            log.close()


class Repeats:
    """Recognizes messages by an id in their content, among the last `window` of them.

    >>> repeats = Repeats("id", window=2)
    >>> [repeats.is_repeat(b'{"id": %d}' % number) for number in (1, 1, 2, 3, 1)]
    [False, True, False, False, False]

    A message without a usable id is never a repeat.
    """

    def __init__(self, column: str, *, window: int = 100_000) -> None:
        self._column, self.window = column, window
        self._recent: OrderedDict[bytes, None] = OrderedDict()

    def is_repeat(self, value: bytes) -> bool:
        """Whether the id of this message is known; from now on it is."""
        try:
            record = orjson.loads(value)
            found = record.get(self._column) if isinstance(record, dict) else None
        except ValueError:
            found = None
        if found is None:
            return False
        mark = blake2b(orjson.dumps(found), digest_size=16).digest()
        if mark in self._recent:
            return True
        self._recent[mark] = None
        if len(self._recent) > self.window:
            self._recent.popitem(last=False)
        return False
