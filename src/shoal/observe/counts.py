"""The summary of a run: counts and timings, never values."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final

USELESS: Final = 3
"""The exit code of a run that ended as it should and released nothing, or refused more than half of its input."""


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
    """Time to read, decide and write, without `compiling_seconds`."""
    compiling_seconds: float = 0.0
    """Time to compile kernels: on the first run on a machine, else 0."""
    rows_per_second: float = 0.0
    files: int = 0
    resumed: bool = False
    finished_before: bool = False
    since: str | None = None
    """When a live run was started for the first time; counts are of all runs since then."""
    stopped: bool = False
    """Whether a live run was asked to stop; the next one continues where it stopped."""
    live_pairs: int = 0
    state_bytes: int = 0
    metrics: dict[str, Any] = field(default_factory=dict)
    """Metrics of the method, such as the average loss; empty if it has none."""
    delay_unit: str = "seconds"
    """Unit of the delays in `metrics`."""
    guarantee: str = ""
    released_to: str = ""
    dead_letters: str = ""
    trace: str | None = None
    failure: str | None = None
    outcome: str | None = None
    """Why little is left of the input, and what to do; else None. Also in `last_warnings`."""
    is_useless: bool = False
    """Whether nothing was released, or more than half of the records of a finished input were refused."""
    warnings: list[str] = field(default_factory=list)
    last_warnings: list[str] = field(default_factory=list)
    """Those of the warnings that only the whole run shows."""

    @property
    def exit_code(self) -> int:
        """0; 1 if the run failed; 3 if it did what the policy says and the result is of no use."""
        return 1 if self.failure is not None else USELESS if self.is_useless else 0

    @property
    def ok(self) -> bool:
        """Whether everything could be read and written, and something is left of it."""
        return self.exit_code == 0

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        found = {"ok": self.ok, "exit_code": self.exit_code, **asdict(self)}
        del found["last_warnings"]  # they are among the warnings
        return found


@dataclass(frozen=True)
class Commit:
    """What is known at a commit of a run."""

    summary: RunSummary
    pending: int
    """Records that are not decided yet."""
    checkpoint_bytes: int
    seconds: float
    """What the commit took."""
    lag: int | None
    """Records in the source that are not read yet, if it knows."""
    event_time_ns: int | None
    """The time of the last record."""
    promised_delay: float | None
    """The longest delay that is promised, in the unit of the summary's delays."""


@dataclass
class SetSummary(RunSummary):
    """The result of a run on sets. `released` counts records."""

    records: int = 0
    """People, or rows if each row is a person's set."""
    empty_records: int = 0
    """Those without a usable item; they are not published."""
    items: int = 0
    """Number of different items."""
    blocks_before: int = 0
    """Items in the generalization."""
    blocks_after: int = 0
    blocks_used: int = 0
    """Blocks with at least one person's item."""
    items_generalized: int = 0
    """Items that share their block with others; with local recoding, in at least one record."""
    recoding: str = "global"
    """With "local" blocks are labels: some contain others."""
    items_dropped: int = 0
    """Items that too few people have, which are not published (`drop_rare`)."""
    entries_dropped: int = 0
    """How often people have one of them."""
    entries_dropped_share: float = 0.0
    error: float = 0.0
    """To two digits: more digits would reveal counts that the release hides."""
    error_kind: str = ""
    certificate: list[dict[str, Any]] = field(default_factory=list)
    """One entry per itemset size."""
    statement: str = ""
    certificate_file: str = ""
    blocks_file: str = ""
