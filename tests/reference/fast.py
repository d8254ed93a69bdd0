"""FAST: tuples are dealt to lanes; lanes decide at barriers, each on its own tuples, and share the pool between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.reference.tuples import Cluster, Decision, Held, TupleTwin, people


@dataclass
class FastTwin(TupleTwin):
    """Exactly what happens.

    A tuple is dealt to a lane when it comes and stays there. Before the first round has ended all go to lane 0;
    afterwards by `cuts`: (lane divided, lane made, attribute, cut) in order, each sending those of the divided lane
    whose scaled value (or leaf's rank) is above the cut to the lane made; without the value, those with an odd row.

    If (i + 1) % round == 0 for arrival number i the round ends: now is i (count mode) or the clock. Its length is
    `round` arrivals, or in time mode the clock now less the clock at the end of the round before (at the first arrival,
    for the first round). A tuple cannot wait if now - arrived + length >= deadline. Every lane, lane 0 first, decides
    those of its tuples that cannot wait, in order of arrival, as FADS does among the lane's tuples; the rest is pushed
    back. (In the paper the first tuple of a set is decided in every round; there it is the oldest of a full buffer,
    which cannot wait. Deciding it although it can would suppress the first tuples of every stream.)

    Time mode, whenever the clock moves, before the arrival is inserted: while a held tuple of any lane is due
    (due <= clock) there is a barrier at the least due time among them: every lane, lane 0 first, decides its tuples
    with due <= that time, oldest first. The rule of those that cannot wait does not apply there, and the round goes on.

    Every barrier drops old clusters by its own now, reads the pool as it was before, and adds the new clusters,
    numbered in the order they were made and created now, after the last lane is done. Rows are listed so too.
    With l, entropy_l or t a reused row counts in its class at once, also for the lanes after it: otherwise two lanes
    could break a class together.

    flush is one barrier: every lane decides oldest first until it is empty; nothing can wait.
    """

    threads: int = 2
    round: int | None = None
    cuts: Sequence[tuple[int, int, int, float]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.round is None:
            self.round = max(1, self.deadline // 4) if self.by == "count" else 256
        self.fresh: list[Cluster] = []
        self.round_began: int | None = None
        self.homes: dict[int, int] = {}

    # -- lanes

    def insert(self, one: Held) -> None:
        self.homes[one.number] = self.deal(one) if one.number >= self.round else 0

    def deal(self, one: Held) -> int:
        home = 0
        for divided, made, attribute, cut in self.cuts:
            is_above = one.row % 2 == 1
            if attribute >= 0 and one.values[attribute] is not None:
                is_above = self.attributes[attribute].place(one.values[attribute]) > cut
            if home == divided and is_above:
                home = made
        return home

    def lane(self, number: int) -> list[Held]:
        return [one for one in self.held.values() if self.homes[one.number] == number]

    def candidates(self, first: Held) -> list[Held] | None:
        lane = self.lane(self.homes[first.number])
        return lane if len(people(lane)) >= self.k else None

    def keep(self, cluster: Cluster) -> None:
        self.fresh.append(cluster)

    def barrier(self, decide_lane: Callable[[list[Held]], list[Decision]]) -> list[Decision]:
        decisions = [made for number in range(self.threads) for made in decide_lane(self.lane(number))]
        self.pool += self.fresh
        self.fresh = []
        return decisions

    def decide_those(self, tuples: list[Held], now: int) -> list[Decision]:
        """One after another; one that left with another is passed over."""
        return [made for one in tuples if one.number in self.held for made in self.decide(one, now)]

    # -- when

    def decide_due(self) -> list[Decision]:
        decisions: list[Decision] = []
        if self.by == "count":
            return decisions
        while self.held:
            now = min(one.due for one in self.held.values())
            if now > self.clock:
                break
            decisions += self.barrier(
                lambda lane, now=now: self.decide_those([one for one in lane if one.due <= now], now)
            )
        return decisions

    def after_insert(self, one: Held) -> list[Decision]:
        if self.round_began is None:
            self.round_began = self.now
        if self.arrivals % self.round:
            return []
        length = self.round if self.by == "count" else max(0, self.now - self.round_began)
        self.round_began = self.now
        return self.barrier(lambda lane: self.end_round(lane, length))

    def end_round(self, lane: list[Held], length: int) -> list[Decision]:
        now = self.now
        return self.decide_those([one for one in lane if now - one.arrived + length >= self.deadline], now)

    def flush(self) -> list[Decision]:
        return self.barrier(lambda lane: self.decide_those(lane, self.now))
