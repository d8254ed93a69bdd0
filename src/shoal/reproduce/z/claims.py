"""What the z-anonymity paper says about figures 2 to 6, checked against its own formulae and against simulations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from shoal.reproduce.study import Claim, Table, where
from shoal.reproduce.z.study import ATTRIBUTES, CLASS_Z, FALLS, USERS, WINDOW, K, Z, table_2

NEAR: Final = 0.02
"""Probabilities agree when they differ by less."""
_RANK, _RARE = 13, 1e-6
"""The paper says that at z = 100 this rank is published with a probability below this."""
_SIX_DIGITS: Final = 5e-7


class Evidence:
    """The tables of the study and the model at the paper's Table 2."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self.rows = {name: table.records for name, table in tables.items()}
        self.model = table_2()
        self._known: dict[tuple[int, int], float] = {}

    def p(self, z: int, k: int = K) -> float:
        """Return the probability of being k-anonymous to six digits, from the likely combinations if they suffice."""
        if (z, k) not in self._known:
            found = self.model.p_k_anonymous(z, k, method="tree", theta1=1e-7, theta2=1e-3)
            if found.upper - found.lower > _SIX_DIGITS:
                found = self.model.p_k_anonymous(z, k, method="exact")
            self._known[z, k] = found.value
        return self._known[z, k]

    def by_attributes(self, z: int) -> dict[int, Any]:
        """Return the rows of figure 5 by number of attributes."""
        return {one["attributes"]: one for one in where(self.rows["by_attributes"], z=z)}


def figure_claims(given: Evidence) -> Iterator[Claim]:
    """Yield the claims about figures 2 to 6, in the paper's order."""
    yield from (_rank_13(), _straight())
    on_one_class = (
        _rises_from_100, _at_250, _monotone, _whole_release, _match, _window, _without_z, _marginal, _entropy,
        _falls_then_rises, _proportional,
    )  # fmt: skip
    yield from (claim(given) for claim in on_one_class)


def _rank_13() -> Claim:
    models = {window: table_2(attributes=1000, window=window) for window in (WINDOW, 4.0)}
    p = {window: model.p_published(100) for window, model in models.items()}
    exposed = {window: float(model.p_exposed()[_RANK - 1]) for window, model in models.items()}
    first = int(np.argmax(p[WINDOW] < _RARE)) + 1
    return Claim(
        f"Figure 2, z = 100: rank {_RANK} is published with a probability below 10⁻⁶, and exposed with 10⁻¹.",
        f"Δt = 12 (Table 2): published {p[WINDOW][_RANK - 1]:.4f}, exposed {exposed[WINDOW]:.3f}; the first rank "
        f"below 10⁻⁶ is {first}. Δt = 4: published {p[4.0][_RANK - 1]:.1e}, exposed {exposed[4.0]:.3f}.",
        bool(p[WINDOW][_RANK - 1] < _RARE),
        "The formulae do not give this at Table 2; they would for a window of about 4.",
    )


def _straight() -> Claim:
    exposed = table_2(attributes=1000).p_exposed()

    def slope(one: int, other: int) -> float:
        return math.log(exposed[other - 1] / exposed[one - 1]) / math.log(other / one)

    return Claim(
        "Figure 2: without anonymization the curve is a straight line on logarithmic axes.",
        f"Slope {slope(1, 2):.2f} from rank 1 to 2, {slope(10, 20):.2f} from 10 to 20, {slope(100, 1000):.2f} from "
        "100 to 1000.",
        abs(slope(1, 2) - slope(100, 1000)) < NEAR,
        "The rates follow a power law. Probabilities follow it only while they are small: they cannot exceed 1.",
    )


def _rises_from_100(given: Evidence) -> Claim:
    return Claim(
        "Figure 3, k = 2: the probability increases from z = 100 on.",
        "; ".join(f"z = {z}: {given.p(z):.4f}" for z in (1, 50, 100, 120)) + ".",
        given.p(100) - given.p(1) < NEAR < given.p(120) - given.p(100),
        f"A smaller z hides nothing: even rank {ATTRIBUTES} is exposed by "
        f"{USERS * given.model.p_exposed()[-1]:.0f} people on average.",
    )


