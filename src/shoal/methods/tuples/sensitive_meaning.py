"""When two sensitive values count as one: a class whose values differ only in spelling is not diverse."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

_NUMBER: Final = re.compile(r"([+-]?)(?:([0-9]+)\.?([0-9]*)|\.([0-9]+))(?:[eE]([+-]?[0-9]{1,3}))?")
_MOMENT: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[Tt ]([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,9}))?)? ?([Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def meaning(value: Any) -> Hashable:
    """What a value counts as for l, entropy_l and t; None for a missing value.

    Values of a typed column count as they are. Text is trimmed, and text that spells a number, a truth value or an ISO
    8601 time counts as that. So spelling never makes a class look more diverse than it is.

    >>> meaning("1") == meaning(" 01.0") != meaning("one")
    True
    """
    if isinstance(value, str):
        return _meaning_of_text(value)
    if isinstance(value, float) and value != value:  # noqa: PLR0124 - NaN counts as missing
        return None
    return None if value is None else (isinstance(value, bool), value)  # True and 1 are two values


@lru_cache(maxsize=65_536)
def _meaning_of_text(text: str) -> Hashable:
    text = unicodedata.normalize("NFC", text.strip())
    if not text:
        return None
    if text.lower() in ("true", "false"):
        return "truth value", text.lower()
    if (number := _NUMBER.fullmatch(text)) is not None:
        return "number", *_number(*number.groups(default=""))
    if (moment := _MOMENT.fullmatch(text)) is not None:
        nanoseconds = _moment(*moment.groups(default=""))
        if nanoseconds is not None:
            return "moment", nanoseconds
    return "text", text


def _number(sign: str, whole: str, fraction: str, only_fraction: str, exponent: str) -> tuple[str, int]:
    """Sign and significant digits, and the power of ten to multiply them with."""
    fraction = fraction or only_fraction
    digits = (whole + fraction).lstrip("0")
    power = int(exponent or 0) - len(fraction) + len(digits) - len(digits.rstrip("0"))
    digits = digits.rstrip("0")
    return ("-" if sign == "-" else "") + digits if digits else "0", power if digits else 0


def _moment(day: str, minute: str, second: str, fraction: str, zone: str) -> int | None:
    """Nanoseconds since 1970; UTC where no zone is given. None for an invalid day or time."""
    try:
        begin = datetime.fromisoformat(f"{day}T{minute or '00:00'}:{second or '00'}+00:00")
        offset = _offset(zone)
    except ValueError:
        return None
    return ((begin - _EPOCH - offset) // timedelta(seconds=1)) * 10**9 + int(fraction.ljust(9, "0"))


def _offset(zone: str) -> timedelta:
    if zone in ("", "Z", "z"):
        return timedelta(0)
    hours, minutes = int(zone[1:3]), int(zone[3:].removeprefix(":") or 0)
    if hours > 23 or minutes > 59:
        raise ValueError("no such zone")
    ahead = timedelta(hours=hours, minutes=minutes)
    return -ahead if zone[0] == "-" else ahead
