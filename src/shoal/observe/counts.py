"""What happened in a run: counts and timings, never values."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class RunSummary:
    """The result of a run, for people and for machines."""

    rows_in: int = 0
    released: int = 0
    suppressed: int = 0
    suppressed_left: bool = False
    """Whether suppressed rows are published nevertheless, fully generalized."""
    pending: int = 0
    """Rows that may be neither released yet nor suppressed."""
    dead: int = 0
    dead_by_reason: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    """How long reading, deciding and writing took, without `compiling_seconds`."""
    compiling_seconds: float = 0.0
    """How long it took to compile kernels: on the first run of a machine, else 0."""
    rows_per_second: float = 0.0
    files: int = 0
    resumed: bool = False
    finished_before: bool = False
    live_pairs: int = 0
    state_bytes: int = 0
    metrics: dict[str, Any] = field(default_factory=dict)
    """What the method measured as rows went by, such as the average loss; empty where it measures nothing."""
    delay_unit: str = "seconds"
    """What delays in `metrics` are counted in."""
    guarantee: str = ""
    released_to: str = ""
    dead_letters: str = ""
    trace: str | None = None
    failure: str | None = None
    outcome: str | None = None
    """Why hardly anything was released, and what to do; None where enough was. It is also among the warnings."""
    warnings: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether everything could be read and written."""
        return self.failure is None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"ok": self.ok, **asdict(self)}
