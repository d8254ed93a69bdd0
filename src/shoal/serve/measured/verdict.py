"""The verdict on what is measured right now, in the words of an audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from shoal.auditor.findings import ROWS
from shoal.auditor.verdict import Reason, State, Verdict

_AUDIT: Final = "Recent rows alone are measured here; shoal audit checks the whole release."
_ADVICE: Final = "Stop the run, keep its checkpoint and trace, and audit what it published."


def verdict_now(promise: Sequence[Mapping[str, Any]], *, counts_rows: bool = False) -> Verdict:
    """Say what became of a promise in what was measured: broken, kept, or not measured yet."""
    promised = [one for one in promise if one["promised"] is not None]
    broken = [one for one in promised if one["holds"] is False]
    crowds = [one for one in promised if one["name"].split(" ")[0] in {"k", "z"}]
    is_counted = bool(crowds) and all(one["holds"] for one in crowds)
    gaps = tuple(f"Not measured yet: {one['words']}." for one in promised if one["holds"] is None)
    return Verdict(
        state=State.BROKEN if broken else State.KEPT if is_counted else State.UNCHECKED,
        why="; ".join(f"not true that {one['words']}" for one in broken) or "no crowd is measured yet",
        counted=ROWS if counts_rows else "people",
        smallest=min((one["measured"] for one in crowds if one["measured"] is not None), default=None),
        reasons=(
            *(Reason("violation", f"It is not true that {one['words']}.", one["name"], 1, _ADVICE) for one in broken),
            *(Reason("not checked", gap) for gap in (*gaps, _AUDIT)),
        ),
        not_checked=(*gaps, _AUDIT),
        is_of_rows=counts_rows,
    )
