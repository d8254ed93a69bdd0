"""When two sensitive values count as one: diversity is counted in meanings, not in spellings."""

from __future__ import annotations

import re
import unicodedata
from datetime import date
from decimal import Decimal
from typing import Final

_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_DAY = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_CLOCK = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(?: ?([Zz]|[+-]\d\d(?::?\d\d)?))?", re.ASCII)
_TRUTH: Final = {"1": "true", "0": "false"}


def meaning(text: str, kind: str | None = None) -> str | None:
    """Return one spelling for all that mean the same; None for no value.

    ``kind`` is the type that the policy declares for the column. Without one, and for text: what reads as a number, a
    truth value or a moment of ISO 8601 is one; the rest is itself, trimmed.
    """
    text = unicodedata.normalize("NFC", text.strip())
    if not text:
        return None
    if kind == "bool":
        text = _TRUTH.get(text, text)
    if text.lower() in {"true", "false"}:
        return text.lower()
    if _DECIMAL.fullmatch(text):
        return _number(Decimal(repr(float(text))) if kind == "float64" and _is_finite(text) else Decimal(text))
    moment = _moment(text)
    return f"'{text}" if moment is None else f"@{moment}"


def _is_finite(text: str) -> bool:
    return abs(float(text)) != float("inf")


def _number(number: Decimal) -> str:
    """Spell a number exactly: its digits, then the power of ten."""
    sign, places, exponent = number.as_tuple()
    digits = "".join(map(str, places)).lstrip("0")  # kept as text: Python refuses whole numbers of many digits
    whole = digits.rstrip("0")
    return f"{'-' * sign}{whole}e{int(exponent) + len(digits) - len(whole)}" if whole else "0e0"


def _moment(text: str) -> int | None:
    """Return nanoseconds since 1970; UTC where no zone is given."""
    day = _DAY.match(text)
    if day is None:
        return None
    try:
        midnight = (date(*map(int, day.groups())) - date(1970, 1, 1)).days * 86_400
    except ValueError:
        return None
    rest = text[day.end() :]
    if not rest:
        return midnight * 10**9
    clock = _CLOCK.fullmatch(rest, 1)
    if clock is None or rest[0] not in "Tt ":
        return None
    hour, minute, second, fraction, zone = clock.groups(default="")
    if int(hour) > 23 or int(minute) > 59 or int(second or 0) > 59:
        return None
    ahead = _ahead(zone)
    if ahead is None:
        return None
    seconds = midnight + int(hour) * 3600 + int(minute) * 60 + int(second or 0) - ahead
    return seconds * 10**9 + int(f"{fraction:0<9}")


def _ahead(zone: str) -> int | None:
    """Return how many seconds a zone is ahead of UTC."""
    if zone in {"", "Z", "z"}:
        return 0
    hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
    if hours > 23 or minutes > 59:
        return None
    return (hours * 60 + minutes) * (-60 if zone[0] == "-" else 60)
