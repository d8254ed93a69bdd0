"""Which settings of a policy may be tried on the page, and within which bounds."""

from __future__ import annotations

from typing import Any, Final

from shoal.methods.registry import METHODS
from shoal.methods.settings import Duration
from shoal.policy import Policy

_MOST_CROWD: Final = 1_000_000


def trial_settings(policy: Policy) -> list[dict[str, Any]]:
    """The settings with their values and bounds; durations are in seconds."""
    family, given = METHODS[policy.anonymize.METHOD].family, policy.parameters()
    if family == "z":
        z = given.get("z")  # None with a target, and where every column has its own
        return [] if z is None else [_crowd("z", z, "people who must share a value within the window", least=1)]
    found = [_crowd("k", given["k"], "people who must share what is published of a row", least=2)]
    deadline = getattr(policy.anonymize, "deadline", None)
    if isinstance(deadline, Duration):
        found.append(_span("deadline", int(deadline) / 1e9, "seconds"))
    elif deadline is not None:
        found.append(_span("deadline", int(deadline), "records"))
    return found


def _crowd(key: str, value: int, words: str, *, least: int) -> dict[str, Any]:
    most = min(_MOST_CROWD, max(4 * value, 50))
    return {"key": key, "value": value, "least": least, "most": most, "step": 1, "unit": "people", "words": words}


def _span(key: str, value: float, unit: str) -> dict[str, Any]:
    step = max(1, round(value / 50))
    words = "how long a row may wait before it is decided"
    return {"key": key, "value": value, "least": step, "most": 4 * value, "step": step, "unit": unit, "words": words}
