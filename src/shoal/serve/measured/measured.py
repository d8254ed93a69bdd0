"""What is promised and what is measured of it right now, from published rows and the people behind them.

Nothing here asks the method: counts are made again from recent records, of which a bounded number is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from shoal.methods.registry import METHODS
from shoal.policy import Policy
from shoal.serve.measured.class_sizes import ClassSizes
from shoal.serve.measured.column_losses import column_losses
from shoal.serve.measured.places import places_of
from shoal.serve.measured.value_crowds import ValueCrowds
from shoal.serve.recent import RecentRows, newest

Entry = dict[str, Any]
_ROWS: Final = 50_000
"""Rows that one measurement looks at."""
_BARS: Final = 20


@dataclass(frozen=True)
class Measured:
    """One measurement of recent rows, in plain values."""

    promise: list[Entry] = field(default_factory=list)
    deadline: Entry | None = None
    delay: float | None = None
    loss: list[Entry] = field(default_factory=list)
    places: list[Entry] | None = None


def not_measured(policy: Policy) -> Measured:
    """What is promised, before anything is measured."""
    return Measurer(policy, RecentRows()).measure()


class Measurer:
    """Measures the recent rows of a run, one step after the other."""

    def __init__(self, policy: Policy, recent: RecentRows) -> None:
        self._policy, self._recent = policy, recent
        is_z = METHODS[policy.anonymize.METHOD].family == "z"
        self._part: ValueCrowds | ClassSizes = ValueCrowds(policy) if is_z else ClassSizes(policy)
        self._last = -1
        self._found: Measured | None = None
        self._has_failed = False
        """Whether the last measurement ended early: what it was given may be half counted."""

    def measure(self) -> Measured:
        """Measure what is new since the last call; the figures are of the newest rows."""
        steps = self._recent.steps()
        fresh = [step for step in steps if step.number > self._last]
        if self._found is not None and not fresh:
            return self._found
        has_gap = self._has_failed or (
            self._recent.is_resumed if self._last < 0 else bool(fresh) and fresh[0].number > self._last + 1
        )
        self._found, self._has_failed = None, True  # until this measurement has ended
        self._last = steps[-1].number if steps else self._last
        promise = self._part.measure(steps, fresh, has_gap=has_gap)
        shown = [found for step in newest(steps, _ROWS) if (found := step.shown()) is not None and found[0].num_rows]
        if not shown:
            self._found, self._has_failed = Measured(promise=promise, deadline=self._deadline(None)), False
            return self._found
        rows, trace = (pa.Table.from_batches(parts) for parts in zip(*shown, strict=True))
        delays = trace.column("delay").to_numpy() / (1e9 if self._is_timed else 1)
        waits = self._waits
        self._found = Measured(
            promise=promise + self._delay_promise(delays),
            deadline=self._deadline(delays),
            delay=round(float(delays.mean()), 3) if waits else None,
            loss=column_losses(self._policy, rows, newest(steps, _ROWS)),
            places=places_of(self._policy, rows),
        )
        self._has_failed = False
        return self._found

    # ---- delays

    @property
    def _allowed(self) -> float | None:
        """The deadline, in seconds or records; None if there is none."""
        given = getattr(self._policy.anonymize, "deadline", None)
        if given is None or not getattr(self._policy.anonymize, "KEEPS_DEADLINE", True):
            return None
        return int(given) / 1e9 if self._is_timed else int(given)

    @property
    def _is_timed(self) -> bool:
        return self._policy.anonymize.delay_unit == "seconds"

    @property
    def _waits(self) -> bool:
        return self._allowed is not None or METHODS[self._policy.anonymize.METHOD].family == "flexible"

    def _delay_promise(self, delays: np.ndarray[Any, Any]) -> list[Entry]:
        if self._allowed is None:
            return []
        longest, unit = float(delays.max()), "seconds" if self._is_timed else "records"
        words = f"every row is decided within {self._allowed:,g} {unit}"
        return [
            {"name": "deadline", "words": words, "promised": self._allowed, "measured": round(longest, 3),
             "holds": longest <= self._allowed, "bound": "most", "scope": "recent rows"}
        ]  # fmt: skip

    def _deadline(self, delays: np.ndarray[Any, Any] | None) -> Entry | None:
        allowed = self._allowed
        if allowed is None:
            return None
        found: Entry = {"unit": "seconds" if self._is_timed else "records", "allowed": allowed, "longest": None}
        if delays is None:
            return {**found, "histogram": []}
        counts, edges = np.histogram(delays, bins=_BARS, range=(0, max(allowed, float(delays.max()))))
        bars = [[round(float(upper), 3), int(count)] for upper, count in zip(edges[1:], counts, strict=True)]
        return {**found, "longest": round(float(delays.max()), 3), "histogram": bars}


def without_measurement(measured: Measured) -> Measured:
    """The same promises, and nothing that was measured."""
    promise = [{**one, "measured": None, "holds": None} for one in measured.promise]
    deadline = None if measured.deadline is None else {**measured.deadline, "longest": None, "histogram": []}
    return Measured(promise=promise, deadline=deadline)
