"""How many records share each set of m labels: counted, or estimated from a sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Final

import numpy as np

from shoal.auditor.checks import Answer, Found, all_found, look
from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.relation import Relation
from shoal.auditor.sets.counting import Tally, by_length, chance_per_person, is_countable, marked_subsets, tally
from shoal.auditor.sets.promise import SetPromise
from shoal.auditor.sets.records import Records, Sets, sets_check
from shoal.auditor.sets.sampling import Supports, draw_by_person, draw_itemsets, interval, seeded_generator

_AT_ONCE: Final = 1_000_000
_ROUNDING: Final = 1e-12
_AGAIN: Final = "Do not publish this release; run the method again, and report how it was made."


# ---- what is promised


@sets_check(
    "below-k", "A set of at most m labels is in fewer than k released records.", by="record",
    advice=f"Whoever knows these labels of a person finds that person among fewer than k records. {_AGAIN}",
)  # fmt: skip
def below_k(rows: Relation, size: int, promise: SetPromise) -> Answer:
    """Mark rows with a set below k: it is the image of some itemset, and with sigma 1 each needs k records."""
    sentence = f"Sets of {size} labels are in fewer than k = {promise.k[size - 1]} released records."
    return Answer(rows["rare_sets"] > 0, sentence=sentence)


@sets_check(
    "itemset-below-k", "A set of original items shares its image with fewer than k released records.", by="none",
    needs=("truth",),
    advice=f"Whoever knows these items of a person finds that person among fewer than k records. {_AGAIN}",
)  # fmt: skip
def itemset_below_k(size: int, below: int, promise: SetPromise) -> Answer:
    """Count the itemsets below k, if every itemset was promised k records."""
    sentence = f"Itemsets of size {size} share their image with fewer than k = {promise.k[size - 1]} records."
    return Answer(count=below if promise.sigma[size - 1] == 1 else 0, sentence=sentence)


@sets_check(
    "sigma-broken", "More itemsets than 1 - sigma share their image with fewer than k released records.", by="none",
    needs=("truth",),
    advice=f"More people than promised can be found by a few known items. {_AGAIN}",
)  # fmt: skip
def sigma_broken(size: int, found: Measured, adversary: str, promise: SetPromise) -> Answer:
    """Compare a lower bound of the share below k with what sigma allows; count the sets below k."""
    low, allowed = found.shares[adversary].low, 1 - promise.sigma[size - 1]
    how = "" if found.is_counted else " (lower bound, 99.9% sure)"
    sentence = (
        f"Size {size}, adversary {adversary}: {low:.4%}{how} of the itemsets share their image with "
        f"fewer than k = {promise.k[size - 1]} records; at most {allowed:.4%} may."
    )
    return Answer(count=found.below if low > allowed + _ROUNDING else 0, sentence=sentence)


# ---- what is measured


@dataclass(frozen=True, slots=True)
class Share:
    """A share with its bounds; counted shares are exact."""

    value: float
    low: float
    high: float

    @classmethod
    def estimated(cls, hits: Bools) -> Share:
        """The share of hits in a sample."""
        return cls(float(hits.mean()) if len(hits) else 0.0, *interval(int(hits.sum()), len(hits)))

    def written(self) -> float | dict[str, float]:
        """Return values for the report."""
        return self.value if self.low == self.high else {"share": self.value, "low": self.low, "high": self.high}


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


class CountedSets:
    """Records with their counted sets, each size counted once."""

    def __init__(self, records: Records) -> None:
        self.records = records
        self._tallies: dict[int, Tally] = {}

    def is_countable(self, size: int) -> bool:
        """Return whether all sets of a size can be counted."""
        return is_countable(self.records, size)

    def tally(self, size: int) -> Tally:
        """Count all sets of a size."""
        if size not in self._tallies:
            self._tallies[size] = tally(self.records, size)
        return self._tallies[size]

    @cached_property
    def supports(self) -> Supports | None:
        """Counts the records that contain single sets; None if the records are too many for one machine."""
        return None if self.records.gathered is None else Supports(self.records.gathered)

    @cached_property
    def generator(self) -> np.random.Generator | None:
        """Draws samples, seeded by the records: the same inputs give the same audit."""
        sets = self.records.gathered
        return None if sets is None else seeded_generator(sets.offsets, sets.items)


@dataclass(slots=True)
class RareSets:
    """Sets below k in records: for each size how many sets the records of each length have; in how many records."""

    hits: dict[int, Ints] = field(default_factory=dict)
    records: int = 0
    found: Found = field(default_factory=Found)


def _rare_sets(below: Mapping[int, Ints], promise: SetPromise, heads: Relation, sets: Sets) -> RareSets:
    """Find the sets below k in the records of a part; report released rows."""
    parts, found = RareSets(), []
    has_any = np.zeros(len(sets), np.bool_)
    for size, codes in below.items():
        rare = marked_subsets(sets, size, codes)
        parts.hits[size] = np.bincount(sets.sizes, weights=rare).astype(np.int64)
        has_any |= rare > 0
        if "record" not in heads and promise.sigma[size - 1] == 1:
            found += look(Relation({"row": heads["row"], "rare_sets": rare}), (below_k,), size, promise)
    parts.records, parts.found = int(has_any.sum()), Found(found)
    return parts


def find_rare_sets(records: Records, below: Mapping[int, Ints], promise: SetPromise) -> RareSets:
    """Find the records that contain sets below k, given as codes by size."""
    lengths = len(records.counts.of_size)
    whole = RareSets({size: np.zeros(lengths, np.int64) for size in below})
    rare = {size: codes for size, codes in below.items() if len(codes)}
    parts = records.divide(partial(_rare_sets, rare, promise)) if rare else []
    for part in parts:
        for size, hits in part.hits.items():
            whole.hits[size][: len(hits)] += hits
        whole.records += part.records
    whole.found = all_found(part.found for part in parts)
    return whole


ImageSupports = Callable[[Ints], Ints]


def measure(
    counted: CountedSets, supports: Mapping[int, Ints], promise: SetPromise, released: CountedSets,
    images: ImageSupports | None = None,
) -> tuple[dict[int, Measured | None], RareSets]:  # fmt: skip
    """Measure the sets of every size in records; `supports` are the counted ones of each size.

    The sets of other sizes are sampled; without ``images`` a set is its own image. None: there are no such sets, or
    they are too many for a sample in one place.
    """
    below = {size: counted.tally(size).codes[counts < promise.k[size - 1]] for size, counts in supports.items()}
    rare = find_rare_sets(counted.records, below, promise)
    found: dict[int, Measured | None] = {}
    for size, k in enumerate(promise.k, 1):
        if size not in supports:
            found[size] = _sampled(counted, images, size, k, released)
        elif len(supports[size]):
            chance = chance_per_person(counted.records.counts.of_size, size, rare.hits[size])
            found[size] = _counted(supports[size], k, chance)
        else:
            found[size] = None
    return found, rare


def measure_own(
    counted: CountedSets, promise: SetPromise, released: CountedSets
) -> tuple[dict[int, Measured | None], RareSets]:
    """Measure the sets of every size by the records that contain them."""
    sizes = (size for size in range(1, promise.m + 1) if counted.is_countable(size))
    return measure(counted, {size: counted.tally(size).supports for size in sizes}, promise, released)


def image_supports(found: Tally, label_of: Ints, released: Callable[[int], Tally]) -> Ints:
    """Return how many released records contain the labels of each set of items."""
    supports = np.empty(len(found.codes), np.int64)
    for start in range(0, len(supports), _AT_ONCE):
        part = supports[start : start + _AT_ONCE]
        for rows, labels in by_length(label_of[found.decoded(start, start + _AT_ONCE)]):
            part[rows] = released(labels.shape[1]).of(labels)
    return supports


def _counted(supports: Ints, k: int, by_person: float) -> Measured:
    """Measure sets that were all counted; ``by_person`` is the share below k of the subsets of a person."""
    below = supports < k
    by_itemset, unique = float(below.mean()), float((supports == 1).mean())
    return Measured(
        is_counted=True,
        looked_at=len(supports),
        below=int(below.sum()),
        smallest=int(supports.min()),
        unique=Share(unique, unique, unique),
        shares={"itemset": Share(*[by_itemset] * 3), "person": Share(*[by_person] * 3)},
    )


def _sampled(
    source: CountedSets, images: ImageSupports | None, size: int, k: int, released: CountedSets
) -> Measured | None:
    sets, supports, rng = source.records.gathered, source.supports, released.generator
    if sets is None or supports is None or rng is None:
        return None
    drawn = draw_itemsets(sets, supports, size, rng)
    persons = draw_by_person(sets, size, rng)
    if drawn is None or persons is None:
        return None
    supports_of = images or supports.of_rows
    alike = supports_of(drawn.rows[drawn.accepted]) if images else drawn.supports[drawn.accepted]
    of_persons = supports_of(persons)
    return Measured(
        is_counted=False,
        looked_at=len(alike) + len(of_persons),
        below=int((alike < k).sum() + (of_persons < k).sum()),
        smallest=int(min(alike.min(initial=len(sets)), of_persons.min())),
        unique=Share.estimated(alike == 1),
        shares={"itemset": Share.estimated(alike < k), "person": Share.estimated(of_persons < k)},
    )


def write_measured(side: str, counted: CountedSets, found: Mapping[int, Measured | None], notes: Notes) -> None:
    """Write the measurements of every size; say which sizes were neither counted nor sampled."""
    for size, one in found.items():
        notes.metrics[f"{side}_sets_of_{size}"] = None if one is None else one.to_dict()
        if one is None and not counted.is_countable(size) and counted.records.gathered is None:
            what = "labels" if side == "released" else "items"
            notes.skip(f"Sets of {size} {what} were not counted: too many, also for a sample on one machine.")


def note_sampled(size: int, notes: Notes) -> None:
    """Say that not every set was counted."""
    notes.skip(f"Not all sets of size {size} were checked: too many, a sample was drawn.")
