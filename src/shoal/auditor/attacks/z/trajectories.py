"""Find a pseudonym by a few places and times: values with the hour in which the person had them."""

from __future__ import annotations

from typing import Final

import numpy as np

from shoal.auditor.attacks.item_lists import ItemLists
from shoal.auditor.attacks.outcome import Attack, Question, rated
from shoal.auditor.attacks.z.evidence import Side, StreamEvidence
from shoal.auditor.counting import dense

_STEPS: Final = (2, 4)
_HOUR: Final = 3_600_000_000_000


def attack_trajectories(found: StreamEvidence) -> list[Attack]:
    """Try attackers who know some steps of a person's way."""
    shown, raw = _by_hour(found.shown), _by_hour(found.raw)
    return [_attack(found, shown, raw, steps) for steps in _STEPS]


def _attack(found: StreamEvidence, shown: ItemLists, raw: ItemLists, steps: int) -> Attack:
    attack = Attack(
        f"trajectory of {steps}", Question.LINKING,
        "The pseudonym picked among those with these values in these hours is the person's: all its other rows follow.",
        f"{steps} released events of the person: each value and its hour",
    )  # fmt: skip
    targets = found.targets
    targets = targets[shown.sizes[targets] >= steps]
    if not len(targets):
        return attack.not_applicable(
            f"no person with a known pseudonym has {steps} released values or hours in an epoch"
        )
    others = found.random.permutation(np.flatnonzero(raw.sizes >= steps))[: len(targets)]
    success = found.picked(shown, targets, steps)
    return rated(attack, success, found.shown.blind(targets), found.picked(raw, others, steps))


def _by_hour(side: Side) -> ItemLists:
    """Return the values with their hour of every person in every epoch."""
    owner, item = side.pairs
    hour = np.concatenate([side.time[item >= 0] for item in side.items]) // _HOUR
    step = dense(side.epoch[owner], item, hour)
    return ItemLists(owner, step, len(side), int(step.max(initial=-1)) + 1)
