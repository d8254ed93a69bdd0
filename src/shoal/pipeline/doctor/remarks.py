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


def row_remark(*, numbers_rows: bool) -> Remark:
    """What ``person = "row"`` means, by whether rows are numbered or the input has a column of that name."""
    if numbers_rows:
        words = "every row counts as one person; if a person can have several rows, name the column that says who"
        return Remark("look", "person", f'person = "row": {words}')
    words = "which says who; rename it if every row is meant to be one person"
    return Remark("look", "person", f"the input has a column 'row', {words}")


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
