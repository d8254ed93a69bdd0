"""Holding rows for an epoch, with lists and dicts; and the least that must be lost, by trying everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.reference.z_model import NaiveZ, Verdict

Item = tuple[int, str]
Sets = dict[Any, Counter[Item]]
Reduce = Callable[[Sets, int, Sequence[Item]], Mapping[Any, set[Item]]]
"""What stays of people's sets, by the sets, k, and all items in the order in which rows first show them."""


@dataclass(frozen=True)
class Passed:
    """A row that z let pass."""

    time: int
    row: int
    person: Any
    labels: tuple[str | None, ...]


@dataclass
class NaiveCombining(NaiveZ):
    """z-anonymity whose rows wait for the end of their epoch; `reduce` says what stays of people's sets."""

    rotation: int = 1
    k: int = 2
    reduce: Reduce = lambda sets, k, seen: {person: set() for person in sets}
    waiting: list[Passed] = field(default_factory=list)
    decided_until: int | None = None

    @property
    def waits(self) -> int:
        return len(self.held) + len(self.waiting)

    def _forget(self) -> list[Verdict]:
        refused = [Verdict(one.row, "dead", "ahead") for one in self.waiting]
        self.waiting, self.decided_until = [], None
        return refused + super()._forget()

    def flush(self) -> list[Verdict]:
        verdicts = super().flush()
        while self.waiting:
            verdicts += self._end_first()
        return verdicts

    def _decide_until(self, limit: int) -> list[Verdict]:
        ready = sorted((one for one in self.held if one[0] <= limit), key=lambda one: one[:2])
        self.held = [one for one in self.held if one[0] > limit]
        verdicts = []
        for time, row, record in ready:
            verdicts += self._end_until(time)
            verdict = self._decide(time, row, record)
            if verdict.verdict == "suppressed":
                verdicts.append(verdict)
            elif self.decided_until is not None and time < self.decided_until:
                verdicts.append(Verdict(row, "suppressed"))
            else:
                self.waiting.append(Passed(time, row, record["person"], verdict.labels))
        return verdicts + self._end_until(limit)

    def _end_until(self, limit: int) -> list[Verdict]:
        verdicts = []
        while self.waiting and (self.waiting[0].time // self.rotation + 1) * self.rotation <= limit:
            verdicts += self._end_first()
        return verdicts

    def _end_first(self) -> list[Verdict]:
        epoch = self.waiting[0].time // self.rotation
        rows = [one for one in self.waiting if one.time // self.rotation == epoch]
        self.waiting = self.waiting[len(rows) :]
        self.decided_until = (epoch + 1) * self.rotation
        sets: Sets = {}
        for one in rows:
            sets.setdefault(one.person, Counter()).update(items_of(one.labels))
        seen = list(dict.fromkeys(item for one in rows for item in items_of(one.labels)))
        stays = self.reduce(sets, self.k, seen)
        return [self._end(one, stays[one.person]) for one in rows]

    def _end(self, one: Passed, stays: set[Item]) -> Verdict:
        labels = tuple(
            label if (number, label) in stays else None  # type: ignore[comparison-overlap]
            for number, label in enumerate(one.labels)
        )
        if self.keeps_blank or any(label is not None for label in labels):
            return Verdict(one.row, "released", None, labels)
        return Verdict(one.row, "suppressed")


def items_of(labels: tuple[str | None, ...]) -> list[Item]:
    return [(number, label) for number, label in enumerate(labels) if label is not None]


def as_entries(sets: Sequence[Mapping[int, int]]) -> tuple[Any, Any, Any]:
    """(person, item, weight) of sets whose items are numbers, as three arrays."""
    found = [(person, item, given[item]) for person, given in enumerate(sets) for item in sorted(given)]
    return tuple(np.array(column, np.int64) for column in zip(*found, strict=True)) if found else _NOTHING


_NOTHING = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))


def reducing_with(shared_by: Callable[..., Any]) -> Reduce:
    """A function on arrays as one on dicts: people and items are numbered as they first come, column by column."""

    def reduce(sets: Sets, k: int, seen: Sequence[Item]) -> Mapping[Any, set[Item]]:
        seen = sorted(seen, key=lambda item: item[0])
        numbers = {item: number for number, item in enumerate(seen)}
        people = list(sets)
        owners, items, weights = as_entries(
            [{numbers[item]: count for item, count in sets[person].items()} for person in people]
        )
        stays: dict[Any, set[Item]] = {person: set() for person in people}
        for owner, item, is_kept in zip(owners, items, shared_by(k, owners, items, weights), strict=True):
            if is_kept:
                stays[people[owner]].add(seen[item])
        return stays

    return reduce


def least_loss(sets: Sequence[Mapping[int, int]], k: int) -> int:
    """The least weight that must go, over all ways to put people into groups or to leave them out."""
    whole = [sum(given.values()) for given in sets]
    costs = {1 << person: whole[person] for person in range(len(sets))}
    for group in range(1, 1 << len(sets)):
        members = [person for person in range(len(sets)) if group >> person & 1]
        if k <= len(members) < 2 * k:
            shared = set.intersection(*(set(sets[person]) for person in members))
            costs[group] = sum(whole[person] - sum(sets[person][item] for item in shared) for person in members)
    best = [0] * (1 << len(sets))
    for people in range(1, 1 << len(sets)):
        first = people & -people
        best[people] = min(
            costs[group] + best[people ^ group] for group in costs if group & first and group & people == group
        )
    return best[-1]


def grown(sets: Sequence[Mapping[int, int]], ends: Sequence[int], k: int) -> list[list[int]]:
    """Groups that grow one at a time, always by the first person with whom they show most."""
    free, groups = set(range(len(sets))), []
    for first in range(len(sets)):
        if first not in free:
            continue
        members = [first]
        while len(members) < k:
            others = [other for other in range(first + 1, ends[first]) if other in free and other not in members]
            worth = {other: shown_by([sets[one] for one in (*members, other)]) for other in others}
            best = max(worth, key=lambda other: (worth[other], -other), default=None)
            if best is None or not worth[best]:
                break
            members.append(best)
        if len(members) == k:
            groups.append(sorted(members))
            free -= set(members)
    return groups


def shown_by(sets: Sequence[Mapping[int, int]]) -> int:
    """The weight that people show who show only what all of them have."""
    return sum(given[item] for item in set.intersection(*map(set, sets)) for given in sets)


def cut_by_trying(sets: Sequence[Mapping[int, int]], buckets: Sequence[int], k: int) -> int:
    """The least that cutting a row of people into neighbours loses."""
    if not sets:
        return 0
    best = sum(sets[0].values()) + cut_by_trying(sets[1:], buckets[1:], k)
    for length in range(k, len(sets) + 1):
        if len(set(buckets[:length])) > 1:
            break
        shared = set.intersection(*map(set, sets[:length]))
        lost = sum(weight for given in sets[:length] for item, weight in given.items() if item not in shared)
        best = min(best, lost + cut_by_trying(sets[length:], buckets[length:], k))
    return best
