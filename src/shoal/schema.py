"""What a column is for, and how long a duration is."""

from __future__ import annotations

import re
from typing import Final

from shoal.errors import PolicyError

NANOSECONDS: Final = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "sec": 1_000_000_000,
    "m": 60_000_000_000,
    "min": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
    "w": 604_800_000_000_000,
}
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*")
_LONGEST = 2**62


def duration_ns(value: object, *, name: str) -> int:
    """Read a duration: text such as ``"90s"``, ``"1h30min"``, or a number of seconds.

    >>> duration_ns("1h30min", name="window") == duration_ns(5400, name="window")
    True
    """
    nanoseconds = _text_ns(value, name) if isinstance(value, str) else _seconds_ns(value, name)
    if nanoseconds > _LONGEST:
        raise PolicyError(f"{name}: longer than 146 years; give a shorter duration")
    return nanoseconds


def _seconds_ns(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PolicyError(f'{name}: not a duration; write text such as "30min" or a number of seconds')
    if not 0 <= value < float("inf"):  # NaN fails too
        raise PolicyError(f"{name}: a duration cannot be negative or infinite; give a number of seconds from 0")
    return value * NANOSECONDS["s"] if isinstance(value, int) else round(value * NANOSECONDS["s"])


def _text_ns(text: str, name: str) -> int:
    total, end = 0.0, 0
    exact = 0
    for part in _PART.finditer(text):
        number, unit = part.groups()
        if part.start() != end or unit not in NANOSECONDS:
            break
        end = part.end()
        if "." in number:
            total += float(number) * NANOSECONDS[unit]
        else:
            exact += int(number) * NANOSECONDS[unit]
    if not text or end != len(text):
        units = ", ".join(NANOSECONDS)
        raise PolicyError(f'{name}: not a duration; write for example "90s", "30min" or "1h30min" (units: {units})')
    return exact + round(total)
