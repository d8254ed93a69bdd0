"""What a z that follows the stream aims at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from shoal.errors import PolicyError

NOTHING: Final = 2**31 - 1
"""A z that no crowd reaches: nothing leaves."""


@dataclass(frozen=True, slots=True)
class KTarget:
    """At least a share `p` of the people something is released of in an epoch shall be k-anonymous by all of it.

    Parameters
    ----------
    k
        How many people, the person among them, must share the whole set of values released of a person in an epoch.
    p
        The share of people with a released row that this must hold for, above 0 and up to 1.
    floor
        z never falls below this (nor below k).
    start
        The z until the stream has been seen for a window and an epoch. By default nothing leaves so long.

    Examples
    --------
    >>> KTarget(k=2, p=0.95).least
    2
    """

    k: int
    p: float
    floor: int | None = None
    start: int | None = None

    def __post_init__(self) -> None:
        problems = [
            *_whole_problems("k", self.k, 2),
            *([] if self.floor is None else _whole_problems("floor", self.floor, 1)),
            *([] if self.start is None else _whole_problems("start", self.start, 1)),
        ]
        if isinstance(self.p, bool) or not isinstance(self.p, int | float) or not 0 < self.p <= 1:
            problems.append("target: p must be a share above 0, up to 1")
        if not problems and self.start is not None and self.start < self.least:
            problems.append(f"target: start must be at least {self.least}, as z is")
        if problems:
            raise PolicyError(problems)

    @property
    def least(self) -> int:
        """The smallest z there may be."""
        return max(self.k, self.floor or 1)

    @property
    def first(self) -> int:
        """The z before anything is known."""
        return NOTHING if self.start is None else self.start

    def describe(self) -> dict[str, Any]:
        """Plain values that make the same target again."""
        return {"k": self.k, "p": self.p, "floor": self.floor, "start": self.start}

    def is_met(self, shown: int, anonymous: int) -> bool:
        """Whether this many k-anonymous people of those shown are enough; nobody shown is fine."""
        return anonymous >= self.p * shown


def _whole_problems(name: str, value: object, least: int) -> list[str]:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < NOTHING:
        return [f"target: {name} must be a whole number of at least {least}"]
    return []
