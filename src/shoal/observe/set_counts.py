"""What happened in a run on sets: counts and timings, never values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from shoal.observe.counts import RunSummary


@dataclass
class SetSummary(RunSummary):
    """The result of a run on sets. `released` counts records."""

    records: int = 0
    """People, or rows where each is a person's set."""
    empty_records: int = 0
    """Those without a usable item; they are not published."""
    items: int = 0
    """Number of different items."""
    blocks_before: int = 0
    """Items the generalization knows."""
    blocks_after: int = 0
    blocks_used: int = 0
    """Blocks with at least one person's item."""
    error: float = 0.0
    """To two digits: more digits would reveal counts that the release hides."""
    error_kind: str = ""
    certificate: list[dict[str, Any]] = field(default_factory=list)
    """By size."""
    statement: str = ""
    certificate_file: str = ""
    blocks_file: str = ""
