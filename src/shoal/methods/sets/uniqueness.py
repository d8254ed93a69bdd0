"""The share of itemsets that single a person out: the risk of sets before they are anonymized."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import Any, Literal, get_args

import numpy as np

from shoal.errors import PolicyError
from shoal.kernels.sets.sampling import Draws, Sets, draw_combinations, draw_samples
from shoal.methods.sets.chain import as_chain
from shoal.methods.sets.counting import Counting
from shoal.methods.sets.data import Ints, SetData
from shoal.methods.sets.records import read_records
from shoal.methods.sets.sampling import make_draws, make_scratch, random_key
from shoal.methods.sets.search import AFFORDABLE
from shoal.methods.sets.settings import MOST_ITEMS, Sampler
from shoal.models.proportions import clopper_pearson
from shoal.models.sample_size import uniqueness_samples

_EPSILON = 0.01
_ROUND = 1 << 14
_COMBINATION_COST = 4
"""A combination that does not occur takes about as long as this many itemsets that a person has: its search is not cut
short."""


@dataclass(frozen=True, slots=True)
class Uniqueness:
    """The share of itemsets of one size that exactly one person has."""

    size: int
    share: float
    low: float
    high: float
    """The share lies between low and high with the chosen confidence; both equal the share where all were counted."""
    how: Literal["counted", "sampled", "empty"]
    samples: int
    """Itemsets counted or drawn."""


def uniqueness(
    records: Any, m: int = 5, *, adversary: str = "itemset", confidence: float = 0.99, samples: int | None = None,
    seed: int = 0, sampler: Sampler = "exact",
) -> Uniqueness:  # fmt: skip
    """The share of itemsets of m items that single out one person.

    Parameters
    ----------
    records
        As for :meth:`shoal.KmAnonymity.anonymize`; published sets work too.
    m
        Number of items known.
    adversary
        ``"itemset"``: every itemset that occurs is equally likely; ``"person"``: a person is picked first.
    confidence
        Confidence of the interval, where itemsets are sampled.
    samples
        Number of samples; by default all itemsets are counted where that is affordable, and otherwise as many are drawn
        as give the share within ±0.01 with that confidence.
    seed
        Seed of the random draws, used together with the data.
    sampler
        ``"exact"``; or the paper's Markov ``"chain"``, with our or (``"paper-chain"``) its literal test of convergence.
        A chain always samples, is slower, and gives an approximation: use it to compare. Only for ``"itemset"``.

    Examples
    --------
    >>> uniqueness([{"tea", "milk"}, {"tea", "milk"}, {"tea", "salt"}], m=2).share
    0.5
    """
    _check(m, adversary, confidence, samples, seed, sampler)
    read = read_records(records)
    names = sorted(read.labels)
    data = SetData(read.starts, read.numbered(names), names)
    return uniqueness_of(data, m, adversary, confidence, samples, seed, sampler)


def uniqueness_of(
    data: SetData, m: int, adversary: str = "itemset", confidence: float = 0.99, samples: int | None = None,
    seed: int = 0, sampler: Sampler = "exact",
) -> Uniqueness:  # fmt: skip
    """The share for sets that were read before; parameters as for `uniqueness`."""
    if m > data.longest:
        return Uniqueness(m, 0.0, 0.0, 0.0, "empty", 0)
    may_count = adversary == "itemset" and samples is None and sampler == "exact"
    counting = Counting(data.index, len(data)) if may_count else None
    if counting is not None and counting.steps(m) <= AFFORDABLE:
        found = counting.violations(m, 2, least=1)
        share = found.total / found.distinct
        return Uniqueness(m, share, share, share, "counted", found.distinct)
    count = samples or uniqueness_samples(_EPSILON, 1 - confidence)
    unique = _count_unique(data, m, count, by_person=adversary == "person", seed=seed, sampler=sampler)
    low, high = clopper_pearson(unique, count, confidence)
    return Uniqueness(m, unique / count, low, high, "sampled", count)


def _check(m: Any, adversary: Any, confidence: Any, samples: Any, seed: Any, sampler: Any) -> None:
    problems = []
    if type(m) is not int or not 1 <= m <= MOST_ITEMS:
        problems.append(f"m: must be a whole number from 1 to {MOST_ITEMS}")
    if adversary not in ("itemset", "person"):
        problems.append('adversary: must be "itemset" or "person"')
    if not isinstance(confidence, float) or not 0 < confidence < 1:
        problems.append("confidence: must be a number above 0 and below 1")
    if samples is not None and (type(samples) is not int or samples < 1):
        problems.append("samples: must be a whole number of at least 1")
    if type(seed) is not int or not 0 <= seed < 2**63:
        problems.append("seed: must be a whole number from 0 to 2^63 - 1")
    if sampler not in get_args(Sampler):
        problems.append(f"sampler: must be one of {', '.join(get_args(Sampler))}")
    elif sampler != "exact" and adversary == "person":
        problems.append('sampler: a chain draws for the adversary "itemset"; people are picked without one')
    if problems:
        raise PolicyError(problems)


def _count_unique(data: SetData, size: int, count: int, *, by_person: bool, seed: int, sampler: Sampler) -> int:
    draws = make_draws(
        data, size, 2, random_key(seed, data.fingerprint, "uniqueness", size, by_person), by_person=by_person
    )
    assert draws is not None  # some set is large enough
    if sampler != "exact":
        draws = as_chain(data, draws, is_literal=sampler == "paper-chain")
    draw = _make_drawing(data, draws, count)
    kept, number, unique = 0, 0, 0
    while kept < count:
        number, more, people = draw(number, count - kept)
        unique += int((people[:more] == 1).sum())
        kept += more
    return unique


def _make_drawing(data: SetData, draws: Draws, count: int) -> Callable[[int, int], tuple[int, int, Ints]]:
    """Draw itemsets of people's sets, or combinations of items where that finds new ones sooner."""
    own, scratch, people = data.index.arrays, make_scratch(), np.empty(count, np.int64)
    items = np.flatnonzero(data.weights).astype(np.int32)
    by_combination = not draws.by_person and draws.steps == 0
    if by_combination and comb(len(items), draws.size) * _COMBINATION_COST < data.itemsets(draws.size):
        kinds = Sets(np.array([0, len(items)]), items)
        return lambda number, wanted: (
            *draw_combinations(own, kinds, draws, number, number + _ROUND, wanted, scratch, people), people
        )  # fmt: skip
    drawn = np.empty((count, draws.size), np.int32)
    return lambda number, wanted: (
        *draw_samples(data.sets, own, draws, number, number + _ROUND, wanted, scratch, drawn, people), people
    )  # fmt: skip
