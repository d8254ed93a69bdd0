"""k^m-anonymity the slow way: every itemset listed, every support counted from the definitions.

Records are lists of sets of labels; a partition is a table from an item to what it is published as.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

Itemset = frozenset[Any]
Records = Sequence[Iterable[Hashable]]


def itemsets(records: Records, size: int) -> set[Itemset]:
    """All itemsets of a size that a person has."""
    return {frozenset(chosen) for record in records for chosen in combinations(sorted(set(record)), size)}


def support(records: Records, itemset: Iterable[Hashable]) -> int:
    wanted = set(itemset)
    return sum(wanted <= set(record) for record in records)


def image(itemset: Iterable[Hashable], block_of: Mapping[Any, Any]) -> Itemset:
    return frozenset(block_of[item] for item in itemset)


def released(records: Records, block_of: Mapping[Any, Any]) -> list[Itemset]:
    return [image(record, block_of) for record in records]


def violations(records: Records, block_of: Mapping[Any, Any], size: int, k: int) -> set[Itemset]:
    """Itemsets of the original items, as an adversary knows them, whose image has fewer than k people."""
    shown = released(records, block_of)
    return {one for one in itemsets(records, size) if support(shown, image(one, block_of)) < k}


def rare(records: Records, size: int, k: int) -> set[Itemset]:
    """Itemsets of a size that at least one person, but fewer than k have."""
    return {one for one in itemsets(records, size) if support(records, one) < k}


# ---- whom the adversary meets


def uniform(records: Records, size: int) -> dict[Itemset, Fraction]:
    """Any itemset that occurs is as likely as any other."""
    found = itemsets(records, size)
    return {one: Fraction(1, len(found)) for one in found}


def by_person(records: Records, size: int) -> dict[Itemset, Fraction]:
    """A person who has `size` items first, then a uniform itemset of theirs."""
    long_enough = [sorted(set(record)) for record in records if len(set(record)) >= size]
    shares: dict[Itemset, Fraction] = {}
    for record in long_enough:
        each = Fraction(1, len(long_enough) * math.comb(len(record), size))
        for chosen in combinations(record, size):
            shares[frozenset(chosen)] = shares.get(frozenset(chosen), Fraction(0)) + each
    return shares


def proposals(records: Records, size: int) -> dict[Itemset, Fraction]:
    """What the rejection sampler proposes: records weighed by how many itemsets they have."""
    counts = Counter(frozenset(chosen) for record in records for chosen in combinations(sorted(set(record)), size))
    total = sum(counts.values())
    return {one: Fraction(count, total) for one, count in counts.items()}


def acceptance(records: Records, size: int) -> Fraction:
    """How many of the proposals are kept when each is kept with one over its support."""
    return sum(share / support(records, one) for one, share in proposals(records, size).items())


def mass(shares: Mapping[Itemset, Fraction], chosen: Iterable[Itemset]) -> Fraction:
    return sum((shares[one] for one in chosen), Fraction(0))


def uniqueness(records: Records, size: int, *, person: bool = False) -> Fraction:
    shares = (by_person if person else uniform)(records, size)
    return mass(shares, rare(records, size, 2))


# ---- errors


def ncp(records: Records, blocks: Iterable[Sequence[Hashable]], items: int) -> float:
    """For each occurrence of an item the share of all items its block has, nothing where it is alone."""
    size_of = {item: len(block) for block in blocks for item in block}
    occurrences = [item for record in records for item in set(record)]
    return sum(size_of[item] / items for item in occurrences if size_of[item] > 1) / len(occurrences)


# ---- chance


def geweke(values: Sequence[float]) -> float:
    """Means of the first tenth and the last half; their variances from means of about √n batches each."""
    early, late = values[: max(len(values) // 10, 2)], values[len(values) - len(values) // 2 :]

    def mean(some: Sequence[float]) -> float:
        return math.fsum(some) / len(some)

    def variance(some: Sequence[float]) -> float:
        batches = max(math.isqrt(len(some)), 2)
        length = len(some) // batches
        means = [mean(some[at * length : (at + 1) * length]) for at in range(batches)]
        return math.fsum((one - mean(means)) ** 2 for one in means) / (batches - 1) / batches

    return (mean(early) - mean(late)) / math.sqrt(variance(early) + variance(late))


def chi_square_score(found: Mapping[Any, int], shares: Mapping[Any, Fraction | float]) -> float:
    """How far counts are from their shares, as a normal score (Wilson and Hilferty)."""
    assert set(found) <= set(shares)
    total = sum(found.values())
    apart = sum(
        (found.get(one, 0) - total * float(share)) ** 2 / (total * float(share)) for one, share in shares.items()
    )
    return _normal(apart, len(shares) - 1)


def two_sample_score(first: Mapping[Any, int], second: Mapping[Any, int]) -> float:
    """How far two equally many counts are from one another, as a normal score."""
    kinds = set(first) | set(second)
    assert sum(first.values()) == sum(second.values())
    apart = sum(
        (first.get(one, 0) - second.get(one, 0)) ** 2 / (first.get(one, 0) + second.get(one, 0)) for one in kinds
    )
    return _normal(apart, len(kinds) - 1)


def _normal(apart: float, freedom: int) -> float:
    if freedom == 0:
        return 0.0
    spread = 2 / (9 * freedom)
    return ((apart / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)


def at_least(found: int, samples: int, share: Fraction) -> Fraction:
    """The exact probability of at least `found` among the samples."""
    hit, miss = share.numerator, share.denominator - share.numerator
    ways = sum(math.comb(samples, i) * hit**i * miss ** (samples - i) for i in range(max(found, 0), samples + 1))
    return Fraction(ways, share.denominator**samples)


def at_most(found: int, samples: int, share: Fraction) -> Fraction:
    return 1 - at_least(found + 1, samples, share)


def is_plausible(found: int, samples: int, share: float, *, doubt: float = 1e-5) -> bool:
    """Whether `found` among the samples is plausible, in both directions."""
    if share in (0, 1):
        return found == samples * share

    def chance(i: int) -> float:
        ways = math.lgamma(samples + 1) - math.lgamma(i + 1) - math.lgamma(samples - i + 1)
        return math.exp(ways + i * math.log(share) + (samples - i) * math.log1p(-share))

    below = math.fsum(chance(i) for i in range(found + 1))
    above = math.fsum(chance(i) for i in range(found, samples + 1))
    return below > doubt and above > doubt
