"""The experiments of the paper on probabilistic k^m-anonymity (section VI), on a synthetic city."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.hierarchies.places import Places
from shoal.methods.sets.km_anonymity import KmAnonymity
from shoal.methods.sets.result import KmResult
from shoal.methods.sets.uniqueness import uniqueness
from shoal.reproduce.data.city import City
from shoal.reproduce.study import Progress, Record, Table

Blocks = dict[str, tuple[str, ...]]

COUNTED: Final = 4
"""Sizes up to this are counted, as in the paper."""
MAPS: Final = ((4, 1.0), (5, 0.99), (8, 0.99), (11, 0.99), (5, 0.999), (8, 0.999), (11, 0.999))
"""m and σ of the paper's maps."""
MAP_K: Final = 20
BEFORE, AFTER = "before", "after"


@dataclass(frozen=True, slots=True)
class KmPlan:
    """What to run; the defaults are the paper's, except the number of trials."""

    crowds: tuple[int, ...] = (10, 20)
    sigmas: tuple[float, ...] = (0.99, 0.999)
    sizes: tuple[int, ...] = tuple(range(5, 12))
    unique_sizes: tuple[int, ...] = tuple(range(1, 12))
    trials: int = 1
    seed: int = 1

    def runs(self) -> Iterator[tuple[int, float, int]]:
        """Yield every k, σ and m; sizes that are counted completely have σ = 1."""
        for k in self.crowds:
            yield k, 1.0, COUNTED
            yield from ((k, sigma, m) for sigma in self.sigmas for m in self.sizes)


QUICK: Final = KmPlan(sizes=(5, 8, 11), unique_sizes=(1, 2, 5, 8, 11))


@dataclass(frozen=True, slots=True)
class KmFindings:
    """Results of the study."""

    tables: dict[str, Table]
    maps: dict[tuple[int, float], Blocks]
    """Blocks by m and σ, for the maps."""
    block_km2_before: float


def run_km_study(city: City, plan: KmPlan, progress: Progress) -> KmFindings:
    """Run the study; return its tables and maps."""
    records, runs = city.records, list(plan.runs())
    steps = len(runs) + 2 * len(plan.unique_sizes)
    found: list[Record] = []
    maps: dict[tuple[int, float], Blocks] = {}
    shown = records
    for done, (k, sigma, m) in enumerate(runs):
        method = KmAnonymity(
            k, m, sigma, generalize=city.places, counted=COUNTED, trials=plan.trials, seed=plan.seed
        )  # fmt: skip
        begun = perf_counter()
        name = f"k = {k}, σ = {sigma:g}, m = {m}"
        result = method.anonymize(
            records, progress=lambda *at, done=done, name=name: progress(done, steps, _search_step(name, *at))
        )
        seconds = perf_counter() - begun
        published = result.published().column(0)
        found.append({"k": k, "sigma": sigma, "m": m, **_measure(result, published, city.places), "seconds": seconds})
        if k == MAP_K and (m, sigma) in MAPS:
            maps[m, sigma] = result.blocks
        if (k, sigma, m) == (MAP_K, plan.sigmas[0], max(plan.sizes)):
            shown = published
    shares = _uniqueness(plan, {BEFORE: records, AFTER: shown}, lambda at, says: progress(len(runs) + at, steps, says))
    tables = (
        Table("km_runs", "Figures 4 to 6: blocks, average error in metres, and people-weighted area of blocks", found),
        Table("km_uniqueness", "Figure 2: share of unique itemsets, before and after", list(shares)),
    )
    return KmFindings({table.name: table for table in tables}, maps, _area_before(city))


def _search_step(name: str, what: str, size: int, left: int) -> str:
    return f"{name}: {what} size {size}, {left} blocks left"


def _measure(result: KmResult, published: pa.ChunkedArray, places: Places) -> dict[str, Any]:
    sampled = [one for one in result.certificate if one.how == "sampled"]
    return {
        "blocks": len(result.blocks),
        "error_m": result.error,
        "block_km2": _weighted_area(result.blocks, published, places),
        "longest_record": pc.max(pc.list_value_length(published)).as_py(),
        "samples_a_size": max((one.enough for one in sampled), default=0),
        "attempts": max((one.attempts for one in sampled), default=0),
    }


def _weighted_area(blocks: Blocks, published: pa.ChunkedArray, places: Places) -> float:
    """Return the average area of a block, weighted by the people in it."""
    area_of = dict(zip(places.names, places.areas[places.site_of].tolist(), strict=True))
    people = {one["values"]: one["counts"] for one in pc.value_counts(pc.list_flatten(published)).to_pylist()}
    areas = np.array([sum(area_of[item] for item in blocks[label]) for label in people])
    return _average(areas, np.array(list(people.values())))


def _area_before(city: City) -> float:
    return _average(city.places.areas[city.places.site_of], city.people_per_tower)


def _average(values: npt.NDArray[np.float64], weights: npt.NDArray[np.int64]) -> float:
    return float((values * weights).sum() / weights.sum())


def _uniqueness(plan: KmPlan, data: dict[str, pa.Array], progress: Callable[[int, str], None]) -> Iterator[Record]:
    done = 0
    for when, records in data.items():
        for m in plan.unique_sizes:
            progress(done, f"uniqueness {when}, m = {m}")
            share = uniqueness(records, m, seed=plan.seed)
            person = uniqueness(records, m, adversary="person", seed=plan.seed)
            yield {
                "when": when, "m": m, "unique": share.share, "low": share.low, "high": share.high, "how": share.how,
                "unique_by_person": person.share,
            }  # fmt: skip
            done += 1
