"""Algorithm 1 of the z-anonymity paper: for each attribute a list of users, least recently seen first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable

Event = tuple[int, Hashable, Hashable]


def algorithm1(events: Iterable[Event], *, z: int, window: int) -> list[bool]:
    """Whether each (time, user, attribute) is released; events are in the order of their times."""
    last_seen: dict[Hashable, OrderedDict[Hashable, int]] = {}
    released = []
    for time, user, attribute in events:
        users = last_seen.setdefault(attribute, OrderedDict())
        users[user] = time
        users.move_to_end(user)
        while next(iter(users.values())) < time - window:
            users.popitem(last=False)
        released.append(len(users) >= z)
    return released
