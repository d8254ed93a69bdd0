"""Generalizing by the residual rule, straight from its definition: every count looks at all of the past."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

Path = tuple[Hashable, ...]


@dataclass(frozen=True)
class Exposure:
    """What someone exposed, and the label it was released under, if it was."""

    time: int
    person: Hashable
    path: Path
    label: Hashable | None

    def counts_for(self, node: Hashable) -> bool:
        """Whether it lies under the node and was not released strictly below it."""
        if node not in self.path:
            return False
        return self.label is None or self.path.index(self.label) >= self.path.index(node)


def residual(events: Sequence[tuple[int, Hashable, Path]], *, z: int, window: int) -> list[int]:
    """The level each event leaves at, 0 the value itself; -1 where not even the root passes."""
    past: list[Exposure] = []
    levels = []
    for time, person, path in events:
        recent = [one for one in past if one.time >= time - window]
        level = next((at for at, node in enumerate(path) if _crowd(recent, node, person) >= z), -1)
        past.append(Exposure(time, person, path, path[level] if level >= 0 else None))
        levels.append(level)
    return levels


def _crowd(recent: list[Exposure], node: Hashable, person: Hashable) -> int:
    return len({person} | {one.person for one in recent if one.counts_for(node)})
