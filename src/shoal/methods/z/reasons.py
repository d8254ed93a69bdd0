"""Why z-anonymity puts a record among the dead letters, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from shoal.methods.base import Refusal

GENERAL: Final = ("late", "ahead", "null-person", "null-time", "bad-time")
LATE, AHEAD, NULL_PERSON, NULL_TIME, BAD_TIME = range(5)
FIRST_UNKNOWN: Final = len(GENERAL)
_UNKNOWN: Final = "unknown-value."

_SENTENCES: Final = {
    "late": "older than the newest event by more than `lateness`; sort the input by time, or raise lateness",
    "ahead": "further ahead than `max_gap` and confirmed by no second person; raise max_gap if such gaps are normal",
    "null-person": "there is no person; fill the column",
    "null-time": "there is no time; fill the column",
    "bad-time": "not a time between 1824 and 2116; give a timestamp, a number of seconds, or ISO 8601 text; "
    'numbers of milliseconds in a policy need time_unit = "ms" in [stream]',
}


def reasons_for(attributes: Iterable[str]) -> tuple[str, ...]:
    """All reasons, in the order of their numbers: the general ones, then one for each attribute column."""
    return (*GENERAL, *(_UNKNOWN + name for name in attributes))


def explain(reason: str, *, person: str, time: str) -> Refusal:
    """The column to look at and what to do."""
    if reason in _SENTENCES:
        return Refusal(person if reason == "null-person" else time, _SENTENCES[reason])
    return Refusal(reason.removeprefix(_UNKNOWN), "the hierarchy does not know this value; add it to the hierarchy")
