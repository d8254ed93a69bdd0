"""What the z-anonymity paper says about classes of people (figures 7 and 8) and about its simulations (C.10)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from shoal.models.z.model import ZModel
from shoal.models.z.simulate import averaged
from shoal.reproduce.study import Claim, where
from shoal.reproduce.z.claims import NEAR, Evidence
from shoal.reproduce.z.study import (
    ATTRIBUTES,
    CLASS_Z,
    CONFIDENCE,
    KEPT,
    TABLE_3,
    USERS,
    WINDOW,
    K,
    Z,
    activity_rates,
    two_classes,
)

_PAPER_DEVIATION, _PAPER_NEAR = 0.04, 0.005
_SLOW: Final = 0.1
"""Ratio of activity at which we evaluate the printed formula."""


def class_claims(given: Evidence) -> Iterator[Claim]:
    """Yield the claims about figures 7, 8 and C.10, in the paper's order."""
    yield _printed_formula()
    claims = (_fewer_tuples, _ratio_one, _equal_interests, _both_benefit, _seeds, _same_result)
    yield from (claim(given) for claim in claims)


def _printed_formula() -> Claim:
    rates = activity_rates(_SLOW)
    # As printed, everyone else has the person's own probabilities, so their number is binomial.
    printed = float(ZModel(USERS, rates[1], WINDOW).p_passes(CLASS_Z)[-1])
    meant = float(two_classes(rates).p_passes(CLASS_Z)[1, -1])
    return Claim(
        "Section 6: others of class i expose an attribute with the probability of the person's own class c.",
        f"Figure 7 at ratio {_SLOW:g}, rank {ATTRIBUTES}: an exposure of the slow class passes with {printed:.1e} "
        f"as printed, with {meant:.4f} if each class has its own probability.",
        abs(printed - meant) < NEAR,
        "A wrong index: with a probability per class the formula agrees with the simulations.",
    )


def _fewer_tuples(given: Evidence) -> Claim:
    rows = where(given.rows["activity"], people="all")
    extreme = rows[0]
    without = two_classes(activity_rates(extreme["ratio"])).p_k_anonymous(1, K, method="sample").value
    return Claim(
        "Figure 7: with unequal classes fewer exposures can be published, and therefore the probability rises.",
        f"Ratio {extreme['ratio']:g}: {extreme['released']:.6f} of the exposures are published; the probability is "
        f"{without:.4f} without z-anonymity and {extreme['model']:.4f} with z = {CLASS_Z}.",
        min(one["released"] for one in rows) < 0.99,
        "It rises, but not because of z: people who expose hardly anything are alike.",
    )


def _ratio_one(given: Evidence) -> Claim:
    row = next(one for one in where(given.rows["activity"], people="all") if abs(one["ratio"] - 1) < 1e-9)
    return Claim(
        "Figure 7: at ratio 1 it is the value of figure 3.",
        f"{row['model']:.4f}; figure 3 at z = {CLASS_Z}: {given.p(CLASS_Z):.4f}.",
        row["lower"] <= given.p(CLASS_Z) + 1e-9 and given.p(CLASS_Z) - 1e-9 <= row["upper"],
        "It is also the value without anonymization, since z = 50 hides none of the 20 attributes.",
    )


def _interest(given: Evidence, rule: str, people: str) -> dict[float, Any]:
    return {one["separation"]: one["model"] for one in where(given.rows["interest"], rule=rule, people=people)}


def _equal_interests(given: Evidence) -> Claim:
    table, kept = (_interest(given, rule, "all")[0.0] for rule in (TABLE_3, KEPT))
    return Claim(
        "Figure 8: with η = 0.5 it is the value of the single class.",
        f"By Table 3 {table:.4f}, with the mean rate kept {kept:.4f}; single class {given.p(CLASS_Z):.4f}.",
        abs(table - given.p(CLASS_Z)) < NEAR,
        "Table 3 gives both classes half the rates at η = 0.5. Doubling its rates keeps the mean.",
    )


def _both_benefit(given: Evidence) -> Claim:
    found = [
        (rule, *map(_interest(given, rule, "class 1").__getitem__, (0.0, 0.2, 0.4, 1.0))) for rule in (TABLE_3, KEPT)
    ]
    texts = [
        f"{rule}, class 1: {a:.4f} at 0, {b:.4f} at 0.2, {c:.4f} at 0.4, {d:.4f} at 1" for rule, a, b, c, d in found
    ]
    return Claim(
        "Figure 8: both classes benefit from separation.",
        f"{'; '.join(texts)}.",
        all(a <= b <= c for _, a, b, c, _ in found),
        "With a large separation they do. With a small one, class 1 (even ranks) shows as many combinations as before "
        "and shares them with fewer people of the other class.",
    )


def _seeds(given: Evidence) -> Claim:
    shares = np.array([one["k_anonymous"] for one in given.rows["seeds"]])
    found, deviation, exact = averaged(shares, CONFIDENCE), float(shares.std(ddof=1)), given.p(Z)
    return Claim(
        f"Figure C.10: the mean of the runs is within {_PAPER_NEAR} of the model; one run deviates by "
        f"{_PAPER_DEVIATION}.",
        f"{len(shares)} runs: {found.value:.4f} ({found.lower:.4f} to {found.upper:.4f}), model {exact:.4f}; "
        f"one run deviates by {deviation:.3f}.",
        found.lower - _PAPER_NEAR <= exact <= found.upper + _PAPER_NEAR,
        f"It takes some hundred runs to tell a difference of {_PAPER_NEAR} from chance.",
    )


def _same_result(given: Evidence) -> Claim:
    exact, tree = given.p(Z), given.model.p_k_anonymous(Z, K, method="tree")
    return Claim(
        "Figure C.10: exact and approximated model return the same.",
        f"{exact:.6f} and {tree.value:.6f}; the approximation covers combinations of total probability "
        f"{tree.coverage:.4f}.",
        abs(exact - tree.value) < 1e-4,
        "The approximation omits unlikely combinations, which hardly anyone shares. Proven bounds: "
        f"{tree.lower:.6f} to {tree.upper:.6f}.",
    )
