"""What the doctor says, and what it looks at."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

import pyarrow as pa

from shoal.decode.base import Decoded

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
class Sample:
    """The first records of the input."""

    decoded: Decoded
    is_all: bool

    @property
    def batch(self) -> pa.RecordBatch:
        """Those that could be decoded."""
        return self.decoded.batch

    def head(self, rows: int | None) -> Decoded:
        """The first of them; None is all."""
        if rows is None or rows >= self.decoded.rows:
            return self.decoded
        refused = tuple(one for one in self.decoded.refused if one.row < rows)
        return Decoded(self.batch.slice(0, rows - len(refused)), refused, self.decoded.position)
