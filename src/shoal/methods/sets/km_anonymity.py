"""k^m-anonymity of sets: whoever knows up to m items of a person finds at least k people who have them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError
from shoal.methods.sets.certificate import Certificate
from shoal.methods.sets.certifying import Certifier
from shoal.methods.sets.data import SetData
from shoal.methods.sets.errors import ErrorChoice
from shoal.methods.sets.merges import Partition
from shoal.methods.sets.partition import make_partition
from shoal.methods.sets.records import ReadRecords, read_records
from shoal.methods.sets.result import KmResult
from shoal.methods.sets.search import AFFORDABLE, Progress, Search
from shoal.methods.sets.settings import Adversary, KmSettings, Sampler, check_settings
from shoal.models.sample_size import Bound

Tried = tuple[Search, frozenset[int]]
"""A search that is done, and the sizes that were counted."""


class KmAnonymity:
    """k^m-anonymity by generalization: items are joined into blocks until up to m known items single nobody out.

    Sizes that can be afforded are counted, and hold without exception; larger ones are sampled, and hold with a
    probability of at least sigma.

    Parameters
    ----------
    k
        The least crowd, or a list, one for every size from 1 to m.
    m
        The most items the adversary knows of a person.
    sigma
        The probability that an itemset the adversary knows has k people; 1 counts all. Or a list by size.
    generalize
        How items may be joined: a :class:`shoal.Hierarchy` (any cut), :class:`shoal.Places` (neighbouring cells), or
        a graph: a table from an item to its neighbours, or pairs of items.
    error
        What joining costs: ``"distance"`` (places), ``"ncp"``, or a function of a block's items and their weights.
    adversary
        ``"itemset"`` knows any itemset with equal probability; ``"person"`` picks a person first; or ``"both"``.
    bound
        How many samples must pass: ``"exact"``, or the papers' ``"hoeffding1"`` and ``"hoeffding2"``.
    trials
        Independent searches; the least error is taken.
    seed
        Where the coins come from, together with the data.
    counted
        ``"auto"`` counts what is affordable, ``"all"`` everything, a number the sizes up to it.
    sampler
        What is searched with: ``"exact"`` (independent uniform samples) or the paper's Markov ``"chain"``. Certified is
        with exact samples always.
    joint
        Whether the confidences of the sizes are to hold all at once.

    Examples
    --------
    >>> import shoal
    >>> cities = shoal.Hierarchy.from_nested({"US": {"West": ["LA", "Seattle"], "East": ["New York", "Boston"]}})
    >>> trips = [{"LA"}, {"LA"}, {"New York", "Boston"}, {"New York", "Boston"}, {"LA", "Boston"}, {"LA", "New York"}]
    >>> result = shoal.KmAnonymity(k=2, m=2, sigma=1, generalize=cities).anonymize(trips)
    >>> sorted(result.blocks)
    ['East', 'West']
    """

    method: ClassVar[str] = "k^m"

    def __init__(  # noqa: PLR0913 - they are what the method is about
        self,
        k: int | Sequence[int] = 10,
        m: int = 5,
        sigma: float | Sequence[float] = 0.99,
        *,
        generalize: Any,
        error: ErrorChoice = None,
        adversary: Adversary = "itemset",
        bound: Bound = "exact",
        trials: int = 10,
        seed: int = 0,
        counted: str | int = "auto",
        sampler: Sampler = "exact",
        joint: bool = False,
    ) -> None:
        self.settings: KmSettings = check_settings(
            k=k, m=m, sigma=sigma, adversary=adversary, bound=bound, sampler=sampler, counted=counted, joint=joint,
            trials=trials, seed=seed,
        )  # fmt: skip
        self._generalize = generalize
        self._error = error

    def anonymize(self, records: Any, *, progress: Progress | None = None) -> KmResult:
        """Generalize the sets of everybody at once.

        Parameters
        ----------
        records
            An iterable of sets, an Arrow list column, a path to a text file with one record a line, or (person, item)
            rows in any order: tuples, or a table of two columns.
        progress
            Is called with what is done, the size, and how many blocks are left.
        """
        read = read_records(records)
        partition = make_partition(self._generalize, self._error, items=sorted(read.labels))
        data = self._data(read, partition.names, None)
        partition.start(data.weights)
        search = Search.begin(data, partition, self.settings, progress)
        best, counted = self._search(search)
        certificate = Certifier(best, self.settings, counted=counted, may_join=True).certify()
        return KmResult(self, data, best.partition, certificate)

    # ---- for results

    def read(self, records: Any, names: Sequence[str], *, known: npt.NDArray[np.bool_] | None = None) -> SetData:
        """Records by the numbers of names; raises InputError when there are fewer than k."""
        return self._data(read_records(records), names, known)

    def _data(self, read: ReadRecords, names: Sequence[str], known: npt.NDArray[np.bool_] | None) -> SetData:
        self.check_enough(len(read))
        return SetData(read.starts, read.numbered(names, known=known), names)

    def check_enough(self, records: int) -> None:
        """Raise InputError when there are fewer records than people to hide among."""
        most = max(self.settings.k)
        if records < most:
            raise InputError(
                f"{records:,} records cannot hide anybody among {most:,}; give more records, or ask for less"
            )

    def certified(self, data: SetData, partition: Partition, *, join: bool) -> tuple[Partition, Certificate]:
        """The partition, joined further where it must be, with its certificate for exactly these data."""
        search = Search.begin(data, partition, self.settings)
        counted: set[int] = set()
        for size in self._sizes(data):
            if self._counts(search, size, counted):
                counted.add(size)
        certifier = Certifier(search, self.settings, counted=frozenset(counted), may_join=join)
        return search.partition, certifier.certify()

    # ---- searching

    def _sizes(self, data: SetData) -> range:
        return range(1, min(self.settings.m, data.longest) + 1)

    def _counts(self, search: Search, size: int, counted: Collection[int]) -> bool:
        """Whether a size is counted, as things stand; counting one goes through all smaller sizes too."""
        settings = self.settings
        if settings.must_count(size) or not settings.may_count(size):
            return settings.must_count(size)
        return len(counted) == size - 1 and search.counting().steps(size) <= AFFORDABLE

    def _search(self, start: Search) -> Tried:
        """The best of some trials, and the sizes that were counted.

        The sizes counted first are the same in all trials and done once, unless nothing comes after them.
        """
        base = start.copy() if self.settings.trials > 1 else start
        shared, counted = self._settle_first(start)
        rest = [size for size in self._sizes(start.data) if size not in counted]
        found = [(shared, counted)] if not rest else []
        for trial in range(len(found), self.settings.trials):
            found.append(self._try(shared.copy(), counted, rest, trial) if rest else self._try_all(base.copy(), trial))
            found = [min(found, key=lambda one: one[0].partition.error)]
        return found[0]

    def _settle_first(self, search: Search) -> Tried:
        counted: set[int] = set()
        for size in self._sizes(search.data):
            if not self._counts(search, size, counted):
                break
            search.settle_counted(size)
            counted.add(size)
        return search, frozenset(counted)

    def _try(self, search: Search, counted: frozenset[int], rest: list[int], trial: int) -> Tried:
        done = set(counted)
        for size in rest:
            if self._counts(search, size, done):
                search.settle_counted(size, trial)
                done.add(size)
            else:
                search.settle_sampled(size, trial)
        return search, frozenset(done)

    def _try_all(self, search: Search, trial: int) -> Tried:
        return self._try(search, frozenset(), list(self._sizes(search.data)), trial)
