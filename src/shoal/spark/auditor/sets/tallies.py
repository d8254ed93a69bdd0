"""Supports of all sets of a size: counted over parts of the records, and added up in bins of sets."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from shoal.auditor.reading.columns import Ints
from shoal.auditor.sets.counting import SORTED_BUDGET, Tally, chances, marked_subsets, tally
from shoal.auditor.sets.records import Sets
from shoal.auditor.sets.shares import Measured, from_counts
from shoal.spark.auditor.engine import Message, result
from shoal.spark.auditor.sets.reading import Plan
from shoal.spark.auditor.shares import Share

_CELLS: Final = 16_000_000
"""With at most this many possible sets, any number of records is counted; else SORTED_BUDGET subsets are."""
Sums = Mapping[tuple[str, int], Tally]
"""All sets of a side and size, with their supports."""


def is_countable(labels: int, size: int, sizes: Counter[int]) -> bool:
    """Return whether the driver can hold the supports of all sets of a size."""
    cells = max(labels, 1) ** size
    subsets = sum(count * math.comb(length, size) for length, count in sizes.items())
    return cells <= _CELLS or (cells < 2**63 and subsets <= SORTED_BUDGET)


@dataclass(frozen=True, slots=True)
class TallyPart:
    """Supports of the sets of a bin."""

    side: str
    size: int
    codes: Ints
    supports: Ints


def send_tallies(sets: Sets, side: str, sizes: Iterable[int], bins: range) -> Iterator[Message]:
    """Count the sets of a part; send their supports to the bins of the sets."""
    for size in sizes:
        found = tally(sets, size)
        width = -(-(found.base**size) // len(bins))
        of = found.codes // width
        for number in np.unique(of).tolist():
            own = of == number
            part = TallyPart(side, size, found.codes[own], found.supports[own])
            yield Message(bins[number], "tally", pickle.dumps(part))


def sum_tallies(kinds: dict[str, list[bytes]]) -> Iterator[Message]:
    """Add up the supports of the sets of a bin."""
    parts: dict[tuple[str, int], list[TallyPart]] = {}
    for data in kinds.get("tally", ()):
        part = pickle.loads(data)
        parts.setdefault((part.side, part.size), []).append(part)
    for (side, size), own in parts.items():
        codes, place = np.unique(np.concatenate([part.codes for part in own]), return_inverse=True)
        supports = np.zeros(len(codes), np.int64)
        np.add.at(supports, place, np.concatenate([part.supports for part in own]))
        yield result(TallyPart(side, size, codes, supports))


def joined_tallies(parts: Sequence[TallyPart], bases: Mapping[str, int], sizes: Iterable[int]) -> dict[
    tuple[str, int], Tally
]:  # fmt: skip
    """The supports of all sets, of each side and size."""
    found, nothing = {}, np.zeros(0, np.int64)
    for side, base in bases.items():
        for size in sizes:
            own = [part for part in parts if part.side == side and part.size == size]
            own.sort(key=lambda part: int(part.codes[0]))
            codes = np.concatenate([nothing, *(part.codes for part in own)])
            supports = np.concatenate([nothing, *(part.supports for part in own)])
            found[side, size] = Tally(size, base, codes, supports)
    return found


@dataclass(frozen=True, slots=True)
class TallyReleased:
    """Counts the sets of labels of a file of the release."""

    plan: Plan
    sizes: tuple[int, ...]

    def __call__(self, share: Share) -> Iterator[Message]:
        _, sets = self.plan.released_sets(share)
        yield from send_tallies(sets, "released", self.sizes, range(self.plan.bins))


def sum_bin(_number: int, kinds: dict[str, list[bytes]]) -> Iterator[Message]:
    """Add up the supports of a bin."""
    yield from sum_tallies(kinds)


@dataclass(frozen=True, slots=True)
class Chances:
    """How likely a subset of a person is below k: the sum over some people, and how many these are."""

    side: str
    size: int
    total: float
    people: int


def chances_of(sets: Sets, side: str, size: int, below: Ints) -> tuple[Chances, Ints]:
    """The chances of the records of a part, and how many sets below k each record has."""
    hits = marked_subsets(sets, size, below)
    return Chances(side, size, *chances(sets, size, hits)), hits


def measured(supports: Ints, k: int, found: Sequence[Chances]) -> Measured | None:
    """What is known of the sets of a size, from the parts."""
    if not len(supports):
        return None
    people = sum(part.people for part in found)
    return from_counts(supports, k, math.fsum(part.total for part in found) / people if people else 0.0, None)
