"""Attack a release of sets: find a record by a few known items, and guess the item behind a label."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from shoal.auditor.attacks.item_lists import ItemLists
from shoal.auditor.attacks.outcome import Attack, AttackReport, Question, Rate, by_question, rated, with_control
from shoal.auditor.attacks.settings import Settings
from shoal.auditor.audit import inputs_of
from shoal.auditor.findings import Notes
from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import Ints
from shoal.auditor.sets.blocks import read_blocks
from shoal.auditor.sets.evidence import read_release, read_truth, sets_here
from shoal.auditor.sets.labels import Above
from shoal.auditor.sets.partition import find_partition
from shoal.auditor.sets.promise import SetPromise, read_set_promise
from shoal.auditor.sets.records import Records, Sets, collect
from shoal.auditor.sets.trace import join_trace, only_released
from shoal.errors import InputError, PolicyError

_KNOWN: Final = (1, 2, 3, 5)
LOCAL: Final = "labels differ from record to record"


@dataclass(frozen=True, slots=True)
class SetEvidence:
    """Everything that attacks on sets use."""

    shown: Sets
    known: Sets
    label_of: Ints
    """For every item of the truth the number of its released label; -1 if it has none, or several (local recoding)."""
    above: list[list[int]] | None
    """Local recoding: for every item of the truth the labels that stand for it in some record."""
    shown_lists: ItemLists
    raw_lists: ItemLists
    method: str
    settings: Settings

    def matching(self, items: Ints) -> int:
        """How many released records may contain all of these items."""
        if self.above is None:
            labels = self.label_of[items]
            return len(self.shown_lists.with_all(np.unique(labels[labels >= 0]).tolist()))
        match = np.arange(len(self.shown))
        for item in items.tolist():
            holders = [self.shown_lists.holders(label) for label in self.above[item]]
            match = np.intersect1d(match, np.concatenate(holders)) if holders else match
        return len(match)


def read_set_evidence(policy: Policy, release: Any, truth: Any, trace: Any, settings: Settings) -> SetEvidence:
    """Read a release of sets and its truth."""
    if settings.knows is not None:
        raise PolicyError("knows: sets have no quasi-identifiers; attackers know items")
    settings.progress("reading")
    promise = read_set_promise(policy)
    with sets_here(policy, inputs_of(policy, release, truth, trace)) as here:
        released, original = read_release(here, policy, promise, Notes()), read_truth(here, policy, promise, Notes())
    if released is None:
        raise InputError(f"release: no column {promise.column}; check the policy and the file")
    shown, known = released.gathered, original.gathered
    assert shown is not None
    assert known is not None
    if promise.is_local:
        labels = Above(shown.labels, promise.generalization, read_blocks(release))
        above: list[list[int]] | None = [labels.item(item) for item in known.labels]
        label_of = np.full(len(known.labels), -1, np.int64)
    else:
        above, label_of = None, _partition(promise, release, released, original)
    return SetEvidence(shown, known, label_of, above, _lists(shown), _lists(known), promise.method, settings)


def attack_sets(evidence: SetEvidence) -> AttackReport:
    """Try every attack on a release of sets."""
    shown, known, settings = evidence.shown, evidence.known, evidence.settings
    random = np.random.default_rng(settings.seed)
    settings.progress("known items")
    attacks = _known_items(evidence, random)
    settings.progress("labels")
    attacks += [_whole_record(evidence, random), *_behind_labels(evidence, random)]
    facts = {
        "released_rows": len(shown),
        "people": len(known),
        "labels": len(shown.labels),
        "items": len(known.labels),
        "targets": min(settings.targets, len(known)),
        "seed": settings.seed,
    }
    return AttackReport(evidence.method, by_question(map(with_control, attacks)), facts)


def _partition(promise: SetPromise, release: Any, shown: Records, known: Records) -> Ints:
    """Return for every item of the truth the number of its released label; -1 if it has none."""
    blocks, notes, found = read_blocks(release), Notes(), None
    needs_rows = promise.generalization.hierarchy is None and blocks is None and known.place.has("trace")
    placed = join_trace(known, shown.counts.records, notes) if needs_rows else known
    if placed is not None and (not needs_rows or placed.changed(only_released).counts.records == known.counts.records):
        found, _ = find_partition(promise, blocks, placed, shown, notes, has_rows=needs_rows)
    if found is None:
        raise InputError(
            "release: the items behind its labels are not known; give a hierarchy in the policy, or keep the blocks "
            "file next to the release"
        )
    return np.where(found.label_of < len(shown.labels), found.label_of, -1)


def _lists(sets: Sets) -> ItemLists:
    return ItemLists(sets.owners, sets.items, len(sets), len(sets.labels))


def _known_items(evidence: SetEvidence, random: np.random.Generator) -> list[Attack]:
    shown, known, raw, settings = evidence.shown, evidence.known, evidence.raw_lists, evidence.settings
    found = []
    for count in _KNOWN:
        attack = Attack(
            f"{count} known item{'s' if count > 1 else ''}", Question.SINGLING_OUT,
            "The record picked among those that contain the labels of all known items is the person's.",
            f"{count} items of the person",
        )  # fmt: skip
        targets = random.permutation(np.flatnonzero(known.sizes >= count))[: settings.targets]
        if not len(targets):
            found.append(attack.not_applicable(f"no record has {count} items"))
            continue
        success, before = [], []
        for at in targets.tolist():
            items = random.choice(raw.of(at), size=count, replace=False)
            match = evidence.matching(items)
            success.append(1 / match if match else 0.0)
            before.append(1 / len(raw.with_all(items.tolist())))
        found.append(rated(attack, success, 1 / max(len(shown), 1), before))
    return found


def _whole_record(evidence: SetEvidence, random: np.random.Generator) -> Attack:
    shown, known, label_of, settings = evidence.shown, evidence.known, evidence.label_of, evidence.settings
    attack = Attack(
        "whole record", Question.SINGLING_OUT,
        "Among the records equal to the image of the person's, the one picked is the person's.",
        "all items of the person",
    )  # fmt: skip
    if evidence.above is not None:
        return attack.not_applicable(LOCAL)
    image = collect(known.owners, label_of[known.items], len(known), shown.labels, label_of[known.items] >= 0)
    images, keys = image.keys(), known.keys()
    times, before = Counter(shown.keys()), Counter(keys)
    targets = random.permutation(np.flatnonzero(known.sizes > 0))[: settings.targets].tolist()
    success = [1 / times[images[at]] if times[images[at]] else 0.0 for at in targets]
    return rated(attack, success, 1 / max(len(shown), 1), [1 / before[keys[at]] for at in targets])


def _behind_labels(evidence: SetEvidence, random: np.random.Generator) -> list[Attack]:
    shown, known, label_of, settings = evidence.shown, evidence.known, evidence.label_of, evidence.settings
    knows = "how common items are, and that the record has the label"
    simple = Attack(
        "item behind a label", Question.INFERENCE, "The most common item of a label is in the person's record.", knows
    )
    minimal = Attack(
        "minimality", Question.INFERENCE,
        "The item that made its label necessary (the rarest: without it the others needed no label) is in the record.",
        knows,
    )  # fmt: skip
    if evidence.above is not None:
        return [attack.not_applicable(LOCAL) for attack in (simple, minimal)]
    used = np.bincount(known.items, minlength=len(known.labels))
    inside = np.bincount(label_of[(label_of >= 0) & (used > 0)], minlength=len(shown.labels))
    owners, items = known.owners, known.items
    hidden = np.flatnonzero((label_of[items] >= 0) & (inside[np.maximum(label_of[items], 0)] > 1))
    if not len(hidden):
        return [attack.not_applicable("every label is one item") for attack in (simple, minimal)]
    chosen = random.permutation(hidden)[: settings.targets]
    order = np.lexsort((used, label_of))
    order = order[(label_of[order] >= 0) & (used[order] > 0)]
    commonest, rarest = np.zeros(len(shown.labels), np.int64), np.zeros(len(shown.labels), np.int64)
    commonest[label_of[order]] = order  # the last, most common one stays
    rarest[label_of[order[::-1]]] = order[::-1]
    holds = np.unique(owners * len(known.labels) + items)
    label = label_of[items[chosen]]
    prior = float(used.max() / len(known))
    return [
        replace(
            attack, success=Rate.of(np.isin(owners[chosen] * len(known.labels) + guess[label], holds)), guess=prior,
            raw=1.0,
        )
        for attack, guess in ((simple, commonest), (minimal, rarest))
    ]  # fmt: skip
