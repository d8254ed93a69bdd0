"""What a paper says beside what we find."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shoal.reproduce.tables import Table


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a paper, our numbers, whether they agree with it, and why not."""

    paper: str
    found: str
    agrees: bool | None
    """None where the paper says nothing of it."""
    why: str


def claims_table(name: str, claims: Iterable[Claim]) -> Table:
    """One row a claim."""
    records = [
        {"the_paper": claim.paper, "we_find": claim.found, "agrees": claim.agrees, "what_to_know": claim.why}
        for claim in claims
    ]
    return Table(name, "What the paper says, and what we find", records)


def from_to(values: Iterable[float], spec: str = ".1%") -> str:
    """The smallest and the largest as text.

    >>> from_to([0.031, 0.09]), from_to([2, 2], "d")
    ('3.1% to 9.0%', '2')
    """
    found = list(values)
    low, high = format(min(found), spec), format(max(found), spec)
    return low if low == high else f"{low} to {high}"
