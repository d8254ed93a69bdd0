"""Sample sets if there are too many to count, and count the records that contain each sampled one."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shoal.auditor.reading.columns import Ints
from shoal.auditor.sets.counting import by_length
from shoal.auditor.sets.records import Sets

SAMPLES = 4_000
"""Sets sampled for every size and adversary."""
_BATCHES = 5
"""Proposals come in batches of SAMPLES; the number of batches is limited, or small sizes would never end."""
_FREQUENT = 128
"""A label that at least one record in 128 has is kept as a bitmap, which intersects fast; a rarer one as a list."""


class Supports:
    """Counts the records that contain all labels of a set."""

    def __init__(self, sets: Sets) -> None:
        self._records_in_all = len(sets)
        self._records = sets.owners[np.argsort(sets.items, kind="stable")]
        self.single = np.bincount(sets.items, minlength=len(sets.labels))
        """The number of records with each label."""
        self._starts = np.concatenate([[0], np.cumsum(self.single)])
        self._bits: dict[int, npt.NDArray[np.uint8]] = {}
        self._scratch = np.zeros(len(sets), np.bool_)

    def of_rows(self, rows: Ints) -> Ints:
        """Return how many records contain all labels of each row; 0 if a label is unknown."""
        supports = np.zeros(len(rows), np.int64)
        there = np.flatnonzero(((rows >= 0) & (rows < len(self.single))).all(axis=1))
        for which, labels in by_length(rows[there]):
            rarest_first = np.take_along_axis(labels, np.argsort(self.single[labels], axis=1), axis=1)
            supports[there[which]] = [self._of(row) for row in rarest_first.tolist()]
        return supports

    def _of(self, labels: list[int]) -> int:
        if self._is_frequent(labels[0]):
            return self._in_common(labels)
        found = self._holders(labels[0])
        for label in labels[1:]:
            found = found[self._has(found, label)]
        return len(found)

    def _holders(self, label: int) -> Ints:
        return self._records[self._starts[label] : self._starts[label + 1]]

    def _is_frequent(self, label: int) -> bool:
        return int(self.single[label]) * _FREQUENT > self._records_in_all

    def _bits_of(self, label: int) -> npt.NDArray[np.uint8]:
        if label not in self._bits:
            # Whole words of 64 records, so that bitmaps are intersected and counted word by word.
            marks = np.zeros(-(-self._records_in_all // 64) * 64, np.bool_)
            marks[self._holders(label)] = True
            self._bits[label] = np.packbits(marks, bitorder="little")
        return self._bits[label]

    def _in_common(self, labels: list[int]) -> int:
        common = self._bits_of(labels[0]).view(np.uint64)
        for label in labels[1:]:
            common = common & self._bits_of(label).view(np.uint64)
        return int(np.bitwise_count(common).sum(dtype=np.int64))

    def _has(self, records: Ints, label: int) -> npt.NDArray[np.bool_]:
        if self._is_frequent(label):
            bits = self._bits_of(label)[records >> 3] >> (records & 7).astype(np.uint8)
            return np.asarray(bits & 1, np.bool_)
        holders = self._holders(label)
        if len(records) * 8 > len(holders):  # marking all holders is cheaper than looking up each record
            self._scratch[holders] = True
            found = self._scratch[records]
            self._scratch[holders] = False
            return found
        place = np.minimum(np.searchsorted(holders, records), len(holders) - 1)
        return np.equal(holders[place], records)


def seeded_generator(*parts: Ints) -> np.random.Generator:
    """Return a random generator seeded by the data: the same inputs give the same audit."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(np.ascontiguousarray(part).tobytes())
    return np.random.default_rng(int.from_bytes(digest.digest()[:16], "little"))


@dataclass(frozen=True, slots=True)
class Drawn:
    """Sets as rows of labels, and their supports in the records they were drawn from."""

    rows: Ints
    supports: Ints
    accepted: npt.NDArray[np.bool_]
    """Which of them form the uniform sample."""


def draw_itemsets(sets: Sets, supports: Supports, size: int, rng: np.random.Generator) -> Drawn | None:
    """Draw uniformly among the different sets: in proportion to their supports first, kept with chance 1/support."""
    weights = _ways(sets.sizes, size)
    if not weights.any():
        return None
    edges = np.cumsum(weights)
    batches: list[Drawn] = []
    while len(batches) < _BATCHES and sum(int(batch.accepted.sum()) for batch in batches) < SAMPLES:
        spots = np.minimum(rng.random(SAMPLES) * edges[-1], np.nextafter(edges[-1], 0))
        rows = subsets(sets, np.searchsorted(edges, spots, side="right"), size, rng)
        found = supports.of_rows(rows)
        batches.append(Drawn(rows, found, rng.random(len(rows)) * found < 1))
    return Drawn(
        np.concatenate([batch.rows for batch in batches]),
        np.concatenate([batch.supports for batch in batches]),
        np.concatenate([batch.accepted for batch in batches]),
    )


def draw_by_person(sets: Sets, size: int, rng: np.random.Generator) -> Ints | None:
    """Draw persons with enough items uniformly, then a subset of each."""
    able = np.flatnonzero(sets.sizes >= size)
    if not len(able):
        return None
    return subsets(sets, able[rng.integers(len(able), size=SAMPLES)], size, rng)


def _ways(sizes: Ints, size: int) -> npt.NDArray[np.float64]:
    """Return C(n, size) for every n."""
    ways = np.ones(len(sizes))
    for step in range(size):
        ways *= np.maximum(sizes - step, 0) / (step + 1)
    return ways


def subsets(sets: Sets, owner: Ints, size: int, rng: np.random.Generator) -> Ints:
    """Draw one subset of each given record uniformly (Floyd's way), as rows of rising labels."""
    lengths = sets.sizes[owner]
    places = np.full((len(owner), size), -1, np.int64)
    for turn in range(size):
        top = lengths - size + turn
        drawn = rng.integers(0, top + 1)
        is_taken = (places == drawn[:, None]).any(axis=1)
        places[:, turn] = np.where(is_taken, top, drawn)
    return sets.items[sets.offsets[owner][:, None] + np.sort(places, axis=1)]


TAIL = 0.001
"""Each bound is wrong with at most this probability: 99.9% confidence, one-sided."""
_HALVINGS = 60


def interval(hits: int, trials: int, tail: float = TAIL) -> tuple[float, float]:
    """Return Clopper and Pearson's exact bounds of a share, given ``hits`` in ``trials`` independent draws."""
    if not trials:
        return 0.0, 1.0
    ways = _log_choices(trials)
    # The probability of at least `hits` hits rises with the share: find where it crosses the tail.
    lower = 0.0 if hits == 0 else _crossing(ways, hits, tail)
    upper = 1.0 if hits == trials else 1 - _crossing(ways, trials - hits, tail)
    return lower, upper


def _crossing(ways: npt.NDArray[np.float64], hits: int, tail: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _at_least(ways, hits, middle) < tail:
            low = middle
        else:
            high = middle
    return low


def _at_least(ways: npt.NDArray[np.float64], hits: int, share: float) -> float:
    trials = len(ways) - 1
    seen = np.arange(hits, trials + 1)
    terms = ways[hits:] + seen * np.log(share) + (trials - seen) * np.log1p(-share)
    return float(np.exp(terms).sum())


def _log_choices(trials: int) -> npt.NDArray[np.float64]:
    """Return the logarithms of C(trials, 0), …, C(trials, trials)."""
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, trials + 1)))])
    return np.asarray(factorials[-1] - factorials - factorials[::-1], np.float64)
