"""Lanes: tuples are dealt to lanes, each of which is a twin of its own; FAST is FADS in lanes."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.reference.fads import FadsTwin
from tests.reference.tuples import Cluster, Decision, Held, Num, TupleTwin

Cuts = Sequence[tuple[int, int, int, float]]
STATE = ("rare_patterns", "clusters", "typical", "typical_of", "met")
"""What deciding changes in a lane, besides its tuples and clusters."""


class Stuck(Exception):
    """A lane would suppress a tuple."""


def state_of(lane: TupleTwin) -> dict[str, Any]:
    """A copy of what deciding changes. A tuple stays as it is; a cluster counts the rows that reuse it."""
    pool = [replace(cluster, rows=Counter(cluster.rows)) for cluster in lane.pool]
    rest = copy.deepcopy({name: lane.__dict__[name] for name in STATE if name in lane.__dict__})
    return {"held": dict(lane.held), "pool": pool, **rest}


@dataclass
class LaneTwin(TupleTwin):
    """Exactly what happens.

    There are at most `threads` lanes, and with counted arrivals no more than deadline / (16 k). Until the first deal
    there is one. A tuple goes to a lane when it arrives, by `cuts`: (lane divided, lane made, attribute, cut) in order,
    each sending those of the divided lane whose scaled value (or leaf's rank) is above the cut to the lane made; where
    the attribute is -1, those with an odd row. A lane decides its tuples as the method does, and reuses its own
    clusters only. The n-th cluster of lane i has the number n * lanes + i.

    A tuple that a lane would suppress makes all lanes one: that tuple is decided among all. Where time is counted in
    seconds, so is everything that is due at the same arrival or advance. A flush makes all lanes one before it.

    After every `round` arrivals tuples are dealt again if there are not as many lanes as there should be, or if one has
    got more than 1.5 times its share of the arrivals since the last time. While there is one lane, that happens after
    every `deadline` arrivals, and at least 64 (64 where it is a duration). Where the deadline is a duration, there
    should be one lane for 4 k pending tuples.

    With missing="own" only complete tuples are dealt by the cuts. One that lacks the attributes a, b, … (numbered from
    1) goes to lane (a + b + …) mod the number of lanes, as do clusters that show what it has. A lane suppresses it at
    once, because no other has tuples that lack the same.

    Where lanes are cut is free: `dealings` has the cuts, by the rows that are pending then. Clusters are dealt like
    tuples, by the middle of what they show, and by their numbers where the attribute is -1.
    """

    threads: int = 2
    round: int | None = None
    dealings: Mapping[tuple[int, ...], Cuts] = field(default_factory=dict)
    rows_of_a_lane: int = 16
    pending_of_a_lane: int = 4
    first: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        most = self.threads if self.by == "time" else self.deadline // (self.rows_of_a_lane * self.k)
        self.most = max(1, min(self.threads, most))
        own = {name: getattr(self, name) for name in TupleTwin.__dataclass_fields__ if name in COMMON}
        self.lanes = [self.make_lane(own) for _ in range(self.most)]
        for number, lane in enumerate(self.lanes):
            lane.clusters, lane.step, lane.recent = number, self.most, self.recent
        self.cuts: Cuts = []
        self.is_joined = False
        """Whether this arrival made lanes one."""
        self.came = [0] * self.most
        self.round = self.round or max(4096, 0 if self.by == "time" else 2 * self.deadline)
        self.first = min(self.first if self.by == "time" else max(self.first, self.deadline), self.round)

    def make_lane(self, own: dict[str, Any]) -> TupleTwin:
        raise NotImplementedError

    @property
    def used(self) -> list[TupleTwin]:
        return self.lanes[: len(self.cuts) + 1]

    # -- which lane

    def home(self, places: Sequence[float | None], is_odd: bool) -> int:
        home = 0
        if self.missing == "own" and None in places:
            return sum(at + 1 for at, place in enumerate(places) if place is None) % len(self.used)
        for divided, made, attribute, cut in self.cuts:
            place = places[attribute]
            if home == divided and (is_odd if attribute < 0 else place is not None and place > cut):
                home = made
        return home

    def home_of(self, one: Held) -> int:
        places = [None if value is None else attribute.place(value)
                  for attribute, value in zip(self.attributes, one.values, strict=True)]  # fmt: skip
        return self.home(places, one.row % 2 == 1)

    def home_of_cluster(self, cluster: Cluster) -> int:
        middles = [self.middle(at, hull) if shown else None
                   for at, (hull, shown) in enumerate(zip(cluster.hulls, cluster.shown, strict=True))]  # fmt: skip
        return self.home(middles, cluster.number % 2 == 1)

    def middle(self, at: int, hull: Any) -> float:
        attribute = self.attributes[at]
        if isinstance(attribute, Num):
            return ((hull[0] + hull[1]) / 2 - attribute.low) / (attribute.high - attribute.low)
        ranks = [attribute.place(leaf) for leaf in attribute.leaves if hull in attribute.path(leaf)]
        return (min(ranks) + max(ranks)) / 2

    def deal(self, cuts: Cuts) -> None:
        old, tuples = self.used, list(self.held.values())
        clusters = sorted((one for lane in old for one in lane.pool), key=lambda cluster: cluster.created)
        self.cuts = cuts
        for lane in self.lanes:
            lane.held, lane.pool = {}, []
        for one in tuples:
            self.lanes[self.home_of(one)].held[one.number] = one
        for cluster in clusters:
            self.lanes[self.home_of_cluster(cluster)].pool.append(cluster)
        if hasattr(old[0], "met"):
            met = {number: found for lane in old for number, found in lane.met.items()}
            typical = sum(lane.typical for lane in old) / len(old)
            typical_of = [sum(found) / len(old) for found in zip(*(lane.typical_of for lane in old), strict=True)]
            for lane in self.lanes:
                lane.met, lane.typical, lane.typical_of = dict(met), typical, list(typical_of)

    # -- deciding

    def insert(self, one: Held) -> None:
        home = self.home_of(one)
        self.came[home] += 1
        self.lanes[home].held[one.number] = one
        self.set_clocks()
        self.lanes[home].insert(one)

    def set_clocks(self) -> None:
        for lane in self.lanes:
            lane.arrivals, lane.clock = self.arrivals, self.clock

    def decide_due(self) -> list[Decision]:
        self.set_clocks()
        before = [state_of(lane) for lane in self.lanes]
        try:
            decisions = [made for lane in self.used for made in self.decide_lane(lane)]
        except Stuck:
            for lane, state in zip(self.lanes, before, strict=True):
                lane.__dict__.update(state)
            self.held = {one.number: one for one in sorted(
                (one for lane in self.used for one in lane.held.values()), key=lambda one: one.number)}  # fmt: skip
            self.deal([])
            self.is_joined = self.by == "count"
            decisions = self.lanes[0].decide_due()
        self.forget(decisions)
        return decisions

    def decide_lane(self, lane: TupleTwin) -> list[Decision]:
        decisions: list[Decision] = []
        while lane.held:
            oldest = next(iter(lane.held.values()))
            if oldest.due > self.now:
                break
            may_stop = len(self.used) > 1 and not (self.missing == "own" and None in oldest.values)
            made = lane.decide(oldest, oldest.due if self.by == "time" else self.now, can_wait=may_stop)
            if not made:
                raise Stuck
            decisions += made
        return decisions

    def forget(self, decisions: Sequence[Decision]) -> None:
        gone = {one.row for one in decisions}
        self.held = {number: one for number, one in self.held.items() if one.row not in gone}

    def after_insert(self, one: Held) -> list[Decision]:
        if not self.is_joined and self.arrivals % (self.round if len(self.used) > 1 else self.first) == 0:
            wanted = self.most
            if self.by == "time":
                wanted = max(1, min(wanted, len(self.held) // (self.pending_of_a_lane * self.k)))
            if wanted != len(self.used) or max(self.came) * wanted > 1.5 * sum(self.came):
                rows = tuple(one.row for one in self.held.values())
                self.deal(self.dealings[rows] if wanted > 1 else [])
            self.came = [0] * self.most
        self.is_joined = False
        return []

    def flush(self) -> list[Decision]:
        self.deal([])
        self.set_clocks()
        decisions = self.lanes[0].flush()
        self.held = {}
        return decisions


COMMON = set(TupleTwin.__dataclass_fields__) - {"imputes", "exact_reuse", "may_be_late", "step"}


@dataclass
class FastTwin(LaneTwin):
    """FADS in lanes."""

    def make_lane(self, own: dict[str, Any]) -> TupleTwin:
        return FadsTwin(**own)


@dataclass
class LanesOf(LaneTwin):
    """Another method in lanes."""

    lane: Callable[..., TupleTwin] = FadsTwin

    def make_lane(self, own: dict[str, Any]) -> TupleTwin:
        return self.lane(**own)
