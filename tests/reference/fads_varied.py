"""FADS for varied streams, as a comparison: each set of attributes is a stream of its own, and tuples may be late."""

from __future__ import annotations

from dataclasses import dataclass

from tests.reference.tuples import NANOSECONDS, Decision, Held, TupleTwin, people


@dataclass
class FadsVariedTwin(TupleTwin):
    """Left open, and decided here.

    - A tuple that is due and can neither be in a new cluster (for want of people or of diversity) nor reuse one is
      late; it stays held and may still be taken into the cluster of another.
    - After an arrival the late tuples of its partition are decided oldest first while it has >= k people; this stops
      at the first that cannot be decided (diversity), until the next arrival.
    - The penalty is counted from the due time, for every row of a cluster by itself and for both losses; a row that
      leaves on time has none. In time mode the time late is in seconds.
    """

    missing: str = "covered"
    late_penalty: float = 0.001

    def __post_init__(self) -> None:
        super().__post_init__()
        self.exact_reuse = self.may_be_late = True

    def partition(self, first: Held) -> list[Held]:
        return [one for one in self.held.values() if one.carried == first.carried]

    def candidates(self, first: Held) -> list[Held] | None:
        alike = self.partition(first)
        return alike if len(people(alike)) >= self.k else None

    def after_insert(self, one: Held) -> list[Decision]:
        decisions: list[Decision] = []
        while True:
            alike = self.partition(one)
            oldest = next((other for other in alike if other.late), None)
            if oldest is None or len(people(alike)) < self.k:
                return decisions
            made = self.decide(oldest, self.now, can_wait=True)
            if not made:
                return decisions
            decisions += made

    def reported(self, loss: float, one: Held, now: int) -> float:
        late = max(0, now - one.due)
        exponent = late if self.by == "count" else late / NANOSECONDS
        return min(1.0, loss * (1 + self.late_penalty) ** exponent)
