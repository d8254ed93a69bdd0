"""Report the first long compilation of a process to a user who calls shoal from Python.

It is logged as a warning of "shoal.kernels", the lowest level that appears on standard error without any logging
configuration. SHOAL_QUIET=1 or a higher level for that logger hides it. The commands of `shoal` report compiling
themselves.
"""

from __future__ import annotations

import logging
import os
import time
from typing import Final

from numba.core import event

USUAL: Final = {"z": "5 to 10", "tuples": "10 to 30", "sets": "5 to 10", "flexible": "10 to 20"}
"""Seconds that compiling the kernels of a family usually takes; the first run of a second method takes less."""
_LONG: Final = 1.0
_PACKAGE: Final = "shoal.kernels."


class _FirstCompile(event.Listener):
    """Reports the first kernel that takes longer than a second to compile."""

    def __init__(self) -> None:
        self._kernels: list[tuple[str, float]] = []
        """Functions being compiled, outermost first, and when each began."""
        self._is_reported = bool(os.environ.get("SHOAL_QUIET"))

    def on_start(self, event: event.Event) -> None:
        function = getattr((event.data or {}).get("dispatcher"), "py_func", None)
        self._kernels.append((getattr(function, "__module__", ""), time.perf_counter()))
        module, begun = self._kernels[0]
        if self._is_reported or time.perf_counter() - begun < _LONG or not module.startswith(_PACKAGE):
            return
        self._is_reported = True
        logging.getLogger(_PACKAGE.rstrip(".")).warning(
            "shoal: compiling for this processor, once; this usually takes %s s (`shoal warmup` does it ahead of time)",
            USUAL.get(module.removeprefix(_PACKAGE).partition(".")[0], "a few"),
        )

    def on_end(self, event: event.Event) -> None:
        self._kernels.pop()


event.register("numba:compile", _FirstCompile())
