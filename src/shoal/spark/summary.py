"""The summary of a run on Spark, as a run on one machine reports it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.methods.base import StreamMethod, statement_for_rows
from shoal.methods.release import DEAD, RELEASED, SUPPRESSED, UNREADABLE
from shoal.observe.counts import RunSummary
from shoal.policy import Policy


def summarize(
    policy: Policy,
    method: StreamMethod,
    counts: Mapping[str, int],
    *,
    unreadable: int,
    numbers_rows: bool,
    warnings: Sequence[str],
    **more: Any,
) -> RunSummary:
    """The summary of records by verdict and reason.

    `unreadable` records could not be decoded; a method refuses them like records without a person. With `numbers_rows`
    each row counts as one person.
    """
    reasons = {name: count for name, count in counts.items() if name not in (RELEASED, SUPPRESSED, DEAD)}
    promised = method.guarantee.statement
    if unreadable:
        reasons["null-person"] -= unreadable
        reasons = {name: count for name, count in {**reasons, UNREADABLE: unreadable}.items() if count}
    return RunSummary(
        released=counts[RELEASED], suppressed=counts[SUPPRESSED], dead=counts[DEAD], dead_by_reason=reasons,
        delay_unit=policy.anonymize.delay_unit,
        guarantee=statement_for_rows(promised) if numbers_rows else promised,
        released_to=policy.sink.name, dead_letters=policy.dead_letters.where,
        trace=str(policy.trace.path.path) if policy.trace else None, warnings=list(warnings),
        suppressed_left=shows_suppressed(policy), **more,
    )  # fmt: skip


def shows_suppressed(policy: Policy) -> bool:
    """Whether suppressed rows are published, fully generalized."""
    return getattr(policy.anonymize, "suppressed", "drop") == "root"
