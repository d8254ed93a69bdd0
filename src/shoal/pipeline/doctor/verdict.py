"""Whether what the doctor's trial run let out is good enough for the policy to be run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from shoal.methods.settings import Duration
from shoal.pipeline.doctor.remarks import Level, Sample
from shoal.policy import Policy
from shoal.times import column_ns

MANY_REFUSED: Final = 0.05
MOST_REFUSED: Final = 0.5
FEW_RELEASED: Final = 0.05


def verdict(policy: Policy, sample: Sample, counts: Mapping[str, int]) -> tuple[Level, list[str]]:
    """How bad the outcome of a trial on the sample is, and what to do about it."""
    rows = counts["pushed"]
    if counts["dead"] > MOST_REFUSED * rows:
        return "wrong", ["most rows are refused, find out why"]
    level: Level = "good"
    advice = []
    if counts["released"] < FEW_RELEASED * rows:
        is_short = _is_too_short(policy, sample, counts)
        level = "look" if is_short else "wrong"
        advice.append(policy.anonymize.advice + ("; the sample may be too short to tell" if is_short else ""))
    if counts["dead"] > MANY_REFUSED * rows:
        return "look" if level == "good" else level, [*advice, "many rows are refused, find out why"]
    return level, advice


def _is_too_short(policy: Policy, sample: Sample, counts: Mapping[str, int]) -> bool:
    """Whether more could be released of a longer stream: little can be said of what starts slowly."""
    method: Any = policy.anonymize
    if getattr(method, "target", None) is not None:  # z starts so high that nothing is released
        return True
    if sample.is_all and counts["pushed"] == sample.decoded.rows:
        return False
    return bool(counts["pending"]) or _span_ns(policy, sample) < _longest_ns(method)


def _longest_ns(method: Any) -> int:
    """How long a stream must be for every decision to be like later ones."""
    columns = getattr(method, "columns", None)
    if isinstance(columns, Mapping):
        return max(int(column.window.ns) for column in columns.values())
    deadline = getattr(method, "deadline", None)
    return int(deadline) if isinstance(deadline, Duration) else 0


def _span_ns(policy: Policy, sample: Sample) -> int:
    if policy.stream.time is None or not policy.anonymize.runs_on_time:
        return 0
    times, usable = column_ns(sample.batch.column(policy.stream.time))
    known = times[usable]
    return int(known.max() - known.min()) if len(known) else 0
