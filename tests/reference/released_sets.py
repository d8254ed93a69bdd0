"""What is released of people in each epoch at one z, counted the long way."""

from __future__ import annotations

from collections import Counter

from tests.reference.algorithm1 import Event, algorithm1


def released_sets(events: list[Event], *, z: int, window: int, rotation: int) -> dict[int, dict[object, set[object]]]:
    """By epoch and person, the attributes released of them."""
    found: dict[int, dict[object, set[object]]] = {}
    for (time, user, attribute), leaves in zip(events, algorithm1(events, z=z, window=window), strict=True):
        people = found.setdefault(time // rotation, {})
        if leaves:
            people.setdefault(user, set()).add(attribute)
    return found


def shown_and_anonymous(sets: dict[object, set[object]], k: int) -> tuple[int, int]:
    """How many people something is released of, and how many of them share all of it with k - 1 others."""
    alike = Counter(frozenset(items) for items in sets.values())
    return len(sets), sum(people for people in alike.values() if people >= k)
