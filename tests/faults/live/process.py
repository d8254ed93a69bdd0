"""A process that can fail at every step it takes outside: killed, frozen, or left without an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

Fault = Literal["before", "after", "lost", "repeat", "frozen", "aborted", "doubtful"]
"""Killed before the step; killed after it; its answer is lost; a fetch repeats records; frozen before it; the
transaction is aborted instead of the step; the client breaks down after it, so that nobody knows whether it was taken.
"""


LOCAL = ("checkpoint", "prune")
"""Steps on a disk, which always answers."""
TRANSACTIONAL = ("produce", "flush", "send offsets", "commit")
"""Steps inside a transaction."""


class Killed(BaseException):
    """No run catches this."""


class Lost(Exception):
    """The step was taken, the answer did not arrive."""


class Broken(Exception):
    """The transaction is over for this client."""


class Process:
    """Takes numbered steps; some of them fail.

    Parameters
    ----------
    number
        How many processes there were before. Decisions that a restart decides anew depend on it.
    while_frozen
        What others do while this process is frozen.
    before_step
        Called before every step, with the steps so far.
    """

    def __init__(
        self,
        number: int = 0,
        faults: Mapping[int, Fault] | None = None,
        *,
        while_frozen: Callable[[], None] | None = None,
        before_step: Callable[[list[str]], None] | None = None,
    ) -> None:
        self.number = number
        self._faults = faults or {}
        self._while_frozen = while_frozen
        self._before_step = before_step
        self._is_dead = False
        self.steps: list[str] = []
        self.ended = ""
        """How it ended: "done", "killed" or a sentence."""

    def step(self, name: str, act: Callable[[], Any], repeated: Callable[[], Any] | None = None) -> Any:
        """Do something outside. A dead process does nothing, also while it is cleaned up."""
        if self._is_dead:
            raise Killed
        if self._before_step is not None:
            self._before_step(self.steps)
        self.steps.append(name)
        fault = self._faults.get(len(self.steps) - 1)
        if fault == "before":
            self._die()
        if fault == "frozen" and self._while_frozen is not None:
            self._while_frozen()
        if fault == "aborted" and name in TRANSACTIONAL:
            raise Broken
        result = repeated() if fault == "repeat" and repeated is not None else act()
        if fault == "after":
            self._die()
        if fault == "doubtful" and name in TRANSACTIONAL:
            raise Broken
        if fault == "lost" and name not in LOCAL:
            raise Lost
        return result

    def surely(self, name: str, act: Callable[[], Any]) -> Any:
        """Try again until an answer arrives, as every client does: the system recognizes repetitions."""
        while True:
            try:
                return self.step(name, act)
            except Lost:
                continue

    def _die(self) -> None:
        self._is_dead = True
        raise Killed
