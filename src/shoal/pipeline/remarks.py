"""What the doctor says, and what it looks at."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

import pyarrow as pa

Level = Literal["good", "look", "wrong"]


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing seen: good, worth a look, or wrong; with what it means and what to do."""

    level: Level
    topic: str
    sentence: str

    def to_dict(self) -> dict[str, str]:
        """Plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A record of the sample that could not be decoded."""

    row: int
    column: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Sample:
    """The first rows of the input."""

    batch: pa.RecordBatch
    problems: tuple[Unreadable, ...]
    is_all: bool
