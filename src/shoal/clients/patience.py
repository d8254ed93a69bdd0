"""How long to keep trying while a system cannot be reached."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final

_LONGEST_WAIT: Final = 0.5
_SHORTEST_WAIT: Final = 0.02


class Patience:
    """Counts how long a system has been failing, and waits between attempts: twice as long each time, with jitter.

    Parameters
    ----------
    give_up
        Seconds of uninterrupted trouble after which to fail.
    """

    def __init__(
        self,
        give_up: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._give_up, self._clock, self._sleep = give_up, clock, sleep
        self.succeed()

    def succeed(self) -> None:
        """The system answered."""
        self._since: float | None = None
        self._wait = _SHORTEST_WAIT

    @property
    def is_in_trouble(self) -> bool:
        """Whether the last attempt failed."""
        return self._since is not None

    def fail(self) -> bool:
        """An attempt failed; returns whether to give up."""
        now = self._clock()
        if self._since is None:
            self._since = now
        return now - self._since >= self._give_up

    def wait(self) -> None:
        """Wait before the next attempt, at most half a second."""
        self._sleep(self._wait * random.uniform(0.5, 1.0))
        self._wait = min(2 * self._wait, _LONGEST_WAIT)
