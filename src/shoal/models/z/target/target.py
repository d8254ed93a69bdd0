"""The target of a z that follows the stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from shoal.errors import PolicyError

NOTHING: Final = 2**31 - 1
"""A z that no crowd reaches: nothing is released."""


@dataclass(frozen=True, slots=True)
class KTarget:
    """Of the people with a released row in an epoch, at least a share `p` is to be k-anonymous by all their rows.

    Parameters
    ----------
    k
        The number of people, the person included, who must share the set of all values released of a person in an
        epoch.
    p
        The share of people with a released row for whom this must hold, above 0 and up to 1.
    floor
        z never falls below this (nor below k).
    start
        The z until a window and an epoch have been observed. By default nothing is released until then.
    learn
        Whether z begins with what an earlier stream of the same kind needed: pass its records to
        :meth:`shoal.ZAnonymity.learn` before the first record. z is then chosen from the second window on.

    Examples
    --------
    >>> KTarget(k=2, p=0.95).least
    2
    """

    k: int
    p: float
    floor: int | None = None
    start: int | None = None
    learn: bool = False

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
        """The smallest z allowed."""
        return max(self.k, self.floor or 1)

    @property
    def first(self) -> int:
        """The z at the start of a stream."""
        return NOTHING if self.start is None else self.start

    def describe(self) -> dict[str, Any]:
        """The parameters as plain values."""
        learn = {"learn": True} if self.learn else {}
        return {"k": self.k, "p": self.p, "floor": self.floor, "start": self.start, **learn}

    def is_met(self, shown: int, anonymous: int) -> bool:
        """Whether enough of the people shown are k-anonymous; showing no one meets the target."""
        return anonymous >= self.p * shown


def _whole_problems(name: str, value: object, least: int) -> list[str]:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < NOTHING:
        return [f"target: {name} must be a whole number of at least {least}"]
    return []
