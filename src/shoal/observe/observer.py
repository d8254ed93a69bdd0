"""What a run reports on the way: counts and sentences, never values."""

from __future__ import annotations

import logging
from typing import Final

from shoal.observe.counts import RunSummary

_LOG = logging.getLogger("shoal")
COMPILING: Final = "compiling the kernels for this machine, once; this takes a minute or more"


class Observer:
    """Logs the events of a run; the command line shows them on a terminal."""

    def compiling(self) -> None:
        """Kernels are compiled before the first row is decided."""
        _LOG.info("%s", COMPILING)

    def progress(self, summary: RunSummary) -> None:
        """Another batch is done."""

    def z_set(self, moment: str, z: int) -> None:
        """The adaptive z was set for the epoch that starts at this moment."""
        _LOG.info("z = %d from %s on", z, moment)

    def deciding(self, what: str, size: int, blocks: int) -> None:
        """Everything is read; the search for blocks handles itemsets of this size."""

    def resumed(self, rows: int) -> None:
        """The run resumes after this many rows."""
        _LOG.info("resuming after row %d", rows)

    def warn(self, sentence: str) -> None:
        """Something needs attention; the run continues."""
        _LOG.warning("%s", sentence)
