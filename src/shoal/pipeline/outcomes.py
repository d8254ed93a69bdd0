"""A run after which hardly anything was released: why, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from shoal.methods.base import Refusal
from shoal.observe.counts import RunSummary
from shoal.pipeline.doctor.verdict import FEW_RELEASED, MOST_REFUSED

_UNREADABLE: Final = "unreadable"


def outcome_warning(summary: RunSummary, explain: Callable[[str], Refusal], advice: str) -> str | None:
    """One sentence where more than half of the rows were refused or less than a twentieth was released, else None.

    `explain` gives the column and the sentence for a reason, `advice` is what to change in the policy.
    """
    rows = summary.rows_in
    if not rows:
        return None
    if summary.dead > MOST_REFUSED * rows:
        return _refused(summary, explain)
    if summary.released >= FEW_RELEASED * rows:
        return None
    released = _released(summary)
    if summary.pending > summary.suppressed:
        return (
            f"{released}; {summary.pending / rows:.1%} are pending, because too few people have like values: {advice}"
        )
    return (
        f"{released}; {summary.suppressed / rows:.1%} were suppressed, because too few people have like values, or "
        f"these are not diverse enough: {advice}; shoal doctor tries a policy on a sample"
    )


def _released(summary: RunSummary) -> str:
    if not summary.released:
        return f"nothing was released of {summary.rows_in:,} rows"
    share = summary.released / summary.rows_in
    return f"only {summary.released:,} of {summary.rows_in:,} rows ({share:.1%}) were released"


def _refused(summary: RunSummary, explain: Callable[[str], Refusal]) -> str:
    reason = max(summary.dead_by_reason, key=lambda name: summary.dead_by_reason[name])
    count = summary.dead_by_reason[reason]
    nothing = "" if summary.released else "nothing was released: "
    return (
        f"{nothing}{summary.dead:,} of {summary.rows_in:,} rows ({summary.dead / summary.rows_in:.1%}) were refused, "
        f"{count:,} of them as {_words(reason, explain)}; each one stands in {summary.dead_letters}"
    )


def _words(reason: str, explain: Callable[[str], Refusal]) -> str:
    if reason == _UNREADABLE:
        return "unreadable (they could not be decoded: check the kind, the delimiter and the types in [source])"
    refusal = explain(reason)
    where = f"column {refusal.column!r}: " if refusal.column else ""
    return f"{reason} ({where}{refusal.sentence})"
