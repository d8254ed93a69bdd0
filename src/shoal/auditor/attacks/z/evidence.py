"""A z-anonymous release and its truth, grouped by person and epoch, for those who attack it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.auditor.attacks.item_lists import ItemLists
from shoal.auditor.attacks.settings import Settings
from shoal.auditor.counting import Paths, dense
from shoal.auditor.engine import Here
from shoal.auditor.evidence import read_evidence
from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.numbers import Floats
from shoal.auditor.reading.rows import Rows
from shoal.auditor.relation import Relation
from shoal.auditor.rows.texts import shared_numbers
from shoal.auditor.trace import RELEASED
from shoal.auditor.z.evidence import read_entries, read_records, read_released
from shoal.auditor.z.membership import linked
from shoal.auditor.z.promise import Attribute, ZPromise, read_z_promise
from shoal.errors import PolicyError


@dataclass(frozen=True, slots=True)
class Values:
    """One attribute: the true values, the published ones (-1: none), and the paths of both."""

    truth: Ints
    shown: Ints
    paths: Paths


@dataclass(frozen=True, slots=True)
class Side:
    """Released rows, or the records of the truth, grouped by person and epoch."""

    epoch: Ints
    """The epoch of every group, numbered from 0 on both sides alike."""
    person: Ints
    """The person of every group; -1 if not known."""
    group: Ints
    """The group of every row."""
    items: tuple[Ints, ...]
    """The value of every row in every attribute; -1 for none. All attributes are numbered together."""
    time: Ints
    width: int
    """How many different values there are."""

    def __len__(self) -> int:
        return len(self.epoch)

    @property
    def pairs(self) -> tuple[Ints, Ints]:
        """The group and the value of every value of every row."""
        owner = np.concatenate([self.group[item >= 0] for item in self.items])
        return owner, np.concatenate([item[item >= 0] for item in self.items])

    def blind(self, groups: Ints) -> Floats:
        """The chance to pick each group blindly among those of its epoch."""
        return 1 / np.bincount(self.epoch)[self.epoch[groups]]


@dataclass(frozen=True, slots=True)
class StreamEvidence:
    """Everything that attacks on z-anonymity use."""

    promise: ZPromise
    values: dict[str, Values]
    """The values of all records and of all released rows, by attribute."""
    usable: Bools
    """Which records can be used."""
    shown: Side
    raw: Side
    shown_lists: ItemLists
    """The values of every group of released rows. Those of different epochs are different items."""
    raw_lists: ItemLists
    link: Ints
    """The record of every released row that can be read; -1 if not known."""
    rows: Ints
    """The released rows that can be read."""
    settings: Settings
    random: np.random.Generator

    @property
    def targets(self) -> Ints:
        """Groups of released rows whose person is known, in random order."""
        known = np.flatnonzero(self.shown.person >= 0)
        return self.random.permutation(known)[: self.settings.targets]

    def picked(self, lists: ItemLists, groups: Ints, count: int) -> list[float]:
        """The chance to pick each group among those that have some of its items, as many as `count`."""
        chances = []
        for group in groups.tolist():
            known = self.random.choice(lists.of(group), size=count, replace=False)
            chances.append(1 / len(lists.with_all(known.tolist())))
        return chances


def read_stream_evidence(policy: Policy, release: Any, truth: Any, trace: Any, settings: Settings) -> StreamEvidence:
    """Read a z-anonymous release and its truth."""
    if settings.knows is not None:
        raise PolicyError("knows: z-anonymity has no quasi-identifiers; attackers know values and times")
    settings.progress("reading")
    promise = read_z_promise(policy)
    evidence = read_evidence(policy, release, truth, trace)
    sides = {"release": evidence.release, "truth": evidence.truth or Rows((), "truth"), "trace": evidence.trace}
    place = Here({role: rows for role, rows in sides.items() if rows is not None})
    released, known = read_released(place, promise), read_records(place, promise)
    _, (person, pseudonym) = shared_numbers(known["person"], released["pseudonym"])
    values = {attribute.name: _values(attribute, known, released) for attribute in promise.attributes}
    rows, records = np.flatnonzero(released["readable"] & (pseudonym >= 0)), np.flatnonzero(known["usable"])
    link = _linked(place, promise, known, released)[rows]
    epochs = dense(np.concatenate([released["at"][rows], known["time"][records]]) // promise.rotation_ns)
    offsets = np.cumsum(
        [0, *(max(one.truth.max(initial=-1), one.shown.max(initial=-1)) + 1 for one in values.values())]
    )
    width = int(offsets[-1])
    pairs = list(zip(values.values(), offsets, strict=False))
    shown_items = tuple(_shifted(one.shown[rows], by) for one, by in pairs)
    true_items = tuple(_shifted(one.truth[records], by) for one, by in pairs)
    owner = np.append(person, -1)[link]
    shown = _side(epochs[: len(rows)], pseudonym[rows], owner, tuple(shown_items), released["at"][rows], width)
    owner = person[records]
    raw = _side(epochs[len(rows) :], owner, owner, tuple(true_items), known["time"][records], width)
    return StreamEvidence(
        promise, values, known["usable"], shown, raw, _lists(shown), _lists(raw), link, rows, settings,
        np.random.default_rng(settings.seed),
    )  # fmt: skip


def _values(attribute: Attribute, known: Relation, released: Relation) -> Values:
    name = attribute.name
    labels, (truth, shown) = shared_numbers(known[f"true {name}"], released[f"released {name}"])
    return Values(truth, shown, Paths(labels, attribute.hierarchy))


def _linked(place: Here, promise: ZPromise, known: Relation, released: Relation) -> Ints:
    """The record of every released row; -1 if it is not known."""
    if {"row", "verdict"} <= set(place.outline("trace").columns):
        entries, apart = read_entries(place, promise)
        if not apart:
            released_records: Ints = entries["record"][entries["verdict"] == RELEASED]
            return np.maximum(released_records, -1)
    found: Ints = linked(promise, known.having(at=known["time"]), released)["record"]
    return found


def _shifted(code: Ints, by: int) -> Ints:
    return np.where(code >= 0, code + by, -1)


def _side(epoch: Ints, name: Ints, person: Ints, items: tuple[Ints, ...], time: Ints, width: int) -> Side:
    group = dense(epoch, name)
    count = int(group.max(initial=-1)) + 1
    of_group, of_epoch = np.full(count, -1, np.int64), np.zeros(count, np.int64)
    of_epoch[group] = epoch
    is_known = person >= 0
    of_group[group[is_known]] = person[is_known]
    return Side(of_epoch, of_group, group, items, time, width)


def _lists(side: Side) -> ItemLists:
    owner, item = side.pairs
    epochs = int(side.epoch.max(initial=-1)) + 1
    return ItemLists(owner, side.epoch[owner] * side.width + item, len(side), epochs * side.width)
