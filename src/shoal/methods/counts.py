"""How many records went in, and what was decided about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from shoal.methods.base import DEAD, RELEASED, SUPPRESSED

UNREADABLE: Final = "unreadable"
_NO_PERSON: Final = "null-person"


class Counts:
    """Records so far: pushed, released, suppressed, refused by reason, and clamped values."""

    def __init__(self, reasons: Sequence[str]) -> None:
        self.reasons = tuple(reasons)
        self.pushed = 0
        self.released = 0
        self.suppressed = 0
        self.clamped = 0
        self._unreadable = 0
        self._refused = dict.fromkeys(self.reasons, 0)

    def refuse(self, reason: int, count: int = 1) -> None:
        """Count refused records by the index of their reason."""
        self._refused[self.reasons[reason]] += count

    def refuse_all(self, reasons: Iterable[int]) -> None:
        """Count one refused record for each index of a reason."""
        for reason, count in Counter(reasons).items():
            self.refuse(reason, count)

    def note_unreadable(self, count: int) -> None:
        """Count records that the source could not decode as `unreadable` instead of `null-person`."""
        if count:
            self._unreadable += count
            self._refused[_NO_PERSON] -= count

    def shown(self, pending: int) -> dict[str, int]:
        """The counts as a method reports them; `pending` records are not decided yet."""
        all_refused = {UNREADABLE: self._unreadable, **self._refused}
        refused = {reason: count for reason, count in all_refused.items() if count}
        return {
            "pushed": self.pushed,
            RELEASED: self.released,
            SUPPRESSED: self.suppressed,
            DEAD: sum(refused.values()),
            "pending": pending,
            **refused,
        }

    def dump(self) -> dict[str, Any]:
        """The counts as plain values for a snapshot."""
        return {
            "pushed": self.pushed, "released": self.released, "suppressed": self.suppressed, "clamped": self.clamped,
            "unreadable": self._unreadable, "refused": self._refused,
        }  # fmt: skip

    def load(self, dumped: Mapping[str, Any]) -> None:
        """Take over what dump() returned."""
        self.pushed, self.released = dumped["pushed"], dumped["released"]
        self.suppressed, self.clamped = dumped["suppressed"], dumped["clamped"]
        self._unreadable, self._refused = dumped["unreadable"], dict(dumped["refused"])
