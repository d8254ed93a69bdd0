"""What differs between recorded digests and those of now, in lines to read; and marks that bind changes to reasons."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from tests.golden.fingerprints import BUT

Recorded = Mapping[str, Mapping[str, str]]
FAILED = "failed"
"""The part of a case that raised an error."""
_MARK = re.compile(r"^- `([0-9a-f]{12})` \S", re.MULTILINE)
_CASES_OF_A_LINE = 4


@dataclass(frozen=True)
class Difference:
    """A part of a case with another digest than recorded; None where there is none."""

    case: str
    part: str
    recorded: str | None
    now: str | None


def differences(recorded: Recorded, now: Recorded) -> list[Difference]:
    """Every part that differs, in order of cases."""
    return [
        Difference(case, part, recorded.get(case, {}).get(part), now.get(case, {}).get(part))
        for case in sorted({*recorded, *now})
        for part in sorted({*recorded.get(case, {}), *now.get(case, {})})
        if recorded.get(case, {}).get(part) != now.get(case, {}).get(part)
    ]


def described(found: Iterable[Difference]) -> Iterator[str]:
    """Lines: the case, and below it each part with its recorded digest and that of now."""
    for case, parts in groupby(found, key=lambda one: one.case):
        yield case
        for one in parts:
            yield f"    {one.part:<40}  {one.recorded or 'not recorded':<16}  ->  {one.now or 'no longer made'}"


def unusable(now: Recorded) -> list[str]:
    """What must not be recorded: cases that failed, and outputs on which two ways disagree."""
    return [
        f"{case}: {part}: {value}"
        for case, parts in now.items()
        for part, value in parts.items()
        if part == FAILED or BUT in value.split()
    ]


# ---- reasons


def mark(before: Recorded, after: Recorded) -> str:
    """Names a change of recorded digests; the marks of several changes combine by exclusive or, in any order."""
    return f"{_sum(before) ^ _sum(after):012x}"


def explains(changes: str, recorded: Recorded) -> bool:
    """Whether the lines of a list of changes lead from nothing to these digests."""
    total = 0
    for found in _MARK.findall(changes):
        total ^= int(found, 16)
    return total == _sum(recorded)


def line_of(before: Recorded, after: Recorded, because: str) -> str:
    """The line that explains a change."""
    found = differences(before, after)
    cases = sorted({one.case for one in found})
    named = ", ".join(cases[:_CASES_OF_A_LINE])
    more = len(cases) - _CASES_OF_A_LINE
    parts = ", ".join(sorted({one.part for one in found})) if len({one.part for one in found}) < 12 else "most parts"
    return f"- `{mark(before, after)}` {because} ({parts} of {named}{f' and {more} more' if more > 0 else ''})"


def _sum(recorded: Recorded) -> int:
    total = 0
    for case, parts in recorded.items():
        for part, value in parts.items():
            total ^= int(hashlib.sha256(f"{case}\n{part}\n{value}".encode()).hexdigest()[:12], 16)
    return total
