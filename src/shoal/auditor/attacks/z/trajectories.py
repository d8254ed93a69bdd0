"""Find a pseudonym by a few places and times: values with the hour in which the person had them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from shoal.auditor.attacks.item_lists import ItemLists
from shoal.auditor.attacks.outcome import Attack, Question, Rate
from shoal.auditor.attacks.z.evidence import Side, StreamEvidence, people_of_epoch
from shoal.auditor.counting import dense
from shoal.auditor.reading.columns import Ints

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
    everyone = found.random.permutation(np.flatnonzero(raw.sizes >= steps))[: len(targets)]
    return replace(
        attack,
        success=Rate.of(_picked(found, shown, targets, steps)),
        guess=float(np.mean(1 / people_of_epoch(found.shown, targets))),
        raw=float(np.mean(_picked(found, raw, everyone, steps))),
    )


def _picked(found: StreamEvidence, lists: ItemLists, targets: Ints, steps: int) -> list[float]:
    """Return, for every target, the chance to pick it among those who fit."""
    chances = []
    for target in targets.tolist():
        known = found.random.choice(lists.of(target), size=steps, replace=False)
        chances.append(1 / len(lists.with_all(known.tolist())))
    return chances


def _by_hour(side: Side) -> ItemLists:
    """Return the values with their hour of every person in every epoch."""
    owner = np.concatenate([side.group[item >= 0] for item in side.items])
    item = np.concatenate([item[item >= 0] for item in side.items])
    hour = np.concatenate([side.time[item >= 0] // _HOUR for item in side.items])
    if not len(owner):
        return ItemLists(owner, item, len(side.epoch), 0)
    step = dense(side.epoch[owner], item, hour)
    return ItemLists(owner, step, len(side.epoch), int(step.max()) + 1)
