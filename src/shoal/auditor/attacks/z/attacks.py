"""Attack z-anonymity: released sets, one event, pseudonyms of the next epoch, values behind labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from shoal.auditor.attacks.item_lists import ItemLists
from shoal.auditor.attacks.outcome import Attack, AttackReport, Question, Rate, by_question, with_control
from shoal.auditor.attacks.z.evidence import Side, StreamEvidence, people_of_epoch
from shoal.auditor.attacks.z.trajectories import attack_trajectories
from shoal.auditor.counting import dense
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.numbers import Floats

_KNOWN: Final = (1, 2, 4)


def attack_stream(found: StreamEvidence) -> AttackReport:
    """Try every attack on z-anonymity."""
    settings = found.settings
    attacks: list[Attack] = []
    for name, run in (
        ("released sets", _sets), ("one event", _one_event), ("trajectories", attack_trajectories),
        ("next epoch", _next_epoch), ("labels", _labels),
    ):  # fmt: skip
        settings.progress(name)
        attacks += run(found)
    facts = {
        "released_rows": len(found.rows),
        "people": len(np.unique(found.raw.person)),
        "epochs": len(np.unique(found.shown.epoch)),
        "pseudonyms": len(found.shown.epoch),
        "targets": min(settings.targets, int((found.shown.person >= 0).sum())),
        "seed": settings.seed,
    }
    return AttackReport("z-anonymity", by_question(map(with_control, attacks)), facts)


# ---- singling out


def _sets(found: StreamEvidence) -> list[Attack]:
    attacks = [_whole_set(found)]
    return attacks + [_known_items(found, known) for known in _KNOWN]


def _whole_set(found: StreamEvidence) -> Attack:
    attack = Attack(
        "whole released set", Question.SINGLING_OUT,
        "No other person of the epoch has the same set of released values, so the pseudonym is certainly the person's.",
        "everything that was released of the person in an epoch",
    )  # fmt: skip
    targets = found.targets
    alone = _alone(found.shown)[targets]
    raw = _alone(found.raw)
    blind = 1 / people_of_epoch(found.shown, targets)
    return replace(attack, success=Rate.of(alone), guess=_mean(blind), raw=_mean(raw))


def _alone(side: Side) -> Bools:
    """Return which groups have a set of values that no other of the epoch has."""
    keys = [side.lists.of(group).tobytes() for group in range(len(side.epoch))]
    holders = Counter(keys)
    return np.array([holders[key] == 1 for key in keys], np.bool_)


def _known_items(found: StreamEvidence, count: int) -> Attack:
    attack = Attack(
        f"{count} known value{'s' if count > 1 else ''}", Question.SINGLING_OUT,
        "The pseudonym picked among those of the epoch that show all known values is the person's.",
        f"{count} of the values released of the person in an epoch",
    )  # fmt: skip
    targets = [at for at in found.targets.tolist() if found.shown.lists.sizes[at] >= count]
    if not targets:
        return attack.not_applicable(f"no person has {count} released values in an epoch")
    success = [1 / len(found.shown.lists.with_all(_some(found, found.shown, at, count))) for at in targets]
    raw = [
        1 / len(found.raw.lists.with_all(_some(found, found.raw, at, count)))
        for at in found.random.integers(len(found.raw.epoch), size=len(targets)).tolist()
        if found.raw.lists.sizes[at] >= count
    ]
    blind = 1 / people_of_epoch(found.shown, np.array(targets))
    return replace(attack, success=Rate.of(success), guess=_mean(blind), raw=_mean(raw))


def _some(found: StreamEvidence, side: Side, group: int, count: int) -> list[int]:
    chosen: list[int] = found.random.choice(side.lists.of(group), size=count, replace=False).tolist()
    return chosen


# ---- linking


def _one_event(found: StreamEvidence) -> list[Attack]:
    attack = Attack(
        "one value and its time", Question.LINKING,
        "The pseudonym picked among those with this value at this moment is the person's: all its other rows follow.",
        "one released event of the person: its value and its exact time",
    )  # fmt: skip
    success, blind = _by_moment(found, found.shown, found.targets)
    raw, _ = _by_moment(found, found.raw, found.random.permutation(len(found.raw.epoch))[: found.settings.targets])
    if not len(success):
        return [attack.not_applicable("no released row can be linked to a person")]
    return [replace(attack, success=Rate.of(success), guess=_mean(blind), raw=_mean(raw))]


def _by_moment(found: StreamEvidence, side: Side, targets: Ints) -> tuple[Floats, Floats]:
    item = side.items[0]
    usable = np.flatnonzero(item >= 0)
    event = dense(item[usable], side.time[usable])
    pairs = np.unique(event * (len(side.epoch) + 1) + side.group[usable])
    holders = np.bincount(pairs // (len(side.epoch) + 1))
    draw = found.random.permutation(len(usable))
    first = np.full(len(side.epoch), -1, np.int64)
    first[side.group[usable[draw]]] = event[draw]  # some event of every group
    asked = targets[first[targets] >= 0]
    return 1 / holders[first[asked]], 1 / people_of_epoch(side, asked)


def _next_epoch(found: StreamEvidence) -> list[Attack]:
    attack = Attack(
        "next epoch by behaviour", Question.LINKING,
        "The pseudonym of the next epoch whose values are most similar to the person's is the person's.",
        "the person's pseudonym of one epoch",
    )  # fmt: skip
    success, blind = _relinked(found, found.shown)
    if not success:
        return [
            attack.not_applicable("no person with a known pseudonym is released in two epochs that follow each other")
        ]
    raw, _ = _relinked(found, found.raw)
    return [replace(attack, success=Rate.of(success), guess=_mean(blind), raw=_mean(raw))]


def _relinked(found: StreamEvidence, side: Side) -> tuple[list[float], list[float]]:
    width = max((int(item.max(initial=-1)) + 1 for item in side.items), default=1)
    by_epoch = [np.flatnonzero(side.epoch == epoch) for epoch in range(int(side.epoch.max(initial=-1)) + 1)]
    lists = [_epoch_lists(side, groups, width) for groups in by_epoch]
    candidates: list[tuple[int, int]] = []
    for epoch in range(len(by_epoch) - 1):
        later = side.person[by_epoch[epoch + 1]]
        here = by_epoch[epoch]
        both = here[(side.person[here] >= 0) & np.isin(side.person[here], later)]
        candidates += [(epoch, group) for group in both.tolist()]
    chosen = found.random.permutation(len(candidates))[: found.settings.targets]
    success, blind = [], []
    for at in chosen.tolist():
        epoch, group = candidates[at]
        later = side.person[by_epoch[epoch + 1]]
        own = lists[epoch].of(int(np.searchsorted(by_epoch[epoch], group)))
        holders = np.bincount(lists[epoch + 1].item, minlength=width)
        weight = np.log((len(later) + 1) / (holders + 0.5))
        score = lists[epoch + 1].similarity(own, weight)
        best = score >= score.max() - 1e-12
        success.append(float((later[best] == side.person[group]).mean()))
        blind.append(1 / len(later))
    return success, blind


def _epoch_lists(side: Side, groups: Ints, width: int) -> ItemLists:
    place = np.full(len(side.epoch), -1, np.int64)
    place[groups] = np.arange(len(groups))
    owner = np.concatenate([place[side.group[item >= 0]] for item in side.items])
    item = np.concatenate([item[item >= 0] for item in side.items])
    here = owner >= 0
    return ItemLists(owner[here], item[here], len(groups), width)


# ---- inference


def _labels(found: StreamEvidence) -> list[Attack]:
    attacks = []
    for attribute in found.promise.attributes:
        suffix = f": {attribute.name}" if len(found.promise.attributes) > 1 else ""
        attack = Attack(
            f"value behind a label{suffix}", Question.INFERENCE,
            "The most common value under a released label, of those not released in the epoch, is the person's.",
            "how common values are",
        )  # fmt: skip
        values = found.aligned.values[attribute.name]
        linked = np.flatnonzero(found.link >= 0)
        true, shown = values.truth[found.link[linked]], values.shown[found.rows[linked]]
        lifted = linked[(shown >= 0) & (true >= 0) & (shown != true)]
        if not attribute.generalizes or not len(lifted):
            attacks.append(attack.not_applicable("no value is released under a label"))
            continue
        attacks.append(
            _behind(found, attack, attribute.name, found.random.permutation(lifted)[: found.settings.targets])
        )
    return attacks


def _behind(found: StreamEvidence, attack: Attack, name: str, rows: Ints) -> Attack:
    values = found.aligned.values[name]
    usable = np.flatnonzero(found.aligned.usable & (values.truth >= 0))
    count = np.bincount(values.truth[usable])
    leaves = np.flatnonzero(count)
    owner, _, label = values.paths.expand(leaves)
    below: dict[int, Ints] = {
        one: leaves[owner[label == one]] for one in np.unique(values.shown[found.rows[rows]]).tolist()
    }
    epoch = found.shown.epoch[found.shown.group]
    width = int(max(values.shown.max(initial=0), values.truth.max(initial=0))) + 1
    released = np.unique(epoch * width + np.maximum(values.shown[found.rows], 0))
    success = []
    for at in rows.tolist():
        options = below[int(values.shown[found.rows[at]])]
        hidden = options[~np.isin(epoch[at] * width + options, released)]
        options = hidden if len(hidden) else options
        success.append(float(options[count[options].argmax()] == values.truth[found.link[at]]))
    prior = float(np.mean(values.truth[found.link[rows]] == count.argmax()))
    return replace(attack, success=Rate.of(success), guess=prior, raw=1.0)


def _mean(values: Sequence[float] | Floats | Bools) -> float | None:
    return float(np.mean(values)) if len(values) else None
