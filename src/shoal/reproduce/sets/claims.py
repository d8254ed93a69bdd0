"""What the paper on probabilistic k^m-anonymity says about its results, compared with ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from shoal.reproduce.data.city import PEOPLE
from shoal.reproduce.sets.study import AFTER, BEFORE, COUNTED, MAP_K, KmFindings
from shoal.reproduce.study import Claim, from_to

PAPER_UNIQUE: Final = {5: 0.2, 11: 0.78}
# Captions of the paper's Figure 3, by σ and m, for k = 20; at m = 4 everything is counted.
PAPER_BLOCKS: Final = {0.99: {4: 337, 5: 296, 8: 158, 11: 143}, 0.999: {4: 337, 5: 234, 8: 121, 11: 118}}
PAPER_ERRORS: Final = {0.99: {4: 120, 5: 143, 8: 264, 11: 284}, 0.999: {4: 120, 5: 184, 8: 314, 11: 331}}
PAPER_AREAS: Final = {0.99: {11: 1.0}, 0.999: {11: 1.3}}
PAPER_UNIQUE_IN_LARGEST: Final = {5: 0.07, 11: 0.75}
PAPER_SAMPLES: Final = {0.99: 45_845, 0.999: 5_866_617}
_PAPER_LONGEST: Final = 300
_NEAR: Final = 0.2
"""Largest relative difference at which numbers agree."""


class KmClaims:
    """The paper's claims compared with our runs."""

    def __init__(self, findings: KmFindings, people: int) -> None:
        self._runs = findings.tables["km_runs"].records
        self._unique = findings.tables["km_uniqueness"].records
        self._mixing = findings.tables["km_mixing"].records
        self._area_before = findings.block_km2_before
        self._people = people
        self._most = max(one["m"] for one in self._runs)
        self._sigmas = sorted({one["sigma"] for one in self._runs} - {1.0})

    def all(self) -> Iterator[Claim]:
        """Figure by figure."""
        yield self._uniqueness()
        yield self._afterwards()
        yield self._by_caption("Figures 3 and 4", "blocks", PAPER_BLOCKS, "blocks")
        yield self._by_caption("Figures 3 and 5", "error_m", PAPER_ERRORS, "m on average")
        yield self._areas()
        yield self._k_matters_little()
        yield self._what_matters_most()
        yield self._longest()
        yield self._samples()
        yield self._largest_record()

    def _why_people(self) -> str:
        if self._people >= PEOPLE:
            return "The city is synthetic: the paper publishes the statistics of its data (Table II), not the data."
        return f"{self._people:,} people instead of {PEOPLE:,}, and the city is synthetic."

    def _value(self, measure: str, sigma: float, m: int, k: int = MAP_K) -> Any:
        wanted = (k, 1.0 if m <= COUNTED else sigma, m)
        return next(one[measure] for one in self._runs if (one["k"], one["sigma"], one["m"]) == wanted)

    def _shares(self, when: str) -> dict[int, float]:
        return {one["m"]: one["unique"] for one in self._unique if one["when"] == when}

    def _uniqueness(self) -> Claim:
        found = self._shares(BEFORE)
        return Claim(
            "Figure 2: 0.2 of the itemsets of 5 towers are unique, 0.78 of those of 11.",
            "; ".join(f"m = {m}: {found[m]:.2f}" for m in PAPER_UNIQUE) + ".",
            all(abs(found[m] - share) <= 0.05 for m, share in PAPER_UNIQUE.items()),
            f"{self._why_people()} With fewer people, fewer share an itemset.",
        )

    def _afterwards(self) -> Claim:
        return Claim(
            "(Not in the paper: uniqueness of what is released.)",
            f"k = {MAP_K}, σ = {self._sigmas[0]}, m = {self._most}: "
            f"{from_to(self._shares(AFTER).values(), '.3f')} of the sets of blocks are unique.",
            None,
            "The guarantee covers itemsets of the original towers. There are fewer sets of blocks, and rare ones weigh "
            "more among them, so a larger share than 1 - σ can be below k.",
        )

    def _by_caption(self, figures: str, measure: str, paper: dict[float, dict[int, int]], unit: str) -> Claim:
        points = [(sigma, m) for sigma in self._sigmas for m in paper[sigma] if m > COUNTED or sigma == self._sigmas[0]]
        pairs = [(paper[sigma][m], float(self._value(measure, sigma, m))) for sigma, m in points]
        names = [f"m = {m}, σ = {1.0 if m <= COUNTED else sigma:g}" for sigma, m in points]
        return Claim(
            f"{figures}, k = {MAP_K}: "
            + "; ".join(f"{name}: {says} {unit}" for name, (says, _) in zip(names, pairs, strict=True))
            + ".",
            "; ".join(f"{name}: {ours:.0f}" for name, (_, ours) in zip(names, pairs, strict=True)) + ".",
            all(abs(ours / says - 1) <= _NEAR for says, ours in pairs),
            f"{self._why_people()} The paper takes the best of 10 trials.",
        )

    def _areas(self) -> Claim:
        found = {sigma: self._value("block_km2", sigma, self._most) for sigma in self._sigmas}
        return Claim(
            "Figure 6: an average cell of 0.1 km² becomes a block of 1 km² (σ = 0.99) or 1.3 km² (0.999).",
            f"{self._area_before:.3f} km² before; "
            + "; ".join(f"σ = {sigma}: {area:.2f} km²" for sigma, area in found.items()) + f", at m = {self._most}.",
            all(abs(area / PAPER_AREAS[sigma][11] - 1) <= _NEAR for sigma, area in found.items()),
            f"{self._why_people()} The paper does not give the m of its numbers; we take the largest.",
        )  # fmt: skip

    def _k_matters_little(self) -> Claim:
        pairs = [
            (self._value("blocks", sigma, one["m"], 20), one["blocks"])
            for one in self._runs for sigma in [one["sigma"]] if one["k"] == 10
        ]  # fmt: skip
        return Claim(
            "Figures 4 to 6: k = 20 instead of 10 does not change the results significantly.",
            f"With k = 20 there are {from_to((a / b for a, b in pairs), '.0%')} of the blocks of k = 10.",
            all(a / b >= 1 - _NEAR for a, b in pairs),
            "With fewer people it is harder to find twice as many for each itemset, so k matters more.",
        )

    def _what_matters_most(self) -> Claim:
        low, high = self._sigmas[0], self._sigmas[-1]
        by_m = self._value("blocks", low, 5) / self._value("blocks", low, self._most)
        by_sigma = self._value("blocks", low, self._most) / self._value("blocks", high, self._most)
        return Claim(
            "Conclusion: m matters most, then σ.",
            f"From m = 5 to {self._most} the number of blocks falls by a factor of {by_m:.2f}; from σ = {low} to "
            f"{high} by {by_sigma:.2f}.",
            by_m > by_sigma >= 1,
            "Another trial or seed changes the number of blocks by a few percent.",
        )

    def _longest(self) -> Claim:
        longest = self._value("longest_record", 1.0, COUNTED)
        return Claim(
            "After sizes up to 4 are counted and repaired, the longest record still has more than 300 blocks.",
            f"{longest} blocks, k = {MAP_K}.",
            longest > _PAPER_LONGEST,
            "With fewer people the longest record is shorter, and there are fewer blocks. The paper has 337 blocks "
            "here.",
        )

    def _samples(self) -> Claim:
        found = {sigma: self._value("samples_a_size", sigma, self._most) for sigma in self._sigmas}
        return Claim(
            "45,845 (σ = 0.99) and 5,866,617 (0.999) samples of every size must pass.",
            "; ".join(f"σ = {sigma}: {samples:,}" for sigma, samples in found.items()) + " in a first attempt.",
            all(samples == PAPER_SAMPLES[sigma] for sigma, samples in found.items()),
            'The exact bound for samples that all pass gives the same guarantee; bound="hoeffding2" uses the paper\'s.',
        )

    def _largest_record(self) -> Claim:
        found = {one["m"]: one["unique_in_largest"] for one in self._mixing}
        return Claim(
            "Section IV-B: R*, the share of unique itemsets among those of the largest record, is 0.07 for 5 items and "
            "0.75 for 11.",
            "; ".join(f"m = {m}: {found[m]:.2f}" for m in PAPER_UNIQUE_IN_LARGEST) + ".",
            all(abs(found[m] - share) <= 0.05 for m, share in PAPER_UNIQUE_IN_LARGEST.items()),
            f"{self._why_people()} The largest record of a synthetic city is not the paper's.",
        )
