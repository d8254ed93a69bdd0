"""What a run reports on the way: counts and sentences, never values."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from shoal.observe.counts import Commit, RunSummary

_LOG = logging.getLogger("shoal")
COMPILING: Final = "compiling the kernels for this machine, once; this usually takes 5 to 30 s"


class Observer:
    """Logs the events of a run; the command line shows them on a terminal."""

    def compiling(self) -> None:
        """Kernels are compiled before the first row is decided."""
        _LOG.info("%s", COMPILING)

    def progress(self, summary: RunSummary) -> None:
        """Another batch is done."""

    def step(self, sentence: str) -> None:
        """Where a run is that decides everything at once, before there is anything to count."""

    def turn(self) -> None:
        """The run looked for records: it is under way."""

    def decided(self, arrived: Any, first: int, release: Any) -> None:
        """A release was written; `arrived` are the records that were pushed before it, from number `first` on.

        `arrived` is a :class:`~shoal.decode.base.Decoded`, or None if only time passed; `release` is a
        :class:`~shoal.methods.release.Release`. Both are private: an observer must not show them as they are.
        """

    def committed(self, commit: Callable[[], Commit]) -> None:
        """A checkpoint counts now; what is known at it costs something to collect."""

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


class Observers(Observer):
    """Several observers, each of which hears everything."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def compiling(self) -> None:
        for one in self._observers:
            one.compiling()

    def progress(self, summary: RunSummary) -> None:
        for one in self._observers:
            one.progress(summary)

    def step(self, sentence: str) -> None:
        for one in self._observers:
            one.step(sentence)

    def turn(self) -> None:
        for one in self._observers:
            one.turn()

    def decided(self, arrived: Any, first: int, release: Any) -> None:
        for one in self._observers:
            one.decided(arrived, first, release)

    def committed(self, commit: Callable[[], Commit]) -> None:
        for one in self._observers:
            one.committed(commit)

    def z_set(self, moment: str, z: int) -> None:
        for one in self._observers:
            one.z_set(moment, z)

    def deciding(self, what: str, size: int, blocks: int) -> None:
        for one in self._observers:
            one.deciding(what, size, blocks)

    def resumed(self, rows: int) -> None:
        for one in self._observers:
            one.resumed(rows)

    def warn(self, sentence: str) -> None:
        for one in self._observers:
            one.warn(sentence)
