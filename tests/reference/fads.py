"""FADS: the expiring tuple leaves with the k-1 nearest of all that are held."""

from __future__ import annotations

from dataclasses import dataclass

from tests.reference.tuples import Held, TupleTwin, people


@dataclass
class FadsTwin(TupleTwin):
    """Nothing is left open here beyond what tests/reference/tuples.py decides."""

    def candidates(self, first: Held) -> list[Held] | None:
        alike = self.alike(first)
        return alike if len(people(alike)) >= self.k else None
