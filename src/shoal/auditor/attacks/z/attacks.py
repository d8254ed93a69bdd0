"""Attack z-anonymity: released sets, one event, pseudonyms of the next epoch, values behind labels."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Final

import numpy as np

from shoal.auditor.attacks.item_lists import ItemLists
from shoal.auditor.attacks.outcome import Attack, AttackReport, Question, Rate, by_question, rated, with_control
from shoal.auditor.attacks.z.evidence import Side, StreamEvidence
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
        "pseudonyms": len(found.shown),
        "targets": min(settings.targets, int((found.shown.person >= 0).sum())),
        "seed": settings.seed,
    }
    return AttackReport("z-anonymity", by_question(map(with_control, attacks)), facts)


# ---- singling out


def _sets(found: StreamEvidence) -> list[Attack]:
    return [_whole_set(found), *(_known_items(found, known) for known in _KNOWN)]


def _whole_set(found: StreamEvidence) -> Attack:
    attack = Attack(
        "whole released set", Question.SINGLING_OUT,
        "No other person of the epoch has the same set of released values, so the pseudonym is certainly the person's.",
        "everything that was released of the person in an epoch",
    )  # fmt: skip
    targets = found.targets
    return rated(attack, _alone(found.shown_lists)[targets], found.shown.blind(targets), _alone(found.raw_lists))


def _alone(lists: ItemLists) -> Bools:
    """Return which groups have a set of values that no other of the epoch has."""
    keys = [lists.of(group).tobytes() for group in range(len(lists))]
    holders = Counter(keys)
    return np.array([holders[key] == 1 for key in keys], np.bool_)


def _known_items(found: StreamEvidence, count: int) -> Attack:
    attack = Attack(
        f"{count} known value{'s' if count > 1 else ''}", Question.SINGLING_OUT,
        "The pseudonym picked among those of the epoch that show all known values is the person's.",
        f"{count} of the values released of the person in an epoch",
    )  # fmt: skip
    targets = found.targets
    targets = targets[found.shown_lists.sizes[targets] >= count]
    if not len(targets):
        return attack.not_applicable(f"no person has {count} released values in an epoch")
    success = found.picked(found.shown_lists, targets, count)
    others = found.random.integers(len(found.raw), size=len(targets))
    raw = found.picked(found.raw_lists, others[found.raw_lists.sizes[others] >= count], count)
    return rated(attack, success, found.shown.blind(targets), raw)


# ---- linking


def _one_event(found: StreamEvidence) -> list[Attack]:
    attack = Attack(
        "one value and its time", Question.LINKING,
        "The pseudonym picked among those with this value at this moment is the person's: all its other rows follow.",
        "one released event of the person: its value and its exact time",
    )  # fmt: skip
    success, blind = _by_moment(found, found.shown, found.targets)
    raw, _ = _by_moment(found, found.raw, found.random.permutation(len(found.raw))[: found.settings.targets])
    if not len(success):
        return [attack.not_applicable("no released row can be linked to a person")]
    return [rated(attack, success, blind, raw)]


def _by_moment(found: StreamEvidence, side: Side, targets: Ints) -> tuple[Floats, Floats]:
    item = side.items[0]
    usable = np.flatnonzero(item >= 0)
    event = dense(item[usable], side.time[usable])
    pairs = np.unique(event * (len(side) + 1) + side.group[usable])
    holders = np.bincount(pairs // (len(side) + 1))
    draw = found.random.permutation(len(usable))
    first = np.full(len(side), -1, np.int64)
    first[side.group[usable[draw]]] = event[draw]  # some event of every group
    asked = targets[first[targets] >= 0]
    return 1 / holders[first[asked]], side.blind(asked)


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
    return [rated(attack, success, blind, raw)]


def _relinked(found: StreamEvidence, side: Side) -> tuple[list[float], list[float]]:
    by_epoch = [np.flatnonzero(side.epoch == epoch) for epoch in range(int(side.epoch.max(initial=-1)) + 1)]
    lists = [_epoch_lists(side, groups) for groups in by_epoch]
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
        holders = np.bincount(lists[epoch + 1].item, minlength=max(side.width, 1))
        weight = np.log((len(later) + 1) / (holders + 0.5))
        score = lists[epoch + 1].similarity(own, weight)
        best = score >= score.max() - 1e-12
        success.append(float((later[best] == side.person[group]).mean()))
        blind.append(1 / len(later))
    return success, blind


def _epoch_lists(side: Side, groups: Ints) -> ItemLists:
    place = np.full(len(side), -1, np.int64)
    place[groups] = np.arange(len(groups))
    group, item = side.pairs
    owner = place[group]
    here = owner >= 0
    return ItemLists(owner[here], item[here], len(groups), side.width)


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
        values = found.values[attribute.name]
        linked = np.flatnonzero(found.link >= 0)
        true, shown = values.truth[found.link[linked]], values.shown[found.rows[linked]]
        lifted = linked[(shown >= 0) & (true >= 0) & (shown != true)]
        if not attribute.generalizes or not len(lifted):
            attacks.append(attack.not_applicable("no value is released under a label"))
            continue
        chosen = found.random.permutation(lifted)[: found.settings.targets]
        attacks.append(_behind(found, attack, attribute.name, chosen))
    return attacks


def _behind(found: StreamEvidence, attack: Attack, name: str, rows: Ints) -> Attack:
    values = found.values[name]
    usable = np.flatnonzero(found.usable & (values.truth >= 0))
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
