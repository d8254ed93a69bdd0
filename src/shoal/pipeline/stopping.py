"""Stopping a live run: the first signal asks it to commit and stop, the second one ends the process at once.

Before a run reads, there is nothing to commit, and it may wait for its systems for long: the first one ends it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Final

from shoal.observe.json_log import log_line

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_BY_SIGNAL: Final = 128
_STANDARD_ERROR: Final = 2


class Stop:
    """A request to commit and stop, which a run looks at between two polls of its source."""

    def __init__(self) -> None:
        self.is_asked = False
        self.is_reading = False
        """Whether the run has begun to look at this."""

    def ask(self) -> None:
        """Let the run stop after its next commit. What is pending stays in the checkpoint."""
        self.is_asked = True


@contextmanager
def on_signals(stop: Stop, *, as_json: bool = False) -> Iterator[None]:
    """While this is open, SIGTERM and SIGINT ask to stop; a second one, or one before reading, waits for nothing.

    What happens is reported as a sentence, or as an object of JSON for log collectors.
    """
    write = partial(_report, as_json=as_json)

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_asked or not stop.is_reading:
            when = "at once" if stop.is_asked else "before it read anything"
            write(f"stopped {when}; start the same command again to resume from the last checkpoint")
            # A client may be waiting for its system: do not ask it.
            os._exit(_BY_SIGNAL + number if stop.is_asked else 0)
        stop.ask()
        write("stopping after a last checkpoint; a second signal stops at once")

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _report(sentence: str, *, as_json: bool) -> None:
    """Write past `sys.stderr`: the signal may have interrupted a write to it, and it may be closed."""
    line = log_line("info", "signal", message=sentence) if as_json else f"shoal: {sentence}"
    with suppress(OSError):
        os.write(_STANDARD_ERROR, f"{line}\n".encode())
