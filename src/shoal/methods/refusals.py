"""Why records are refused by methods that read a schema, and what to do about it."""

from __future__ import annotations

from typing import Final

from shoal.methods.base import Refusal
from shoal.schema import Numeric, Schema

GENERAL: Final = ("null-person", "null-time", "bad-time", "ahead")
NULL_PERSON, NULL_TIME, BAD_TIME, AHEAD = range(4)
FIRST_REFUSED: Final = len(GENERAL)
_OUTSIDE: Final = "outside:"
_UNKNOWN: Final = "unknown:"

_SENTENCES: Final = {
    "null-person": "there is no person; fill the column",
    "null-time": "there is no time; fill the column",
    "bad-time": "not a time between 1824 and 2116; give a timestamp, a number of seconds, or ISO 8601 text; "
    'numbers of milliseconds in a policy need time_unit = "ms" in [stream]',
    "ahead": "further ahead than `max_gap` and confirmed by no second person; raise max_gap if such gaps are normal",
    _OUTSIDE: 'outside the domain; widen low and high, or set outside = "clamp"',
    _UNKNOWN: "not a leaf of the hierarchy; add it to the hierarchy",
}


def tuple_reasons(schema: Schema) -> tuple[str, ...]:
    """All reasons by index: the general ones, then one for each quasi-identifier."""
    own = ((_OUTSIDE if isinstance(role, Numeric) else _UNKNOWN) + role.name for role in schema.quasi)
    return (*GENERAL, *own)


def explain(reason: str, schema: Schema) -> Refusal:
    """The column to look at and what to do."""
    if reason in GENERAL:
        return Refusal(schema.person if reason == "null-person" else schema.time, _SENTENCES[reason])
    kind, _, column = reason.partition(":")
    return Refusal(column, _SENTENCES[kind + ":"])
