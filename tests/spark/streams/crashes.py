"""Drivers that stop at chosen steps of a micro-batch."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.spark.streams.kafka_output import TopicOutput
from shoal.spark.streams.plans import Plans
from shoal.spark.streams.release_folder import ReleaseFolder, Staging
from shoal.spark.streams.state import StateFolder

STEPS: dict[str, tuple[Any, str, bool]] = {
    "planned": (Plans, "write", True),
    "decided, not committed": (StateFolder, "write", False),
    "committed, not shown": (ReleaseFolder, "show", False),
    "rows shown, not the letters": (Staging, "grow", False),
    "shown, not cleaned": (Staging, "clean", False),
}
TOPICS: dict[str, tuple[Any, str, bool]] = {
    name: STEPS[name] for name in ("decided, not committed", "shown, not cleaned")
} | {"committed, not sent": (TopicOutput, "show", False)}
"""For each step: the class and the method, and whether to stop after it, not before."""


class Crash(Exception):
    """A driver that stops here."""


class Crashes:
    """Stops the driver once at a step, whenever it is armed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, steps: dict[str, tuple[Any, str, bool]]) -> None:
        self._armed: str | None = None
        for step, (kind, name, after) in steps.items():
            monkeypatch.setattr(kind, name, self._crashing(step, getattr(kind, name), after=after))

    def arm(self, step: str) -> None:
        """Stop the next time this step is reached."""
        self._armed = step

    def _crashing(self, step: str, call: Any, *, after: bool) -> Any:
        def crashing(*args: Any, **options: Any) -> Any:
            is_here = self._armed == step
            if is_here and not after:
                self._armed = None
                raise Crash
            found = call(*args, **options)
            if is_here:
                self._armed = None
                raise Crash
            return found

        return crashing
