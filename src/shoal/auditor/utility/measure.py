"""One measure of usefulness: what the release gives, what the raw data give, and in which unit."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Measure:
    """How useful a release is for one purpose."""

    name: str
    what: str
    """What is measured, as one sentence."""
    value: float | None
    """None if it could not be measured; then `why_not` says why."""
    ideal: float
    """What the raw data give."""
    why_not: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return asdict(self)
