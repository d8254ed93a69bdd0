"""What a target lets through in one epoch, decided value by value with sets in the plain sense."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import groupby

from tests.reference.algorithm1 import Event


class ShownSets:
    """The sets of all people with a published row."""

    def __init__(self, k: int, p: float) -> None:
        self.k, self.p = k, p
        self.of: dict[object, frozenset[object]] = {}

    @property
    def alone(self) -> int:
        """People whose set fewer than k people share."""
        return sum(people for people in Counter(self.of.values()).values() if people < self.k)

    def admits(self, person: object, value: object, *, size: int, z: int, left: float) -> bool:
        """Whether a value may be shown of a person; `left` is the part of a window that is left of the epoch."""
        before = self.of.get(person, frozenset())
        if size < z or value in before:
            return size >= z
        alike = sum(one == before | {value} for one in self.of.values())
        after = ShownSets(self.k, self.p)
        after.of = {**self.of, person: before | {value}}
        if after.alone <= self.alone:
            return True
        weight = 2 if self.k > 2 and alike == 0 else 1
        if len(after.of) - weight * after.alone >= self.p * len(after.of):
            return True
        missing = self.k - 1 - alike
        return not before and (alike > 0 or size >= 1.5 * z) and size * min(left, 1) >= 12 * missing

    def show(self, person: object, value: object) -> None:
        """Show one more value of a person."""
        self.of[person] = self.of.get(person, frozenset()) | {value}


def crowd_sizes(events: Sequence[Event], window: int) -> list[int]:
    """How many people showed the value of each event within the window up to it."""
    earlier: dict[object, list[tuple[int, object]]] = defaultdict(list)
    sizes = []
    for time, user, value in events:
        earlier[value].append((time, user))
        sizes.append(len({who for at, who in earlier[value] if at >= time - window}))
    return sizes


def followed(
    events: Sequence[Event], z_of: dict[int, int], *, k: int, p: float, window: int, rotation: int
) -> tuple[dict[int, bool], dict[int, ShownSets]]:
    """Which rows of the epochs that have a z are published, and what is shown at the end of each epoch."""
    released, shown = {}, {}
    numbered = zip(range(len(events)), events, crowd_sizes(events, window), strict=True)
    for epoch, rows in groupby(numbered, key=lambda one: one[1][0] // rotation):
        if epoch not in z_of:
            continue
        sets = shown[epoch] = ShownSets(k, p)
        for row, (time, user, value), size in rows:
            left = ((epoch + 1) * rotation - time) / window
            released[row] = sets.admits(user, value, size=size, z=z_of[epoch], left=left)
            if released[row]:
                sets.show(user, value)
    return released, shown
