"""The state of a run as the page shows it: a snapshot every second, and those of the last ten minutes."""

from __future__ import annotations

import asyncio
import os
import resource
from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from shoal.methods.registry import METHODS
from shoal.observe.counts import RunSummary
from shoal.policy import Policy
from shoal.schema import ROWS
from shoal.serve.measured.measured import Measured, not_measured
from shoal.serve.measured.verdict import verdict_now
from shoal.serve.tap import RunTap
from shoal.serve.trial_settings import trial_settings

HISTORY: Final = 600
"""Snapshots of which the series are kept: ten minutes."""
_STATM: Final = Path("/proc/self/statm")

Snapshot = dict[str, Any]


class Board:
    """Makes snapshots of a run and tells those who wait for them.

    A snapshot has counts, settings and published labels, never another value.
    """

    def __init__(self, policy: Policy, tap: RunTap) -> None:
        self._policy, self._tap = policy, tap
        self._settings = trial_settings(policy)
        self.measured: Measured = not_measured(policy)
        """The last measurement; the thread that measures replaces it."""
        self._number = 0
        self._before: tuple[float, RunSummary] | None = None
        self._history: deque[dict[str, Any]] = deque(maxlen=HISTORY)
        self._news = asyncio.Condition()
        self._trial: dict[str, Any] | None = None
        self.is_closed = False
        self.latest: Snapshot = self._make(tap.started_at)

    @property
    def history(self) -> list[dict[str, Any]]:
        """The series of earlier snapshots, oldest first, each with its number."""
        return list(self._history)

    def tick(self, now: float) -> Snapshot:
        """Make the next snapshot."""
        self._number += 1
        self.latest = self._make(now)
        self._history.append({"number": self._number, **self.latest["series"]})
        return self.latest

    # ---- waiting for snapshots, in the loop of the server

    async def announce(self, *, trial: dict[str, Any] | None = None) -> None:
        """Wake those who wait; `trial` is a finished what-if."""
        async with self._news:
            self._trial = trial or self._trial
            self._news.notify_all()

    async def close(self) -> None:
        """No more snapshots: streams end."""
        self.is_closed = True
        await self.announce()

    async def next(self, number: int, trial: int) -> tuple[Snapshot | None, dict[str, Any] | None]:
        """A snapshot newer than a number, and a trial with another id than this, whichever comes first.

        Both are None when the board closes.
        """
        async with self._news:
            await self._news.wait_for(lambda: self.is_closed or self._has_news(number, trial))
            found = self._trial if self._trial is not None and self._trial["id"] != trial else None
            return (self.latest if self._number > number else None), found

    def _has_news(self, number: int, trial: int) -> bool:
        return self._number > number or (self._trial is not None and self._trial["id"] != trial)

    # ---- the snapshot

    def _make(self, now: float) -> Snapshot:
        tap, policy, measured = self._tap, self._policy, self.measured
        counts, commit = tap.counts, tap.commit
        entry = METHODS[policy.anonymize.METHOD]
        return {
            "number": self._number,
            "at": _moment(now),
            "run": {
                "policy": policy.file.name if policy.file is not None else "policy",
                "method": entry.name,
                "family": entry.family,
                "source": policy.source.kind,
                "sink": policy.sink.name,
                "started": _moment(tap.started_at),
                "state": tap.state,
                "sentence": tap.sentence,
            },
            "series": self._series(now, counts),
            "totals": {
                "in": counts.rows_in, "published": counts.released, "suppressed": counts.suppressed,
                "dead": counts.dead, "pending": _pending(counts),
            },
            "promise": measured.promise,
            "verdict": verdict_now(measured.promise, counts_rows=policy.stream.person == ROWS).to_dict(),
            "settings": self._settings,
            "deadline": measured.deadline,
            "loss": measured.loss,
            "dead_letters": [
                {"reason": reason, "count": count} for reason, count in counts.dead_by_reason.items() if count
            ],
            "checkpoints": None if commit is None or policy.checkpoint is None else {
                "count": tap.commits, "age_s": round(now - tap.committed_at, 1), "bytes": commit.checkpoint_bytes,
            },
            "places": measured.places,
            "warnings": tap.warnings[-5:],
        }  # fmt: skip

    def _series(self, now: float, counts: RunSummary) -> dict[str, Any]:
        before = self._before
        is_known = self._tap.is_counted or not self._tap.is_resumed
        self._before = (now, counts) if is_known else None
        seconds = now - before[0] if before is not None else 0.0
        commit = self._tap.commit
        return {
            "t": round(now, 3),
            "in_per_s": _rate(before and before[1].rows_in, counts.rows_in, seconds),
            "out_per_s": _rate(before and before[1].released, counts.released, seconds),
            "pending": _pending(counts),
            "lag": None if commit is None else commit.lag,
            "memory_mb": round(_memory_bytes() / 1e6, 1),
            "delay": self.measured.delay,
        }


def _pending(counts: RunSummary) -> int:
    return max(0, counts.rows_in - counts.released - counts.suppressed - counts.dead)


def _rate(before: int | None, now: int, seconds: float) -> float:
    return round(max(0, now - before) / seconds, 1) if before is not None and seconds > 0 else 0.0


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _memory_bytes() -> int:
    """Resident memory of this process; the largest so far where the system does not tell the current one."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
