"""The experiments of the paper on probabilistic k^m-anonymity (section VI), on a synthetic city."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from time import process_time
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.hierarchies.places import Places
from shoal.kernels.sets.sampling import Draws
from shoal.methods.sets.certificate import Certifier
from shoal.methods.sets.chain import as_chain, mixing_bound_of
from shoal.methods.sets.data import SetData
from shoal.methods.sets.km_anonymity import KmAnonymity, make_partition
from shoal.methods.sets.records import read_records
from shoal.methods.sets.result import KmResult
from shoal.methods.sets.sampling import make_draws, random_key
from shoal.methods.sets.search import Search
from shoal.methods.sets.settings import KmSettings
from shoal.methods.sets.uniqueness import uniqueness_of
from shoal.reproduce.data.city import City
from shoal.reproduce.study import Progress, Record, Table

Blocks = dict[str, tuple[str, ...]]

COUNTED: Final = 4
"""Sizes up to this are counted, as in the paper."""
MAPS: Final = ((4, 1.0), (5, 0.99), (8, 0.99), (11, 0.99), (5, 0.999), (8, 0.999), (11, 0.999))
"""m and σ of the paper's maps."""
MAP_K: Final = 20
BEFORE, AFTER = "before", "after"
XI: Final = 0.01
"""Distance from the uniform distribution for which the mixing time is bounded."""


@dataclass(frozen=True, slots=True)
class KmPlan:
    """What to run; the defaults are the paper's, except the number of trials."""

    crowds: tuple[int, ...] = (10, 20)
    sigmas: tuple[float, ...] = (0.99, 0.999)
    sizes: tuple[int, ...] = tuple(range(5, 12))
    unique_sizes: tuple[int, ...] = tuple(range(1, 12))
    mixing_sizes: tuple[int, ...] = (5, 11)
    trials: int = 1
    seed: int = 1

    @property
    def steps(self) -> int:
        """Number of steps that are reported."""
        runs = len(self.crowds) * (1 + len(self.sigmas) * len(self.sizes))
        return runs + 2 * len(self.unique_sizes) + len(self.mixing_sizes)


QUICK: Final = KmPlan(sizes=(5, 8, 11), unique_sizes=(1, 2, 5, 8, 11), mixing_sizes=(5, 11))


@dataclass(frozen=True, slots=True)
class KmFindings:
    """Results of the study."""

    tables: dict[str, Table]
    maps: dict[tuple[int, float], Blocks]
    """Blocks by m and σ, for the maps."""
    block_km2_before: float


def run_km_study(city: City, plan: KmPlan, progress: Progress) -> KmFindings:
    """Run the study; return its tables and maps."""
    return _KmStudy(city, plan, progress).run()


