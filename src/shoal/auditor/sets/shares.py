"""The share of sets of a size that fewer than k records contain: counted, or estimated from a sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.sets.counting import Tally, chance_per_person, distinct, is_countable, marked_subsets, tally
from shoal.auditor.sets.records import Sets
from shoal.auditor.sets.sampling import Supports, draw_by_person, draw_itemsets, interval

_AT_ONCE = 1_000_000


class CountedSets:
    """Records with their counted sets, each size counted once."""

    def __init__(self, sets: Sets) -> None:
        self.sets = sets
        self._tallies: dict[int, Tally] = {}
        self._countable: dict[int, bool] = {}

    def is_countable(self, size: int) -> bool:
        """Return whether all sets of a size can be counted."""
        if size not in self._countable:
            self._countable[size] = is_countable(self.sets, size)
        return self._countable[size]

    def tally(self, size: int) -> Tally:
        """Count all sets of a size."""
        if size not in self._tallies:
            self._tallies[size] = tally(self.sets, size)
        return self._tallies[size]

    @cached_property
    def supports(self) -> Supports:
        """Counts the records that contain single sets."""
        return Supports(self.sets)


@dataclass(frozen=True, slots=True)
class Share:
    """A share with its bounds; counted shares are exact."""

    value: float
    low: float
    high: float

    def written(self) -> float | dict[str, float]:
        """Return values for the report."""
        if self.low == self.high:
            return self.value
        return {"share": self.value, "low": self.low, "high": self.high}


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements of the sets of one size."""

    is_counted: bool
    looked_at: int
    """Different sets when counted, draws when sampled."""
    below: int
    """How many of those fewer than k records contain."""
    smallest: int
    unique: Share
    shares: dict[str, Share]
    """By adversary: the share of sets below k."""
    rows: Bools | None
    """Which records contain a set below k; None if not known."""

    def to_dict(self) -> dict[str, Any]:
        """Return values for the report."""
        return {
            "how": "counted" if self.is_counted else "sampled",
            "sets": self.looked_at,
            "below k": self.below,
            "smallest support": self.smallest,
            "unique": self.unique.written(),
            **{f"below k by {adversary}": share.written() for adversary, share in self.shares.items()},
        }


def measure_own(book: CountedSets, size: int, k: int, rng: np.random.Generator) -> Measured | None:
    """Count the sets of a size in the records that contain them; None if no record is that large."""
    if book.is_countable(size):
        found = book.tally(size)
        return _counted(book.sets, found, found.supports, k)
    return _sampled(book, None, size, k, rng)


def measure_images(
    truth: CountedSets, label_of: Ints, release: CountedSets, size: int, k: int, rng: np.random.Generator
) -> Measured | None:
    """Measure sets of original items: how many released records contain their labels?"""
    if truth.is_countable(size) and all(release.is_countable(fewer) for fewer in range(1, size + 1)):
        found = truth.tally(size)
        return _counted(truth.sets, found, image_supports(found, label_of, release.tally), k)
    return _sampled(truth, lambda rows: release.supports.of_rows(label_of[rows]), size, k, rng)


def image_supports(found: Tally, label_of: Ints, released: Callable[[int], Tally]) -> Ints:
    """Return how many released records contain the labels of each set of items."""
    supports = np.empty(len(found.codes), np.int64)
    for start in range(0, len(supports), _AT_ONCE):
        part = supports[start : start + _AT_ONCE]
        for rows, labels in distinct(label_of[found.decoded(start, start + _AT_ONCE)]):
            part[rows] = released(labels.shape[1]).of(labels)
    return supports


def _counted(sets: Sets, found: Tally, supports: Ints, k: int) -> Measured | None:
    if not len(supports):
        return None
    hits = marked_subsets(sets, found.size, found.codes[supports < k])
    return from_counts(supports, k, chance_per_person(sets, found.size, hits) or 0.0, hits > 0)


def from_counts(supports: Ints, k: int, by_person: float, rows: Bools | None) -> Measured:
    """Measure sets that were all counted; ``by_person`` is the share below k of the subsets of a person."""
    below = supports < k
    return Measured(
        is_counted=True,
        looked_at=len(supports),
        below=int(below.sum()),
        smallest=int(supports.min()),
        unique=_exact(float((supports == 1).mean())),
        shares={"itemset": _exact(float(below.mean())), "person": _exact(by_person)},
        rows=rows,
    )


def _sampled(
    source: CountedSets, image_supports: Callable[[Ints], Ints] | None, size: int, k: int, rng: np.random.Generator
) -> Measured | None:
    """Sample sets; without ``image_supports`` a set is its own image."""
    drawn = draw_itemsets(source.sets, source.supports, size, rng)
    persons = draw_by_person(source.sets, size, rng)
    if drawn is None or persons is None:
        return None
    supports_of = image_supports or source.supports.of_rows
    alike = supports_of(drawn.rows[drawn.accepted]) if image_supports else drawn.supports[drawn.accepted]
    of_persons = supports_of(persons)
    return Measured(
        is_counted=False,
        looked_at=len(alike) + len(of_persons),
        below=int((alike < k).sum() + (of_persons < k).sum()),
        smallest=int(min(alike.min(initial=len(source.sets)), of_persons.min())),
        unique=_estimated(alike == 1),
        shares={"itemset": _estimated(alike < k), "person": _estimated(of_persons < k)},
        rows=None,
    )


def _exact(share: float) -> Share:
    return Share(share, share, share)


def _estimated(hits: Bools) -> Share:
    return Share(float(hits.mean()) if len(hits) else 0.0, *interval(int(hits.sum()), len(hits)))
