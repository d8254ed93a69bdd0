"""The page of the k^m study: maps, figures, tables, and where our numbers differ from the paper's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from shoal.hierarchies.places import Places
from shoal.reproduce.data.city import PEOPLE, POPULARITY_VARIATION, City
from shoal.reproduce.page import Section, write_page
from shoal.reproduce.sets.claims import PAPER_AREAS, PAPER_BLOCKS, PAPER_ERRORS, PAPER_UNIQUE, KmClaims
from shoal.reproduce.sets.figures import draw_by_m, draw_maps, draw_uniqueness
from shoal.reproduce.sets.study import MAP_K, MAPS, Blocks, KmFindings, KmPlan
from shoal.reproduce.study import Table, claims_table

_CITY_MAP: Final = "km_figure_2_map.png"
_PICTURES: Final = (
    ("km_figure_4.png", "blocks", "number of blocks", "Figure 4: number of blocks (more is better)", PAPER_BLOCKS),
    ("km_figure_5.png", "error_m", "average error in metres", "Figure 5: average error (less is better)", PAPER_ERRORS),
    (
        "km_figure_6.png",
        "block_km2",
        "area of a block in km²",
        "Figure 6: people-weighted area of blocks (less is better)",
        PAPER_AREAS,
    ),
)


def write_km_page(folder: Path, city: City, plan: KmPlan, findings: KmFindings) -> Path:
    """Draw the pictures, write the tables and the page."""
    runs, shares = (findings.tables[name].records for name in ("km_runs", "km_uniqueness"))
    draw_maps(folder / _CITY_MAP, city.places, {"": _singles(city.places)}, title="Figure 2: cells of towers")
    draw_uniqueness(folder / "km_figure_2.png", shares, PAPER_UNIQUE)
    draw_maps(folder / "km_figure_3.png", city.places, _named(city, findings), title=f"Figure 3: blocks, k = {MAP_K}")
    for file, measure, label, title, paper in _PICTURES:
        draw_by_m(folder / file, runs, paper, measure=measure, label=label, title=title)
    claims = claims_table("km_claims", KmClaims(findings, len(city)).all())
    statistics = _statistics(city)
    return write_page(
        folder,
        title="Probabilistic k^m-anonymity: figures 2 to 6 of Acs, Achara, Castelluccia (2015), run again",
        sections=[
            _lead(city, plan),
            Section("Claim by claim", tables=[claims]),
            Section("The city (Table II)", tables=[statistics]),
            *_sections(findings.tables),
            _readings(),
        ],
    )


def _lead(city: City, plan: KmPlan) -> Section:
    return Section(
        "What was run",
        [
            "The paper's data are not public. We use a synthetic city with the statistics of its Table II and "
            f"{len(city):,} people instead of {PEOPLE:,}. The numbers therefore differ; how they change with m, σ and "
            "k can be compared.",
            f"k = {', '.join(map(str, plan.crowds))}; σ = {', '.join(map(str, plan.sigmas))}; sizes up to 4 counted, "
            f"larger ones sampled; least error of {plan.trials} trial{'s' if plan.trials > 1 else ''} (the paper: 10); "
            f"seed {plan.seed}.",
            "Sizes up to 4 are counted once for each k, and all m of one k and σ are one search that goes on: the "
            "results are those of one run for every k, σ and m.",
            "With fewer people more itemsets are unique, and more blocks must be joined until k people share each. "
            f"--people {PEOPLE} uses as many people as the paper.",
        ],
    )


def _statistics(city: City) -> Table:
    sizes, people = city.sizes, city.people_per_tower
    rows = (
        ("people", PEOPLE, len(city)),
        ("towers", 1303, len(city.places)),
        ("longest record", 422, int(sizes.max())),
        ("shortest record", 1, int(sizes.min())),
        ("average record", 11.42, float(sizes.mean())),
        ("deviation of records", 17.23, float(sizes.std())),
        ("area in km²", 128.1, float(city.places.areas.sum())),
        (
            "deviation of people per tower, over their average",
            POPULARITY_VARIATION,
            float(people.std() / people.mean()),
        ),
    )
    records = [{"what": what, "the_paper": paper, "here": here} for what, paper, here in rows]
    return Table("km_city", "Table II of the paper, and the synthetic city", records)


def _singles(places: Places) -> Blocks:
    return {name: (name,) for name in places.names}


def _named(city: City, findings: KmFindings) -> dict[str, Blocks]:
    """Return the blocks by the title of their map, in the paper's order."""
    rows = {(one["m"], one["sigma"]): one for one in findings.tables["km_runs"].records if one["k"] == MAP_K}
    named = {f"original, {len(city.places)} cells": _singles(city.places)}
    for m, sigma in MAPS:
        row = rows[m, sigma]
        named[f"m = {m}, σ = {sigma:g}: {row['error_m']:.0f} m, {row['blocks']} blocks"] = findings.maps[m, sigma]
    return named


def _sections(tables: Mapping[str, Table]) -> list[Section]:
    return [
        Section("Figure 2: the city, and uniqueness", [], [_CITY_MAP, "km_figure_2.png"], [tables["km_uniqueness"]]),
        Section("Figure 3: maps of blocks", [], ["km_figure_3.png"]),
        *(Section(title, [], [file]) for file, _, _, title, _ in _PICTURES),
        Section("All numbers", tables=[tables["km_runs"]]),
        Section(
            "How long the paper's Markov chain must run",
            [
                "Theorem 3 bounds the steps of the chain by |D| ln(1/ξ) / R*, where R* is the share of the itemsets of "
                "the largest record that no other record has. The paper stops earlier, when a Geweke score of the "
                "number of people who have the current itemset is between -1 and 1. Its score divides by the variance "
                "of the values, not of their means, so that independent values always pass. Our test divides by "
                'standard errors. shoal draws exactly uniform itemsets instead; sampler = "paper-chain" and "chain" '
                "use the chain with either test.",
            ],
            tables=[tables["km_mixing"]],
        ),
    ]


def _readings() -> Section:
    return Section(
        "How we read the paper",
        [
            "How many samples must pass: the paper's 45,845 (σ = 0.99) and 5,866,617 (0.999) come from Hoeffding's "
            "two-sided bound. All samples must pass, so the exact bound gives the same guarantee with 760 and 10,228.",
            "Samples are drawn uniformly and independently by rejection; the paper's Markov chain approximates that.",
            "A release counts only when fresh samples, drawn after the last blocks were joined, have all passed.",
            "The paper's text and the captions of its Figure 3 give different numbers for m = 5 (350 and 296 blocks at "
            "σ = 0.99), and the text does not give k. The paper's lines show the captions, for k = 20.",
            "Cells are neighbours when they share an edge, in the paper also when they share a point.",
            "The area of a block is weighted by the people who have it in their published set.",
            "Uniform itemsets come mostly from the longest records. Picking a person first gives fewer unique "
            "itemsets; both are shown.",
        ],
    )
