"""The traceability attack: an attacker knows where someone lives and when they measured there, and wants the rest.

Rows whose labels cover what is known are the candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from shoal.reproduce.flexible.releases import Bools, Shown, Truth

_RARE: Final = 0.01
"""Labels with at most this share of the rows are rare."""
_MANY: Final = 3
"""Groups at home from which on a person's groups are compared."""
_LINKS: Final = 5
"""Rows at home of each person from which the attacker goes on."""
STEPS: Final = (0.01, 1.0, 10.0)
"""What speeds are rounded to, in Mbit/s; the first is as they were measured."""


@dataclass(frozen=True)
class Target:
    """What the attacker knows of a person."""

    person: int
    cell: int
    model: int
    at_home: Bools
    """By hour of the campaign."""


def targets(truth: Truth, count: int, seed: int) -> list[Target]:
    """Some people with at least two rows at the cell they are at most often."""
    chosen = np.random.default_rng(seed).permutation(int(truth.person.max()) + 1)
    by_person = np.argsort(truth.person, kind="stable")
    bounds = np.searchsorted(truth.person[by_person], np.arange(len(chosen) + 1))
    found: list[Target] = []
    for person in chosen.tolist():
        own = by_person[bounds[person] : bounds[person + 1]]
        home = int(np.bincount(truth.cell[own]).argmax())
        there = own[truth.cell[own] == home]
        if len(there) > 1 and len(found) < count:
            known = np.zeros(truth.hours, np.bool_)
            known[truth.hour[there]] = True
            found.append(Target(person, home, int(truth.model[own[0]]), known))
    return found


def covering(shown: Shown, target: Target, *, knows_device: bool) -> Bools:
    """Rows whose labels cover what is known."""
    before, hours = np.concatenate(([0], np.cumsum(target.at_home))), len(target.at_home)
    found: Bools = shown.places[shown.place, target.cell]
    found = found & (before[np.minimum(shown.end, hours)] > before[np.minimum(shown.begin, hours)])
    return found & shown.devices[shown.device, target.model] if knows_device else found


def find(shown: Shown, known: Sequence[Target], *, knows_device: bool) -> dict[str, Any]:
    """Pick the candidates of everybody."""
    people, precision, recall, guess, lost = [], [], [], [], 0
    size = shown.places.sum(axis=1)[shown.place] * (shown.end - shown.begin)
    if knows_device:
        size = size * np.maximum(shown.devices.sum(axis=1), 1)[shown.device]
    for target in known:
        own = shown.person == target.person
        rows = covering(shown, target, knows_device=knows_device)
        if not (rows & own).any():
            lost += 1
            continue
        behind, counts = np.unique(shown.person[rows], return_counts=True)
        people.append(len(behind))
        finest = rows & (size == size[rows].min())
        guess.append((finest & own).sum() / finest.sum())
        if shown.has_pseudonyms:
            rows = shown.person == behind[counts.argmax()]
        precision.append((rows & own).sum() / rows.sum())
        recall.append((rows & own).sum() / own.sum())
    promised = shown.promised[1 if knows_device else 0] if shown.promised else None
    return {
        "people": len(known), "nothing published": lost, "least": min(people, default=None),
        "median": float(np.median(people)) if people else None, "alone": _mean([count == 1 for count in people]),
        "promised": promised,
        "below": None if promised is None else _mean([count < promised for count in people]),
        "guess": _mean(guess), "over": None if promised is None else _mean([share > 1 / promised for share in guess]),
        "precision": _mean(precision), "recall": _mean(recall),
    }  # fmt: skip


def chain(shown: Shown, known: Sequence[Target]) -> dict[str, Any]:
    """Go on from every target's rows at home to the next row elsewhere with the same device label."""
    is_rare = np.bincount(shown.device, minlength=len(shown.devices)) <= _RARE * len(shown.device)
    right, rare_right, chances = [], [], []
    for target in known:
        own = shown.person == target.person
        elsewhere = ~shown.places[shown.place, target.cell]
        at_home = np.flatnonzero(own & ~elsewhere)
        for row in at_home[:: max(1, len(at_home) // _LINKS)]:
            later = elsewhere & (shown.begin >= shown.end[row])
            alike = np.flatnonzero(later & (shown.device == shown.device[row]))
            if not len(alike):
                continue
            hit = bool(own[alike[0]])
            if shown.has_pseudonyms:
                hit = True  # the pseudonym tells
            right.append(hit)
            chances.append((own & later).sum() / later.sum())
            if is_rare[shown.device[row]]:
                rare_right.append(hit)
    return {
        "links": len(right), "chained": _mean(right), "rare links": len(rare_right), "rare chained": _mean(rare_right),
        "by chance": _mean(chances),
    }  # fmt: skip


def together(shown: Shown, known: Sequence[Target]) -> dict[str, Any]:
    """Other people in all groups, by all labels, that contain a person's rows at home."""
    group = shown.groups(with_device=True)
    others = []
    for target in known:
        own = (shown.person == target.person) & shown.places[shown.place, target.cell]
        groups = np.unique(group[own])
        if len(groups) >= _MANY:
            sets = [set(shown.person[group == one].tolist()) for one in groups.tolist()]
            others.append(len(set.intersection(*sets)) - 1)
    median = float(np.median(others)) if others else None
    return {"people": len(others), "others": median, "no one else": _mean([count == 0 for count in others])}


def speeds(shown: Shown, known: Sequence[Target]) -> dict[str, float | None]:
    """The share of rows that the speed alone tells from all others, and of those of the targets at home that it does
    together with home and hour."""
    found: dict[str, float | None] = {}
    for step in STEPS:
        value = np.rint(shown.speed / step).astype(np.int64)
        _, code, counts = np.unique(value, return_inverse=True, return_counts=True)
        found[f"unique at {step:g}"] = _mean(counts[code] == 1)
        alone = []
        for target in known:
            rows = np.flatnonzero(covering(shown, target, knows_device=False))
            _, here, times = np.unique(value[rows], return_inverse=True, return_counts=True)
            alone += (times[here] == 1)[shown.person[rows] == target.person].tolist()
        found[f"with home and hour at {step:g}"] = _mean(alone)
    return found


def _mean(values: Any) -> float | None:
    return float(np.mean(values)) if len(values) else None
