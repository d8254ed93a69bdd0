"""Generalizing by the residual rules, straight from their definitions: every count looks at all of the past."""

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


def counted(recent: Sequence[Exposure], node: Hashable, *, z: int, strict: bool) -> list[Exposure]:
    """The exposures of a window that count for a label."""
    below = [one for one in recent if one.counts_for(node)]
    if not strict:
        return below
    return [one for one in below if not any(_passes(recent, step, z) for step in one.path[: one.path.index(node)])]


def _passes(recent: Sequence[Exposure], node: Hashable, z: int) -> bool:
    return len({one.person for one in counted(recent, node, z=z, strict=True)}) >= z


def level_of(recent: Sequence[Exposure], newest: Exposure, *, z: int, strict: bool) -> int:
    """The level at which the newest exposure is released; -1 where not even the root passes."""
    now = [*recent, newest]
    crowds = (len({one.person for one in counted(now, node, z=z, strict=strict)}) for node in newest.path)
    return next((level for level, crowd in enumerate(crowds) if crowd >= z), -1)


def residual(events: Sequence[tuple[int, Hashable, Path]], *, z: int, window: int, strict: bool) -> list[int]:
    """The level each event is released at, 0 the value itself; -1 where not even the root passes."""
    past: list[Exposure] = []
    levels = []
    for time, person, path in events:
        recent = [one for one in past if one.time >= time - window]
        level = level_of(recent, Exposure(time, person, path, None), z=z, strict=strict)
        past.append(Exposure(time, person, path, path[level] if level >= 0 else None))
        levels.append(level)
    return levels
