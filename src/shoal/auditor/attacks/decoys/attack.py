"""Distinguish decoys from real records: learn on the records of half of the people, and ask about the other half."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from shoal.auditor.attacks.decoys.features import StoredRecords, features
from shoal.auditor.attacks.decoys.trees import Trees, auc
from shoal.auditor.attacks.outcome import Attack, AttackReport, Question, Rate
from shoal.auditor.attacks.settings import Settings
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.numbers import Floats

_MOST: Final = 40_000
"""How many records are learnt from, and how many asked about."""
_DRAWN: Final = 200
"""Bootstrap samples of an interval."""
_USED: Final = 5
_FEWEST: Final = 10
"""Groups of ids; fewer cannot be divided into training and test."""
_KNOWS: Final = "the internal store without its keys, and which records of half of the people are real"
_CONTROL: Final = "the same, trained on labels in random order"

DECOY_OR_REAL: Final = Attack(
    "decoy or real", Question.LINKING,
    "Of a real record and a decoy, drawn at random, the one that looks more real to boosted trees is real.", _KNOWS,
)  # fmt: skip
_ONE_OF_GROUP: Final = Attack(
    "real one of its group", Question.LINKING,
    "Of the ids that appear together, one of which is a person and the others are decoys, the one that looks most real "
    "is the person.", _KNOWS,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Separation:
    """How well real records and decoys of the people who were asked about can be distinguished."""

    rows: Ints
    """The records asked about."""
    score: Floats
    """Their log-odds to be real."""
    auc: float
    low: float
    high: float
    """The 95% interval of the AUC, over people."""
    used: tuple[tuple[str, float], ...]
    """What the attack used most, and its share of what the trees gained."""


def separate(store: StoredRecords, random: np.random.Generator, *, drawn: int = _DRAWN) -> tuple[Separation, float]:
    """Train on half of the people and ask about the others; return also the AUC of training on shuffled labels."""
    x, names = features(store)
    groups = random.permutation(np.unique(store.together))
    is_known = np.isin(store.together, groups[: len(groups) // 2])
    known = random.permutation(np.flatnonzero(is_known))[:_MOST]
    asked = random.permutation(np.flatnonzero(~is_known))[:_MOST]
    model = Trees().fit(x[known], store.is_real[known])
    score, truth = model.score(x[asked]), store.is_real[asked]
    blind = Trees(rounds=20).fit(x[known], random.permutation(store.is_real[known])).score(x[asked])
    low, high = _interval(score, truth, store.together[asked], random, drawn)
    top = np.argsort(-model.gains)[:_USED]
    used = tuple((names[at], float(model.gains[at] / max(model.gains.sum(), 1e-9))) for at in top)
    return Separation(asked, score, auc(score, truth), low, high, used), auc(blind, truth)


def _interval(score: Floats, is_real: Bools, of: Ints, random: np.random.Generator, drawn: int) -> tuple[float, float]:
    """Draw people with replacement."""
    order = np.argsort(of, kind="stable")
    rows_of = np.split(order, np.flatnonzero(np.diff(of[order])) + 1)
    again = []
    for _ in range(drawn):
        rows = np.concatenate([rows_of[at] for at in random.integers(0, len(rows_of), len(rows_of))])
        again.append(auc(score[rows], is_real[rows]))
    return float(np.quantile(again, 0.025)), float(np.quantile(again, 0.975))


def attack_decoys(store: StoredRecords, settings: Settings) -> AttackReport:
    """Try both attacks on an internal store."""
    people = len(np.unique(store.person[store.is_real]))
    facts: dict[str, Any] = {
        "records": len(store.person),
        "decoys": int((~store.is_real).sum()),
        "ids": len(np.unique(store.person)),
        "people": people,
        "seed": settings.seed,
    }
    why = _why_not(store)
    if why:
        return AttackReport("sanitize", tuple(one.not_applicable(why) for one in (DECOY_OR_REAL, _ONE_OF_GROUP)), facts)
    settings.progress("learning which records are decoys")
    random = np.random.default_rng(settings.seed)
    found, blind = separate(store, random)
    facts["used"] = [f"{name} {share:.0%}" for name, share in found.used]
    asked = len(np.unique(store.together[found.rows]))
    rate = Rate(found.auc, min(found.low, found.auc), max(found.high, found.auc), asked)
    pair = replace(DECOY_OR_REAL, success=rate, guess=0.5, raw=1.0, control=blind, control_is=_CONTROL)
    return AttackReport("sanitize", (pair, one_of_group(store, found)), facts)


def _why_not(store: StoredRecords) -> str:
    if store.is_real.all():
        return "the store has no decoy"
    if not store.is_real.any():
        return "no record of the store is in the truth"
    return "there are too few people to learn from" if len(np.unique(store.together)) < _FEWEST else ""


def one_of_group(store: StoredRecords, found: Separation) -> Attack:
    """Pick in every group the id with the highest average score."""
    ids, turn = np.unique(store.person[found.rows], return_inverse=True)
    mean = np.bincount(turn, weights=found.score) / np.bincount(turn)
    is_real = np.bincount(turn, weights=store.is_real[found.rows]) > 0
    group = np.zeros(len(ids), np.int64)
    group[turn] = store.together[found.rows]
    success, blind = [], []
    for one in np.unique(group).tolist():
        members = np.flatnonzero(group == one)
        if is_real[members].any() and not is_real[members].all():
            best = members[mean[members] >= mean[members].max() - 1e-12]
            success.append(float(is_real[best].mean()))
            blind.append(float(is_real[members].mean()))
    if not success:
        return _ONE_OF_GROUP.not_applicable("no ids appear together in all their records (blend = false)")
    return replace(_ONE_OF_GROUP, success=Rate.of(success), guess=float(np.mean(blind)), raw=1.0)
