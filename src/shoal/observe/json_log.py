"""The events of a run as JSON, one object per line, for log collectors."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, TextIO

import orjson

from shoal.observe.counts import Commit, RunSummary
from shoal.observe.observer import COMPILING, Observer

_PROGRESS_SECONDS: Final = 10.0
_COUNTS: Final = ("rows_in", "released", "suppressed", "dead")


class JsonLog(Observer):
    """Writes an object with time, level and event; progress at most every ten seconds."""

    def __init__(self, out: TextIO, *, quiet: bool = False, clock: Callable[[], float] = time.time) -> None:
        self._out, self._quiet, self._clock = out, quiet, clock
        self._next_progress = clock() + _PROGRESS_SECONDS

    def compiling(self) -> None:
        self._write("info", "compiling", message=COMPILING)

    def progress(self, summary: RunSummary) -> None:
        if self._is_due():
            self._write("info", "progress", **_counts(summary), rows_per_second=round(summary.rows_per_second))

    def step(self, sentence: str) -> None:
        if self._is_due():
            self._write("info", "step", message=sentence)

    def committed(self, commit: Callable[[], Commit]) -> None:
        if not self._quiet:
            known = commit()
            sizes = {"pending": known.pending, "checkpoint_bytes": known.checkpoint_bytes, "lag": known.lag}
            self._write("info", "committed", **_counts(known.summary), **sizes, seconds=round(known.seconds, 3))

    def z_set(self, moment: str, z: int) -> None:
        self._write("info", "z set", z=z, since=moment)

    def resumed(self, rows: int) -> None:
        self._write("info", "resumed", rows=rows)

    def warn(self, sentence: str) -> None:
        self._write("warning", "warning", message=sentence)

    def _is_due(self) -> bool:
        if self._quiet or self._clock() < self._next_progress:
            return False
        self._next_progress = self._clock() + _PROGRESS_SECONDS
        return True

    def _write(self, level: str, event: str, **more: Any) -> None:
        print(log_line(level, event, self._clock(), **more), file=self._out, flush=True)


def log_line(level: str, event: str, now: float | None = None, **more: Any) -> str:
    """One line of the log; `now` in seconds since 1970, by default the time of the clock."""
    moment = datetime.fromtimestamp(time.time() if now is None else now, UTC).isoformat(timespec="milliseconds")
    return orjson.dumps({"time": moment.replace("+00:00", "Z"), "level": level, "event": event, **more}).decode()


def _counts(summary: RunSummary) -> dict[str, int]:
    return {name: getattr(summary, name) for name in _COUNTS}
