"""What to say when little is left of an input, and whether the run was of no use.

A run is of no use (exit code 3) if it released nothing or refused more than half of the records. A run that suppressed
more than half is warned of, unless its method is expected to: z-anonymity withholds what is rare.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from shoal.methods.release import UNREADABLE, Refusal
from shoal.observe.counts import RunSummary, SetSummary
from shoal.pipeline.missing_values import missing_value_words
from shoal.policy import Policy
from shoal.policy.method_base import MethodSection

HALF: Final = 0.5
"""The share of refused records that makes a run useless, and of suppressed ones that is worth a warning."""
FEW_RELEASED: Final = 0.05
"""Below this share of released rows every method warns."""
_MOST_REASONS: Final = 4

Explain = Callable[[str], Refusal]
"""The column and the sentence for a reason of refusal."""


def add_outcome(summary: RunSummary, policy: Policy, explain: Explain) -> None:
    """Add what a run over a whole input should warn of, and whether it was of no use."""
    if summary.failure is not None and not summary.rows_in:  # the failure says why there are no records
        return
    summary.outcome = outcome_words(summary, explain, policy.anonymize)
    summary.is_useless = is_useless(summary)
    decided = summary.released + summary.suppressed
    found = missing_value_words(summary.metrics, policy.anonymize, decided=decided)
    summary.last_warnings = [*([summary.outcome] if summary.outcome else []), *found]
    summary.warnings += summary.last_warnings


def is_useless(summary: RunSummary) -> bool:
    """Whether nothing was released of an input with records, or more than half of them were refused."""
    return summary.rows_in > 0 and (not summary.released or summary.dead > HALF * summary.rows_in)


def outcome_words(summary: RunSummary, explain: Explain, method: MethodSection) -> str | None:
    """One sentence if little is left, with the reasons in numbers and the first thing to try; else None."""
    rows = summary.rows_in
    if not rows:
        return "the input has no records; check its path and whether something has been written to it"
    if summary.dead > HALF * rows:
        return _refused_words(summary, explain)
    whole = summary.records if isinstance(summary, SetSummary) else rows  # of a set's rows one record is released
    is_little = summary.released < FEW_RELEASED * whole or not summary.released
    if not is_little and not (method.KEEPS_MOST and summary.suppressed + summary.pending > HALF * rows):
        return None
    why = f"because {method.withheld}. Try this first: {method.advice}"
    return f"{_released_words(summary)}; {_withheld_words(summary)}, {why}"


def _released_words(summary: RunSummary) -> str:
    rows = f"{summary.rows_in:,} rows"
    if not summary.released:
        return f"nothing was released of {rows}"
    return f"only {summary.released:,} of {rows} ({summary.released / summary.rows_in:.1%}) were released"


def _withheld_words(summary: RunSummary) -> str:
    """What became of the rest, in numbers."""
    kept = {"suppressed": summary.suppressed, "pending": summary.pending, "refused": summary.dead}
    return ", ".join(f"{count:,} {name} ({count / summary.rows_in:.1%})" for name, count in kept.items() if count)


def _refused_words(summary: RunSummary, explain: Explain) -> str:
    """That most records were refused: how many for which reason, and what to do about the commonest one."""
    reasons, rows = summary.dead_by_reason, summary.rows_in
    ordered = sorted(reasons, key=lambda name: -reasons[name])
    listed = ", ".join(f"{reasons[name]:,} {name}" for name in ordered[:_MOST_REASONS])
    more = f" and {len(ordered) - _MOST_REASONS} more reasons" if len(ordered) > _MOST_REASONS else ""
    nothing = "" if summary.released else "nothing was released: "
    where = f"; each one is listed in {summary.dead_letters}" if summary.dead_letters else ""
    return (
        f"{nothing}{summary.dead:,} of {rows:,} rows ({summary.dead / rows:.1%}) were refused: {listed}{more}{where}. "
        f"Try this first: {_remedy(ordered[0], explain)}"
    )


def _remedy(reason: str, explain: Explain) -> str:
    if reason == UNREADABLE:
        return f"check the kind, the delimiter and the types in [source] ({reason})"
    return f"{explain(reason).words} ({reason})"