def _at_250(given: Evidence) -> Claim:
    first = next(z for z in range(150, 300) if given.model.p_k_anonymous(z, K, method="tree").lower >= 0.8)
    return Claim(
        "Figure 3, k = 2: 0.8 at z = 250.",
        f"{given.p(250):.6f} at z = 250; 0.8 is reached at z = {first} ({given.p(first):.4f}).",
        abs(given.p(250) - 0.8) < NEAR,
        f"At z = 250, k = 3 gives {given.p(250, 3):.4f}; the claim would fit k = 4, which gives {given.p(250, 4):.4f}.",
    )


def _monotone(given: Evidence) -> Claim:
    pairs = list(zip(FALLS[::2], FALLS[1::2], strict=True))
    found = [(one, other, given.p(one), given.p(other)) for one, other in pairs]
    simulated = {one["z"]: one["simulated"] for one in where(given.rows["by_z"], k=K) if one["simulated"]}
    runs = [(a, b, simulated[a], simulated[b]) for a, b in pairs if a in simulated and b in simulated]
    model_text, runs_text = (
        "; ".join(f"z = {a} to {b}: {p:.{digits}f} to {q:.{digits}f}" for a, b, p, q in changes)
        for changes, digits in ((found, 6), (runs, 4))
    )
    return Claim(
        "Figure 3: the larger z, the higher the probability.",
        f"{model_text}.",
        all(p <= q for _, _, p, q in found),
        "An attribute that rarely passes z is published for few people, and they stand out. In the formula it passes "
        "for each person independently; in a stream it passes for everyone or for no one at a time. "
        f"Runs: {runs_text}.",
    )


def _whole_release(given: Evidence) -> Claim:
    row = where(given.rows["by_z"], k=K, z=350)[0]
    return Claim(
        "Figure 3: above z = 350 the probability approaches 1, so that almost certainly all of the release is "
        "k-anonymous.",
        f"{row['model']:.4f} at z = 350: {USERS * (1 - row['model']):.1f} of {USERS} people are not, on average. "
        f"Everyone was k-anonymous in {row['runs_with_all_alike']:.0%} of the runs, and {row['simulated']:.4f} of the "
        "people over all runs.",
        bool(row["runs_with_all_alike"] >= 0.95),
        "High for one person does not mean high for everybody at once. Among people with at least "
        f"one published attribute it was {row['simulated_among_shown']:.4f} at z = 350, where {row['released']:.0%} "
        "of the exposures are published.",
    )


def _match(given: Evidence) -> Claim:
    rows = [one for one in given.rows["by_z"] if one["simulated"] is not None]
    worst = max(rows, key=lambda one: abs(one["simulated"] - one["model"]))
    rows = [one for one in rows if one["model_with_simulated_shares"] is not None and one["high"] > one["low"]]
    clearest = max(rows, key=lambda one: abs(one["simulated"] - one["model"]) / (one["high"] - one["low"]))
    return Claim(
        "Figure 3: model and simulations match almost perfectly.",
        f"Largest difference at z = {worst['z']}, k = {worst['k']}: model {worst['model']:.4f}, simulated "
        f"{worst['simulated']:.4f} ({worst['low']:.4f} to {worst['high']:.4f}).",
        abs(worst["simulated"] - worst["model"]) <= NEAR,
        "In the model an attribute passes independently for each person; in a stream, for all or for none. "
        f"At z = {clearest['z']}, k = {K}: model {clearest['model']:.4f}, simulated {clearest['simulated']:.4f}, "
        "the formula with the shares of people who publish each attribute taken from the runs "
        f"{clearest['model_with_simulated_shares']:.4f}.",
    )


