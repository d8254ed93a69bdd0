"""The page of the z-anonymity study: figures, tables, and where the paper's text and formulae disagree."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from shoal.reproduce.page import Section, write_page
from shoal.reproduce.study import Table, claims_table
from shoal.reproduce.z import figures
from shoal.reproduce.z.claims import Evidence, figure_claims
from shoal.reproduce.z.class_claims import class_claims
from shoal.reproduce.z.study import CLASS_SIZE, CLASS_Z, CONFIDENCE, MOST_RUNS_OF_RANKS, USERS, K, Z, ZPlan, table_2

_FIGURES: Final = (
    (
        "publishing",
        "2",
        "Figure 2: probability of publishing an attribute, by rank",
        figures.draw_publishing,
    ),
    ("by_z", "3", "Figure 3: p by z", figures.draw_by_z),
    ("by_window", "4", "Figure 4: p by the length of the window", figures.draw_by_window),
    ("by_attributes", "5", "Figure 5: p and entropy by the number of attributes", figures.draw_by_attributes),
    ("by_users", "6", "Figure 6: p by the number of people", figures.draw_by_users),
    ("activity", "7", "Figure 7: p for two classes of activity", figures.draw_activity),
    ("interest", "8", "Figure 8: p for two classes of interest", figures.draw_interest),
)
_SEEDS: Final = "Figure C.10: p by the model and in simulations"
_WORDS: Final = {
    "by_z": "Right: the share of people who are not k-anonymous. The bumps of the formula are absent from the "
    "simulations: in the formula a rarely published attribute passes for some people, in a stream for all or none.",
    "by_window": "A person exposes the first attribute with rate 0.2: Δt = 60 is twelve exposures of it.",
    "by_attributes": "Entropy is the sum of the attributes' entropies, without enumerating combinations.",
    "by_users": "z = U/25 hides none of the 20 attributes. With many people, z = 10 gives the same line as k = 2.",
    "activity": f"Two classes of {CLASS_SIZE} people, z = {CLASS_Z}, k = {K}; the mean rate is kept.",
    "interest": f"Two classes of {CLASS_SIZE} people, z = {CLASS_Z}, k = {K}. Left by Table 3, which halves the rates "
    "at η = 0.5, right with rates twice as high.",
}


def write_z_page(folder: Path, plan: ZPlan, tables: Mapping[str, Table]) -> Path:
    """Draw the pictures, write the tables and the page."""
    for name, number, title, draw in _FIGURES:
        runs = min(plan.runs, MOST_RUNS_OF_RANKS) if name == "publishing" else plan.runs
        measured = f"simulated: mean of {runs} runs, {CONFIDENCE:.0%} interval"
        draw(folder / f"z_figure_{number}.png", tables[name].records, title=title, measured=measured)
    exact, tree = (table_2().p_k_anonymous(Z, K, method=how).value for how in ("exact", "tree"))
    shares = [one["k_anonymous"] for one in tables["seeds"].records]
    figures.draw_seeds(folder / "z_figure_C10.png", shares, exact=exact, tree=tree, title=_SEEDS)
    evidence = Evidence(tables)
    claims = claims_table("z_claims", [*figure_claims(evidence), *class_claims(evidence)])
    return write_page(
        folder,
        title="z-anonymity: figures 2 to 8 and C.10 of Jha, Vassio, Trevisan, Leonardi, Mellia (2023), computed again",
        sections=[
            _lead(plan),
            Section("Claim by claim", ["Our figures compared with what the paper's text says."], tables=[claims]),
            *_sections(tables),
            _readings(),
        ],
    )


def _lead(plan: ZPlan) -> Section:
    return Section(
        "What was computed",
        [
            f"Defaults: {USERS:,} people, 20 attributes, exposed with rates 0.2 / rank, a window of "
            f"12, z = {Z}, k = {K} (the paper's Table 2). Lines show the model, bands its proven bounds: most are "
            f"narrower than the line, at most {plan.width:g} apart where nothing was enumerated. {_about(plan)}",
            f"Points show Algorithm 1 on streams drawn from the model: {plan.runs} runs (figure 2: at most "
            f"{MOST_RUNS_OF_RANKS}; fewer where there are many people), seed {plan.seed}; error bars are Student's "
            f"{CONFIDENCE:.0%} interval over the runs. The first window is not counted; what is published "
            "in the second, one pseudonym epoch, is compared.",
            "The share of k-anonymous people is over all people, as in the paper. People with nothing published are "
            "alike, so releasing nothing looks perfect.",
        ],
    )


def _about(plan: ZPlan) -> str:
    if plan.is_exact:
        return "Figures 7 and 8, and the line of k = 2 in figure 3, are enumerated."
    return "Combinations of figures 7 and 8 are sampled; their bands are confidence intervals, not proven bounds."


def _sections(tables: Mapping[str, Table]) -> list[Section]:
    found = [
        Section(title, [_WORDS[name]] if name in _WORDS else [], [f"z_figure_{number}.png"], [tables[name]])
        for name, number, title, _ in _FIGURES
    ]
    return [*found, Section(_SEEDS, [], ["z_figure_C10.png"], [tables["seeds"]])]


def _readings() -> Section:
    return Section(
        "How we read the paper",
        [
            "The window is closed: a person who exposed an attribute exactly Δt ago still counts. The person who "
            "exposes it now always counts.",
            "Section 6 prints the person's own class in the probabilities of the others; each class has its own.",
            "Table 3 is shown as printed, and again with twice the rates, which keeps the mean.",
            "Entropy is in nats.",
            "The paper does not say for which z it draws figures 2, 5 and 6a, nor over which ranges: we chose them.",
            "The approximation (appendix B) takes θ1 = 1 and lowers θ2 until 0.98 is covered; its sum is not "
            "divided by the coverage.",
        ],
    )