class _KmStudy:
    """All sizes of one k and σ are one search that goes on, so that no size is counted or sampled twice.

    The results are those of one :class:`shoal.KmAnonymity` for every k, σ and m.
    """

    def __init__(self, city: City, plan: KmPlan, progress: Progress) -> None:
        self._city, self._plan, self._progress, self._done = city, plan, progress, 0
        self._runs: list[Record] = []
        self._maps: dict[tuple[int, float], Blocks] = {}
        self._report("reading")
        read = read_records(city.records)
        self._partition = make_partition(city.places)
        self._data = SetData(read.starts, read.numbered(self._partition.names), self._partition.names)
        self._shown: SetData | None = None

    def _report(self, step: str) -> None:
        self._progress(self._done, self._plan.steps, step)

    def run(self) -> KmFindings:
        for k in self._plan.crowds:
            counted = self._count(k)
            for sigma in self._plan.sigmas:
                self._sample(k, sigma, counted)
        tables = (
            Table("km_runs", "Figures 4 to 6: blocks, average error in metres, people-weighted area of blocks, and "
                  "processor seconds", self._runs),
            Table("km_uniqueness", "Figure 2: share of unique itemsets, before and after", list(self._uniqueness())),
            Table("km_mixing", f"Steps of the paper's Markov chain: its bound (Theorem 3) for ξ = {XI}, by its literal "
                  "Geweke test, and by ours", list(self._mixing())),
        )  # fmt: skip
        return KmFindings({table.name: table for table in tables}, self._maps, _area_before(self._city))

    # ---- blocks

    def _settings(self, k: int, sigma: float, m: int) -> KmSettings:
        plan = self._plan
        method = KmAnonymity(
            k, m, sigma, generalize=self._city.places, counted=COUNTED, trials=plan.trials, seed=plan.seed
        )
        return method.settings

    def _search(self, name: str, settings: KmSettings, start: Search | None = None) -> Search:
        """A search from the beginning, or going on from another one."""

        def report(activity: str, size: int, left: int) -> None:
            self._report(f"{name}: {activity} size {size}, {left} blocks left")

        if start is not None:
            return start.copy(settings, report)
        self._partition.start(self._data.weights)
        return Search(self._data, self._partition.copy(), settings, report)

    def _count(self, k: int) -> Search:
        begun = process_time()
        settings = self._settings(k, 1.0, COUNTED)
        search = self._search(f"k = {k}", settings)
        for size in search.sizes:
            search.enforce_counted(size)
            search.count_again(size)  # once for all that go on from here: merging never makes a crowd smaller
        self._certify(k, 1.0, COUNTED, search, begun)
        return search

    def _sample(self, k: int, sigma: float, counted: Search) -> None:
        begun, most = process_time(), max(self._plan.sizes)
        name, settings = f"k = {k}, σ = {sigma:g}", self._settings(k, sigma, most)
        trials = [self._search(name, settings, counted) for _ in range(self._plan.trials)]
        for m in range(COUNTED + 1, most + 1):
            for trial, search in enumerate(trials):
                search.enforce_sampled(m, trial)
            if m in self._plan.sizes:
                best = min(trials, key=lambda one: one.partition.error)
                self._certify(k, sigma, m, best, begun)

    def _certify(self, k: int, sigma: float, m: int, search: Search, begun: float) -> None:
        settings = self._settings(k, sigma, m)
        final = self._search(f"k = {k}, σ = {sigma:g}", settings, search)
        counted = frozenset(range(1, COUNTED + 1))
        certificate = Certifier(final, settings, counted=counted, may_join=True).certify()
        result = KmResult(settings, self._data, final.partition, certificate)
        sampled = [one for one in certificate if one.how == "sampled"]
        starts, blocks = self._data.generalized(final.partition.block_of)
        self._runs.append({
            "k": k, "sigma": sigma, "m": m,
            "blocks": len(result.blocks),
            "error_m": result.error,
            "block_km2": _weighted_area(final, self._city.places),
            "longest_record": int(np.diff(starts).max()),
            "samples_a_size": max((one.enough for one in sampled), default=0),
            "attempts": max((one.attempts for one in sampled), default=0),
            "seconds": process_time() - begun,
        })  # fmt: skip
        if k == MAP_K and (m, sigma) in MAPS:
            self._maps[m, sigma] = result.blocks
        if (k, sigma, m) == (MAP_K, self._plan.sigmas[0], max(self._plan.sizes)):
            self._shown = SetData(starts, blocks, self._partition.names)
        self._done += 1

    # ---- itemsets

    def _uniqueness(self) -> Iterator[Record]:
        plan = self._plan
        for when, data in ((BEFORE, self._data), (AFTER, self._shown or self._data)):
            for m in plan.unique_sizes:
                self._report(f"uniqueness {when}, m = {m}")
                share = uniqueness_of(data, m, seed=plan.seed)
                person = uniqueness_of(data, m, "person", seed=plan.seed)
                yield {
                    "when": when, "m": m, "unique": share.share, "low": share.low, "high": share.high,
                    "how": share.how, "unique_by_person": person.share,
                }  # fmt: skip
                self._done += 1

    def _mixing(self) -> Iterator[Record]:
        for m in self._plan.mixing_sizes:
            self._report(f"mixing time, m = {m}")
            bound = mixing_bound_of(self._data, m, xi=XI, seed=self._plan.seed)
            steps = partial(self._chain_steps, m)
            yield {
                "m": m, "unique_in_largest": bound.unique_share, "low": bound.low, "high": bound.high,
                "bound_steps": bound.steps, "papers_geweke_steps": steps(is_literal=True),
                "our_geweke_steps": steps(is_literal=False),
            }  # fmt: skip
            self._done += 1

    def _chain_steps(self, m: int, *, is_literal: bool) -> int | None:
        key = random_key(self._plan.seed, self._data.fingerprint, "chain", m)
        draws: Draws | None = make_draws(self._data, m, 2, key)
        return None if draws is None else as_chain(self._data, draws, is_literal=is_literal).steps


def _weighted_area(search: Search, places: Places) -> float:
    """Return the average area of a block, weighted by the people in it."""
    partition, people = search.partition, search.supports.people()
    number = {name: place for place, name in enumerate(places.names)}
    order = np.array([number[name] for name in partition.names])
    areas = np.zeros(len(people))
    np.add.at(areas, partition.block_of, places.areas[places.site_of][order])
    return _average(areas, people)


def _area_before(city: City) -> float:
    return _average(city.places.areas[city.places.site_of], city.people_per_tower)


def _average(values: npt.NDArray[np.float64], weights: npt.NDArray[np.int64]) -> float:
    return float((values * weights).sum() / weights.sum())
