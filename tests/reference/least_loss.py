"""Least loss, as its kernel's docstring describes it: plain lists, everything computed again at every step."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.reference.tuples import (
    Cat,
    Cluster,
    Decision,
    Held,
    Num,
    TupleTwin,
    count_values,
    distance,
    people,
    with_values,
)

LACK, INSIDE, LEARN, TRIES, MOST_DROPPED, LITTLE, RARE = 3.0, 0.3, 0.05, 8, 0.7, 1e-9, 0.5
MOST_MET, MET_WHERE_EXCHANGED, FEWEST_MET, TRIED = 256, 128, 32, 3
MOST_TRIED, MOST_EXCHANGED = 3, 16


@dataclass
class LeastLossTwin(TupleTwin):
    """`candidates` as the kernel has it: 0, or at least 2k."""

    candidates_limit: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.typical = 0.3
        self.typical_of = [0.0] * len(self.attributes)
        self.met: dict[int, list[float]] = {}
        self.is_ending = False
        labels = sum(attribute.weight for attribute in self.attributes if isinstance(attribute, Cat))
        numbers = sum(attribute.weight for attribute in self.attributes if isinstance(attribute, Num))
        may_exchange = self.k >= 20 and labels > 0 and not self.candidates_limit
        exchanges = self.always_exchanges = labels >= numbers and may_exchange
        self.exchanges, self.exchanged_from = 12 if may_exchange else 0, 0.0 if exchanges else 0.4
        price, self.age, self.floor = (0.8, 0.25, 1.0) if exchanges else (1.5, 0.2, 0.5)
        self.staleness = 0.25 if exchanges else 0.0
        self.price_factor = price / math.sqrt(self.k)
        self.ranks = [self.ranks_of(attribute) for attribute in self.attributes]
        self.weights = 0.0
        for attribute in self.attributes:
            self.weights += attribute.weight

    @staticmethod
    def ranks_of(attribute: Any) -> dict[str, float] | None:
        if isinstance(attribute, Num):
            return None
        order = sorted(attribute.leaves, key=lambda leaf: attribute.path(leaf)[::-1])
        return {leaf: float(rank) for rank, leaf in enumerate(order)}

    def place(self, at: int, one: Held) -> float | None:
        value = one.values[at]
        if value is None:
            return None
        return self.ranks[at][value] if self.ranks[at] else self.attributes[at].scaled(value)

    def range_loss(self, at: int, low: float, high: float) -> float:
        attribute = self.attributes[at]
        if isinstance(attribute, Num):
            return high - low
        leaves = list(self.ranks[at])
        return attribute.loss(attribute.hull([leaves[int(low)], leaves[int(high)]]))

    # -- neighbours and prices

    @property
    def near(self) -> int:
        return min(8, self.k)

    def insert(self, one: Held) -> None:
        others = [other for other in self.held.values() if other is not one]
        met = MET_WHERE_EXCHANGED if self.always_exchanges else MOST_MET
        if self.candidates_limit:
            met = max(self.candidates_limit // 4, FEWEST_MET)
        others = others[-met:]
        self.met[one.number] = [1.0] * self.near
        for other in others:
            if other.person != one.person:
                apart = distance(self.attributes, one, other)
                for known in (self.met[one.number], self.met[other.number]):
                    known[:] = sorted([*known, apart])[: self.near]

    def price(self, one: Held, now: int) -> float:
        apart = 0.0
        for found in self.met[one.number]:
            apart += found
        waited = (now - one.arrived) / self.deadline
        apart = apart / self.near * (1.0 + self.staleness * waited)
        price = self.price_factor * self.weights * (apart + self.age * self.typical * waited)
        return price * math.sqrt(self.weight_carried(one) / self.weights)

    def weight_carried(self, one: Held) -> float:
        carried = 0.0
        for at in range(len(self.attributes)):
            if one.values[at] is not None:
                carried += self.attributes[at].weight
        return carried

    def share(self, one: Held) -> float:
        """One over the weight of what a tuple carries."""
        carried = self.weight_carried(one)
        return 1.0 / carried if carried > 0 else 0.0

    # -- the cluster

    def decide(self, first: Held, now: int, *, can_wait: bool = False) -> list[Decision]:
        self.moment = now
        if not self.is_ending:
            return super().decide(first, now, can_wait=can_wait)
        self.forget_old(now)
        alike = self.alike(first)
        rest = [one for one in alike if one is not first]
        may_reuse = self.is_publishable(rest)
        if self.max_share is not None:
            alone, together = 1 + len(self.most_publishable(rest)), len(self.most_publishable(alike))
            may_reuse, old = alone >= together, self.best_reusable(first)
            if alone > together and old is not None:
                return [self.release_by_reuse(first, old, now)]
        members = self.new_members(first)
        if members is None or may_reuse:
            return super().decide(first, now, can_wait=can_wait)
        return self.publish([(members, self.form(members))], now)

    def new_members(self, first: Held) -> list[Held] | None:
        held = self.alike(first)
        count = len(people(held))
        if count < self.k:
            return None
        if not self.is_ending:
            return self.chosen_members(first, held)
        if count == len(held) and count < 2 * self.k and self.is_publishable(held):
            return held
        members, after = self.chosen_members(first, held), 0
        if members is not None:
            rest = [one for one in held if one not in members]
            after = len(members) + self.saved(rest, self.most_publishable(rest))
        together = self.most_publishable(held, by_reuse=True) or self.most_publishable(held)
        return together if together and self.saved(held, together) > after else members

    def saved(self, held: Sequence[Held], kept: Sequence[Held]) -> int:
        """How many are published if some are kept as one class: those, and with a cap, others that can be reused."""
        left = [one for one in held if one not in kept] if self.max_share is not None else []
        return len(kept) + sum(self.best_reusable(one) is not None for one in left)

    def most_publishable(self, held: Sequence[Held], *, by_reuse: bool = False) -> list[Held]:
        """The most of these tuples that could be one class: of each person as many as the cap allows, the earliest.

        With `by_reuse` those first that no published cluster accepts.
        """
        kept = list(held)
        if self.max_share is not None:
            for count in range(len(held), 0, -1):
                most, rows = int(self.max_share * count + 1e-9), Counter(one.person for one in held)
                if sum(min(most, number) for number in rows.values()) >= count:
                    break
            kept = []
            for one in sorted(held, key=lambda one: by_reuse and self.best_reusable(one) is not None):  # stable
                if sum(one.person == other.person for other in kept) < most:
                    kept.append(one)
        kept.sort(key=lambda one: one.number)
        if len(kept) >= self.k:
            kept = self.exchanged(kept, [one for one in held if one not in kept])
        return kept if self.is_publishable(kept) else []

    def exchanged(self, kept: list[Held], dropped: list[Held]) -> list[Held]:
        """Exchange tuples of the same person, as long as that helps what fails first."""
        for _ in range(MOST_EXCHANGED):
            failing = self.diversity.failing(count_values(one.sensitive for one in kept), self.reference_now())
            pairs = (
                (x, y) for x in range(len(dropped[:MOST_EXCHANGED])) for y in range(len(kept)) if failing is not None
            )
            pair = next((pair for pair in pairs if self.is_better(failing, kept, dropped, *pair)), None)
            if pair is None:
                break
            kept[pair[1]], dropped[pair[0]] = dropped[pair[0]], kept[pair[1]]
        return kept

    def is_better(self, failing: Any, kept: Sequence[Held], dropped: Sequence[Held], x: int, y: int) -> bool:
        """Whether dropped tuple x helps more than kept tuple y, once that is gone: it does and y does not."""
        if dropped[x].person != kept[y].person:
            return False
        others, reference = count_values(one.sensitive for one in [*kept[:y], *kept[y + 1 :]]), self.reference_now()
        return self.diversity.helps(failing, others, dropped[x], reference) and not self.diversity.helps(
            failing, others, kept[y], reference
        )

    def is_publishable(self, held: Sequence[Held]) -> bool:
        """Whether these tuples could be one class, or are none."""
        if not held:
            return True
        classes = count_values(one.sensitive for one in held)
        return (
            len(people(held)) >= self.k
            and self.diversity.failing(classes, self.reference_now()) is None
            and self.is_fair(Counter(one.person for one in held))
        )

    def chosen_members(self, first: Held, held: Sequence[Held]) -> list[Held] | None:
        wanted, pool = self.k, [first, *self.allowed(first, held)]
        self.left_out = self.not_planned(first, pool, wanted)
        is_varied = self.missing != "own" and any(None in one.values for one in self.held.values())
        is_floored = self.always_exchanges or is_varied
        members, scores = self.grow([first], pool, wanted, self.floor if is_floored else 0.0)
        if len(members) < self.k:
            return None
        members = self.exchange(members, self.narrow(pool, members, scores))
        others = (one for one in held if one is not first)
        ranked = sorted(others, key=lambda one: (distance(self.attributes, first, one), one.number))
        members = self.diversify(members, ranked)
        return members if members is None else [*members, *self.further_tuples(members, held)]

    def not_planned(self, first: Held, pool: Sequence[Held], wanted: int) -> set[int]:
        """Attributes the cluster does not try to show: rare ones that the first lacks, while others remain."""
        left_out: set[int] = set()
        carriers = {at: sum(at in one.carried for one in pool) for at in range(len(self.attributes))}
        for at in sorted(carriers, key=lambda at: (carriers[at], at)):
            if at not in first.carried and carriers[at] < RARE * len(pool):
                free = [one for one in pool if not one.carried & {*left_out, at}]
                left_out |= {at} if len(free) >= wanted else set()
        return left_out

    def further_tuples(self, members: Sequence[Held], held: Sequence[Held]) -> list[Held]:
        """Other tuples of the same people that the cluster covers, one after the other."""
        if self.max_share is not None:
            return []
        cluster, found = self.form(members), []
        for one in held:
            if one not in members and one.person in people(members) and self.may_reuse(one, cluster):
                found.append(one)
                cluster.classes = with_values(cluster.classes, one.sensitive)
        return found

    def flush(self) -> list[Decision]:
        self.is_ending, self.at_end = True, self.divided_people()
        tried: Counter[int] = Counter()
        decisions = []
        while self.held:
            first = min(self.held.values(), key=lambda one: tried[one.number])  # the earliest of equals
            tried[first.number] += 1
            may_wait = self.max_share is not None and tried[first.number] < MOST_TRIED
            decisions += self.decide(first, self.now, can_wait=may_wait)
        self.is_ending, self.at_end = False, None
        return decisions

    def allowed(self, first: Held, held: Sequence[Held]) -> list[Held]:
        others = [one for one in held if one is not first]
        if not 0 < self.candidates_limit < len(others):
            return others
        nearest, chosen = sorted(others, key=lambda one: (distance(self.attributes, first, one), one.number)), []
        for one in nearest:
            if one.person != first.person and one.person not in people(chosen) and len(chosen) < self.candidates_limit:
                chosen.append(one)
        return sorted(chosen, key=lambda one: one.number)

    def needed(self, wanted: int) -> int:
        if self.missing == "covered":
            return self.min_carriers if self.min_carriers is not None else (self.k + 1) // 2
        return wanted if self.missing == "hidden" else 1

    def narrow(self, pool: Sequence[Held], members: Sequence[Held], scores: dict[int, float]) -> list[Held]:
        taken, chosen = people(members), {one.number for one in members}
        running = [one for one in pool if one.person not in taken]
        best = sorted(running, key=lambda one: (scores[one.number], one.number))[: TRIED * len(members)]
        if len(pool) > len(members) + TRIED * len(members):
            chosen |= {one.number for one in best}
            return [one for one in pool if one.number in chosen]
        return list(pool)

    def grow(
        self, start: Sequence[Held], pool: Sequence[Held], wanted: int, floor: float
    ) -> tuple[list[Held], dict[int, float]]:
        members, given_up = [], set(self.left_out)
        for one in start:
            members.append(one)
            self.give_up(members, given_up, wanted)
        added = {one.number: [0.0] * len(self.attributes) for one in pool}
        scores = {one.number: -self.price(one, self.moment) for one in pool}
        while len(members) < wanted:
            taken = people(members)
            running = [one for one in pool[1:] if one.person not in taken]
            if not running:
                break
            for one in running:  # a running sum: what an attribute adds now takes the place of what it added before
                for at, before in enumerate(added[one.number]):
                    now = self.added(at, one, members, at in given_up, floor)
                    scores[one.number] += now - before
                    added[one.number][at] = now
            penalties = self.penalties(members, given_up, wanted)
            best = min(running, key=lambda one: (scores[one.number] + self.penalty(one, penalties), one.number))
            members.append(best)
            self.give_up(members, given_up, wanted)
        return members, scores

    def give_up(self, members: Sequence[Held], given_up: set[int], wanted: int) -> None:
        for at in range(len(self.attributes)):
            if self.needed(wanted) - len(self.places(at, members)) > wanted - len(members):
                given_up.add(at)

    def places(self, at: int, members: Sequence[Held]) -> list[float]:
        return [place for one in members if (place := self.place(at, one)) is not None]

    def penalties(self, members: Sequence[Held], given_up: set[int], wanted: int) -> list[float]:
        """How much worse a candidate scores for lacking each attribute."""
        worse = [0.0] * len(self.attributes)
        for at, attribute in enumerate(self.attributes):
            lacking = self.needed(wanted) - len(self.places(at, members))
            if lacking > 0 and at not in given_up:
                share = lacking / (wanted - len(members))
                hopes = 1.0 - self.lost(at, members)
                worse[at] = LACK * self.typical * attribute.weight * hopes * share * share
        return worse

    @staticmethod
    def penalty(one: Held, penalties: Sequence[float]) -> float:
        total = 0.0
        for at, worse in enumerate(penalties):
            if one.values[at] is None:
                total += worse
        return total

    def lost(self, at: int, members: Sequence[Held]) -> float:
        places = self.places(at, members)
        return self.range_loss(at, min(places), max(places)) if places else 0.0

    def added(self, at: int, one: Held, members: Sequence[Held], is_given_up: bool, floor: float) -> float:
        place, weight = self.place(at, one), self.attributes[at].weight
        own, share = self.weights / self.k, self.share(one)
        if place is None:
            return 0.0
        if is_given_up:
            return weight * (own * share)
        places, before = self.places(at, members), self.lost(at, members)
        if not places or min(places) <= place <= max(places):
            return weight * (own * share * before)
        lost = self.range_loss(at, min(*places, place), max(*places, place))
        more, usual = lost - before, floor * self.typical_of[at]
        if usual > before and more > 0:
            more = max(lost, usual) - usual + INSIDE * (min(lost, usual) - before)
        return weight * (more + own * share * lost)

    # -- exchange

    def worth(self, members: Sequence[Held]) -> float:
        total = 0.0
        for at, attribute in enumerate(self.attributes):
            is_there = len(self.places(at, members)) >= self.needed(len(members))
            total += attribute.weight * (self.lost(at, members) if is_there else 1.0)
        for one in members:
            total -= self.price(one, self.moment)
        return total

    def exchange(self, members: list[Held], pool: Sequence[Held]) -> list[Held]:
        for _ in range(self.exchanges if self.typical >= self.exchanged_from else 0):
            cuts = sorted(self.cuts(members), key=lambda cut: -cut[3])[:TRIES]  # stable: the first of equals
            for at, low, high, _ in cuts:
                kept = [one for one in members if (place := self.place(at, one)) is None or low <= place <= high]
                trial, _ = self.grow(kept, pool, len(members), 0.0)
                if len(trial) == len(members) and self.worth(trial) < self.worth(members) - LITTLE:
                    members = trial
                    break
            else:
                break
        return members

    def cuts(self, members: Sequence[Held]) -> list[tuple[int, float, float, float]]:
        found = []
        for at, attribute in enumerate(self.attributes):
            places = sorted(self.places(at, members))
            if places and len(places) >= self.needed(len(members)) and places[0] != places[-1]:
                cut = self.cuts_of_numbers if isinstance(attribute, Num) else self.cuts_of_labels
                found += cut(at, places, self.place(at, members[0]), len(members))
        return [cut for cut in found if cut[3] > 0]

    def cuts_of_numbers(self, at: int, places: list[float], anchor: float | None, members: int) -> list[Any]:
        weight, found = self.attributes[at].weight, []
        ends = [
            [(low, weight * (low - places[0]) / n) for n, low in enumerate(places) if 0 < n <= members // 2
             and low > places[n - 1] and (anchor is None or low <= anchor)],
            [(high, weight * (places[-1] - high) / n) for n, high in enumerate(places[::-1]) if 0 < n <= members // 2
             and high < places[::-1][n - 1] and (anchor is None or high >= anchor)],
        ]  # fmt: skip
        for side, choices in enumerate(ends):
            if choices:
                bound, gain = max(choices, key=lambda choice: choice[1])
                found.append((at, bound, places[-1], gain) if side == 0 else (at, places[0], bound, gain))
        return found

    def cuts_of_labels(self, at: int, places: list[float], anchor: float | None, members: int) -> list[Any]:
        attribute, leaves = self.attributes[at], list(self.ranks[at])
        node = leaves[int(places[len(places) // 2] if anchor is None else anchor)]
        lost, found = self.range_loss(at, places[0], places[-1]), []
        for label in attribute.path(node):
            below = [self.ranks[at][leaf] for leaf in leaves if label in attribute.path(leaf)]
            if min(below) <= places[0] and max(below) >= places[-1]:
                break
            dropped = sum(not min(below) <= place <= max(below) for place in places)
            is_new = not found or found[-1][1:3] != (min(below), max(below))
            if is_new and 0 < dropped < len(places) and dropped <= MOST_DROPPED * members:
                gain = attribute.weight * (lost - self.range_loss(at, min(below), max(below))) / dropped
                found.append((at, min(below), max(below), gain))
        return found

    # -- what it learns

    def publish(self, made: Sequence[tuple[Sequence[Held], Cluster]], now: int) -> list[Decision]:
        ((members, cluster),) = made
        lost = 0.0
        for one in sorted(members, key=lambda one: one.number):
            lost += self.loss(one, cluster)
        self.typical += LEARN * (lost / len(members) - self.typical)
        for at, attribute in enumerate(self.attributes):
            own = attribute.loss(cluster.hulls[at]) if cluster.shown[at] else 1.0
            self.typical_of[at] += LEARN * (own - self.typical_of[at])
        return super().publish(made, now)