def _window(given: Evidence) -> Claim:
    rows = where(given.rows["by_window"], k=K)
    least = min(rows, key=lambda one: one["model"])
    short, longer = (table_2(window=window).p_k_anonymous(Z, K, width=1e-5).value for window in (2.0, 2.5))
    return Claim(
        "Figure 4: the longer the window, the lower the probability.",
        f"k = 2: it falls to {least['model']:.4f} at Δt = {least['window']:g} and rises to "
        f"{rows[-1]['model']:.4f} at {rows[-1]['window']:g}; it also rises from {short:.4f} at Δt = 2 to "
        f"{longer:.4f} at 2.5.",
        least is rows[-1] and short >= longer,
        "With a long window everyone shows the same popular attributes; a short window acts like a large z.",
    )


def _without_z(given: Evidence) -> Claim:
    found = given.by_attributes(1)
    return Claim(
        "Figure 5a: it starts at 1, and without z-anonymity rapidly goes to 0 with more attributes.",
        "; ".join(f"A = {A}: {found[A]['model']:.4f}" for A in (1, 5, 10, 20, 30, 50)) + ".",
        found[1]["lower"] > 0.99 and found[50]["upper"] < 0.01,
        "Every attribute doubles the number of combinations, while the number of people stays the same.",
    )


def _marginal(given: Evidence) -> Claim:
    found, low_z = given.by_attributes(150), given.by_attributes(50)
    most = max(found)
    return Claim(
        "Figure 5a: with z-anonymity the size of the catalog plays a marginal role.",
        f"z = 150: {found[20]['model']:.4f} with 20 attributes, {found[most]['model']:.4f} with {most:,}. z = 50: "
        f"{low_z[20]['model']:.4f} and {low_z[most]['model']:.4f}.",
        abs(found[20]["model"] - found[most]["model"]) <= 1e-3,
        f"True once z hides the rare attributes; z = {CLASS_Z}, used in figures 7 and 8, hides none of the first 20.",
    )


def _entropy(given: Evidence) -> Claim:
    found, without = given.by_attributes(150), given.by_attributes(1)
    most = max(without)
    return Claim(
        "Figure 5b: entropy grows with the attributes, with z-anonymity it converges.",
        f"z = 150: {found[20]['entropy']:.3f} nats with 20 attributes, {found[most]['entropy']:.3f} with {most:,}; "
        f"z = 1: {without[20]['entropy']:.3f} and {without[most]['entropy']:.3f}.",
        abs(found[20]["entropy"] - found[most]["entropy"]) < 0.01,
        "Attributes are independent, so their entropies add up; an attribute that is never published adds nothing.",
    )


def _falls_then_rises(given: Evidence) -> Claim:
    rows = where(given.rows["by_users"], rule="100")
    least = min(rows, key=lambda one: one["model"])
    return Claim(
        "Figure 6a: with more people the probability falls at first, and then rises.",
        f"z = 100: {rows[0]['model']:.4f} with {rows[0]['users']:,} people, {least['model']:.4f} with "
        f"{least['users']:,}, {rows[-1]['model']:.4f} with {rows[-1]['users']:,}.",
        rows[0]["model"] > least["model"] < rows[-1]["model"],
        "At first more attributes pass z; once all pass, every combination is shared by more people.",
    )


def _proportional(given: Evidence) -> Claim:
    rows = given.rows["by_users"]
    users = max(one["users"] for one in rows if one["users"] <= 10**6)
    growing = [one for one in rows if one["rule"].startswith("U")]
    grown, fixed = where(growing, users=users, k=K)[0], where(rows, users=users, rule="10")[0]
    return Claim(
        "Figure 6b: with z = U/25 more people lead to better guarantees; if z does not grow, they worsen.",
        f"{users:,} people: {grown['model']:.4f} with z = {grown['z']:,}, and {fixed['model']:.4f} with z = 10. "
        f"At z = U/25 a share of {where(growing, users=USERS)[0]['released']:.6f} of the exposures is published with "
        f"{USERS:,} people.",
        abs(grown["model"] - fixed["model"]) > 1e-3,
        f"z = U/25 hides nothing at A = {ATTRIBUTES}: rank {ATTRIBUTES} is exposed by "
        f"{given.model.p_exposed()[-1]:.0%} of the people, and 4% suffice. More people help, a larger z does not.",
    )
