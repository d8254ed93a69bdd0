"""Notices a client that has lost its brokers for good, although they answer others."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

_SECONDS: Final = 10.0


class Watch:
    """Asks, while nothing gets done, whether brokers answer a new client but not the one that is in use.

    A client that was told of no brokers for a moment forgets all of them; one whose connections were dropped silently
    waits for answers that never come.

    Parameters
    ----------
    answers_us, answers_others
        Ask the brokers: with the client that is in use, and with a new one.
    """

    def __init__(
        self,
        answers_us: Callable[[], bool],
        answers_others: Callable[[], bool],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._answers_us, self._answers_others, self._clock = answers_us, answers_others, clock
        self.restart()

    def restart(self) -> None:
        """Something was done, or begun."""
        self._next = self._clock() + _SECONDS

    def is_cut_off(self) -> bool:
        """Whether the client should be replaced; brokers are asked every ten seconds at most."""
        if self._clock() < self._next:
            return False
        self.restart()
        return not self._answers_us() and self._answers_others()
