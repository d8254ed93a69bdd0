"""What the doctor looks at, what it reports, and whether the trial run is good enough."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from shoal.decode.base import Decoded
from shoal.methods.settings import Duration
from shoal.pipeline.outcome import FEW_RELEASED, HALF
from shoal.policy import Policy
from shoal.times import column_ns

Level = Literal["good", "look", "wrong"]

MANY_REFUSED: Final = 0.05
MOST_LISTED: Final = 5
_DAY_NS: Final = 86_400 * 10**9


@dataclass(frozen=True, slots=True)
class Remark:
    """One observation: good, worth a look, or wrong; what it means and what to do."""

    level: Level
    topic: str
    sentence: str

    def to_dict(self) -> dict[str, str]:
        """Plain values for JSON."""
        return asdict(self)


def files_remark(files: int) -> Remark:
    """How many files are read."""
    return Remark("good", "source", "1 file" if files == 1 else f"{files} files, read in the order of their names")


def row_remark(*, numbers_rows: bool) -> Remark:
    """What ``person = "row"`` means, by whether rows are numbered or the input has a column of that name."""
    if numbers_rows:
        words = "rows, not people, are counted; if a person can have several rows, name the column of persons"
        return Remark("look", "person", f'person = "row": {words}')
    words = "which is taken as the column of persons; rename it if every row is meant to be one person"
    return Remark("look", "person", f"the input has a column 'row', {words}")


def listed(names: list[str]) -> str:
    """Names of columns for a sentence."""
    shown = ", ".join(repr(name) for name in names[:MOST_LISTED])
    more = f" and {len(names) - MOST_LISTED:,} more" if len(names) > MOST_LISTED else ""
    return f"column{'s' * (len(names) > 1)} {shown}{more}"


@dataclass(frozen=True, slots=True)
class Sample:
    """The first records of the input."""

    decoded: Decoded
    is_all: bool
    counts_rows: bool = False
    """Whether rows are counted, because nothing says whose they are."""

    def counted(self, person: str | None) -> tuple[int, str]:
        """How many people there are, or rows in their place, and that in words."""
        found = pc.count_distinct(self.batch.column(person)).as_py()
        return found, f"{found:,} {'rows, not people' if self.counts_rows else 'different people'}"

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


def verdict(policy: Policy, sample: Sample, counts: Mapping[str, int]) -> tuple[Level, list[str]]:
    """Rate the outcome of the trial on the sample, with advice."""
    rows = counts["pushed"]
    if counts["dead"] > HALF * rows:
        return "wrong", ["most rows are refused, find out why"]
    level: Level = "good"
    advice = []
    if counts["released"] < FEW_RELEASED * rows:
        is_short = _is_too_short(policy, sample, counts)
        level = "look" if is_short else "wrong"
        advice.append(policy.anonymize.advice + ("; the sample may be too short to tell" if is_short else ""))
    elif policy.anonymize.KEEPS_MOST and counts["suppressed"] + counts["pending"] > HALF * rows:
        level = "look"
        advice.append(policy.anonymize.advice)
    if counts["dead"] > MANY_REFUSED * rows:
        return "look" if level == "good" else level, [*advice, "many rows are refused, find out why"]
    return level, advice


def _is_too_short(policy: Policy, sample: Sample, counts: Mapping[str, int]) -> bool:
    """Whether a longer stream could release more: some methods start slowly."""
    method: Any = policy.anonymize
    if getattr(method, "target", None) is not None:  # z starts so high that nothing is released
        return True
    if sample.is_all and counts["pushed"] == sample.decoded.rows:
        return False
    return bool(counts["pending"]) or _span_ns(policy, sample) < _longest_ns(method)


def _longest_ns(method: Any) -> int:
    """How long a stream must be before decisions are typical."""
    columns = getattr(method, "columns", None)
    if isinstance(columns, Mapping):
        return max(_DAY_NS, *(int(column.window.ns) for column in columns.values()))  # few people are active at night
    deadline = getattr(method, "deadline", None)
    return int(deadline) if isinstance(deadline, Duration) else 0


def _span_ns(policy: Policy, sample: Sample) -> int:
    if policy.stream.time is None or not policy.anonymize.runs_on_time:
        return 0
    times, usable = column_ns(sample.batch.column(policy.stream.time))
    known = times[usable]
    return int(known.max() - known.min()) if len(known) else 0
