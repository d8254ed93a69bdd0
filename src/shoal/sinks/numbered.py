"""Messages numbered from 0 in the order they are written: what a message system already holds is not written again.

The same records give the same messages in the same order, so a number identifies a message. A checkpoint knows that `n`
messages were written; the system may hold `m >= n`, because the process was killed before its next checkpoint. After
recovery the next `m - n` messages are those the system holds, and are skipped.
"""

from __future__ import annotations

from shoal.errors import CheckpointError
from shoal.sinks.base import Receipt

_MESSAGES = "messages"


class MessageNumbers:
    """Counts the messages of one sink.

    Parameters
    ----------
    name
        The sink's name in errors.

    Examples
    --------
    >>> numbers = MessageNumbers("stream visits")
    >>> numbers.recover({"messages": 10}, held=12)
    >>> numbers.take(5), numbers.take(5)  # messages 10 and 11 are there already
    (2, 0)
    >>> numbers.receipt
    {'messages': 20}
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.written = 0
        """Messages written since the beginning, which is the number of the next one."""
        self._held = 0

    def start(self, *, held: int) -> None:
        """Begin with message 0; CheckpointError if the system holds messages although nothing was written yet."""
        if held:
            raise CheckpointError(
                f"{self._name}: holds {held:,} messages of a run whose checkpoints are not here; put the checkpoint "
                "folder back, or name another place to write to"
            )
        self.written = self._held = 0

    def recover(self, receipt: Receipt, *, held: int) -> None:
        """Continue after a receipt, with `held` messages in the system; CheckpointError if some are missing."""
        self.written, self._held = receipt[_MESSAGES], held
        if held < self.written:
            raise CheckpointError(
                f"{self._name}: holds {held:,} messages, the checkpoint knows {self.written:,}; restore what was "
                "removed, or start over with a new checkpoint folder and another place to write to"
            )

    def take(self, count: int) -> int:
        """Count the next messages; return how many of them, from the first, the system holds already."""
        skipped = min(count, max(0, self._held - self.written))
        self.written += count
        return skipped

    @property
    def held(self) -> int:
        """Messages the system holds once everything written is visible, those that were skipped included.

        A sink that keeps this number itself (Kafka: the offset in its marker) keeps this, not `written`: a commit in
        the middle of what is skipped would otherwise take the number back, and the rest would be written twice.
        """
        return max(self.written, self._held)

    @property
    def receipt(self) -> Receipt:
        """What `recover` accepts."""
        return {_MESSAGES: self.written}
