"""What the z-anonymity paper says of its figures, held against its own formulae and against simulations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from shoal.models.z.model import ZModel
from shoal.models.z.simulate import averaged
from shoal.reproduce.study import Claim, Table
from shoal.reproduce.z.study import (
    ATTRIBUTES,
    CLASS_Z,
    CONFIDENCE,
    FALLS,
    KEPT,
    TABLE_3,
    USERS,
    WINDOW,
    K,
    Z,
    activity_rates,
    table_2,
    two_classes,
)

_RANK, _RARE = 13, 1e-6
"""Of which the paper says that it is published this rarely at z = 100."""
_PAPER_DEVIATION, _PAPER_NEAR = 0.04, 0.005
_NEAR: Final = 0.02
_SIX_DIGITS: Final = 5e-7
_SLOW: Final = 0.1
"""The ratio of activity at which we show what the printed formula gives."""


class ZClaims:
    """The paper's sentences, figure by figure."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._rows = {name: table.records for name, table in tables.items()}
        self._model = table_2()
        self._known: dict[tuple[int, int], float] = {}

    def all(self) -> Iterator[Claim]:
        """In the paper's order."""
        yield self._rank_13()
        yield self._straight()
        yield self._rises_from_100()
        yield self._at_250()
        yield self._monotone()
        yield self._whole_release()
        yield self._match()
        yield self._window()
        yield self._without_z()
        yield self._marginal()
        yield self._entropy()
        yield self._falls_then_rises()
        yield self._proportional()
        yield self._printed_formula()
        yield self._fewer_tuples()
        yield self._ratio_one()
        yield self._equal_interests()
        yield self._both_benefit()
        yield self._seeds()
        yield self._same_result()

    def _p(self, z: int, k: int = K) -> float:
        """To six digits, from the likelier combinations alone."""
        if (z, k) not in self._known:
            found = self._model.p_k_anonymous(z, k, method="tree", theta1=1e-7, theta2=1e-3)
            if found.upper - found.lower > _SIX_DIGITS:
                found = self._model.p_k_anonymous(z, k, method="exact")
            self._known[z, k] = found.value
        return self._known[z, k]

    def _rank_13(self) -> Claim:
        found = {window: table_2(attributes=1000, window=window) for window in (WINDOW, 4.0)}
        p = {window: model.p_published(100) for window, model in found.items()}
        exposed = {window: float(model.p_exposed()[_RANK - 1]) for window, model in found.items()}
        first = int(np.argmax(p[WINDOW] < _RARE)) + 1
        return Claim(
            f"Figure 2, z = 100: rank {_RANK} is published with a probability below 10⁻⁶, and exposed with 10⁻¹.",
            f"Δt = 12 (Table 2): published {p[WINDOW][_RANK - 1]:.4f}, exposed {exposed[WINDOW]:.3f}; the first rank "
            f"below 10⁻⁶ is {first}. Δt = 4: published {p[4.0][_RANK - 1]:.1e}, exposed {exposed[4.0]:.3f}.",
            bool(p[WINDOW][_RANK - 1] < _RARE),
            "It does not follow from the formulae at Table 2; it would for a window of about 4.",
        )

    def _straight(self) -> Claim:
        exposed = table_2(attributes=1000).p_exposed()

        def slope(one: int, other: int) -> float:
            return math.log(exposed[other - 1] / exposed[one - 1]) / math.log(other / one)

        return Claim(
            "Figure 2: without anonymization the curve is a straight line on logarithmic axes.",
            f"Slope {slope(1, 2):.2f} from rank 1 to 2, {slope(10, 20):.2f} from 10 to 20, {slope(100, 1000):.2f} from "
            "100 to 1000.",
            abs(slope(1, 2) - slope(100, 1000)) < _NEAR,
            "Rates are a power law; probabilities are one only where they are small, and cannot pass 1.",
        )

    def _rises_from_100(self) -> Claim:
        return Claim(
            "Figure 3, k = 2: the probability increases from z = 100 on.",
            "; ".join(f"z = {z}: {self._p(z):.4f}" for z in (1, 50, 100, 120)) + ".",
            self._p(100) - self._p(1) < _NEAR < self._p(120) - self._p(100),
            f"Below, z hides nothing: even rank {ATTRIBUTES} is exposed by "
            f"{USERS * self._model.p_exposed()[-1]:.0f} people on average.",
        )

    def _at_250(self) -> Claim:
        first = next(z for z in range(150, 300) if self._model.p_k_anonymous(z, K, method="tree").lower >= 0.8)
        return Claim(
            "Figure 3, k = 2: 0.8 at z = 250.",
            f"{self._p(250):.6f} at z = 250; 0.8 is reached at z = {first} ({self._p(first):.4f}).",
            abs(self._p(250) - 0.8) < _NEAR,
            f"k = 3 has {self._p(250, 3):.4f} there; the sentence would fit k = 4, which has {self._p(250, 4):.4f}.",
        )

    def _monotone(self) -> Claim:
        pairs = list(zip(FALLS[::2], FALLS[1::2], strict=True))
        found = [(self._p(one), self._p(other)) for one, other in pairs]
        return Claim(
            "Figure 3: the larger z, the higher the probability.",
            "; ".join(
                f"z = {one} to {other}: {p:.6f} to {q:.6f}" for (one, other), (p, q) in zip(pairs, found, strict=True)
            )
            + ".",
            all(p <= q for p, q in found),
            "Where an attribute hardly ever passes, few show it, and they stand out. That is the formula, in which it "
            f"passes for each person apart; in a stream it passes for all or none at a time. {self._played(pairs)}.",
        )

    def _played(self, pairs: list[tuple[int, int]]) -> str:
        """What the simulations say of the same z."""
        found = {one["z"]: one["simulated"] for one in self._rows["by_z"] if one["k"] == K and one["simulated"]}
        told = [f"z = {a} to {b}: {found[a]:.4f} to {found[b]:.4f}" for a, b in pairs if a in found and b in found]
        return "Runs: " + "; ".join(told)

    def _whole_release(self) -> Claim:
        row = next(one for one in self._rows["by_z"] if one["k"] == K and one["z"] == 350)
        return Claim(
            "Figure 3: above z = 350 the probability approaches 1, so that almost certainly all of the release is "
            "k-anonymous.",
            f"{row['model']:.4f} at z = 350: {USERS * (1 - row['model']):.1f} of {USERS} people are not, on average. "
            f"All were in {row['runs_with_all_alike']:.0%} of the runs, and {row['simulated']:.4f} of the people.",
            bool(row["runs_with_all_alike"] >= 0.95),
            "A high probability for one person is none for all of them. Over people who show anything it was "
            f"{row['simulated_among_shown']:.4f} at z = 350, where {row['released']:.0%} of the exposures leave.",
        )

    def _match(self) -> Claim:
        rows = [one for one in self._rows["by_z"] if one["simulated"] is not None]
        worst = max(rows, key=lambda one: abs(one["simulated"] - one["model"]))
        away = worst["simulated"] - worst["model"]
        return Claim(
            "Figure 3: model and simulations match almost perfectly.",
            f"Farthest apart at z = {worst['z']}, k = {worst['k']}: model {worst['model']:.4f}, simulated "
            f"{worst['simulated']:.4f} ({worst['low']:.4f} to {worst['high']:.4f}).",
            abs(away) <= _NEAR,
            "The model takes people as independent; in a stream an attribute passes for everybody at a time. "
            + self._with_shares(),
        )

    def _with_shares(self) -> str:
        rows = [one for one in self._rows["by_z"] if one["model_with_simulated_shares"] is not None]
        rows = [one for one in rows if one["high"] > one["low"]]
        clearest = max(rows, key=lambda one: abs(one["simulated"] - one["model"]) / (one["high"] - one["low"]))
        return (
            f"At z = {clearest['z']}, k = {K}: model {clearest['model']:.4f}, simulated {clearest['simulated']:.4f}, "
            "the formula with the shares of people who publish each attribute as found in the runs "
            f"{clearest['model_with_simulated_shares']:.4f}."
        )

    def _window(self) -> Claim:
        rows = [one for one in self._rows["by_window"] if one["k"] == K]
        least = min(rows, key=lambda one: one["model"])
        short, longer = (table_2(window=window).p_k_anonymous(Z, K, width=1e-5).value for window in (2.0, 2.5))
        return Claim(
            "Figure 4: the longer the window, the lower the probability.",
            f"k = 2: it falls to {least['model']:.4f} at Δt = {least['window']:g} and rises to "
            f"{rows[-1]['model']:.4f} at {rows[-1]['window']:g}; it also rises from {short:.4f} at Δt = 2 to "
            f"{longer:.4f} at 2.5.",
            least is rows[-1] and short >= longer,
            "With a long window everybody shows the same popular attributes; at the other end it is as with z.",
        )

    def _attributes(self, z: int) -> dict[int, Any]:
        return {one["attributes"]: one for one in self._rows["by_attributes"] if one["z"] == z}

    def _without_z(self) -> Claim:
        found = self._attributes(1)
        return Claim(
            "Figure 5a: it starts at 1, and without z-anonymity rapidly goes to 0 with more attributes.",
            "; ".join(f"A = {A}: {found[A]['model']:.4f}" for A in (1, 5, 10, 20, 30, 50)) + ".",
            found[1]["lower"] > 0.99 and found[50]["upper"] < 0.01,
            "The number of combinations doubles with every attribute, the people stay as many.",
        )

    def _marginal(self) -> Claim:
        found, most = self._attributes(150), max(one["attributes"] for one in self._rows["by_attributes"])
        return Claim(
            "Figure 5a: with z-anonymity the size of the catalog plays a marginal role.",
            f"z = 150: {found[20]['model']:.4f} with 20 attributes, {found[most]['model']:.4f} with {most:,}. z = 50: "
            f"{self._attributes(50)[20]['model']:.4f} and {self._attributes(50)[most]['model']:.4f}.",
            abs(found[20]["model"] - found[most]["model"]) <= 1e-3,
            f"True once z hides the tail; at z = {CLASS_Z}, that of figures 7 and 8, the first 20 are not hidden.",
        )

    def _entropy(self) -> Claim:
        found, open_, most = self._attributes(150), self._attributes(1), max(self._attributes(1))
        return Claim(
            "Figure 5b: entropy grows with the attributes, with z-anonymity it converges.",
            f"z = 150: {found[20]['entropy']:.3f} nats with 20 attributes, {found[most]['entropy']:.3f} with {most:,}; "
            f"z = 1: {open_[20]['entropy']:.3f} and {open_[most]['entropy']:.3f}.",
            abs(found[20]["entropy"] - found[most]["entropy"]) < 0.01,
            "Attributes are independent, so entropy is the sum of theirs; what is never published adds nothing.",
        )

    def _falls_then_rises(self) -> Claim:
        rows = [one for one in self._rows["by_users"] if one["rule"] == "100"]
        least = min(rows, key=lambda one: one["model"])
        return Claim(
            "Figure 6a: with more people the probability falls at first, and then rises.",
            f"z = 100: {rows[0]['model']:.4f} with {rows[0]['users']:,} people, {least['model']:.4f} with "
            f"{least['users']:,}, {rows[-1]['model']:.4f} with {rows[-1]['users']:,}.",
            rows[0]["model"] > least["model"] < rows[-1]["model"],
            "First more attributes pass z, then all do, and every combination has more people.",
        )

    def _proportional(self) -> Claim:
        rows = self._rows["by_users"]
        users = max(one["users"] for one in rows if one["users"] <= 10**6)
        grown = next(one for one in rows if one["users"] == users and one["rule"].startswith("U") and one["k"] == K)
        fixed = next(one for one in rows if one["users"] == users and one["rule"] == "10")
        share = next(one["released"] for one in rows if one["users"] == USERS and one["rule"].startswith("U"))
        return Claim(
            "Figure 6b: with z = U/25 more people lead to better guarantees; if z does not grow, they worsen.",
            f"{users:,} people: {grown['model']:.4f} with z = {grown['z']:,}, and {fixed['model']:.4f} with z = 10. "
            f"At z = U/25 a share of {share:.6f} of the exposures leaves with {USERS:,} people.",
            abs(grown["model"] - fixed["model"]) > 1e-3,
            f"z = U/25 hides nothing at A = {ATTRIBUTES}: rank {ATTRIBUTES} is exposed by "
            f"{self._model.p_exposed()[-1]:.0%} of the people, where 4% suffice. More people help, not a larger z.",
        )

    def _printed_formula(self) -> Claim:
        rates = activity_rates(_SLOW)
        # As printed, all others have the person's own chances: then they are one binomial count.
        printed = float(ZModel(USERS, rates[1], WINDOW).p_passes(CLASS_Z)[-1])
        meant = float(two_classes(rates).p_passes(CLASS_Z)[1, -1])
        return Claim(
            "Section 6: others of class i expose an attribute with the probability of the person's own class c.",
            f"Figure 7 at ratio {_SLOW:g}, rank {ATTRIBUTES}: an exposure of the slow class passes with {printed:.1e} "
            f"as printed, with {meant:.4f} if each class has its own.",
            abs(printed - meant) < _NEAR,
            "A slip of an index: with their own probabilities the formula agrees with the simulations.",
        )

    def _fewer_tuples(self) -> Claim:
        rows = [one for one in self._rows["activity"] if one["people"] == "all"]
        extreme = rows[0]
        without = two_classes(activity_rates(extreme["ratio"])).p_k_anonymous(1, K, method="sample").value
        return Claim(
            "Figure 7: with unequal classes fewer exposures can be published, and therefore the probability rises.",
            f"Ratio {extreme['ratio']:g}: {extreme['released']:.6f} of the exposures leave; the probability is "
            f"{without:.4f} without z-anonymity and {extreme['model']:.4f} with z = {CLASS_Z}.",
            min(one["released"] for one in rows) < 0.99,
            "It rises, but z has no part in it: who hardly exposes anything is alike with others who do not.",
        )

    def _ratio_one(self) -> Claim:
        row = next(one for one in self._rows["activity"] if one["people"] == "all" and abs(one["ratio"] - 1) < 1e-9)
        return Claim(
            "Figure 7: at ratio 1 it is the value of figure 3.",
            f"{row['model']:.4f}; figure 3 at z = {CLASS_Z}: {self._p(CLASS_Z):.4f}.",
            row["lower"] <= self._p(CLASS_Z) + 1e-9 and self._p(CLASS_Z) - 1e-9 <= row["upper"],
            "And that of no anonymization, since z = 50 hides none of the 20 attributes.",
        )

    def _interest(self, rule: str, people: str) -> dict[float, Any]:
        rows = self._rows["interest"]
        return {one["separation"]: one for one in rows if one["rule"] == rule and one["people"] == people}

    def _equal_interests(self) -> Claim:
        table, kept = (self._interest(rule, "all")[0.0]["model"] for rule in (TABLE_3, KEPT))
        return Claim(
            "Figure 8: with η = 0.5 it is the value of the single class.",
            f"By Table 3 {table:.4f}, with the mean rate kept {kept:.4f}; single class {self._p(CLASS_Z):.4f}.",
            abs(table - self._p(CLASS_Z)) < _NEAR,
            "Table 3 gives both classes half the rates at η = 0.5. Twice its rates keep the mean.",
        )

    def _both_benefit(self) -> Claim:
        found = [
            (rule, *(self._interest(rule, "class 1")[at]["model"] for at in (0.0, 0.2, 0.4, 1.0)))
            for rule in (TABLE_3, KEPT)
        ]
        return Claim(
            "Figure 8: both classes benefit from separation.",
            "; ".join(
                f"{rule}, class 1: {a:.4f} at 0, {b:.4f} at 0.2, {c:.4f} at 0.4, {d:.4f} at 1"
                for rule, a, b, c, d in found
            )
            + ".",
            all(a <= b <= c for _, a, b, c, _ in found),
            "Far apart they do. A little apart, class 1 (even ranks) shows as many combinations as before, and finds "
            "fewer people of the other class in them.",
        )

    def _seeds(self) -> Claim:
        shares = np.array([one["k_anonymous"] for one in self._rows["seeds"]])
        found, deviation = averaged(shares, CONFIDENCE), float(shares.std(ddof=1))
        exact = self._p(Z)
        return Claim(
            f"Figure C.10: the mean of the runs is within {_PAPER_NEAR} of the model; one run deviates by "
            f"{_PAPER_DEVIATION}.",
            f"{len(shares)} runs: {found.value:.4f} ({found.lower:.4f} to {found.upper:.4f}), model {exact:.4f}; "
            f"one run deviates by {deviation:.3f}.",
            found.lower - _PAPER_NEAR <= exact <= found.upper + _PAPER_NEAR,
            f"{_PAPER_NEAR} can be told from chance only with some hundred runs.",
        )

    def _same_result(self) -> Claim:
        exact, tree = self._p(Z), self._model.p_k_anonymous(Z, K, method="tree")
        return Claim(
            "Figure C.10: exact and approximated model return the same.",
            f"{exact:.6f} and {tree.value:.6f}, with {tree.coverage:.4f} of the combinations covered, by probability.",
            abs(exact - tree.value) < 1e-4,
            f"What is left out is unlikely, so hardly anybody shares it. Proven: {tree.lower:.6f} to {tree.upper:.6f}.",
        )
