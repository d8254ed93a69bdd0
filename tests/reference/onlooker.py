"""Everything an onlooker of a generalized release can conclude: all small worlds, and what each of them publishes.

A world is a sequence of exposures: who, and which value. Time stands still, so that nothing leaves the window. The
onlooker knows the hierarchy, z and the rule, and sees the rows as they are published: a pseudonym and a label each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.reference.residual import Exposure, counted, level_of

Paths = Mapping[str, tuple[str, ...]]
Release = tuple[tuple[int, str], ...]

FLAT = {value: (value, "*") for value in "abc"}
MIXED = {"a": ("a", "m", "*"), "b": ("b", "m", "*"), "c": ("c", "*")}
CHAIN = {"a": ("a", "m", "*"), "m": ("m", "*"), "c": ("c", "*")}
HIERARCHIES: dict[str, Paths] = {"flat": FLAT, "mixed": MIXED, "chain": CHAIN}


@dataclass(frozen=True)
class Row:
    """The last row published in a world: all exposures so far, those that count for its label, what was published."""

    exposures: tuple[Exposure, ...]
    behind: tuple[Exposure, ...]
    release: Release

    @property
    def newest(self) -> Exposure:
        return self.exposures[-1]

    def others_at(self, value: str) -> int:
        """How many other people have shown a value."""
        return len({one.person for one in self.exposures if one.path[0] == value} - {self.newest.person})


def published(paths: Paths, *, z: int, strict: bool, most: int) -> Iterator[Row]:
    """The last row of every world of up to `most` exposures that ends with a published one.

    People are numbered as they appear: worlds that differ only in who is who are one.
    """
    open_worlds: list[tuple[tuple[Exposure, ...], Release]] = [((), ())]
    for _ in range(most):
        longer = []
        for exposures, release in open_worlds:
            people = len({one.person for one in exposures})
            for person in range(people + 1):
                for path in paths.values():
                    newest = Exposure(0, person, path, None)
                    level = level_of(exposures, newest, z=z, strict=strict)
                    if level < 0:
                        longer.append(((*exposures, newest), release))
                        continue
                    newest = Exposure(0, person, path, path[level])
                    world = (*exposures, newest)
                    # what counts is asked as when the row was decided
                    asked = (*exposures, Exposure(0, person, path, None))
                    seen = (*release, (person, path[level]))
                    longer.append((world, seen))
                    yield Row(world, tuple(counted(asked, path[level], z=z, strict=strict)), _pseudonyms(seen))
        open_worlds = longer


def _pseudonyms(seen: Release) -> Release:
    names: dict[int, int] = {}
    return tuple((names.setdefault(person, len(names)), label) for person, label in seen)


@dataclass(frozen=True)
class Conclusion:
    """A row whose label is above its value, and the values of those behind it that the onlooker can exclude."""

    row: Row
    excluded: frozenset[str]


def conclusions(paths: Paths, *, z: int, strict: bool, most: int) -> list[Conclusion]:
    """What the onlooker concludes of the rows of worlds of up to `most - 1` exposures, if up to `most` are possible."""
    possible: dict[Release, set[str]] = defaultdict(set)
    rows = []
    for row in published(paths, z=z, strict=strict, most=most):
        possible[row.release].add(row.newest.path[0])
        if len(row.exposures) < most and row.newest.label != row.newest.path[0]:
            rows.append(row)
    return [Conclusion(row, frozenset({one.path[0] for one in row.behind} - possible[row.release])) for row in rows]
