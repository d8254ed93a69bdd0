"""What the server knows of a run: counts, state and recent rows, copied in the run's own thread and read in others."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal

from shoal.observe.counts import Commit, RunSummary
from shoal.observe.observer import COMPILING, Observer
from shoal.serve.recent import RecentRows
from shoal.serve.released import ReleasedRows

State = Literal["starting", "compiling", "running", "waiting", "stopped", "failed"]
_WAITING_SECONDS = 3.0
"""Seconds without a record after which a run counts as waiting."""


class RunTap(Observer):
    """Remembers what a run reports: it copies counts and keeps references to recent rows, nothing else."""

    def __init__(self, recent: RecentRows, released: ReleasedRows, *, clock: Callable[[], float] = time.time) -> None:
        self._recent, self._released, self._clock = recent, released, clock
        self.started_at = clock()
        self.counts = RunSummary()
        self.is_counted = False
        """Whether counts of this process are known; a resumed run starts with those of earlier ones."""
        self.is_resumed = False
        self.commit: Commit | None = None
        self.commits = 0
        self.committed_at = self._record_at = self.started_at
        self.warnings: list[str] = []
        self._state: State = "starting"
        self._ending = ""

    # ---- called by the run

    def compiling(self) -> None:
        self._state = "compiling"

    def turn(self) -> None:
        if self._state in ("starting", "compiling"):
            self._state = "running"

    def decided(self, arrived: Any, first: int, release: Any) -> None:
        if arrived is not None and arrived.rows:
            self._record_at = self._clock()
        self._recent.add(arrived, first, release)
        self._released.add(release.rows)

    def progress(self, summary: RunSummary) -> None:
        self.counts, self.is_counted = summary, True

    def committed(self, commit: Callable[[], Commit]) -> None:
        known = commit()
        self.commit, self.counts, self.committed_at, self.is_counted = known, known.summary, self._clock(), True
        self.commits += 1

    def resumed(self, rows: int) -> None:
        self.is_resumed = True
        self._recent.begin_in_the_middle()

    def warn(self, sentence: str) -> None:
        self.warnings.append(sentence)

    def warn_once(self, sentence: str) -> None:
        """A warning that may be repeated every few seconds."""
        if sentence not in self.warnings:
            self.warn(sentence)

    # ---- called when the run has ended

    def stop(self, sentence: str) -> None:
        """The run has ended as it should."""
        self._state, self._ending = "stopped", sentence

    def fail(self, sentence: str) -> None:
        """The run has failed; the sentence has no value of a person."""
        self._state, self._ending = "failed", sentence

    # ---- read by the server

    @property
    def state(self) -> State:
        """What the run does now."""
        is_silent = self._clock() - self._record_at > _WAITING_SECONDS
        return "waiting" if self._state == "running" and is_silent else self._state

    @property
    def sentence(self) -> str:
        """The same in words."""
        return self._ending or _SENTENCES[self.state]


_SENTENCES = {
    "starting": "The run is starting.",
    "compiling": f"{COMPILING[0].upper()}{COMPILING[1:]}.",
    "running": "Records arrive and are decided.",
    "waiting": "The run waits for records.",
}
